"""What conditions over a snapshot may ask, with three answers: holds, does not, or not available.

The language is `corpus/conditions.py`. Here gpus, disks, nics and nodes are parts of which there are several.

    PART.FIELD                              a reading of the snapshot
    lowest(PART.FIELD), highest(PART.FIELD) over the course that the snapshot holds
    falls(PART.FIELD), drops, rises, jumps, level
                                            the shape of that course
    smallest(PART.FIELD)                    the least reading of all items
    known(PART.FIELD)                       somebody measured it
    xid:NUMBER|...                          the driver told one of these before the crash
    kernel:KIND                             a line of this kind stands in the kernel's log before the crash

What nobody measured makes a condition neither true nor false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import get_args

from corpus.condition_nodes import (
    ConditionResult,
    EvaluationContext,
    Name,
    Negation,
    Node,
    Scalar,
    SeenReading,
    some,
)
from corpus.conditions import Vocabulary, parse
from corpus.message import Message
from service.telemetry.snapshot import (
    Cgroup,
    ClusterNode,
    Disk,
    EngineMetrics,
    Gpu,
    Host,
    KernelEvent,
    Nic,
    RayState,
    Reading,
    Scheduler,
    Series,
    Snapshot,
    SnapshotPart,
)

MANY = ("gpus", "disks", "nics", "nodes")
# How long before the crash something can have been its cause: a collective may wait half an hour for a rank.
BEFORE_S = 2 * 3600.0
AFTER_S = 120.0
# The same where the log tells no time, counted from the snapshot.
UNDATED_S = 12 * 3600.0
# Who is killed ends at once: a kill of hours before was another job's.
KILL_BEFORE_S = 600.0
UNDATED_KILL_S = 1800.0
# A snapshot from so long before the crash does not speak of it.
STALE_S = 900.0
# A reading of so long after the crash tells of another job; the kernel's log and a course keep their times.
LATE_S = 24 * 3600.0
# Fewer points, or a shorter course, tell no trend.
MIN_POINTS = 12
MIN_SPAN_S = 300.0
CHANGE = 0.25
NOISE = 0.05
PARTS = 6

_KINDS: Mapping[str, type[SnapshotPart]] = {
    "host": Host,
    "cgroup": Cgroup,
    "gpus": Gpu,
    "disks": Disk,
    "nics": Nic,
    "nodes": ClusterNode,
    "ray": RayState,
    "serving": EngineMetrics,
    "scheduler": Scheduler,
}


@dataclass(frozen=True)
class SnapshotContext(EvaluationContext):
    """A snapshot and the time of the crash that it is asked about, where that is known.

    With an `item`, the part that it is one of is that item alone.
    """

    snapshot: Snapshot
    crash: float | None = None
    item: SnapshotPart | None = None

    @property
    def stale(self) -> str:
        """Say why the snapshot does not speak of the crash, or give the empty string."""
        if self.crash is None:
            return ""
        early = self.crash - self.snapshot.taken_at.timestamp()
        return f"the snapshot was taken {early / 60:.0f} minutes before the crash" if early > STALE_S else ""

    def look_up(self, name: str) -> ConditionResult:
        """Give a reading of the item, else of the snapshot, with what it is called in an answer."""
        part, _, field = name.partition(".")
        is_own = isinstance(self.item, _KINDS[part])
        read = self.item if is_own and self.item is not None else getattr(self.snapshot, part)
        shown = _shown(part, read, field)
        reading = _reading(read, field, self)
        if reading.value is None:
            return ConditionResult(None, (SeenReading(shown, unavailable=reading.unavailable),))
        return ConditionResult(reading.value, (SeenReading(shown, _plain(reading.value)),))

    def test(self, subject: str, argument: str) -> ConditionResult:
        """Ask the kernel's log and the driver for events before the crash."""
        if subject == "kernel":
            return _kernel_events(self, lambda event: event.kind == argument)
        return _xid(frozenset(map(int, argument.split("|"))), self)

    def call(self, function: str, arguments: tuple[Node, ...]) -> ConditionResult:
        """Apply a function to the reading that it names."""
        name = next(each.name for each in arguments if isinstance(each, Name))
        if function == "smallest":
            return _smallest(name, self)
        return _extreme(function, name, self) if function in _EXTREMES else _test_series(function, name, self)

    def items(self, part: str) -> Sequence[EvaluationContext] | None:
        """Give a context for each item of a part of which there are several."""
        if part not in MANY or isinstance(self.item, _KINDS[part]):
            return None
        return [SnapshotContext(self.snapshot, self.crash, item) for item in getattr(self.snapshot, part)]

    def absent(self, part: str) -> tuple[SeenReading, ...]:
        """Say that a snapshot holds no item of a part."""
        return (SeenReading(part, unavailable=Message("readings.snapshot-no", part=part)),)


