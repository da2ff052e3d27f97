"""Score answers against labels; means with intervals, calibration, comparison of two runs.

A metric is None where label or answer has nothing to score: that is neither right nor wrong and does not
enter the mean. Top-1 looks at the named cause alone, top-3 at the first three, evidence at the first five
lines, so a longer list gains nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from corpus.keys import canonical
from corpus.library import Library
from eval.answers import Answer
from eval.incidents import Incident, LabelledChange
from eval.written_keys import written_keys

RESAMPLES = 2000
SURE = 0.8
BINS = 10
# What labels call the owner of an option that only the job's own program has.
OWN_PROGRAM = "script"
DEPTHS = (1, 3, 10)


@dataclass(frozen=True)
class Score:
    """The metrics of one answer: each is 0 or 1 (`grounded` a share), or None where it is not scored."""

    incident: str
    cause_top1: float | None
    cause_top3: float | None
    category: float | None
    root_line_1: float | None
    root_line_5: float | None
    setting: float | None
    patch: float | None
    grounded: float | None
    healthy: float | None
    abstained: float | None
    answered: float | None
    sure_and_wrong: float | None
    right: float
    confidence: float | None
    # Runs that were recorded before these were scored have none of them.
    setting_first: float | None = None
    no_op: float | None = None
    not_run: float | None = None
    harmful: float | None = None

    def record(self) -> dict[str, Any]:
        """Give the fields for a JSON line."""
        return asdict(self)


# The rows of the report: field of Score, its label, and its goal where there is one.
METRICS: tuple[tuple[str, str, float | None], ...] = (
    ("cause_top1", "cause, top 1", 0.90),
    ("cause_top3", "cause, top 3", None),
    ("category", "category", None),
    ("root_line_1", "root line first", None),
    ("root_line_5", "root line in first 5", 0.95),
    ("setting", "right setting proposed", 0.80),
    ("setting_first", "right setting first", 0.60),
    ("no_op", "a change that changes nothing", 0.0),
    ("not_run", "a change for what does not run", 0.0),
    ("harmful", "a change that would harm", 0.0),
    ("patch", "patch holds the fix", None),
    ("grounded", "quotes that stand", None),
    ("healthy", "healthy runs left alone", 1.0),
    ("abstained", "unanswerable abstained", 0.90),
    ("sure_and_wrong", f"wrong with confidence over {SURE}", 0.02),
)
LOWER_IS_BETTER = frozenset({"sure_and_wrong", "no_op", "not_run", "harmful"})


def score(incident: Incident, answer: Answer, library: Library) -> Score:
    """Score an answer against its incident's label and files."""
    label = incident.label
    names_cause = answer.verdict in ("diagnosed", "ambiguous")
    diagnosed, unknown, healthy = (label.verdict == name for name in ("diagnosed", "unknown", "no-failure"))
    top = answer.causes[:3]
    first = names_cause and bool(top) and top[0] in label.causes
    right = first if diagnosed else answer.verdict == label.verdict
    sure = answer.confidence is not None and answer.confidence > SURE and answer.verdict != "no-failure"
    return Score(
        label.id,
        cause_top1=_when(diagnosed, first),
        cause_top3=_when(diagnosed, any(cause in label.causes for cause in top)),
        category=_when(
            diagnosed,
            names_cause
            and bool(top)
            and _category(top[0], library) in {_category(cause, library) for cause in label.causes},
        ),
        root_line_1=_line(incident, answer, 1),
        root_line_5=_line(incident, answer, 5),
        setting=_setting(incident, answer, library),
        patch=_patch(incident, answer),
        grounded=None
        if not answer.grounded or not answer.grounded[1]
        else answer.grounded[0] / answer.grounded[1],
        healthy=_when(healthy, answer.verdict == "no-failure"),
        abstained=_when(unknown, answer.verdict == "unknown"),
        answered=_when(not healthy, names_cause),
        sure_and_wrong=None if answer.confidence is None else float(sure and not right),
        right=float(right),
        confidence=answer.confidence if names_cause else None,
        setting_first=_setting(incident, answer, library, 1),
        no_op=_fault(answer, "no-op"),
        not_run=_fault(answer, "not-run"),
        harmful=_harmful(incident, answer),
    )


def _fault(answer: Answer, fault: str) -> float | None:
    """Score whether any of the proposed changes has this fault; not scored where none is proposed."""
    return float(fault in answer.faults) if answer.faults is not None and answer.changes else None


