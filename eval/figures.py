"""What a run found, as the figures that every rendering of it shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from eval.answers import Answer
from eval.incidents import Incident, Label, Split
from eval.metrics import LOWER_IS_BETTER, METRICS, Mean, Score, ece, mean, summary

COMPOSER = "composer"
ECE_GOAL = 0.05
UNSCORED = "-"


@dataclass(frozen=True)
class Run:
    """Systems' answers to incidents with their scores.

    `rankings` holds recall and MRR of each retriever over the split test; `causes` maps a cause to its
    category; `started` is an ISO time; `seconds` is what the whole run took.
    """

    incidents: tuple[Incident, ...]
    answers: Mapping[str, tuple[Answer, ...]]
    scores: Mapping[str, tuple[Score, ...]]
    rankings: Mapping[str, Mapping[str, Mean]]
    causes: Mapping[str, str]
    started: str
    seconds: float
    versions: Mapping[str, str]


@dataclass(frozen=True)
class MetricRow:
    """One metric over one split: its words, its goal, and each system's mean (ECE has no interval)."""

    words: str
    goal: float | None
    lower: bool
    means: Mapping[str, Mean]


def splits(run: Run) -> list[Split]:
    """Give the splits that have incidents."""
    present = {incident.label.split for incident in run.incidents}
    return [split for split in get_args(Split) if split in present]


def systems(run: Run) -> list[str]:
    """Name the systems, the product first."""
    return sorted(run.scores, key=lambda name: name != COMPOSER)


def labels(run: Run) -> dict[str, Label]:
    """Give the labels by incident."""
    return {incident.id: incident.label for incident in run.incidents}


def scores_of(run: Run, system: str, split: Split) -> list[Score]:
    """Give a system's scores over one split."""
    known = labels(run)
    return [item for item in run.scores.get(system, ()) if known[item.incident].split == split]


def table(run: Run, split: Split) -> list[MetricRow]:
    """Give every metric of every system over one split, and the calibration error last."""
    scores = {name: scores_of(run, name, split) for name in systems(run)}
    means = {name: summary(rows) for name, rows in scores.items()}
    rows = [
        MetricRow(words, goal, metric in LOWER_IS_BETTER, {name: means[name][metric] for name in scores})
        for metric, words, goal in METRICS
    ]
    calibration = {
        name: Mean(ece(scored), math.nan, math.nan, sum(item.confidence is not None for item in scored))
        for name, scored in scores.items()
    }
    return [*rows, MetricRow("calibration error (ECE)", ECE_GOAL, True, calibration)]


def reached(row: MetricRow) -> bool | None:
    """Say whether the product reached a metric's goal; None where there is no goal or no score."""
    found = row.means.get(COMPOSER)
    if row.goal is None or found is None or not found.count:
        return None
    return found.value <= row.goal if row.lower else found.value >= row.goal


def mark(row: MetricRow) -> str:
    """Word `reached`; empty where there is nothing to say."""
    return {True: "reached", False: "not reached", None: ""}[reached(row)]


def number(value: float, goal: float | None = None) -> str:
    """Write a figure with two decimals; with three where two would hide its distance to the goal."""
    if math.isnan(value):
        return UNSCORED
    hidden = goal is not None and value != goal and f"{value:.2f}" == f"{goal:.2f}"
    return f"{value:.3f}" if hidden else f"{value:.2f}"


def interval(found: Mean) -> str:
    """Write an interval; empty where there is none."""
    return "" if math.isnan(found.low) else f"[{found.low:.2f}, {found.high:.2f}]"


def cell(found: Mean, goal: float | None = None) -> str:
    """Write a mean with its interval, as in `0.87 [0.82, 0.91]`."""
    return f"{number(found.value, goal)} {interval(found)}".rstrip()


def counted(found: Mean, goal: float | None = None) -> str:
    """Write a mean with its interval and how many answers were scored."""
    return f"{cell(found, goal)} n={found.count}" if found.count else UNSCORED


def aim(row: MetricRow) -> str:
    """Write a goal; empty where there is none."""
    return "" if row.goal is None else f"{'≤' if row.lower else '≥'} {row.goal:.2f}"


@dataclass(frozen=True)
class Cost:
    """What a system's answers cost: seconds for one incident, tokens for all."""

    median: float
    p95: float
    tokens: int


def cost(answers: Sequence[Answer]) -> Cost:
    """Give the cost of a system's answers; NaN where there is none."""
    if not answers:
        return Cost(math.nan, math.nan, 0)
    median, p95 = np.percentile([answer.seconds for answer in answers], [50, 95])
    return Cost(float(median), float(p95), sum(answer.tokens for answer in answers))


def seconds(value: float) -> str:
    """Write seconds with three digits that count."""
    return UNSCORED if math.isnan(value) else f"{value:.3f}" if value < 1 else f"{value:.1f}"


def retriever_columns(run: Run) -> list[str]:
    """Name what retrievers are measured in."""
    return list(dict.fromkeys(metric for means in run.rankings.values() for metric in means))


def named_category(answer: Answer, causes: Mapping[str, str]) -> str:
    """Give the category that an answer names, or its verdict where it names no cause."""
    if answer.verdict not in ("diagnosed", "ambiguous") or not answer.causes:
        return answer.verdict
    return causes.get(answer.causes[0], "no known category")


def labelled_category(label: Label, causes: Mapping[str, str], named: str = "") -> str:
    """Give the category of the label: the named one where it is accepted, else that of the best cause."""
    if label.verdict != "diagnosed":
        return label.verdict
    accepted = [causes.get(cause, "no known category") for cause in label.causes]
    return named if named in accepted else accepted[0]


def confusion(run: Run, split: Split) -> Counter[tuple[str, str]]:
    """Count the product's answers over one split by labelled and named category."""
    known = labels(run)
    pairs: Counter[tuple[str, str]] = Counter()
    for answer in run.answers.get(COMPOSER, ()):
        label = known[answer.incident]
        if label.split == split:
            named = named_category(answer, run.causes)
            pairs[labelled_category(label, run.causes, named), named] += 1
    return pairs


def by_category(run: Run) -> dict[str, dict[Split, Mean]]:
    """Give the product's top-1 figure for each category and split, by the category's name."""
    known = labels(run)
    values: dict[str, dict[Split, list[float | None]]] = {}
    for item in run.scores.get(COMPOSER, ()):
        label = known[item.incident]
        if label.verdict == "diagnosed":
            values.setdefault(labelled_category(label, run.causes), {}).setdefault(label.split, []).append(
                item.cause_top1
            )
    return {name: {split: mean(rows) for split, rows in values[name].items()} for name in sorted(values)}


@dataclass(frozen=True)
class Wrong:
    """A wrong answer of the product, with the category under which it is listed."""

    incident: Incident
    answer: Answer
    category: str


def wrong(run: Run) -> list[Wrong]:
    """List the product's wrong answers: test before fit, then by name."""
    incidents = {incident.id: incident for incident in run.incidents}
    right = {item.incident: item.right for item in run.scores.get(COMPOSER, ())}
    found = [
        Wrong(
            incidents[answer.incident],
            answer,
            labelled_category(incidents[answer.incident].label, run.causes),
        )
        for answer in run.answers.get(COMPOSER, ())
        if not right[answer.incident]
    ]
    return sorted(found, key=lambda item: (item.incident.label.split != "test", item.incident.id))
