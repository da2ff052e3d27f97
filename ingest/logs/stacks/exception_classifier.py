"""What an exception that no pattern knows means, by its kind and by whose code raised it (`exceptions.yaml`).

The code is the user's, an engine's, a framework's, or a library's that the user's script calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from corpus.exceptions import ExceptionMeaning, ExceptionMeanings, Owner
from corpus.expressions import compiled
from corpus.frameworks import cued_frameworks, known_frameworks
from ingest.logs.events import Event
from ingest.logs.stacks.own_calls import STANDARD, is_own, own_call, raised_for
from ingest.logs.stacks.stack import EXCEPTION, Frame

# What one process hands on of another's exception: `repr` of it, as the message of its own.
_QUOTED = re.compile(
    r"^[\w.]{1,120}: (?P<type>(?:\w{1,60}\.){0,4}[A-Z]\w{0,60}(?:Error|Exception))"
    r"\((?P<quote>[\"'])(?P<message>[^\n]{1,2000})(?P=quote),?\)\s*$"
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One exception: its kind, whose code raised it, the source line of the owner's own call, all calls."""

    kind: str | None
    owner: Owner | None
    through: str
    frames: Sequence[Frame]


def classify_exception(
    event: Event, table: ExceptionMeanings, outer: Sequence[Frame] = (), *, in_plain_words: bool = False
) -> Event:
    """Give the event with the cause of the first meaning that fits, if nothing better is known.

    A pattern that only hints at whose fault it is is put right by the calls; another hint is made surer by
    the exception's kind, and put right where the calls tell more. `outer` are the calls of the exceptions
    that came of this one. What is told `in_plain_words` counts whatever its pattern's role.
    """
    if event.cause and event.strength != "hints":
        return event
    # A logger may put the error into a field of its own.
    quoted = _QUOTED.search(event.body)
    name, message = (quoted["type"], quoted["message"]) if quoted else (_type(event), event.body)
    kind = table.kind(name, f"{event.body} {event.text}" if in_plain_words else message)
    if kind is None and event.cause is None:
        kind = table.kind("", event.rest)
    is_open = event.cause in (None, *table.open)
    has_calls = bool(event.frames and event.exception)
    is_told = kind and (event.pattern_role == "origin" or in_plain_words)
    if not is_told and not (is_open and has_calls):
        return event
    frames = (*outer, *event.frames)
    reading = _Reading(kind, *_owner(frames, table), frames)
    rows = (row for row in table.meanings if (has_calls and is_open) or row.kinds)
    row = next((row for row in rows if _fits(row, event, reading, table)), None)
    if row is None and event.cause is None:
        default = next((row for row in table.defaults if _fits(row, event, reading, table)), None)
        return replace(event, default_cause=default.cause) if default else event
    if row is None or not (is_open or row.cause == event.cause or row.calls or row.through or row.messages):
        return event
    is_said = event.outright and row.cause == event.cause
    return replace(event, cause=row.cause, strength=row.strength, outright=is_said)


def _type(event: Event) -> str:
    """Give the exception's type; that of a line without its calls stands before the message."""
    if event.exception:
        return event.exception.split("(")[0]
    match = EXCEPTION.match(event.body)
    return match["type"] if match else ""


def _fits(row: ExceptionMeaning, event: Event, reading: _Reading, table: ExceptionMeanings) -> bool:
    if row.kinds and reading.kind not in row.kinds:
        return False
    if row.owners and reading.owner not in row.owners:
        return False
    if row.hinted and event.cause != row.cause:
        return False
    if row.called_by_job not in (None, own_call(reading.frames) is not None):
        return False
    if row.types and not compiled(row.types).search(_type(event)):
        return False
    if row.code and not (event.frames and compiled(row.code).search(event.frames[-1].code)):
        return False
    if row.through and not compiled(row.through).search(reading.through):
        return False
    asking = own_call(reading.frames) if row.asked else None
    if row.asked and (asking is None or not compiled(row.asked).search(asking.code)):
        return False
    if not all(table.worded[name].search(event.body) for name in row.messages):
        return False
    calls = " ".join(map(str, reading.frames[-row.within :])) if row.calls else ""
    return not row.calls or compiled(row.calls).search(calls) is not None


def _owner(frames: Sequence[Frame], table: ExceptionMeanings) -> tuple[Owner | None, str]:
    """Tell whose code the innermost call is that does more than it is called for, and its source line."""
    frames = raised_for(frames)
    own = [frame for frame in frames if not STANDARD.search(frame.file) and not table.tool.search(frame.file)]
    if not own:
        return None, ""
    last = own[-1]
    if known_frameworks().engines & set(cued_frameworks(last.file)):
        return "engine", last.code
    if not is_own(last):
        caller = own_call(own)
        is_known = cued_frameworks(last.file) or known_frameworks().installed.search(last.file)
        return ("framework", last.code) if is_known or caller is None else ("package", caller.code)
    is_direct = last is frames[-1] or STANDARD.search(frames[-1].file)
    return ("user" if is_direct else "library"), last.code
