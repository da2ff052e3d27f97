"""The command of a run as its tracker kept it, and which launch scripts cannot have given it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from corpus.keys import canonical
from service.patching.patches import ConfigFile

_OPTION = re.compile(r"(?<![\w-])--(?P<key>[A-Za-z][\w.-]*)(?:[= ]+(?P<value>(?!--)[^\s;&|]+))?")
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_REMARK = re.compile(r"(?m)^[ \t]*#.*$")
# A value that the shell works out, and words that stand for arguments given from outside.
_COMPUTED = re.compile(r"[$`*]")
_HANDED_ON = re.compile(r"\$[@*]|\$\{\w+\[@\]\}")


@dataclass(frozen=True)
class RunRecord:
    """What a tracker kept of a run: the program that was started, and its options with their values."""

    program: str
    options: dict[str, str]


def run_record(files: Sequence[ConfigFile]) -> RunRecord | None:
    """Give the command of the run that Weights & Biases kept (`wandb-metadata.json`), if it is at hand."""
    for file in files:
        if PurePath(file.name).name.endswith("wandb-metadata.json"):
            try:
                kept = json.loads(file.text)
            except ValueError:
                continue
            args, program = (kept.get(name) for name in ("args", "program")) if kept else (None, None)
            if isinstance(args, list) and isinstance(program, str) and args:
                return RunRecord(PurePath(program).name, _options(" ".join(map(str, args))))
    return None


def gave_another(file: ConfigFile, record: RunRecord) -> bool:
    """Tell whether a script starts the program, but never with the options that the run had."""
    rows = _REMARK.sub("", _CONTINUED.sub(" ", file.text)).splitlines()
    name = re.compile(rf"(?<![\w.-]){re.escape(record.program)}(?![\w.-])")
    starts = [row[match.end() :] for row in rows if (match := name.search(row))]
    return bool(starts) and not any(_may_have_given(words, record) for words in starts)


def _may_have_given(words: str, record: RunRecord) -> bool:
    if _HANDED_ON.search(words):
        return True
    return all(
        key in record.options and (_COMPUTED.search(value) is not None or value == record.options[key])
        for key, value in _options(words).items()
    )


def _options(words: str) -> dict[str, str]:
    found = {}
    for match in _OPTION.finditer(words):
        found[canonical(match["key"])] = (match["value"] or "").strip("'\"")
    return found
