"""Fit the weights of the signs on labelled incidents: `python -m eval.calibrate [FOLDER...] [--write]`.

Only the `fit` split of our own incidents is used; folders of further labelled logs count as fitting too.
With `--temperature FOLDER` the sums are then cooled on logs that no rule was written for, since whatever was
looked at while writing rules makes them surer than they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from corpus.library import digest
from eval import incidents
from eval.incidents import Incident
from service.pipeline.triage import Triage
from service.scoring import calibration
from service.scoring.calibration import Weights
from service.scoring.features import Signs
from service.scoring.scoring import feature_table
from service.settings import load_settings

# Strength of the pull towards zero; chosen by four-fold cross-validation, flat from 0.3 to 3.
RIDGE = 1.0
# What a cause that is also accepted is worth beside the best.
ALSO = 0.3
# Between which the temperature is sought.
TEMPERATURES = (0.6, 3.0)

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One log's options as rows of signs, doubt last.

    The rows that are right, and how much each is wanted.
    """

    rows: tuple[Signs, ...]
    right: tuple[int, ...]
    worth: tuple[float, ...]


def examples(found: Iterable[Incident], triage: Triage) -> Iterator[Example]:
    """Read logs and give what can be learned from each.

    What has no failure, or no right option, teaches nothing.

    Where telemetry decides, the log alone would teach what it does not say.
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
            worth = (
                1.0 if place == len(weighed.options) or (weighed.options[place].cause,) == best else ALSO
                for place in right
            )
            yield Example((*(option.signs for option in weighed.options), weighed.doubt), right, tuple(worth))


def fitted(found: Sequence[Example]) -> dict[str, float]:
    """Fit a conditional logit with a ridge, by L-BFGS; deterministic."""
    names = sorted({name for example in found for row in example.rows for name in row})
    tables = [(_table(example, names), list(example.right), np.array(example.worth)) for example in found]

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        parts = [_loss(*table, weights) for table in tables]
        total = RIDGE * float(weights @ weights) / 2 + sum(part for part, _ in parts)
        return total, RIDGE * weights + sum((slope for _, slope in parts), np.zeros(len(names)))

    best = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B")
    return {name: round(float(weight), 4) for name, weight in zip(names, best.x, strict=True)}


def _table(example: Example, names: Sequence[str]) -> Matrix:
    return np.array([[row.get(name, 0.0) for name in names] for row in example.rows])


def _shares(sums: Matrix) -> Matrix:
    powers = np.exp(sums - sums.max())
    shares: Matrix = powers / powers.sum()
    return shares


def _loss(table: Matrix, right: list[int], worth: Matrix, weights: Matrix) -> tuple[float, Matrix]:
    """Give minus the logarithm of what the right rows of one log are worth, and its slope."""
    shares = _shares(table @ weights)
    wanted = np.zeros_like(shares)
    wanted[right] = shares[right] * worth
    total = max(wanted.sum(), 1e-12)
    return -float(np.log(total)), table.T @ (shares - wanted / total)


def cooled(found: Sequence[Example], learned: dict[str, float]) -> float:
    """Give the temperature under which the labels of other logs are likeliest."""
    names = list(learned)
    sums = [
        (_table(example, names) @ np.array([learned[name] for name in names]), list(example.right))
        for example in found
    ]

    def loss(heat: float) -> float:
        return float(sum(-np.log(max(_shares(values / heat)[right].sum(), 1e-12)) for values, right in sums))

    return round(float(minimize_scalar(loss, bounds=TEMPERATURES, method="bounded").x), 2)


def main(words: Sequence[str]) -> int:
    """Fit, print what came of it, and write it where that is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m eval.calibrate", description="Fit the weights of the signs."
    )
    parser.add_argument("folders", nargs="*", type=Path, help="further folders of labelled logs")
    parser.add_argument(
        "--temperature",
        default="1",
        help="a folder of labelled logs that no rule was written for, or what one gave",
    )
    parser.add_argument("--write", action="store_true", help=f"replace {calibration.FILE.name}")
    chosen = parser.parse_args(words)
    triage = Triage(load_settings())
    logs = [
        *incidents.load(split="fit"),
        *(incident for folder in chosen.folders for incident in incidents.load(folder)),
    ]
    found = list(examples(logs, triage))
    learned = fitted(found)
    heat = (
        cooled(list(examples(incidents.load(Path(chosen.temperature)), triage)), learned)
        if Path(chosen.temperature).is_dir()
        else float(chosen.temperature)
    )
    made = Weights(signs=learned, temperature=heat, corpus=digest()[:16], incidents=len(found))
    if chosen.write:
        calibration.FILE.write_text(made.model_dump_json(indent=1) + "\n")
    sys.stdout.write(made.model_dump_json(indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