def evaluate(text: str, context: SnapshotContext) -> ConditionResult:
    """Tell whether a condition holds; raises ValueError where it is none."""
    node = parse(text)
    if context.stale:
        about = text.removeprefix("not ") if isinstance(node, Negation) else text
        return ConditionResult(None, (SeenReading(about, unavailable=context.stale),))
    return node.evaluate(context)


def _is_reading(name: str) -> bool:
    part, _, field = name.partition(".")
    kind = _KINDS.get(part)
    found = kind.model_fields.get(field) if kind else None
    return found is not None and "Reading[" in str(found.annotation)


def _xids(argument: str) -> None:
    if not re.fullmatch(r"\d{1,4}(\|\d{1,4})*", argument):
        raise ValueError(f"xid:{argument}: write numbers, as in xid:48|79")


def _kernel_kind(argument: str) -> None:
    if argument not in get_args(KernelEvent.model_fields["kind"].annotation):
        raise ValueError(f"kernel:{argument}: the kernel's log is not read for such lines")


def _shown(part: str, item: SnapshotPart, name: str) -> str:
    own = next(
        (
            str(getattr(item, key))
            for key in ("id", "path", "name")
            if isinstance(getattr(item, key, None), str)
        ),
        "",
    )
    return f"{part}[{own}].{name}" if part in MANY else f"{part}.{name}"


def _plain(value: object) -> Scalar:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, bool | int | str):
        return value
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _smallest(name: str, context: SnapshotContext) -> ConditionResult:
    """Give the least reading of all items that were measured."""
    part = name.partition(".")[0]
    items = context.items(part) or ()
    if not items:
        return ConditionResult(None, context.absent(part))
    read = [item.look_up(name) for item in items]
    measured = [each for each in read if each.value is not None]
    return min(measured, key=lambda each: each.value) if measured else read[0]


def _reading(item: SnapshotPart, name: str, context: SnapshotContext) -> Reading[object]:
    reading: Reading[object] = getattr(item, name)
    late = context.snapshot.taken_at.timestamp() - context.crash if context.crash is not None else 0.0
    if late > LATE_S:
        return Reading(unavailable=Message("readings.snapshot-taken-hours-after", late=f"{late / 3600:.0f}"))
    baseline = context.snapshot.baseline_at
    if (
        name.endswith("_new")
        and context.crash is not None
        and baseline
        and baseline.timestamp() > context.crash
    ):
        return Reading(unavailable=Message("readings.baseline-later-crash"))
    return reading


def _series_until_crash(path: str, context: SnapshotContext) -> list[Series]:
    """Give the courses of a reading up to the crash; one that ended long before it does not tell of it."""
    found = []
    for series in context.snapshot.history:
        points = tuple(
            point for point in series.points if context.crash is None or point[0] <= context.crash + AFTER_S
        )
        if (
            series.name == path
            and points
            and (context.crash is None or context.crash - points[-1][0] <= STALE_S)
        ):
            found.append(series.model_copy(update={"points": points}))
    return found


def _extreme(function: str, name: str, context: SnapshotContext) -> ConditionResult:
    courses = _series_until_crash(name, context)
    if not courses:
        seen = SeenReading(name, unavailable=Message("readings.snapshot-holds-no-course"))
        return ConditionResult(None, (seen,))
    value = _EXTREMES[function](value for series in courses for _, value in series.points)
    return ConditionResult(value, (SeenReading(f"{function} {name}", round(value, 3)),))


