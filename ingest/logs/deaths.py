"""Which failures a process has died of, so that no good word behind them is its own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.outcomes import load as load_endings
from ingest.logs.clock import parse_time
from ingest.logs.events import Event
from ingest.logs.progress import IN_FLIGHT, LAST_WORDS, Progress
from ingest.logs.stacks.own_calls import ends_program
from ingest.logs.timeline import YEAR

# What Python raises for SIGINT, and what handlers of signals raise by custom.
OF_SIGNALS = ("KeyboardInterrupt", "SystemExit", "CancelledError", "asyncio.exceptions.CancelledError")
# So near behind a program's last calls the script that started it says its own last word.
ECHOED = 8
# c10/util/Logging.cpp: what a C++ core calls a warning.
_WARNED = re.compile(r"(?:^|[\s\]:])\[W\d{4,8} ")
# So many seconds behind its good end a job that did no more was idle.
IDLE = 600
# How many lines from a process's last exception others report its death.
REPORTED = 40


def is_idle_end(event: Event, events: Sequence[Event], run: Progress) -> bool:
    """Tell whether a scheduler ended what had come to its good end long before, and was silent since.

    A session that is left open, or a queue without work, is there until its time is up. Lines between that
    nobody knows are of work that went on.
    """
    is_whole = run.well_ended - run.whole_closed <= IN_FLIGHT
    done = run.well_ended if is_whole and max(run.set_out, run.part_begun) < run.closed else 0
    if not 0 < done < event.line or event.kind != "kill" or event.strength != "states":
        return False
    between = {other.line for other in events if done < other.line < event.line}
    if event.cause not in load_endings().from_outside or len(between) < event.line - done - 1:
        return False
    began, ended = (
        parse_time(str(told), YEAR) for told in (run.closed_time, event.facts.get("at", event.time))
    )
    return began is not None and ended is not None and ended - began >= IDLE


def has_died_of(event: Event, progress: Progress) -> bool:
    """Tell whether a process is dead for this failure: what says behind it that all is done is another.

    A script without `set -e` goes on to its last word whatever became of its program. Who catches an
    exception and goes on says more before it ends than that it does.
    """
    if event.final or (progress.died and abs(progress.died - event.last) <= LAST_WORDS):
        return True
    if event.logged or event.usual:
        return False
    if ends_program(event.frames) or (event.kind == "kill" and event.pattern_role == "origin"):
        return True
    if progress.own_closed > event.last:
        return False
    # Of processes that end one after the other, the last ones warn that the others are gone.
    is_warning = event.pattern_role == "collateral" and not event.traceback and _WARNED.search(event.text)
    if is_warning and 0 < progress.ended < event.line:
        return progress.goes_on_after(progress.ended, end_counts=False)
    is_plain = not event.traceback and (
        event.pattern_role == "collateral" or (event.pattern_role == "origin" and event.strength == "states")
    )
    # What a run says again and again, and then no more, is of one at work; so is what it may go on without.
    is_plain = is_plain and not (event.lasting or event.passing)
    return (event.traceback > 0 or is_plain) and 0 < progress.well_ended - event.last <= ECHOED


def stated_beside(root: Event, standing: Sequence[Event]) -> Event | None:
    """Give the uncaught exception that states a cause right below a bare word of a crash.

    Processes of one job that end by the same may crash as they fall, and only one prints why.
    """
    if root.kind != "kill" or root.strength != "suggests" or root.traceback:
        return None
    return next(
        (
            event
            for event in standing
            if 0 < event.traceback - root.line <= REPORTED
            and event.strength == "states"
            and event.cause not in (None, root.cause)
            and event.pattern_role == "origin"
            and bool(event.frames)
            and event.frames[0].function == "<module>"
            and not event.logged
        ),
        None,
    )


def dead_before(root: Event | None, standing: Sequence[Event]) -> Event | None:
    """Give the first uncaught exception above an end that the scheduler or a person made.

    What is left of a job whose ranks have died waits for them until somebody ends it: that it waited says
    nothing, whether or not the exception's own cause is known.
    """
    if root is None or root.kind != "kill" or root.traceback or root.cause not in load_endings().from_outside:
        return None
    return next(
        (
            event
            for event in standing
            if event.last < root.line
            and event.kind == "error"
            and event.pattern_role == "origin"
            and event.exception not in OF_SIGNALS
            and bool(event.frames)
            and event.frames[0].function == "<module>"
            and not event.logged
        ),
        None,
    )
