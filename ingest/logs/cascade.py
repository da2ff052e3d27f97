"""Who failed first: give every event its role, and name the root.

The rules in their order: what progress followed was recovered from, unless a launcher reports it; what was
caught, overtaken or lived with for long was survived; what comes after the run's own good end is teardown. Of
what stands, the root is worth most: the specific beats the generic, an origin what as a rule follows another
failure, the earlier the later. Then the root gives way to a recovered failure that names what it leaves
unnamed, to a kill that ended everything, and to what led to it, a warning included. In a short paste without
any sign of a run, a warning that tells a cause is the root where nothing else is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from corpus.expressions import compiled
from ingest.logs.deaths import OF_SIGNALS, REPORTED, dead_before, has_died_of, is_idle_end, stated_beside
from ingest.logs.events import CascadeRole, Event
from ingest.logs.progress import IN_FLIGHT, LAST_WORDS, Progress
from ingest.logs.stacks.own_calls import ends_program, raises_itself
from ingest.logs.stacks.stack import EXCEPTION
from ingest.logs.survival import (
    caught_by_one,
    importing_package,
    is_caught,
    is_outlived,
    is_overtaken,
    is_passed,
    is_remark,
    is_survived,
    names_in,
)
from ingest.logs.timeline import Timeline


@dataclass(frozen=True)
class Cascade:
    """The events with their roles, by line; `root` is None where nothing failed."""

    events: tuple[Event, ...]
    root: Event | None


# Of lines that follow a failure, one that tells a cause is worth looking this many lines further for.
CLUE_WORTH = 5
# How many lines above a traceback its program's last warnings stand.
RIGHT_ABOVE = 3
# Functions that keep what a run has made; what a tracker could not take is no result.
_KEEPING = re.compile(r"^_?(?:save|export|upload|push)(?:_\w+)?$|^(?:as|to)_directory$")
_TRACKING = re.compile(r"/(?:wandb|swanlab|mlflow|tensorboard\w*|comet_ml|clearml|trackio)/")
# Where Python says that a warning was given (CPython, `warnings.formatwarning`).
_WARNED_AT = re.compile(r"^\s*\S.{0,400}:\d{1,9}: (?=[A-Z]\w*Warning: )")
# What came so often while work went on is a remark that comes with each step.
ROUTINE = 10
# What was caught so often, over two steps and more, is what the job lived with.
HABIT = 50
# So many lines may be what somebody pasted to ask about them.
PASTED = 60
# How often a run says at least what makes it worthless where that lasts.
LASTING = 3

# What Python raises where a place in a list, a key or a next item is not there.
_LOOK_UPS = frozenset({"IndexError", "KeyError", "StopIteration"})
# How many lines from its last one a log's end begins.
LAST_LINES = 4

# What an event is worth as the root, best first. The same worth goes by place in the log.
_CLEAR, _PLAIN, _HINTED, _FOLLOWED, _PASSED, _REPEATED = range(6)


def arrange_cascade(
    events: Sequence[Event],
    runs: Sequence[Progress],
    timeline: Timeline,
    warnings: Sequence[Event] = (),
    *,
    failed: bool = False,
) -> Cascade:
    """Give each event its role and name the root among the failures that stand; `runs` tells of each part.

    Where the job is known to have `failed`, its own word that it is done undoes no failure; work that went on
    does.
    """
    if failed:
        runs = [replace(run, finished=0, obeyed=0) for run in runs]
    else:
        for event in events:
            runs[timeline.number(event.line)].obey(event)
    reports = [event for event in events if event.pattern_role == "wrapper"]
    recovered = {
        id(event)
        for event in events
        if (_is_recovered(event, runs, timeline) and not _is_reported(event, reports, runs, timeline))
        or (event.passing and is_caught(event, events))
        or is_survived(event, events)
        or is_outlived(event, events)
        or is_overtaken(event, events)
        or is_passed(event, events)
    } | {id(event) for event in (*_lived_with(events, runs, timeline), *caught_by_one(events))}
    closing = {
        id(event)
        for event in events
        if _is_closing(event, run := runs[timeline.number(event.line)]) or is_idle_end(event, events, run)
    }
    standing = [event for event in events if id(event) not in recovered | closing]
    root = min(standing, key=partial(_worth, timeline), default=None)
    if root is not None and (
        told := _told_before(root, [event for event in events if id(event) in recovered])
    ):
        recovered.remove(id(told))
        root = told
    root = _killed_after(root, standing) or root
    root = dead_before(root, standing) or (root and stated_beside(root, standing)) or root
    root = _led_to(root, standing) or root
    if root is not None and root.pattern_role == "collateral":
        # What ended a worker may have ended no more than that: others go on until its death is reported.
        ended = _led_to(root, [event for event in events if id(event) in recovered])
        recovered.discard(id(ended))
        root = ended or root
    idle = [event for event in warnings if event.leads_to and not _is_recovered(event, runs, timeline)]
    if root is not None and (missed := _led_to(root, idle) or _warned_of(root, warnings)):
        root = replace(missed, kind="error", strength="suggests", pattern_role="origin")
        events = sorted([*events, root], key=lambda event: event.line)
    if root is None and (asked := _asked_about(warnings, runs, timeline)):
        root = asked
        events = [*events, root]
    return _placed(events, root, closing, recovered)


def _is_closing(event: Event, run: Progress) -> bool:
    """Tell whether an event is no failure of its run, which is over.

    Once a run has said that it is done, or ends because it was told to, what falls over while it closes is
    none.
    """
    if event.pattern_role == "origin" and event.exception not in OF_SIGNALS:
        return False
    is_behind = 0 < run.finished < event.line and not (event.final or event.last_word)
    return is_behind or run.ends_as_asked(event)


def _asked_about(warnings: Sequence[Event], runs: Sequence[Progress], timeline: Timeline) -> Event | None:
    """Give the warning that a few pasted lines without any sign of a run are about.

    It is one that tells a cause, or that its logger calls an error.
    """
    is_pasted = sum(part.lines for part in timeline.parts) <= PASTED
    if not is_pasted or any(run.count or run.finished for run in runs):
        return None
    telling = (
        event
        for event in warnings
        if not (event.passing and _is_recovered(event, runs, timeline))
        and (event.handler == "error-level" or (event.cause is not None and event.strength != "hints"))
    )
    return min(telling, key=partial(_worth, timeline), default=None)


def _placed(
    events: Iterable[Event], root: Event | None, closing: Container[int], recovered: Container[int]
) -> Cascade:
    """Give each event its role; `closing` and `recovered` hold identities."""
    placed: list[Event] = []
    chosen: Event | None = None
    for event in events:
        role: CascadeRole = "collateral"
        if id(event) in closing:
            role = "teardown"
        elif id(event) in recovered:
            role = "recovered"
        if root is not None and _ends_the_rest(event, root):
            event = replace(event, pattern_role="collateral")
        placed.append(replace(event, role="root" if event is root else role))
        chosen = placed[-1] if event is root else chosen
    return Cascade(tuple(placed), chosen)


def _ends_the_rest(event: Event, root: Event) -> bool:
    """Tell whether an end from outside met a job that had failed by itself, by its uncaught exception above.

    A launcher that waits for others, or a script that goes on, is there until the scheduler ends it.
    """
    is_uncaught = bool(root.frames) and root.frames[0].function == "<module>" and not root.logged
    return (
        is_uncaught
        and root.kind == "error"
        and root.pattern_role == "origin"
        and event.kind == "kill"
        and event.line > root.last
        and event.traceback == 0
    )


def arrange_worded(
    events: Sequence[Event],
    last_resort: Container[str],
    runs: Sequence[Progress],
    timeline: Timeline,
    at_end: Container[str] = (),
    *,
    failed: bool = False,
    helpers: Container[int] = (),
) -> Cascade:
    """Arrange a job's events; patterns of `last_resort` count only where no other failure stands.

    Those of `at_end` count only where the log ends with them. What the files with the numbers `helpers` tell
    counts only where none of the others tells a failure.
    """
    own = [event for event in events if timeline.number(event.line) not in helpers]
    if len(own) < len(events):
        told = arrange_worded(own, last_resort, runs, timeline, at_end, failed=failed)
        if told.root is not None:
            return told
    events = [event for event in events if event.pattern not in at_end or _ends_log(event, timeline)]
    events = _lasting(events, runs, timeline)
    warnings = [event for event in events if event.kind == "warning"]
    failures = [event for event in events if event.kind != "warning" and event.pattern not in last_resort]
    known = arrange_cascade(failures, runs, timeline, warnings, failed=failed)
    all_failures = [event for event in events if event.kind != "warning"]
    if len(all_failures) == len(failures):
        return known
    # What is said behind a good end, as the last word of the log, is said of what came after that.
    last_words = [
        replace(event, last_word=event.pattern in last_resort and _ends_log(event, timeline))
        for event in all_failures
    ]
    worded = arrange_cascade(last_words, runs, timeline, failed=failed)
    if known.root is None or known.root.handler == "error-level":
        return worded if worded.root else known
    return worded if _tells_why(worded.root, known.root) else known


def undone_by_bars(events: Iterable[Event], runs: Sequence[Progress], timeline: Timeline) -> Iterator[int]:
    """Give the last lines of exceptions that a main program ends by, where bars alone speak for its life."""
    for event in events:
        is_uncaught = bool(event.frames) and event.frames[0].function == "<module>"
        is_known = event.usual or event.earlier_run or event.handled or event.logged
        if event.role != "recovered" or not is_uncaught or is_known:
            continue
        run = runs[timeline.number(event.last)]
        counts = any(mark.line > event.last and not mark.is_bar for mark in run.latest)
        if not counts and run.finished <= event.last:
            yield event.last


def _ends_log(event: Event, timeline: Timeline) -> bool:
    """Tell whether a line stands among the last ones of its file."""
    ends = (part.first + part.lines for part in timeline.parts if part.first <= event.last)
    return event.last + LAST_LINES >= max(ends, default=0)


def _tells_why(worded: Event | None, known: Event) -> bool:
    """Tell whether what a program said in its own words is why it ended, of which `known` only reports.

    A launcher's or scheduler's report of an exit status says nothing of the cause, and stands below it.
    """
    is_report = known.pattern_role != "origin" and known.cause is None and not known.traceback
    return (
        is_report
        and worded is not None
        and worded.line < known.line
        and worded.cause is not None
        and worded.strength != "hints"
    )


def _told_before(root: Event, recovered: Sequence[Event]) -> Event | None:
    """Give what names a failure that itself has no words, though work stands between the two in the text.

    A pasted log often has the message above it as a title, or an earlier run that ended alike. Right above
    the report that a process died, an exception is what it died of: others' work between is none of its own.
    """
    named = [event for event in recovered if event.cause and event.strength == "states" and not event.usual]
    if root.cause is None and root.pattern_role == "collateral":
        died = (event for event in reversed(named) if event.pattern_role == "origin" and event.traceback)
        return next((event for event in died if event.last < root.line <= event.last + REPORTED), None)
    if root.kind == "kill" and root.strength != "states":
        return next((event for event in named if event.kind == "kill"), None)
    if root.pattern_role == "wrapper" and root.frames and not root.exception:
        return next((event for event in named if event.traceback == 0 and EXCEPTION.match(event.body)), None)
    return None


def _killed_after(root: Event | None, standing: Sequence[Event]) -> Event | None:
    """Give the kill that a job ended by, where the first error is one that its processes said repeatedly.

    Whoever says the same again has lived through it: a task that failed, say, and the next one.
    """
    if (
        root is None
        or root.kind != "error"
        or root.strength == "states"
        or root.count <= max(1, len(root.sources))
    ):
        return None
    kills = (event for event in standing if event.kind == "kill" and event.pattern_role == "origin")
    return next(
        (kill for kill in kills if kill.strength == "states" and kill.cause and root.last < kill.last), None
    )


def _led_to(root: Event | None, standing: Sequence[Event]) -> Event | None:
    """Give what was told above a failure that comes of it, as its pattern says, and names it no more.

    What a program only warned of as it began, it meets again in other words. What is wrong with a script its
    shell tells behind the command that fails of it.
    """
    return next(
        (
            event
            for event in standing
            if root is not None
            and event.leads_to
            and event.cause not in (None, root.cause)
            and (event.final or event.line < (root.traceback or root.line))
            and compiled(event.leads_to).search(root.body)
        ),
        None,
    )


def _warned_of(root: Event, warnings: Sequence[Event]) -> Event | None:
    """Give the warning above an exception that tells why what it misses is not there.

    They are tied by a name that both have (a module, a library, a file), not by their order alone, nor by
    the folder that Python names as the warning's place. Right
    above an exception that the job's own code raises, and that no pattern knows, a warning is its reason:
    whoever caught and logged that gives up.
    """
    if not root.traceback or root.strength == "states":
        return None
    names = names_in(root.body)
    gives_up = root.handler == "unknown-exception" and root.calm == 0 and raises_itself(root.frames)
    told = (
        event
        for event in warnings
        if event.cause
        and event.last < root.traceback
        and (
            not names.isdisjoint(names_in(_WARNED_AT.sub("", event.body)))
            or (gives_up and root.traceback - event.last <= RIGHT_ABOVE)
        )
    )
    return next((event for event in told if event.source in ("", root.source)), None)


def _is_reported(
    event: Event, reports: Iterable[Event], runs: Sequence[Progress], timeline: Timeline
) -> bool:
    """Tell whether a launcher's report below names the rank that this uncaught exception, or abort, ended.

    What other ranks did in the meantime is no recovery of that one. Where no line tells the failure's rank,
    any process that the launcher reports may be its own, unless work goes on behind the report.
    """
    is_uncaught = bool(event.frames) and event.frames[0].function == "<module>" and not event.logged
    return any(
        report.last > event.last
        and (
            str(report.facts.get("rank")) == event.rank
            if is_uncaught and event.rank
            else not runs[timeline.number(report.last)].goes_on_after(report.last, end_counts=False)
        )
        for report in reports
        if (is_uncaught and "code" in report.facts and report.line > event.last) or _leads_to(event, report)
    )


def _leads_to(event: Event, report: Event) -> bool:
    """Tell whether a report is of the end that a failure brings about by itself, as a watchdog's abort."""
    return (
        event.kind == "hang"
        and bool(event.leads_to)
        and compiled(event.leads_to).search(report.body) is not None
    )


