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
from ingest.logs.stacks.own_calls import STANDARD, ends_program, is_own, raises_itself
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
# An installed package's folder.
_PACKAGE = re.compile(r"(?i:(?:site|dist)-packages/)(\w+)/")
# So many exceptions, of more than one kind, show that one function catches what it calls.
CAUGHT_AGAIN = 3
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
        event.source in (later.source, *later.sources)
        and later.traceback > event.last
        and _ends_by_itself(later, event)
        for later in events
    )


def is_remark(event: Event) -> bool:
    """Tell whether a program only said of a failure, in a sentence of its own, that it goes on without."""
    return event.passing and not event.traceback and not EXCEPTION.match(event.body)


def importing_package(event: Event) -> str:
    """Give the package that caught and logged, as it was imported, what this event tells; empty for others.

    Of an exception that nobody catches the calls begin with the program, not with a module that it imports.
    A launcher's own program stands among the packages too, and calls others.
    """
    outer = event.frames[0] if event.logged and event.traceback and event.frames else None
    found = _PACKAGE.search(outer.file) if outer is not None and outer.function == "<module>" else None
    if found is None or ends_program(event.frames):
        return ""
    is_within = all(found[0] in frame.file or STANDARD.search(frame.file) for frame in event.frames)
    return found[1] if is_within else ""


def is_outlived(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether a program that remarked on what it goes on without ended by an exception of its own.

    The exception has nothing of the remark: neither message nor calls name what was missed, nor is it what
    a missing thing becomes, a name without a value. What a program raises right below its remark may be
    what it makes of that.
    """
    package = importing_package(event)
    missed = {str(value).casefold() for value in event.facts.values() if isinstance(value, str)}
    if package:
        missed.add(package.casefold())
        return any(
            _ends_process(later) and later.line > event.last and not _speaks_of(later, missed)
            for later in events
        )
    return is_remark(event) and any(
        later.source == event.source
        and later.traceback > event.last
        and later.pattern_role == "origin"
        and later.cause != event.cause
        and not (later.logged or _WITHOUT_VALUE.search(later.body))
        and (later.traceback - event.last > NEAR or not raises_itself(later.frames))
        and not _speaks_of(later, missed)
        for later in events
    )


def _speaks_of(event: Event, names: Iterable[str]) -> bool:
    return any(name in text.casefold() for name in names for text in _words_of(event))


def _words_of(event: Event) -> Iterator[str]:
    """Give the message of an exception and its calls, as far as they tell of what it is about."""
    yield event.body
    for frame in event.frames:
        yield f"{frame.function} {frame.code}"
    if package := _PACKAGE.search(event.frames[-1].file) if event.frames else None:
        yield package[1]


def is_caught(event: Event, events: Sequence[Event]) -> bool:
    """Tell whether a later traceback of the same process went on from where this one's exception was caught.

    Of an exception that is caught and logged Python shows the calls only from there.
    """
    if not event.traceback or not event.frames or event.handled:
        return False
    began = (event.frames[0].file, event.frames[0].function)
    return any(
        later.source == event.source
        and later.traceback > event.line
        and began in [(frame.file, frame.function) for frame in later.frames[1:]]
        for later in events
    )


def caught_by_one(events: Sequence[Event]) -> Iterator[Event]:
    """Give the exceptions that one function caught again and again before something else ended the process.

    Who reaches a call again has lived through what that raised before: a sample, a kernel, a request. So it
    is where the exceptions are of several kinds (ranks that fail together say the same), and where what ends
    the process states its cause.
    """
    places: dict[tuple[str, str, str], list[Event]] = {}
    for event in events:
        outer = event.frames[0] if _is_exception(event) and event.frames and not event.remote else None
        if outer is not None and is_own(outer) and outer.function != "<module>":
            places.setdefault((event.source, outer.file, outer.function), []).append(event)
    for alike in places.values():
        kinds = {_kind(event) for event in alike}
        if sum(event.count for event in alike) < CAUGHT_AGAIN or len(kinds) < 2:
            continue
        first, last = min(event.line for event in alike), max(event.last for event in alike)
        ends = (event for event in events if event.line > last and _ends_process(event))
        if any(_is_uncaught(event) or not _is_exception(event) for event in ends):
            # What it caught may have come of another one, whose calls begin further in.
            yield from (
                event
                for event in events
                if event.traceback
                and event.source == alike[0].source
                and event.last <= last
                and (event in alike or (event.line > first and not _is_uncaught(event)))
            )


def _is_exception(event: Event) -> bool:
    """Tell whether a line is the end of a stack, and not one that only stands below it."""
    return event.traceback > 0 and EXCEPTION.match(event.body) is not None


def _is_uncaught(event: Event) -> bool:
    return bool(event.frames) and (event.frames[0].function == "<module>" or ends_program(event.frames))


def _ends_process(event: Event) -> bool:
    """Tell whether a line states what ended a process, or an exception tells it that nobody logged."""
    if event.pattern_role != "origin" or event.cause is None or event.logged:
        return False
    if not _is_exception(event):
        return event.strength == "states"
    is_made = event.handler == "unknown-exception" and raises_itself(event.frames)
    return event.strength != "hints" and not is_made


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
