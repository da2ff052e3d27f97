"""What the end of a job proves, as rows of `outcomes.yaml`.

The end is its scheduler's state, the signal that killed it, or its exit code.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from corpus import library
from corpus.errors import InvalidCorpusError
from corpus.schema import Action, Record, Text

FILE = Path(__file__).parent / "outcomes.yaml"
End = Literal["failed", "succeeded", "unknown"]
EndedBy = Literal["program", "system", "person", "scheduler"]
# The row for a signal or an exit code that has none of its own.
OTHER = "other"
# A shell gives 128 and the signal's number; numbers above are other programs' own exit codes.
_SHELL, _LAST_SIGNAL = 128, 31
# The names under which the facts of log lines tell of a signal: its name, its number, what the C library
# calls it (`Hangup`).
_SIGNAL_FIELDS = ("signal_name", "signal", "signal_n")
_REAL_TIME = re.compile(r"SIGRT(?:MIN|MAX)(?:[+-]\d{1,2})?")
_WORD = re.compile(r"[^A-Za-z0-9]+")


class Ending(Record):
    """How one way to end is read; `proof` says how firmly it stands for its `cause`.

    A signal from `outside` is one that no process of a job sends to another: where a log tells of it, it
    follows no other failure.
    """

    names: Annotated[tuple[str, ...], Field(min_length=1)]
    end: End
    by: EndedBy | None = None
    cause: str | None = None
    proof: Literal["established", "supported"] | None = None
    action: Action | None = None
    outside: bool = False
    may_be: tuple[str, ...] = ()
    says: Text
    next: Text | None = None
    source: Annotated[str, Field(pattern=r"^https://[^\s]+$")]


class _Rows(Record):
    states: tuple[Ending, ...]
    signals: tuple[Ending, ...]
    exit_codes: tuple[Ending, ...]


@dataclass(frozen=True)
class Endings:
    """The table, by the words that name an end."""

    states: Mapping[str, Ending]
    signals: Mapping[str, Ending]
    exit_codes: Mapping[str, Ending]

    @cached_property
    def from_outside(self) -> frozenset[str]:
        """The causes of ends that a person or the scheduler makes."""
        return frozenset(
            row.cause
            for row in (*self.states.values(), *self.signals.values())
            if row.cause and row.by in ("person", "scheduler")
        )

    def of_state(self, state: str) -> Ending | None:
        """Give how a state is read: the whole of it, else its first word (`CANCELLED by 1001`).

        None where nobody knows it.
        """
        return next(
            (
                self.states[word]
                for word in (_plain(state), _plain(state.partition(" ")[0]))
                if word in self.states
            ),
            None,
        )

    def of_signal(self, name: str) -> Ending:
        """Give how the signal of that name is read."""
        return self.signals.get(_plain(name)) or self.signals[OTHER]

    def of_exit_code(self, code: int) -> Ending:
        """Give how an exit code is read that stands for no signal."""
        return self.exit_codes.get(str(code)) or self.exit_codes[OTHER]


@cache
def load(path: Path = FILE) -> Endings:
    """Load the table; raises InvalidCorpusError naming the row."""
    rows = library.validated(_Rows, library.read_yaml(path), str(path))
    tables = []
    for part in (rows.states, rows.signals, rows.exit_codes):
        named = [(_plain(name), row) for row in part for name in row.names]
        if twice := [name for name, count in Counter(name for name, _ in named).items() if count > 1]:
            raise InvalidCorpusError(f"{path}: {twice[0]} stands twice in the table")
        tables.append(dict(named))
    return Endings(*tables)


def _plain(word: str) -> str:
    return _WORD.sub("", word).lower()


def signal_name(given: str | int) -> str:
    """Give a signal's name from any spelling (`SIGKILL`, `kill`, `9`, the C library's `Killed`).

    Raises ValueError where it is none.
    """
    text = str(given).strip().upper()
    if text.isdecimal() and len(text) <= 3:
        return _numbered(int(text))
    name = text if text.startswith("SIG") else f"SIG{text}"
    if name in signal.Signals.__members__:
        return signal.Signals[name].name
    if text in _called():
        return _called()[text]
    if _REAL_TIME.fullmatch(name):
        return name
    raise ValueError("there is no signal of that name; give one such as SIGKILL, or a number")


@cache
def _called() -> dict[str, str]:
    """Give each signal under what `strsignal` calls it; macOS adds the number behind a colon."""
    called = ((item.name, signal.strsignal(item)) for item in signal.Signals)
    return {text.partition(":")[0].upper(): name for name, text in called if text}


def slurm_exit_code(told: str) -> int | None:
    """Read Slurm's `1:0` (exit code and signal) as one exit code, as a shell writes it; None for neither.

    Signals above the last are marks of Slurm's own (125 for memory).
    """
    code, _, number = told.partition(":")
    if number.isdecimal() and 0 < int(number) <= _LAST_SIGNAL:
        return _SHELL + int(number)
    return int(code) if code.isdecimal() else None


def told_signal(fields: Mapping[str, object]) -> str | None:
    """Give the signal that a log line's fact tells of: by name, by number or by an exit code (`code`)."""
    told = next((fields[name] for name in _SIGNAL_FIELDS if name in fields), None)
    code = fields.get("code")
    try:
        if told is None:
            return signal_of(int(code)) if isinstance(code, int | float) else None
        return signal_name(f"{told:.0f}" if isinstance(told, float) else str(told))
    except ValueError:
        return None


def _numbered(number: int) -> str:
    if number in {item.value for item in signal.Signals}:
        return signal.Signals(number).name
    if signal.SIGRTMIN < number < signal.SIGRTMAX:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"
    raise ValueError("there is no signal of that number; give a name such as SIGKILL")


def signal_of(exit_code: int | None) -> str | None:
    """Give the signal that an exit code stands for: 137 as a shell writes SIGKILL, -9 as Python does.

    None where it is none.
    """
    if exit_code is None or not (
        -_LAST_SIGNAL <= exit_code < 0 or _SHELL < exit_code <= _SHELL + _LAST_SIGNAL
    ):
        return None
    return _numbered(-exit_code if exit_code < 0 else exit_code - _SHELL)