def _test_series(shape: str, name: str, context: SnapshotContext) -> ConditionResult:
    courses = [
        series
        for series in _series_until_crash(name, context)
        if (len(series.points) >= MIN_POINTS and series.points[-1][0] - series.points[0][0] >= MIN_SPAN_S)
    ]
    if not courses:
        return ConditionResult(
            None, (SeenReading(name, unavailable=Message("readings.snapshot-holds-no-long")),)
        )
    outcomes = []
    for series in courses:
        values = [value for _, value in series.points]
        size = len(values) / PARTS
        means = [fmean(values[round(size * number) : round(size * (number + 1))]) for number in range(PARTS)]
        seen = SeenReading(f"course {series.name}", f"{values[0]:.4g} to {values[-1]:.4g}")
        outcomes.append(ConditionResult(_SHAPES[shape](means, values[-1]), (seen,)))
    return some(outcomes)


def _steady(means: Sequence[float], sign: int) -> bool:
    """Tell whether each part lies beyond the one before, and the whole change is worth the name."""
    steps = [sign * (later - earlier) for earlier, later in pairwise(means)]
    whole = sign * (means[-1] - means[0])
    return whole > CHANGE * max(abs(means[0]), 1e-9) and all(0 < step < 0.6 * whole for step in steps)


def _sudden(means: Sequence[float], last: float, sign: int) -> bool:
    """Tell whether it was level and changed at the end."""
    before = means[:-1]
    level = max(before) - min(before) <= 2 * NOISE * max(abs(max(before)), 1e-9)
    return level and sign * (last - fmean(before)) > CHANGE * max(abs(fmean(before)), 1e-9)


_SHAPES: Mapping[str, Callable[[Sequence[float], float], bool]] = {
    "rises": lambda means, _: _steady(means, 1),
    "falls": lambda means, _: _steady(means, -1),
    "jumps": lambda means, last: _sudden(means, last, 1),
    "drops": lambda means, last: _sudden(means, last, -1),
    "level": lambda means, _: max(means) - min(means) <= NOISE * max(abs(max(means)), 1e-9),
}


def before_crash(event: KernelEvent, context: SnapshotContext) -> bool:
    """Tell whether an event can have been the cause: it came before the crash, and not long before it."""
    if event.at is None:
        return True
    kill = event.kind == "oom-kill"
    if context.crash is None:
        return event.at >= context.snapshot.taken_at.timestamp() - (UNDATED_KILL_S if kill else UNDATED_S)
    return context.crash - (KILL_BEFORE_S if kill else BEFORE_S) <= event.at <= context.crash + AFTER_S


def _xid(codes: frozenset[int], context: SnapshotContext) -> ConditionResult:
    lines = _kernel_events(context, lambda event: event.kind == "xid" and event.code in codes)
    told = []
    for gpu in context.snapshot.gpus:
        shown, xids = f"gpus[{gpu.id}].xids", gpu.xids.value
        if xids is None:
            told.append(ConditionResult(None, (SeenReading(shown, unavailable=gpu.xids.unavailable),)))
        else:
            seen = SeenReading(shown, ", ".join(map(str, xids)) or "none")
            told.append(ConditionResult(not codes.isdisjoint(xids), (seen,)))
    # The kernel's log holds every Xid: where it was read, what a card was not asked for leaves nothing open.
    if lines.holds is not None or not told:
        return some([lines, *(outcome for outcome in told if outcome.holds)])
    return some(told)


def _kernel_events(context: SnapshotContext, fits: Callable[[KernelEvent], bool]) -> ConditionResult:
    kernel = context.snapshot.kernel
    if kernel.events.value is None:
        return ConditionResult(None, (SeenReading("kernel.events", unavailable=kernel.events.unavailable),))
    found = [event for event in kernel.events.value if fits(event) and before_crash(event, context)]
    if found:
        return ConditionResult(
            True, tuple(SeenReading("kernel.events", event.text or event.kind) for event in found[:2])
        )
    taken = context.snapshot.taken_at.timestamp()
    covered = context.crash is None or (
        (kernel.since or 0.0) <= context.crash - 60 and taken >= context.crash
    )
    if not covered:
        return ConditionResult(
            None, (SeenReading("kernel.events", unavailable=Message("readings.kernel-log-not-read")),)
        )
    return ConditionResult(False, (SeenReading("kernel.events", "no such line"),))


_EXTREMES: Mapping[str, Callable[[Iterable[float]], float]] = {"lowest": min, "highest": max}

SNAPSHOT = Vocabulary(
    subjects={"xid": _xids, "kernel": _kernel_kind},
    functions=frozenset(("smallest", *_EXTREMES, *_SHAPES)),
    is_known=_is_reading,
    takes_reading=True,
)
