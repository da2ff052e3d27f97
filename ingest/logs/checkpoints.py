"""Checkpoints as a job's own lines tell of them: from where it can go on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from corpus.log_patterns import Pattern
from ingest.logs.facts import Value

# How the folders and files of checkpoints count steps: `checkpoint-500`, `global_step_20`, `iter_0000100`.
_STEP = re.compile(r"(?:checkpoint|ckpt|step|iter|iteration)[-_=]?0*(\d{1,12})(?!\d)")
# What stands around a path in a sentence.
_AROUND = "'\"`,;:()[]"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint and the line that tells of it.

    `path` is empty and `step` None where the line does not say. `is_done` where the line tells that it is
    written; else it only began there. `frameworks` are those that write such a line.
    """

    line: int
    path: str
    step: int | None
    is_done: bool
    frameworks: tuple[str, ...] = ()


def checkpoint_of(pattern: Pattern, line: int, fields: Mapping[str, Value]) -> Checkpoint | None:
    """Give the checkpoint that a line tells of; None where it says neither path nor step."""
    path = str(fields.get("path", "")).strip().rstrip(".").strip(_AROUND)
    step, found = fields.get("step"), _STEP.findall(path)
    number = int(step) if isinstance(step, int | float) else int(found[-1]) if found else None
    if not path and number is None:
        return None
    return Checkpoint(line, path, number, pattern.saves == "done", pattern.frameworks)
