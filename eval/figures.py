"""The figures of a run that the terminal report and the HTML page show."""

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

    `answers` and `scores` are by system, in the order of `incidents`. `rankings` holds recall@k and MRR of
    each retriever over the split `test`; `causes` maps a cause to its category; `started` is an ISO 8601
    time; `seconds` is the wall time of the whole run.
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
    """One metric over one split: its label, its goal, whether lower is better, and the mean by system."""

    words: str
    goal: float | None
    lower: bool
    means: Mapping[str, Mean]


def splits(run: Run) -> list[Split]:
    """Give the splits that have incidents."""
    present = {incident.label.split for incident in run.incidents}
    return [split for split in get_args(Split) if split in present]


def systems(run: Run) -> list[str]:
    """List the systems, the composer first."""
    return sorted(run.scores, key=lambda name: name != COMPOSER)


def labels(run: Run) -> dict[str, Label]:
    """Give the labels by incident id."""
    return {incident.id: incident.label for incident in run.incidents}


def scores_of(run: Run, system: str, split: Split) -> list[Score]:
    """Give a system's scores over one split."""
    known = labels(run)
    return [item for item in run.scores.get(system, ()) if known[item.incident].split == split]


def table(run: Run, split: Split) -> list[MetricRow]:
    """Give all metrics of all systems over one split; the last is the calibration error, without interval."""
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
    """Tell whether the composer reaches a metric's goal; None where there is no goal or no score."""
    found = row.means.get(COMPOSER)
    if row.goal is None or found is None or not found.count:
        return None
    return found.value <= row.goal if row.lower else found.value >= row.goal


def goal_mark(row: MetricRow) -> str:
    """Give `reached` in words; empty where it is None."""
    return {True: "reached", False: "not reached", None: ""}[reached(row)]


def number(value: float, goal: float | None = None) -> str:
    """Format a figure with two decimals, or three where it would else look equal to the goal."""
    if math.isnan(value):
        return UNSCORED
    hidden = goal is not None and value != goal and f"{value:.2f}" == f"{goal:.2f}"
    return f"{value:.3f}" if hidden else f"{value:.2f}"


def interval(found: Mean) -> str:
    """Format an interval; empty where there is none."""
    return "" if math.isnan(found.low) else f"[{found.low:.2f}, {found.high:.2f}]"


def cell(found: Mean, goal: float | None = None) -> str:
    """Format a mean with its interval, as in `0.87 [0.82, 0.91]`."""
    return f"{number(found.value, goal)} {interval(found)}".rstrip()


def counted(found: Mean, goal: float | None = None) -> str:
    """Format a mean with its interval and the number of scored answers."""
    return f"{cell(found, goal)} n={found.count}" if found.count else UNSCORED


def goal_text(row: MetricRow) -> str:
    """Format a goal; empty where there is none."""
    return "" if row.goal is None else f"{'≤' if row.lower else '≥'} {row.goal:.2f}"


@dataclass(frozen=True)
class Cost:
    """Median and 95th percentile of seconds for one incident, and tokens over all incidents."""

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
    """Format seconds: three decimals below one second, else one."""
    return UNSCORED if math.isnan(value) else f"{value:.3f}" if value < 1 else f"{value:.1f}"


def retriever_columns(run: Run) -> list[str]:
    """List the metrics of the retrievers."""
    return list(dict.fromkeys(metric for means in run.rankings.values() for metric in means))


def named_category(answer: Answer, causes: Mapping[str, str]) -> str:
    """Give the category of the named cause, or the verdict where no cause is named."""
    if answer.verdict not in ("diagnosed", "ambiguous") or not answer.causes:
        return answer.verdict
    return causes.get(answer.causes[0], "no known category")


def labelled_category(label: Label, causes: Mapping[str, str], named: str = "") -> str:
    """Give the label's category: `named` where an accepted cause has it, else that of the best cause.

    Without a cause it is the label's verdict.
    """
    if label.verdict != "diagnosed":
        return label.verdict
    accepted = [causes.get(cause, "no known category") for cause in label.causes]
    return named if named in accepted else accepted[0]


def confusion(run: Run, split: Split) -> Counter[tuple[str, str]]:
    """Count the composer's answers over one split by (labelled category, named category)."""
    known = labels(run)
    pairs: Counter[tuple[str, str]] = Counter()
    for answer in run.answers.get(COMPOSER, ()):
        label = known[answer.incident]
        if label.split == split:
            named = named_category(answer, run.causes)
            pairs[labelled_category(label, run.causes, named), named] += 1
    return pairs


def by_category(run: Run) -> dict[str, dict[Split, Mean]]:
    """Give the composer's mean of `cause_top1` by category and split, sorted by category."""
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
class WrongAnswer:
    """A wrong answer of the composer, with the labelled category."""

    incident: Incident
    answer: Answer
    category: str


def wrong(run: Run) -> list[WrongAnswer]:
    """List the composer's wrong answers, the split `test` first, then by incident id."""
    incidents = {incident.id: incident for incident in run.incidents}
    right = {item.incident: item.right for item in run.scores.get(COMPOSER, ())}
    found = [
        WrongAnswer(
            incidents[answer.incident],
            answer,
            labelled_category(incidents[answer.incident].label, run.causes),
        )
        for answer in run.answers.get(COMPOSER, ())
        if not right[answer.incident]
    ]
    return sorted(found, key=lambda item: (item.incident.label.split != "test", item.incident.id))
