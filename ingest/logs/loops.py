"""The loop of a program that caught an exception, printed it and went on: below it stand rows as above it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.logs.events import Event
from ingest.logs.lines import Line, parse_line
from ingest.logs.scanner import Block
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.survival import NEAR, calm

# So many rows that stand above as well show that a loop goes on: others may be of who never stopped.
ROUNDS = 5
# The rows above and below that are looked at, the last ones of a log, and the exceptions.
ABOVE, BELOW, LAST, MOST = 200, 2000, 3, 64
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[A-Za-z]{3}|[^\x00-\x7f]{2}")
# What is printed while nothing goes on: by who waits, and by who is only asked whether it lives.
_WAITS = re.compile(r"(?i)\bwait|heartbeat|\balive\b|\bidle\b|health|\b(?:GET|POST|HEAD) /|\bping\b|still ")


def rounds_below(events: Sequence[Event], block: Block | None) -> dict[int, int]:
    """Give, by the line of each exception that its program lived on after, the last row of its loop below.

    Such a stack begins at a function of the job's own: of an exception that nobody caught it begins at the
    module. Only those are looked at that stand in the log's last part, `block`.
    """
    if block is None:
        return {}
    caught = [event for event in _printed(events) if event.last >= block.line]
    rows = block.data.split(b"\n") if caught else []
    # What another failure says is no word of the one that was caught.
    told_apart = {
        line for event in events for line in range(event.traceback or event.line, event.line + 1)
    } | {event.last for event in events}
    found: dict[int, int] = {}
    for event in caught[:MOST]:
        begin, end = (event.traceback or event.line) - block.line, event.last + 1 - block.line
        above = {
            _template(line)
            for line in _own_rows(rows, max(0, begin - ABOVE), begin, event.source, block.line)
        }
        below = [*_own_rows(rows, end, min(len(rows), end + BELOW), event.source, block.line)]
        last = [*_own_rows(rows, max(end, len(rows) - BELOW), len(rows), event.source, block.line)][-LAST:]
        last = [line for line in last if line.number not in told_apart]
        calm_rows = [line for line in below if calm([line]) and not _WAITS.search(line.body)]
        going = [line for line in calm_rows if _template(line) in above]
        if calm(reversed(last)) == len(last) and len(going) >= ROUNDS:
            line = found[event.line] = going[-1].number
            # What was caught is often told right above its stack, too.
            said = event.body.partition(": ")[2] or event.body
            told = (other for other in events if 0 < (event.traceback or 0) - other.last <= NEAR)
            found |= {other.line: line for other in told if not other.traceback and said in other.body}
    return found


def _printed(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the errors whose stacks begin at a function of the job's own: what caught them printed them."""
    for event in events:
        outer = event.frames[0] if event.frames and event.traceback and not event.remote else None
        if outer is None or event.kind != "error" or event.pattern_role == "wrapper":
            continue
        if not outer.function.startswith("<") and outer.file.endswith(".py") and is_own(outer):
            yield event


def _own_rows(rows: Sequence[bytes], begin: int, end: int, source: str, first: int) -> Iterator[Line]:
    """Yield the rows with words, from one place to another, that the same process printed."""
    for place in range(max(0, begin), end):
        line = parse_line(rows[place].rsplit(b"\r", 1)[-1], first + place)
        if line.source == source and _LETTERS.search(line.body):
            yield line


def _template(line: Line) -> str:
    return _DIGITS.sub("", line.body)
