"""Exceptions whose message begins below their name: `ImportError:`, and the reason in the next row."""

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
