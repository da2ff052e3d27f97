"""Fit the classifier of failing messages: `python -m eval.classify --texts FILE [--write]`.

It learns from the labelled sites of `corpus/labels/sites.csv`, whose words `python -m corpus.extract messages
texts` reads out of their releases again, and from our own examples of patterns and known bugs and the root
lines of the incidents XX
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import scipy
from numpy.typing import NDArray

from corpus import library, log_patterns
from corpus.extract.messages import labels
from corpus.extract.messages.labels import NO_FAILURE
from corpus.extract.messages.packages import atlas_packages
from corpus.extract.messages.sampling import DrawnSite, read_drawn
from corpus.known_issues import KnownIssue
from eval import incidents
from ingest.embedder import Embedder, open_embedder
from ingest.logs.lines import parse_line
from service.scoring import message_classifier
from service.scoring.message_classifier import FailingMessage, features_of, message_in
from service.settings import load_settings

# What the cause that a reader names second counts beside the first.
SECOND = 0.3
# Weights of the examples: a site with and without its place, of our own those that state or only suggest.
SITE_WITH_PLACE, SITE_WITHOUT_PLACE, STATED, SUGGESTED = 0.5, 0.5, 1.0, 0.7
# Factor of the ridge penalty, and how far rare causes are raised; by cross-validation over packages.
RIDGE, EVENING = 0.1, 0.3
ITERATIONS = 150
# How many of the nearest sites vote in the baseline.
NEIGHBOURS = 10
# Bounds of the temperature.
TEMPERATURES = (0.5, 4.0)
# A feature that fewer examples show says nothing of others.
FEWEST = 2

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledMessage:
    """A message with the causes that its readers name, whose shares add up to `weight`.

    `group` is what is left out of a fit together: the package or framework that says it. `is_site` tells a
    labelled site from an example of ours.
    """

    message: FailingMessage
    causes: Mapping[str, float]
    weight: float
    group: str
    is_site: bool = False


class Figures(NamedTuple):
    """How good odds are over labelled messages: shares, and nats of the likelihood."""

    top1: float
    top3: float
    loss: float
    sites: int


class Model(NamedTuple):
    """A fitted regression: the hashes of its features, a row of weights for each, bias and temperature."""

    causes: tuple[str, ...]
    features: NDArray[np.uint32]
    weights: Matrix
    bias: Matrix
    temperature: float = 1.0


def labelled_sites(drawn: Iterable[DrawnSite], found: Iterable[labels.SiteLabel]) -> list[LabelledMessage]:
    """Put the labels to the words of their sites; what is no failure of a job is left out."""
    said: dict[tuple[str, str, int, str], list[labels.SiteLabel]] = defaultdict(list)
    for label in found:
        said[label.package, label.file, label.line, label.words].append(label)
    frameworks = {name: row.framework or name for name, row in atlas_packages().items()}
    made = []
    for site in drawn:
        shares: dict[str, float] = defaultdict(float)
        for label in said.get((site.package, site.file, site.line, labels.words_digest(site)), ()):
            shares[label.cause] += 1.0 - SECOND * bool(label.second)
            if label.second:
                shares[label.second] += SECOND
        shares.pop(NO_FAILURE, None)
        if not shares:
            continue
        total = sum(shares.values())
        message = FailingMessage(site.words, site.exception, site.file, site.symbol)
        causes = {cause: share / total for cause, share in shares.items()}
        made.append(LabelledMessage(message, causes, 1.0, frameworks[site.package], is_site=True))
    return made


def own_examples() -> Iterator[LabelledMessage]:
    """Give the examples of patterns and known bugs, and the root lines of incidents that may be fitted on."""
    for row in log_patterns.load().rows:
        if row.fails and row.cause and row.strength != "hints":
            weight = STATED if row.strength == "states" else SUGGESTED
            for example in row.examples:
                yield _own(example, row.cause, weight, row.id.split(".")[0])
    for path in sorted((library.ROOT / library.KNOWN_ISSUES).glob("*.yaml")):
        table = library.read_yaml(path)
        for item in table["issues"]:
            issue = KnownIssue.model_validate({**item, "framework": table["framework"]})
            for example in issue.examples:
                yield _own(example, issue.cause, SUGGESTED, issue.framework)
    for incident in incidents.load(split="fit"):
        if incident.label.verdict == "diagnosed":
            lines = incident.lines
            for number in incident.label.root_lines[:2]:
                yield _own(lines[number - 1], incident.label.causes[0], STATED, f"incident {incident.id}")


def _own(text: str, cause: str, weight: float, group: str) -> LabelledMessage:
    last = text.rstrip().rsplit("\n", 1)[-1]
    body = parse_line(last.encode(), 1).body
    return LabelledMessage(message_in(body), {cause: 1.0}, weight, group)


def fitted(found: Sequence[LabelledMessage], ridge: float = RIDGE, evening: float = EVENING) -> Model:
    """Fit a multinomial logistic regression with a ridge penalty by L-BFGS; deterministic."""
    rows: list[LabelledMessage] = []
    for item in found:
        if not item.is_site:
            rows.append(item)
            continue
        # With and without its place, as a log may show its calls or not.
        bare = replace(item.message, file="", symbol="")
        rows.append(replace(item, weight=SITE_WITH_PLACE))
        rows.append(replace(item, message=bare, weight=SITE_WITHOUT_PLACE))
    causes = tuple(sorted({cause for row in rows for cause in row.causes}))
    shown = [features_of(row.message) for row in rows]
    counts: dict[int, int] = defaultdict(int)
    for item in found:
        for feature in features_of(item.message):
            counts[feature] += 1
    features = np.array(
        sorted(feature for feature, count in counts.items() if count >= FEWEST), dtype=np.uint32
    )
    table = _table(shown, features)
    wanted = np.zeros((len(rows), len(causes)))
    for number, row in enumerate(rows):
        for cause, share in row.causes.items():
            wanted[number, causes.index(cause)] = share * row.weight
    totals = wanted.sum(axis=0)
    # A cause that sites seldom tell of may be frequent in logs: rare ones are raised, some way to even.
    wanted *= (totals.mean() / np.maximum(totals, 1.0)) ** evening
    weights = wanted.sum(axis=1, keepdims=True)
    shape = (len(features), len(causes))

    def loss(flat: Matrix) -> tuple[float, Matrix]:
        inner, bias = flat[: -shape[1]].reshape(shape), flat[-shape[1] :]
        sums = table @ inner + bias
        logs = sums - _log_total(sums)
        slope = np.exp(logs) * weights - wanted
        total = -float((wanted * logs).sum()) + ridge * float((inner**2).sum()) / 2
        return total, np.concatenate([(table.T @ slope + ridge * inner).ravel(), slope.sum(axis=0)])

    start = np.zeros(shape[0] * shape[1] + shape[1])
    best = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}
    ).x
    return Model(causes, features, best[: -shape[1]].reshape(shape), best[-shape[1] :])


def _table(shown: Sequence[Mapping[int, float]], features: NDArray[np.uint32]) -> scipy.sparse.csr_matrix:
    """Lay features out as a sparse matrix: a row a message, a column a known feature."""
    places = {int(feature): place for place, feature in enumerate(features)}
    cells = [
        (number, places[feature], share)
        for number, row in enumerate(shown)
        for feature, share in row.items()
        if feature in places
    ]
    rows, columns, shares = np.array(cells, dtype=np.float64).reshape(-1, 3).T
    shape = (len(shown), len(features))
    return scipy.sparse.csr_matrix((shares, (rows.astype(np.int64), columns.astype(np.int64))), shape=shape)


def _log_total(sums: Matrix) -> Matrix:
    top = sums.max(axis=1, keepdims=True)
    total: Matrix = top + np.log(np.exp(sums - top).sum(axis=1, keepdims=True))
    return total


def odds_of(model: Model, found: Sequence[LabelledMessage]) -> Matrix:
    """Give the odds of each message: a row a message, a column a cause of the model."""
    table = _table([features_of(item.message) for item in found], model.features)
    sums = np.asarray((table @ model.weights + model.bias) / model.temperature)
    odds: Matrix = np.exp(sums - _log_total(sums))
    return odds


def figures_of(odds: Matrix, causes: Sequence[str], found: Sequence[LabelledMessage]) -> Figures:
    """Score odds: right where the likeliest cause of the label is first, or among the first three."""
    places = {cause: place for place, cause in enumerate(causes)}
    ranks = np.argsort(-odds, axis=1)
    best = [max(item.causes, key=lambda cause: item.causes[cause]) for item in found]
    first = [causes[row[0]] == cause for row, cause in zip(ranks, best, strict=True)]
    among = [cause in {causes[place] for place in row[:3]} for row, cause in zip(ranks, best, strict=True)]
    losses = [
        -sum(
            share * np.log(max(row[places[cause]] if cause in places else 0.0, 1e-6))
            for cause, share in item.causes.items()
        )
        for row, item in zip(odds, found, strict=True)
    ]
    top1, top3, loss = (round(float(np.mean(values)), 3) for values in (first, among, losses))
    return Figures(top1, top3, loss, len(found))


def fold_of(group: str, folds: int) -> int:
    """Give the fold in which a group is left out."""
    return crc32(group.encode()) % folds


def temperature_of(odds: Matrix, causes: Sequence[str], found: Sequence[LabelledMessage]) -> float:
    """Give the temperature that makes odds of messages that were left out the likeliest."""
    logs = np.log(np.maximum(odds, 1e-12))

    def loss(temperature: float) -> float:
        sums = logs / temperature
        return figures_of(np.exp(sums - _log_total(sums)), causes, found).loss

    return round(float(scipy.optimize.minimize_scalar(loss, bounds=TEMPERATURES, method="bounded").x), 2)


def left_out(
    sites: Sequence[LabelledMessage], own: Sequence[LabelledMessage], folds: int
) -> tuple[Matrix, tuple[str, ...], list[LabelledMessage]]:
    """Give the odds of each site by a fit without its package: odds, the causes of their columns, sites."""
    causes = tuple(sorted({cause for item in (*sites, *own) for cause in item.causes}))
    odds, told = [], []
    for fold in range(folds):
        kept = [item for item in (*sites, *own) if fold_of(item.group, folds) != fold]
        asked = [item for item in sites if fold_of(item.group, folds) == fold]
        model = fitted(kept)
        part = np.full((len(asked), len(causes)), 1e-9)
        part[:, [causes.index(cause) for cause in model.causes]] = odds_of(model, asked)
        odds.append(part)
        told += asked
    return np.vstack(odds), causes, told


def baselines(
    sites: Sequence[LabelledMessage], causes: Sequence[str], folds: int, embedder: Embedder
) -> dict[str, Figures]:
    """Score the causes' own shares, and the labels of the sites whose words are nearest by embedding."""
    vectors = embedder.embed([f"{item.message.exception}: {item.message.text}" for item in sites])
    labelled = np.array([[item.causes.get(cause, 0.0) for cause in causes] for item in sites])
    group = np.array([fold_of(item.group, folds) for item in sites])
    shares, nearest = np.zeros_like(labelled), np.zeros_like(labelled)
    for fold in range(folds):
        asked, known = np.flatnonzero(group == fold), np.flatnonzero(group != fold)
        prior = labelled[known].sum(axis=0) + 0.5
        shares[asked] = prior / prior.sum()
        likeness = vectors[asked] @ vectors[known].T
        near = np.argsort(-likeness, axis=1)[:, :NEIGHBOURS]
        power = np.exp(10.0 * np.take_along_axis(likeness, near, axis=1))[:, :, None]
        voted = (labelled[known][near] * power).sum(axis=1) / power.sum(axis=1)
        nearest[asked] = 0.7 * voted + 0.3 * shares[asked]
    return {
        "shares of the causes": figures_of(shares, causes, sites),
        "nearest by embedding": figures_of(nearest, causes, sites),
    }