def _lasting(events: Sequence[Event], runs: Sequence[Progress], timeline: Timeline) -> Sequence[Event]:
    """Make failures of what a run says again and again that makes it worthless, up to its last step."""
    said: dict[str, list[Event]] = {}
    for event in events:
        if event.lasting:
            said.setdefault(event.pattern, []).append(event)
    held = set[str]()
    for pattern, alike in said.items():
        last = max(event.last for event in alike)
        marks = runs[timeline.number(last)].latest
        later = sum(mark.line > last and not mark.is_bar for mark in marks)
        if sum(event.count for event in alike) >= LASTING and later <= IN_FLIGHT:
            held.add(pattern)
    return [
        replace(event, kind="error", pattern_role="origin", strength="suggests", final=True)
        if event.pattern in held
        else event
        for event in events
    ]


def _is_recovered(event: Event, runs: Sequence[Progress], timeline: Timeline) -> bool:
    if event.lasting and event.final:
        return False
    progress = runs[timeline.number(event.last)]
    # A traceback that states its cause, with no work after it, is not undone by a line that says "done".
    fatal = (
        event.traceback > 0
        and event.cause is not None
        and event.strength != "hints"
        and event.pattern_role == "origin"
    )
    # Nor is what was lost while a model or checkpoint was written, fetched back or sent away: a script that
    # logs it and goes on has none.
    is_writing = any(_KEEPING.match(frame.function) for frame in event.frames)
    loses_results = is_writing and not any(_TRACKING.search(frame.file) for frame in event.frames)
    has_died = has_died_of(event, progress)
    end_counts = not has_died and (not fatal or (progress.count > 0 and not loses_results))
    # The bars behind the end of a main program are those of others that write into the same log.
    goes_on = progress.goes_on_after(
        event.last, end_counts, bars_count=event.logged or not ends_program(event.frames)
    )
    if event.usual or event.lived_on or event.earlier_run or goes_on:
        return True
    if any(line.tells_of(event) for line in progress.settling):
        return True
    # Whose trainer says itself that it came to its end has lived through what it printed before.
    if not has_died and progress.own_closed > event.last and not loses_results:
        return True
    # A good end of any kind undoes what its program may have gone on after, if the run shows any work at all:
    # a script says that it is done whatever became of what it was to prepare.
    is_idle = (
        event.cause is not None and event.strength != "hints" and not (progress.worked or progress.count)
    )
    if event.passing and not is_idle and not has_died and progress.well_ended > event.last:
        return True
    # What a program says that it goes on without, it lives on after as soon as it works on anything.
    if (is_remark(event) or importing_package(event)) and progress.works_after(event.last):
        return True
    # Nor does it die of that while it prints pages of other words.
    if is_remark(event) and timeline.lines_after(event.last) > LAST_WORDS:
        return True
    # Another file of the job may be the one that says how it ended: a job's output beside its errors.
    if any(run.finished for run in runs if run is not progress) and not timeline.is_last_word(event):
        return True
    # What came again and again, with work going on between, needs only one sign of life after its last time,
    # and none where nothing but a common word speaks of a failure.
    latest = progress.latest[-1].line if progress.latest else 0
    if not event.traceback and progress.last is not None:
        # A process that only logs an error and draws its bar again is alive; one that dies of an exception
        # draws it a last time too.
        latest = progress.last.line
    is_routine = event.pattern_role == "wrapper" and event.cause is None and event.count >= ROUTINE
    is_alive = event.count > 1 and (latest > event.last or is_routine)
    return is_alive and progress.goes_on_after(event.line, end_counts=not has_died)


