"""The small language of conditions over a snapshot, with three answers: holds, does not, or not available.

    [any|all|none|one] PART.FIELD OP VALUE     gpus, disks, nics, nodes are many; `any` unless said otherwise
    lowest|highest PART.FIELD OP VALUE         over the course that the snapshot holds
    course PART.FIELD falls|drops|rises|jumps|level
    xid NUMBER...                              the driver told one of these before the crash
    kernel KIND                                a line of this kind stands in the kernel's log before the crash
    not CONDITION                              the condition does not hold, and what it looks at was measured

OP is one of `== != < <= > >= has in`; VALUE a number, true, false, words, or `[FACTOR *] PART.FIELD`. What
nobody measured makes a condition neither true nor false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import fmean

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

Scalar = bool | int | float | str
NOT = "not "
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
_COMPARE = re.compile(
    r"^(?:(?P<mode>any|all|none|one|lowest|highest) )?(?P<path>[a-z]+\.[a-z_0-9]+) "
    r"(?P<op>==|!=|<=|>=|<|>|has|in) (?P<value>\S.*)$"
)
_COURSE = re.compile(r"^course (?P<path>[a-z]+\.[a-z_0-9]+) (?P<shape>falls|drops|rises|jumps|level)$")
_XID = re.compile(r"^xid(?P<codes>(?: \d{1,4})+)$")
_KERNEL = re.compile(r"^kernel (?P<kind>[a-z-]+)$")
_SCALED = re.compile(r"^(?:(?P<factor>\d+(?:\.\d+)?) \* )?(?P<path>[a-z]+\.[a-z_0-9]+)$")
_WORDS: Mapping[str, Scalar] = {"true": True, "false": False}
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class SeenReading:
    """A reading that a condition looked at: its value, or why there is none."""

    name: str
    value: Scalar | None = None
    unavailable: str | None = None


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """Whether a condition holds; None where it cannot be told. `seen` are the readings that decided it."""

    holds: bool | None
    seen: tuple[SeenReading, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionContext:
    """A snapshot and the time of the crash that it is asked about, where that is known."""

    snapshot: Snapshot
    crash: float | None = None

    @property
    def stale(self) -> str:
        """Say why the snapshot does not speak of the crash, or give the empty string."""
        if self.crash is None:
            return ""
        early = self.crash - self.snapshot.taken_at.timestamp()
        return f"the snapshot was taken {early / 60:.0f} minutes before the crash" if early > STALE_S else ""


def evaluate(text: str, moment: ConditionContext) -> ConditionResult:
    """Tell whether a condition holds; raises ValueError where it is none."""
    if text.startswith(NOT):
        outcome = evaluate(text.removeprefix(NOT), moment)
        return ConditionResult(None if outcome.holds is None else not outcome.holds, outcome.seen)
    check, match = _parsed(text)
    if moment.stale:
        return ConditionResult(None, (SeenReading(text, unavailable=moment.stale),))
    return check(match, moment)


def every(outcomes: Sequence[ConditionResult]) -> ConditionResult:
    """Join conditions that must all hold: one that fails settles it, else an unknown one leaves it open."""
    failed = [outcome for outcome in outcomes if outcome.holds is False]
    if failed:
        return failed[0]
    seen = tuple(item for outcome in outcomes for item in outcome.seen)
    return ConditionResult(
        None if any(outcome.holds is None for outcome in outcomes) else bool(outcomes), seen
    )


def some(outcomes: Sequence[ConditionResult]) -> ConditionResult:
    """Join conditions of which one must hold: those that do settle it."""
    held = [outcome for outcome in outcomes if outcome.holds]
    seen = tuple(item for outcome in held or outcomes for item in outcome.seen)
    if held:
        return ConditionResult(True, seen)
    return ConditionResult(None if any(outcome.holds is None for outcome in outcomes) else False, seen)


Check = Callable[["re.Match[str]", ConditionContext], ConditionResult]


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Check, re.Match[str]]:
    for expression, check in _FORMS:
        if match := expression.match(text):
            return check, match
    raise ValueError(f"{text!r} is no condition over a snapshot")


def check(text: str) -> None:
    """Check that a condition can be read and names fields that a snapshot has; raises ValueError."""
    _, match = _parsed(text.removeprefix(NOT))
    scaled = _SCALED.match(match.groupdict().get("value") or "")
    for path in (match.groupdict().get("path"), scaled["path"] if scaled else None):
        if path:
            part, _, name = path.partition(".")
            kind = _KINDS.get(part)
            field = kind.model_fields.get(name) if kind else None
            if field is None or "Reading[" not in str(field.annotation):
                raise ValueError(f"{text!r}: a snapshot has no reading {part}.{name}")


def _compared(match: re.Match[str], moment: ConditionContext) -> ConditionResult:
    mode = match["mode"] or "any"
    if mode in ("lowest", "highest"):
        return _extreme(match, moment)
    part, _, name = match["path"].partition(".")
    items = [getattr(moment.snapshot, part)] if part not in MANY else list(getattr(moment.snapshot, part))
    if not items:
        return ConditionResult(
            None, (SeenReading(part, unavailable=Message("readings.snapshot-no", part=part)),)
        )
    outcomes = [_one(item, _named(part, item, name), name, match, moment) for item in items]
    return _MODES[mode](outcomes)


def _named(part: str, item: SnapshotPart, name: str) -> str:
    own = next(
        (
            str(getattr(item, key))
            for key in ("id", "path", "name")
            if isinstance(getattr(item, key, None), str)
        ),
        "",
    )
    return f"{part}[{own}].{name}" if part in MANY else f"{part}.{name}"


def _one(
    item: SnapshotPart, shown: str, name: str, match: re.Match[str], moment: ConditionContext
) -> ConditionResult:
    left = _reading(item, name, moment)
    if left.value is None:
        return ConditionResult(None, (SeenReading(shown, unavailable=left.unavailable),))
    right, why = _right(match["value"], item, moment)
    if right is None:
        return ConditionResult(None, (SeenReading(match["value"], unavailable=why),))
    plain = (
        round(left.value, 3)
        if isinstance(left.value, float)
        else (
            left.value
            if isinstance(left.value, bool | int | str)
            else ", ".join(map(str, left.value))
            if isinstance(left.value, tuple)
            else str(left.value)
        )
    )
    return ConditionResult(_holds(left.value, match["op"], right), (SeenReading(shown, plain),))


def _reading(item: SnapshotPart, name: str, moment: ConditionContext) -> Reading[object]:
    reading: Reading[object] = getattr(item, name)
    late = moment.snapshot.taken_at.timestamp() - moment.crash if moment.crash is not None else 0.0
    if late > LATE_S:
        return Reading(unavailable=Message("readings.snapshot-taken-hours-after", late=f"{late / 3600:.0f}"))
    baseline = moment.snapshot.baseline_at
    if (
        name.endswith("_new")
        and moment.crash is not None
        and baseline
        and baseline.timestamp() > moment.crash
    ):
        return Reading(unavailable=Message("readings.baseline-later-crash"))
    return reading


def _right(
    text: str, item: SnapshotPart, moment: ConditionContext
) -> tuple[Scalar | tuple[str, ...] | None, str | None]:
    scaled = _SCALED.match(text)
    if scaled is None:
        words = tuple(text.split())
        if len(words) != 1:
            return words, None
        try:
            return float(text), None
        except ValueError:
            return _WORDS.get(text, text), None
    part, _, name = scaled["path"].partition(".")
    reading = _smallest(item, part, name) if part in MANY else getattr(getattr(moment.snapshot, part), name)
    if reading.value is None:
        return None, reading.unavailable
    return reading.value * float(scaled["factor"] or 1), None


def _smallest(item: SnapshotPart, part: str, name: str) -> Reading[float]:
    """Give the item's own reading, or of a whole snapshot the least."""
    items = getattr(item, part) if isinstance(item, Snapshot) else (item,)
    readings: list[Reading[float]] = [getattr(one, name) for one in items]
    there = [reading for reading in readings if reading.value is not None]
    if not there:
        return readings[0] if readings else Reading(unavailable=Message("readings.snapshot-no", part=part))
    return min(there, key=lambda reading: reading.value or 0.0)


