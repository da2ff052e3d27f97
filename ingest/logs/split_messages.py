"""Exceptions parts of which stand elsewhere: the message in the row below, the calls in the next stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ingest.logs.cascade import Cascade
from ingest.logs.events import Event
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame

_BARE = re.compile(r"(?:^|[\]):\s])[A-Za-z_][\w.]*(?:Error|Exception): *$")
# Exceptions of one chain that are gone through for the calls of the job's own.
_MOST_LINKED = 4
# How many rows below the name a message may begin.
_BELOW = 2


def with_messages_below(events: Sequence[Event]) -> tuple[Event, ...]:
    """Give a known reason in place of the bare exception above it, with that one's calls."""
    by_line = {event.line: event for event in events if event.kind == "error"}
    joined: dict[int, Event] = {}
    for event in events:
        if not (event.traceback and _BARE.search(event.body)):
            continue
        rows = (by_line.get(event.line + step) for step in range(1, _BELOW + 1))
        told = (row for row in rows if row is not None and row.cause)
        below = next((row for row in told if row.traceback in (0, event.traceback)), None)
        if below is not None and below.count <= event.count:
            joined[event.line] = replace(
                below,
                body=f"{event.body.rstrip()} {below.body}",
                exception=event.exception,
                frames=event.frames,
                remote=event.remote,
                traceback=event.traceback,
                linked=event.linked,
                handled=event.handled,
                announces=event.announces,
                calm=event.calm,
                logged=event.logged,
            )
    taken = {event.line for event in joined.values()}
    return tuple(joined.get(event.line, event) for event in events if event.line not in taken)


def with_calls_of_chain(events: Sequence[Event]) -> tuple[Event, ...]:
    """Give an exception whose own stack is cut off the calls of the one that it led to, of the same pattern.

    A log that begins amid a chain shows only there for whom the first one was raised.
    """
    # The last exception of the chain that goes on below, by the process that printed it.
    ends: dict[str, Event] = {}
    joined: list[Event] = []
    for event in reversed(events):
        if event.kind == "error":
            end = ends.get(event.source)
            goes_on = end is not None and end.linked and end.pattern == event.pattern
            if end is not None and goes_on and not event.frames:
                event = replace(event, frames=end.frames)
            elif event.frames and not (goes_on and event.linked):
                ends[event.source] = event
        joined.append(event)
    return tuple(reversed(joined))


def with_outer_calls(cascade: Cascade) -> Cascade:
    """Give a root that a library caught and raised anew the job's own calls above the place where it did.

    Python shows of an exception that was caught the calls from there down; those above stand in the stack of
    the one that came of it, which goes through the same function.
    """
    root = cascade.root
    if root is None or not root.frames or any(map(is_own, root.frames)):
        return cascade
    outer = _calls_above(root, cascade.events)
    if not any(map(is_own, outer)):
        return cascade
    whole = replace(root, frames=(*outer, *root.frames))
    return Cascade(tuple(whole if event is root else event for event in cascade.events), whole)


def _calls_above(event: Event, events: Sequence[Event]) -> tuple[Frame, ...]:
    """Give the calls above those of an exception, from the exceptions that came of it."""
    outer: tuple[Frame, ...] = ()
    for _ in range(_MOST_LINKED):
        later = [each for each in events if each.traceback > event.line and each.source == event.source]
        after = min(later, key=lambda each: each.traceback, default=None)
        if after is None or not after.linked:
            break
        caught = (event.frames[0].file, event.frames[0].function)
        places = [at for at, call in enumerate(after.frames) if (call.file, call.function) == caught]
        if not places:
            break
        outer = (*after.frames[: places[-1]], *outer)
        event = after
    return outer
