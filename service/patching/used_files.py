"""Which of several files of a kind the run has read: those whose own names and paths its output shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from ingest.logs.report import CrashReport
from service.patching.patches import ConfigFile

# Paths of three parts and more, and names of files: what two jobs rarely share by chance.
_TELLING = re.compile(r"(?:/[\w.@+=-]+){3,}|(?<![\w/.-])[\w-]+\.(?:py|ya?ml|json|jsonl|sh|pt|toml)(?![\w.])")
_COMMENT = re.compile(r"(?m)^\s*#(?!SBATCH).*$")
# What Weights & Biases writes of a run, which no run reads: wandb/sdk/lib/config_util.py.
_RECORD = re.compile(r"(?m)^_wandb:")
# What a file's own name in the output counts for: more than any names that it holds.
_NAMED = 1000


def by_use(files: Sequence[ConfigFile], report: CrashReport) -> tuple[ConfigFile, ...]:
    """Give the files with those first, among their kind, that the run's output shows to be its own.

    Files of different kinds keep their places, and so do those of which the output shows as much.
    """
    shown = set(_TELLING.findall("\n".join(_shown(report))))
    names = {PurePath(token).name for token in shown}
    kinds = [PurePath(file.name).suffix for file in files]
    ordered = {kind: iter(_ordered(files, kind, shown, names)) for kind in kinds}
    return tuple(next(ordered[kind]) for kind in kinds)


def _ordered(files: Sequence[ConfigFile], kind: str, shown: set[str], names: set[str]) -> list[ConfigFile]:
    def shared(file: ConfigFile) -> int:
        if _RECORD.search(file.text):
            return -1
        own = set(_TELLING.findall(_COMMENT.sub("", file.text)))
        return len(own & shown) + _NAMED * (PurePath(file.name).name in names)

    return sorted((file for file in files if PurePath(file.name).suffix == kind), key=shared, reverse=True)


def _shown(report: CrashReport) -> Iterator[str]:
    """Give the rows of the output that the report keeps, the command, and the values of settings."""
    yield from report.texts.values()
    yield report.command[1]
    yield from (setting.value for setting in report.settings)