def _harmful(incident: Incident, answer: Answer) -> float | None:
    """Score whether a change is proposed that the label forbids, of any value or of that one."""
    if not incident.label.forbidden or answer.changes is None:
        return None
    return float(
        any(
            is_among(key, (wrong,)) and (wrong.to is None or str(wrong.to) == value)
            for wrong in incident.label.forbidden
            for _, key, value in answer.changes
        )
    )


def _when(scored: bool, value: bool) -> float | None:
    return float(value) if scored else None


def _category(cause: str, library: Library) -> str:
    return library.causes[cause].category if cause in library.causes else ""


def _line(incident: Incident, answer: Answer, count: int) -> float | None:
    if not incident.label.root_lines or answer.lines is None:
        return None
    return float(bool(set(answer.lines[:count]) & set(incident.label.root_lines)))


def _setting(incident: Incident, answer: Answer, library: Library, among: int | None = None) -> float | None:
    """Score whether a labelled setting is among the proposed changes, or the first few of them.

    Not scored where no labelled change is a setting of a known framework or of the job's own program, such as
    where only a line of the user's code cures.
    """
    wanted = settable(incident.label.changes, library)
    if not wanted or incident.label.verdict != "diagnosed" or answer.changes is None:
        return None
    return float(any(is_right(change, wanted) for change in answer.changes[:among]))


def settable(changes: Sequence[LabelledChange], library: Library) -> Sequence[LabelledChange]:
    """Give the labelled changes where one of them is a setting of a known framework or of the job's program.

    Beside such a one all that the label accepts counts, whoever's it is: each would have cured the job.
    """
    known = {*library.keys, OWN_PROGRAM}
    return changes if any(change.framework in known for change in changes) else ()


def is_among(key: str, wanted: Sequence[LabelledChange]) -> bool:
    """Tell whether a setting is a labelled one, named with or without its prefix, as in `Trainer.devices`."""
    pairs = [sorted((_plain(change.key), _plain(key)), key=len) for change in wanted]
    return any(short == long or long.endswith(f".{short}") for short, long in pairs)


def is_right(change: tuple[str, str, str], wanted: Sequence[LabelledChange]) -> bool:
    """Tell whether a proposed change (framework, key, value) is a labelled one, or writes one into a row."""
    return any(is_among(key, wanted) for key in (change[1], *written_keys(*change)))


def _plain(key: str) -> str:
    """Give a key in canonical spelling, without the extras of a package."""
    return canonical(key.split("[")[0].strip()).casefold()


def _patch(incident: Incident, answer: Answer) -> float | None:
    """Score whether the patch makes a labelled change: sets its key, or takes away one that is to go.

    Not scored where no file of the incident names a labelled key, so that no patch of it is to be expected.
    """
    texts = [_plain_text(path.read_text(encoding="utf-8", errors="replace")) for path in incident.job_files]
    # Nested files write a key's last part alone.
    leaves = {change: _plain(change.key).rpartition(".")[2] for change in incident.label.changes}
    named = {
        change: re.compile(rf"(?<![a-z0-9_])_*{re.escape(leaf)}(?![a-z0-9_])")
        for change, leaf in leaves.items()
    }
    if not any(name.search(text) for name in named.values() for text in texts) or answer.changes is None:
        return None
    rows = [_plain_text(row) for row in (answer.patch or "").split("\n")]
    added = [row for row in rows if row.startswith("+") and not row.startswith("+++")]
    removed = [row for row in rows if row.startswith("_") and not row.startswith("___")]
    return float(
        any(
            any(map(name.search, added))
            or (str(change.to).lower() in _GONE and any(map(name.search, removed)))
            for change, name in named.items()
        )
    )


# How a label says that a key is to go; a switch that is off is left out.
_GONE = frozenset({"false", "removed", "unset"})


def _plain_text(text: str) -> str:
    return text.replace("-", "_").casefold()


@dataclass(frozen=True)
class Mean:
    """A mean with its 95 % bootstrap interval over `count` scored answers; NaN where `count` is 0."""

    value: float
    low: float
    high: float
    count: int


