"""What a process lived on after: what it logged is no root of an end that has a reason of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from corpus import trouble_words
from ingest.logs import levels
from ingest.logs.events import Event
from ingest.logs.lines import Line
from ingest.logs.stacks.own_calls import raises_itself
from ingest.logs.stacks.stack import EXCEPTION

# So many lines without a word of trouble a process says that has gone on.
CALM = 3
# How many lines above a stack its logger's announcement may stand: others write between.
NEAR = 2

# What of a message may be a name, and what a part of one has that no plain word has.
_NAME = re.compile(r"[A-Za-z_][\w./:+-]{3,200}")
_UNPLAIN = re.compile(r"_[A-Za-z]|[A-Za-z]_")
MIN_NAME = 5
_RAISED = re.compile(r"raise\b")
# What is met where a name was left without a value.
_WITHOUT_VALUE = re.compile(r"^NameError\b|\bNoneType\b|^(?:ModuleNotFound|Import)Error\b")


def calm(rows: Iterable[Line]) -> int:
    """Count a process's lines, from the nearest up, to the first that speaks of trouble."""
    troubles = (
        row.body[:1].isspace() or levels.is_error(row.level) or _speaks_of_trouble(row.text) for row in rows
    )
    return sum(1 for _ in takewhile(lambda trouble: not trouble, troubles))


# The same lines stand above the stacks of many ranks.
@lru_cache(1024)
def _speaks_of_trouble(text: str) -> bool:
    return trouble_words.trouble().search(text) is not None


def is_logged(header: Line, rows: Sequence[Line]) -> bool:
    """Tell whether a logger announced the stack that begins at a header: what it has, its process caught."""
    return any(levels.is_error(row.level) for row in (header, *rows[:NEAR]))


def names_in(text: str) -> frozenset[str]:
    """Give the names in a message that are nobody's plain words: of modules, libraries, files."""
    found = (part for match in _NAME.finditer(text) for part in re.split(r"[./]|::", match[0]))
    parts = (part.strip(":+-") for part in found)
    return frozenset(part for part in parts if len(part) > MIN_NAME and _UNPLAIN.search(part))


def is_survived(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether the process that logged a failure lived on calmly and ended by something else.

    The end has a stack of its own that nobody announced, tells a cause, and names nothing that the failure
    names. What a program raises by itself may be what it makes of the failure.
    """
    if not event.logged or event.kind != "error":
        return False
    return any(
        later.source == event.source and later.traceback > event.last and _ends_by_itself(later, event)
        for later in events
    )


def is_remark(event: Event) -> bool:
    """Tell whether a program only said of a failure, in a sentence of its own, that it goes on without."""
    return event.passing and not event.traceback and not EXCEPTION.match(event.body)


def is_outlived(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether a program that remarked on what it goes on without ended by an exception of its own.

    The exception has nothing of the remark: neither message nor calls name what was missed, nor is it what
    a missing thing becomes, a name without a value. What a program raises right below its remark may be
    what it makes of that.
    """
    if not is_remark(event):
        return False
    missed = {str(value).casefold() for value in event.facts.values() if isinstance(value, str)}
    return any(
        later.source == event.source
        and later.traceback > event.last
        and later.pattern_role == "origin"
        and later.cause != event.cause
        and not (later.logged or _WITHOUT_VALUE.search(later.body))
        and (later.traceback - event.last > NEAR or not raises_itself(later.frames))
        and not any(name in text.casefold() for name in missed for text in _words_of(later))
        for later in events
    )


def _words_of(event: Event) -> Iterator[str]:
    """Give the message of an exception and its calls, as far as they tell of what it is about."""
    yield event.body
    for frame in event.frames:
        yield f"{frame.function} {frame.code}"


def is_overtaken(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether what its program did about an exception failed by itself and ended the process.

    What a handler raises tells of the exception in other words; what a call of it meets, such as a folder
    that may not be written, is a failure of its own. One of the same cause is the same failure, met again.
    Where nobody knows the exception, the words of the function that tried and gave up tell what it means.
    """
    if not (event.handled and event.traceback and event.strength != "states"):
        return False
    below = (other for other in events if other.source == event.source and other.traceback > event.line)
    *_, last = None, *takewhile(lambda other: other.linked, below)
    return (
        last is not None
        and not last.handled
        and last.pattern_role == "origin"
        and last.cause not in (None, event.cause)
        and last.strength == "states"
        and bool(last.frames)
        and (not _RAISED.match(last.frames[-1].code) or _is_interpreted(event, last))
    )


def is_passed(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether the script that printed a stack came to a statement further down, and failed there.

    An exception that nobody catches ends a script at the statement that its stack begins with.
    """
    at = _statement_of_script(event)
    return at is not None and any(
        later.source == event.source
        and later.traceback > event.last
        and later.pattern_role == "origin"
        and later.calm >= CALM
        and not later.linked
        and (end := _statement_of_script(later)) is not None
        and end[0] == at[0]
        and end[1] > at[1]
        for later in events
    )


def _statement_of_script(event: Event) -> tuple[str, int] | None:
    """Give file and line of the script's own statement that a stack begins with; None where it shows none."""
    outer = event.frames[0] if event.traceback and event.frames else None
    return (outer.file, outer.line) if outer is not None and outer.function == "<module>" else None


def _is_interpreted(event: Event, later: Event) -> bool:
    """Tell whether the function that met an unknown exception in a call of its own raised the later one."""
    if event.handler != "unknown-exception" or not event.frames:
        return False
    tried, gave_up = event.frames[0], later.frames[-1]
    return (tried.file, tried.function) == (gave_up.file, gave_up.function)


def _ends_by_itself(later: Event, event: Event) -> bool:
    is_own = later.pattern_role == "origin" and later.cause is not None and later.strength != "hints"
    is_own = is_own and later.calm >= CALM and not (later.logged or later.linked)
    is_made = bool(later.frames) and _RAISED.match(later.frames[-1].code) is not None
    if not is_own or (is_made and later.handler == "unknown-exception"):
        return False
    is_same = later.cause == event.cause or _kind(later) == _kind(event)
    return not is_same and names_in(later.body).isdisjoint(names_in(event.body))


def _kind(event: Event) -> str:
    """Give the name of the exception that an event's line tells of."""
    match = EXCEPTION.match(event.body)
    return event.exception or (match["type"] if match else event.pattern)
