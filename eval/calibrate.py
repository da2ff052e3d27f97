"""Fit the weights of the features on labelled incidents: `python -m eval.calibrate [FOLDER...] [--write]`.

A conditional logit over the causes of a log, with a ridge penalty. Of our own incidents only the split `fit`
is used; all logs of further folders are. The logits are then divided by a temperature, fitted on logs that
were no examples of the weights, since on those the probabilities are too high: with `--rounds N... --texts
DIR` the public logs of spent rounds (see eval/fresh), which become examples afterwards, with `--temperature
FOLDER` the logs of a folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from corpus.library import digest
from eval import incidents
from eval.fresh import rounds
from eval.fresh.scoring import laid_out
from eval.fresh.texts import from_folder
from eval.incidents import Incident
from service.pipeline.triage import Triage
from service.scoring import calibration
from service.scoring.calibration import Weights
from service.scoring.features import Signs
from service.scoring.scoring import feature_table
from service.settings import load_settings

# Factor of the ridge penalty, chosen by four-fold cross-validation; 0.3 to 3 give nearly the same loss.
RIDGE = 1.0
# Weight of a further accepted cause in the likelihood; the best one has 1.
ACCEPTED_WEIGHT = 0.3
# Bounds of the temperature.
TEMPERATURES = (0.6, 3.0)

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One log as a training example.

    `rows` are the features of each candidate cause, the option "not in the log" last; `right` the indices of
    the accepted rows, `weights` their weights in the likelihood.
    """

    rows: tuple[Signs, ...]
    right: tuple[int, ...]
    weights: tuple[float, ...]


def examples(found: Iterable[Incident], triage: Triage) -> Iterator[Example]:
    """Read logs and give a training example of each.

    Left out: logs without a failure, logs of which no candidate is accepted, and incidents with telemetry,
    whose label does not follow from the log alone.
    """
    for incident in found:
        if incident.telemetry:
            continue
        report = triage.reader.read(incident.source())
        if report.root is None:
            continue
        weighed = feature_table(report, triage.retriever.retrieve(report), triage.library)
        right = (
            ((len(weighed.options),))
            if incident.label.verdict != "diagnosed"
            else tuple(
                place for place, option in enumerate(weighed.options) if option.cause in incident.label.causes
            )
        )
        if right:
            best = incident.label.causes[:1]
            weights = (
                1.0
                if place == len(weighed.options) or (weighed.options[place].cause,) == best
                else ACCEPTED_WEIGHT
                for place in right
            )
            yield Example(
                (*(option.signs for option in weighed.options), weighed.doubt), right, tuple(weights)
            )


def fitted(found: Sequence[Example]) -> dict[str, float]:
    """Fit a conditional logit with a ridge penalty by L-BFGS (deterministic); gives each feature's weight."""
    names = sorted({name for example in found for row in example.rows for name in row})
    tables = [(_table(example, names), list(example.right), np.array(example.weights)) for example in found]

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        parts = [_loss(*table, weights) for table in tables]
        total = RIDGE * float(weights @ weights) / 2 + sum(part for part, _ in parts)
        return total, RIDGE * weights + sum((slope for _, slope in parts), np.zeros(len(names)))

    best = scipy.optimize.minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B")
    return {name: round(float(weight), 4) for name, weight in zip(names, best.x, strict=True)}


def _table(example: Example, names: Sequence[str]) -> Matrix:
    return np.array([[row.get(name, 0.0) for name in names] for row in example.rows])


def _softmax(sums: Matrix) -> Matrix:
    powers = np.exp(sums - sums.max())
    shares: Matrix = powers / powers.sum()
    return shares


def _loss(table: Matrix, right: list[int], accepted: Matrix, weights: Matrix) -> tuple[float, Matrix]:
    """Give the negative log-likelihood of one log's accepted rows, and its gradient.

    `table` is (rows, features), `accepted` the weights of the rows `right`, `weights` one for each feature.
    """
    shares = _softmax(table @ weights)
    wanted = np.zeros_like(shares)
    wanted[right] = shares[right] * accepted
    total = max(wanted.sum(), 1e-12)
    return -float(np.log(total)), table.T @ (shares - wanted / total)


def fitted_temperature(found: Sequence[Example], weights: dict[str, float]) -> float:
    """Give the temperature that maximises the likelihood of the labels, within TEMPERATURES."""
    names = list(weights)
    sums = [
        (_table(example, names) @ np.array([weights[name] for name in names]), list(example.right))
        for example in found
    ]

    def loss(temperature: float) -> float:
        return float(
            sum(-np.log(max(_softmax(values / temperature)[right].sum(), 1e-12)) for values, right in sums)
        )

    return round(float(scipy.optimize.minimize_scalar(loss, bounds=TEMPERATURES, method="bounded").x), 2)


def main(words: Sequence[str]) -> int:
    """Fit, print the weights as JSON, and write them with `--write`."""
    parser = argparse.ArgumentParser(
        prog="python -m eval.calibrate", description="Fit the weights of the features."
    )
    parser.add_argument("folders", nargs="*", type=Path, help="further folders of labelled logs")
    parser.add_argument(
        "--temperature",
        default="1",
        help="a folder of labelled logs that no rule was written for, or a number",
    )
    parser.add_argument("--write", action="store_true", help=f"replace {calibration.FILE.name}")
    parser.add_argument("--rounds", nargs="*", type=int, default=[], help="spent rounds of public logs")
    parser.add_argument("--texts", type=Path, help="the texts of these rounds, named by their SHA-256")
    chosen = parser.parse_args(words)
    if chosen.rounds and not chosen.texts:
        parser.error("--rounds needs --texts")
    triage = Triage(load_settings())
    logs = [
        *incidents.load(split="fit"),
        *(incident for folder in chosen.folders for incident in incidents.load(folder)),
    ]
    found = list(examples(logs, triage))
    learned = fitted(found)
    if chosen.rounds:
        source = from_folder(chosen.texts)
        public = (log for number in chosen.rounds for log in laid_out(rounds.load(number), source))
        spent = list(examples(public, triage))
        temperature = fitted_temperature(spent, learned)
        found += spent
        learned = fitted(found)
    elif Path(chosen.temperature).is_dir():
        unseen = incidents.load(Path(chosen.temperature))
        temperature = fitted_temperature(list(examples(unseen, triage)), learned)
    else:
        temperature = float(chosen.temperature)
    made = Weights(signs=learned, temperature=temperature, corpus=digest()[:16], incidents=len(found))
    if chosen.write:
        calibration.FILE.write_text(made.model_dump_json(indent=1) + "\n")
    sys.stdout.write(made.model_dump_json(indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
