"""Whose code raised an exception that no pattern knows, and what it means.

The code is the user's, an engine's or a framework's.
"""

from __future__ import annotations

import re
from dataclasses import replace

from corpus.exceptions import ExceptionMeaning, ExceptionMeanings, Owner
from corpus.frameworks import cued_frameworks, known_frameworks
from ingest.logs.events import Event

_STANDARD = re.compile(
    r"/lib(?:64)?/python3\.\d+/(?!site-packages|dist-packages)|^<frozen|^<string>|(?:site|"
    r"dist)-packages/(?:torch|numpy|pandas)/"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages/")


def classify_exception(event: Event, table: ExceptionMeanings) -> Event:
    """Give the event with the cause of the first meaning that fits, if nothing better is known."""
    if not event.frames or not event.exception or event.cause not in (None, *table.open):
        return event
    if event.cause and event.strength != "hints":
        return event
    owner = _owner(event)
    row = next((row for row in table.meanings if _fits(row, event, owner, table)), None)
    return replace(event, cause=row.cause, strength=row.strength) if row else event


def _fits(row: ExceptionMeaning, event: Event, owner: Owner | None, table: ExceptionMeanings) -> bool:
    if row.owners and owner not in row.owners:
        return False
    if row.hinted and event.cause != row.cause:
        return False
    if row.types and not re.search(row.types, event.exception.split("(")[0]):
        return False
    if row.code and not re.search(row.code, event.frames[-1].code):
        return False
    if not all(table.worded[name].search(event.body) for name in row.messages):
        return False
    calls = " ".join(map(str, event.frames[-row.within :])) if row.calls else ""
    return not row.calls or re.search(row.calls, calls) is not None


def _owner(event: Event) -> Owner | None:
    files = [frame.file for frame in event.frames if not _STANDARD.search(frame.file)]
    if not files:
        return None
    frameworks = cued_frameworks(files[-1])
    if known_frameworks().engines & set(frameworks):
        return "engine"
    return "framework" if frameworks or _INSTALLED.search(files[-1]) else "user"