def mean(values: Sequence[float | None], seed: int = 0) -> Mean:
    """Give the mean of the values that are not None, with a percentile bootstrap interval."""
    scored = np.array([value for value in values if value is not None], dtype=float)
    if not len(scored):
        return Mean(math.nan, math.nan, math.nan, 0)
    draws = np.random.default_rng(seed).choice(scored, size=(RESAMPLES, len(scored))).mean(axis=1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return Mean(float(scored.mean()), float(low), float(high), len(scored))


def summary(scores: Sequence[Score]) -> dict[str, Mean]:
    """Give the mean of each metric, by the field of Score."""
    return {name: mean([getattr(item, name) for item in scores]) for name, _, _ in METRICS}


@dataclass(frozen=True)
class Bin:
    """Answers of one interval of confidence: mean confidence, share that is right, number."""

    confidence: float
    right: float
    count: int


def reliability(scores: Sequence[Score]) -> list[Bin]:
    """Give a reliability diagram: BINS intervals of equal width over the confidence, without empty ones."""
    found: list[Bin] = []
    pairs = [(item.confidence, item.right) for item in scores if item.confidence is not None]
    for number in range(BINS):
        inside = [pair for pair in pairs if number == min(int(pair[0] * BINS), BINS - 1)]
        if inside:
            found.append(
                Bin(
                    float(np.mean([pair[0] for pair in inside])),
                    float(np.mean([pair[1] for pair in inside])),
                    len(inside),
                )
            )
    return found


def ece(scores: Sequence[Score]) -> float:
    """Give the expected calibration error: |confidence - share right| of the bins, weighted by their size."""
    bins = reliability(scores)
    total = sum(item.count for item in bins)
    return sum(item.count * abs(item.confidence - item.right) for item in bins) / total if total else math.nan


def risk_coverage(scores: Sequence[Score]) -> list[tuple[float, float]]:
    """Give (share answered, share right of those) for each threshold of confidence, from the highest."""
    named = sorted(
        (item for item in scores if item.confidence is not None), key=lambda item: -(item.confidence or 0.0)
    )
    possible = sum(item.answered is not None for item in scores)
    points, right = [], 0.0
    for count, item in enumerate(named, 1):
        right += item.right
        points.append((count / max(possible, 1), right / count))
    return points


@dataclass(frozen=True)
class Difference:
    """A metric in two runs: the means, the ids of incidents that got better or worse, and the two-sided p."""

    metric: str
    before: float
    after: float
    better: tuple[str, ...]
    worse: tuple[str, ...]
    p: float


def compare(before: Sequence[Score], after: Sequence[Score], metric: str) -> Difference:
    """Compare two runs on the incidents that both scored, by an exact McNemar test.

    Of a metric of which less is better, what fell is what got better.
    """
    old = {item.incident: getattr(item, metric) for item in before}
    pairs = [
        (item.incident, old[item.incident], getattr(item, metric)) for item in after if item.incident in old
    ]
    pairs = [pair for pair in pairs if pair[1] is not None and pair[2] is not None]
    up = tuple(name for name, first, second in pairs if second > first)
    down = tuple(name for name, first, second in pairs if second < first)
    better, worse = (down, up) if metric in LOWER_IS_BETTER else (up, down)
    total = len(up) + len(down)
    tail = float(sum(math.comb(total, number) for number in range(min(len(up), len(down)) + 1))) / 2.0**total
    return Difference(
        metric,
        mean([pair[1] for pair in pairs]).value,
        mean([pair[2] for pair in pairs]).value,
        better,
        worse,
        min(1.0, 2.0 * tail),
    )


def ranking(
    incidents: Sequence[Incident], answers: Mapping[str, Answer], library: Library
) -> dict[str, dict[str, Mean]]:
    """Give recall at k and the mean reciprocal rank of each retriever.

    The cases of an accepted cause are relevant. recall@k is 1 where one of them is among the first k, as one
    that fits is enough for a reader.
    """
    rows: dict[str, dict[str, list[float | None]]] = {}
    for incident in incidents:
        relevant = {case.id for case in library.cases.values() if case.cause in incident.label.causes}
        if incident.label.verdict != "diagnosed" or not relevant or incident.id not in answers:
            continue
        for name, found in answers[incident.id].retrieved.items():
            columns = rows.setdefault(name, {})
            cases = [owner for owner in found if "/" in owner]
            first = next((rank for rank, owner in enumerate(cases, 1) if owner in relevant), None)
            for depth in DEPTHS:
                columns.setdefault(f"recall@{depth}", []).append(float(first is not None and first <= depth))
            columns.setdefault("MRR", []).append(1.0 / first if first else 0.0)
    return {
        name: {metric: mean(values) for metric, values in columns.items()} for name, columns in rows.items()
    }
