"""Whose code raised an exception that no pattern knows: the user's, an engine's or a framework's.

The last resort, below every pattern: an index error in somebody's own script is a programming error
there, the same in an engine's loop is the engine's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from ingest.logs.events import Event
from ingest.logs.frameworks import cued
from ingest.logs.patterns import Strength

Owner = Literal["user", "engine", "framework"]

_STANDARD = re.compile(r"/lib(?:64)?/python3\.\d+/(?!site-packages|dist-packages)|^<frozen|^<string>|(?:site|dist)-packages/(?:torch|numpy|pandas)/")
_INSTALLED = re.compile(r"(?:site|dist)-packages/")
_ENGINES = frozenset({"vllm", "sglang"})
# Slips in a program: a wrong name, key or index; what the world did wrong has other types.
_SLIPS = re.compile(r"^(?:builtins\.)?(?:KeyError|IndexError|NameError|UnboundLocalError|ZeroDivisionError|AttributeError|TypeError|AssertionError|RecursionError|NotImplementedError)$")
_REWARD = re.compile(r"reward|verifier|compute_score|sandbox")
_ROWS: dict[Owner, tuple[str, Strength]] = {
    "user": ("user-code-error", "suggests"),
    "engine": ("engine-crash", "suggests"),
    "framework": ("framework-bug", "hints"),
}
_OPEN = frozenset({None, "user-code-error", "framework-bug"})


def judged(event: Event) -> Event:
    """Give the event with a cause by the place of its innermost call, if nothing better is known."""
    if not event.frames or not event.exception or event.cause not in _OPEN or (event.cause and event.strength != "hints"):
        return event
    if any(_REWARD.search(str(frame)) for frame in event.frames[-3:]):
        return replace(event, cause="reward-function-failed", strength="suggests")
    owner = _owner(event)
    slip = _SLIPS.match(event.exception.split("(")[0]) or (owner == "user" and event.cause == "user-code-error")
    if owner is None or not slip:
        return event
    cause, strength = _ROWS[owner]
    return replace(event, cause=cause, strength=strength)


def _owner(event: Event) -> Owner | None:
    files = [frame.file for frame in event.frames if not _STANDARD.search(frame.file)]
    if not files:
        return None
    frameworks = cued(files[-1])
    if _ENGINES & set(frameworks):
        return "engine"
    return "framework" if frameworks or _INSTALLED.search(files[-1]) else "user"