def _holds(left: object, op: str, right: Scalar | tuple[str, ...]) -> bool:
    if op == "has":
        return isinstance(left, tuple) and str(right) in {str(item) for item in left}
    if op == "in":
        return str(left) in (right if isinstance(right, tuple) else (str(right),))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _OPERATORS[op](float(left), float(right))
    return (str(left) == str(right)) is (op == "==")


def _exactly_one(outcomes: Sequence[ConditionResult]) -> ConditionResult:
    """Tell whether it holds of one and of no other; with fewer than two there is nothing to compare with."""
    seen = tuple(item for outcome in outcomes if outcome.holds is not False for item in outcome.seen)
    if len(outcomes) < 2 or any(outcome.holds is None for outcome in outcomes):
        return ConditionResult(None, seen)
    return ConditionResult(sum(bool(outcome.holds) for outcome in outcomes) == 1, seen)


_MODES: Mapping[str, Callable[[Sequence[ConditionResult]], ConditionResult]] = {
    "any": some,
    "all": every,
    "none": lambda outcomes: every(
        [ConditionResult(None if item.holds is None else not item.holds, item.seen) for item in outcomes]
    ),
    "one": _exactly_one,
}


def _courses(path: str, moment: ConditionContext) -> list[Series]:
    """Give the courses of a reading up to the crash; one that ended long before it does not tell of it."""
    found = []
    for series in moment.snapshot.history:
        points = tuple(
            point for point in series.points if moment.crash is None or point[0] <= moment.crash + AFTER_S
        )
        if (
            series.name == path
            and points
            and (moment.crash is None or moment.crash - points[-1][0] <= STALE_S)
        ):
            found.append(series.model_copy(update={"points": points}))
    return found