def save(model: Model, path: Path, table: str) -> int:
    """Write the model as `service/scoring/message_classifier.py` reads it; gives how many features it has."""
    largest = np.abs(model.weights).max(axis=0)
    scales = (np.maximum(largest, 1e-6) / 127.0).astype(np.float32)
    weights = np.round(model.weights / scales).astype(np.int8)
    # What weighs nothing need not be kept.
    kept = weights.any(axis=1)
    head = {"causes": list(model.causes), "temperature": model.temperature, "labels": table}
    np.savez_compressed(
        path,
        features=model.features[kept],
        weights=weights[kept],
        scales=scales,
        bias=model.bias.astype(np.float32),
        head=np.array(json.dumps(head)),
    )
    return int(kept.sum())


def main(words: Sequence[str]) -> int:
    """Score what is left out with `--folds`, and fit on everything and write it with `--write`."""
    parser = argparse.ArgumentParser(prog="python -m eval.classify", description=__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="the labelled sites with their words")
    parser.add_argument("--folds", type=int, default=4, help="into how many parts packages are divided")
    parser.add_argument(
        "--baselines",
        action="store_true",
        help="score two baselines beside it, one of which embeds the words",
    )
    parser.add_argument("--write", action="store_true", help=f"replace {message_classifier.FILE.name}")
    chosen = parser.parse_args(words)
    table = labels.read_labels()
    sites, own = labelled_sites(read_drawn(chosen.texts), table), list(own_examples())
    agreed = labels.agreement(table)
    sys.stdout.write(f"{len(sites)} sites, {len(own)} examples of ours\n")
    sys.stdout.write(f"{agreed.sites} sites read twice: alike {agreed.share:.3f}, kappa {agreed.kappa:.3f}\n")
    odds, causes, asked = left_out(sites, own, chosen.folds)
    temperature = temperature_of(odds, causes, asked)
    tempered = odds ** (1 / temperature)
    found = {"classifier": figures_of(tempered / tempered.sum(axis=1, keepdims=True), causes, asked)}
    if chosen.baselines:
        settings = load_settings()
        embedder = open_embedder(settings.embedding_model, settings.home)
        found |= baselines(sites, causes, chosen.folds, embedder)
    for name, row in found.items():
        told = f"first {row.top1}, among three {row.top3}, log loss {row.loss}"
        sys.stdout.write(f"packages left out, {name}: {told} ({row.sites} sites)\n")
    sys.stdout.write(f"temperature {temperature}\n")
    if chosen.write:
        model = fitted([*sites, *own])._replace(temperature=temperature)
        count = save(model, message_classifier.FILE, labels.labels_digest())
        size = message_classifier.FILE.stat().st_size / 1e6
        sys.stdout.write(f"{count} features, {size:.2f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
