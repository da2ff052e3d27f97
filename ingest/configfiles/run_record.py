"""The command of a run as Weights & Biases kept it, and which launch scripts cannot have given it.

wandb/sdk/internal/system/system_info.py writes `wandb-metadata.json`: the program, and `args` as it had them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from corpus.keys import canonical
from ingest.configfiles.settings import Setting
from ingest.configfiles.shell import commands

_SIGN = re.compile(r'"(?:heartbeatAt|startedAt)"\s*:')
_OPTION = re.compile(r"(?<![\w-])--(?P<key>[A-Za-z][\w.-]*)(?:[= ]+(?P<value>(?!--)[^\s;&|]+))?")
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_REMARK = re.compile(r"(?m)^[ \t]*#.*$")
# A value that the shell works out, and words that stand for arguments given from outside.
_COMPUTED = re.compile(r"[$`*]")
_HANDED_ON = re.compile(r"\$[@*]|\$\{\w+\[@\]\}")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run's program, the words that it was started with, and the cards of its machine, 0 for unknown."""

    program: str
    words: tuple[str, ...]
    cards: int = 0

    @property
    def settings(self) -> list[Setting]:
        """Give what the words set; there is no place to change it, since no run reads the record."""
        return list(commands.of_words([self.program, *self.words], 0))

    def may_come_of(self, script: str) -> bool | None:
        """Tell whether a script may have started this run; None where it starts another program.

        A launcher that somebody changes between runs has most of its options still; it is another one where
        as many of those that it gives in each of its starts are none of this run's, or of other values.
        """
        rows = _REMARK.sub("", _CONTINUED.sub(" ", script)).splitlines()
        name = PurePosixPath(self.program.replace("\\", "/")).name
        started = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        starts = [row[match.end() :] for row in rows if (match := started.search(row))]
        return any(map(self._is_mostly, starts)) if starts else None

    def _is_mostly(self, words: str) -> bool:
        given = _options(" ".join(self.words))
        told = {key: value for key, value in _options(words).items() if not _COMPUTED.search(value)}
        same = sum(given.get(key) == value for key, value in told.items())
        return _HANDED_ON.search(words) is not None or not told or same > len(told) - same


def is_run_metadata(text: str) -> bool:
    """Tell whether a text is what the tracker kept of a run and its machine, with the command or without."""
    return _SIGN.search(text) is not None


def read_record(text: str) -> RunRecord | None:
    """Read what the tracker kept of a run; None for any other text."""
    if not _SIGN.search(text):
        return None
    try:
        kept = json.loads(text)
    except (ValueError, RecursionError):
        return None
    # A run that was given no words has no `args`.
    args, program = (kept.get("args", []), kept.get("program")) if isinstance(kept, dict) else (None, None)
    if not isinstance(args, list) or not isinstance(program, str):
        return None
    cards = kept.get("gpu_count")
    return RunRecord(program, tuple(map(str, args)), cards if isinstance(cards, int) else 0)


def _options(words: str) -> dict[str, str]:
    return {canonical(match["key"]): (match["value"] or "").strip("'\"") for match in _OPTION.finditer(words)}