def _extreme(match: re.Match[str], moment: ConditionContext) -> ConditionResult:
    courses = _courses(match["path"], moment)
    if not courses:
        return ConditionResult(
            None, (SeenReading(match["path"], unavailable=Message("readings.snapshot-holds-no-course")),)
        )
    values = [value for series in courses for _, value in series.points]
    value = min(values) if match["mode"] == "lowest" else max(values)
    right, why = _right(match["value"], moment.snapshot, moment)
    if right is None:
        return ConditionResult(None, (SeenReading(match["value"], unavailable=why),))
    return ConditionResult(
        _holds(value, match["op"], right), (SeenReading(f"{match['mode']} {match['path']}", round(value, 3)),)
    )


def _course(match: re.Match[str], moment: ConditionContext) -> ConditionResult:
    courses = [
        series
        for series in _courses(match["path"], moment)
        if (len(series.points) >= MIN_POINTS and series.points[-1][0] - series.points[0][0] >= MIN_SPAN_S)
    ]
    if not courses:
        return ConditionResult(
            None, (SeenReading(match["path"], unavailable=Message("readings.snapshot-holds-no-long")),)
        )
    outcomes = []
    for series in courses:
        values = [value for _, value in series.points]
        size = len(values) / PARTS
        means = [fmean(values[round(size * number) : round(size * (number + 1))]) for number in range(PARTS)]
        seen = SeenReading(f"course {series.name}", f"{values[0]:.4g} to {values[-1]:.4g}")
        outcomes.append(ConditionResult(_SHAPES[match["shape"]](means, values[-1]), (seen,)))
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


def before_crash(event: KernelEvent, moment: ConditionContext) -> bool:
    """Tell whether an event can have been the cause: it came before the crash, and not long before it."""
    if event.at is None:
        return True
    kill = event.kind == "oom-kill"
    if moment.crash is None:
        return event.at >= moment.snapshot.taken_at.timestamp() - (UNDATED_KILL_S if kill else UNDATED_S)
    return moment.crash - (KILL_BEFORE_S if kill else BEFORE_S) <= event.at <= moment.crash + AFTER_S


def _xid(match: re.Match[str], moment: ConditionContext) -> ConditionResult:
    codes = {int(code) for code in match["codes"].split()}
    lines = _kernel_events(moment, lambda event: event.kind == "xid" and event.code in codes)
    told = []
    for gpu in moment.snapshot.gpus:
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


def _kernel_events(moment: ConditionContext, fits: Callable[[KernelEvent], bool]) -> ConditionResult:
    kernel = moment.snapshot.kernel
    if kernel.events.value is None:
        return ConditionResult(None, (SeenReading("kernel.events", unavailable=kernel.events.unavailable),))
    found = [event for event in kernel.events.value if fits(event) and before_crash(event, moment)]
    if found:
        return ConditionResult(
            True, tuple(SeenReading("kernel.events", event.text or event.kind) for event in found[:2])
        )
    taken = moment.snapshot.taken_at.timestamp()
    covered = moment.crash is None or ((kernel.since or 0.0) <= moment.crash - 60 and taken >= moment.crash)
    if not covered:
        return ConditionResult(
            None, (SeenReading("kernel.events", unavailable=Message("readings.kernel-log-not-read")),)
        )
    return ConditionResult(False, (SeenReading("kernel.events", "no such line"),))


_FORMS: tuple[tuple[re.Pattern[str], Check], ...] = (
    (_XID, _xid),
    (_KERNEL, lambda match, moment: _kernel_events(moment, lambda event: event.kind == match["kind"])),
    (_COURSE, _course),
    (_COMPARE, _compared),
)
