"""Exceptions parts of which stand elsewhere: the message in the row below, the calls in the next stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ingest.logs.events import Event

_BARE = re.compile(r"(?:^|[\]):\s])[A-Za-z_][\w.]*(?:Error|Exception): *$")
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