def _lived_with(events: Iterable[Event], runs: Sequence[Progress], timeline: Timeline) -> Iterator[Event]:
    """Give the caught failures that came `HABIT` times, over steps: their last time ends no job either.

    An exception at one place is one, whatever its message says of the sample. Calls that begin at a module
    were caught by nobody, and such a process prints them once.
    """
    kinds: dict[tuple[str, str, str], list[Event]] = {}
    for event in events:
        if event.logged or (event.frames and event.frames[0].function != "<module>"):
            place = f"{event.frames[-1].file}:{event.frames[-1].function}" if event.frames else ""
            kinds.setdefault((event.pattern, event.exception, place), []).append(event)
    for alike in kinds.values():
        first, last = min(event.line for event in alike), max(event.last for event in alike)
        progress = runs[timeline.number(last)]
        if sum(event.count for event in alike) >= HABIT and progress.steps_between(first, last) > 1:
            yield from alike


def _worth(timeline: Timeline, event: Event) -> tuple[int, float, int]:
    rank, time, line = _ranked(timeline, event)
    # What came of an exception without words of its own has some, and so has what it only announces; of a
    # look-up that failed, whoever caught that says what was not there.
    is_bare = event.body == event.exception or (event.handler and event.exception in _LOOK_UPS)
    is_mute = event.announces or (event.handled and bool(is_bare))
    return max(rank, _HINTED) if is_mute else rank, time, line


def _ranked(timeline: Timeline, event: Event) -> tuple[int, float, int]:
    time, line = timeline.order(event)
    if event.pattern_role == "wrapper":
        return _REPEATED, time, line
    if is_remark(event):
        return _PASSED, time, line
    if event.pattern_role == "collateral":
        if event.cause and event.strength == "states":
            return _HINTED, time, line
        return _FOLLOWED, time, line + (0 if event.cause else CLUE_WORTH)
    if event.cause and event.strength != "hints":
        return _CLEAR, time, line
    return (_HINTED if event.kind == "warning" else _PLAIN), time, line
