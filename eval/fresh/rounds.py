"""Rounds of public logs: where each stands, what was wrong in it, and how it was answered at first sight."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from corpus.errors import InvalidCorpusError
from corpus.library import read_yaml, validated
from corpus.schema import Record
from eval.errors import EvalError, InvalidRoundError
from eval.incidents import Label, LabelledChange, LabelVerdict, Origin

ROUNDS = Path(__file__).parent / "rounds"
HOSTS = Path(__file__).parent / "hosts.yaml"
RECORDED = ".first-sight.json"
_SHORT = 200


class Pointer(Record):
    """A file of a public repository; of a log, `lines` are the first and the last that are shown (from 1)."""

    path: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    lines: tuple[int, int] | None = None


class FreshLog(Record):
    """A public log with its label.

    `log` and the job's `files` stand in `repository` at `commit`. `causes` are all that an expert would
    accept, the best first; `root_lines` are counted in the whole file. Any of `changes` would cure; none of
    `forbidden` may be offered.
    """

    id: str
    repository: str = Field(pattern="^[^/]+/[^/]+$")
    commit: str = Field(pattern="^[0-9a-f]{40}$")
    log: Pointer
    files: tuple[Pointer, ...] = ()
    verdict: LabelVerdict
    causes: tuple[str, ...] = ()
    root_lines: tuple[int, ...] = ()
    changes: tuple[LabelledChange, ...] = ()
    forbidden: tuple[LabelledChange, ...] = ()
    language: Literal["en", "zh"] = "en"
    note: str = ""

    @model_validator(mode="after")
    def _complete(self) -> FreshLog:
        first, last = self.log.lines or (1, None)
        if any(line < first or (last is not None and line > last) for line in self.root_lines):
            raise ValueError("a root line stands outside the lines that are shown")
        if (self.verdict == "diagnosed") != bool(self.causes and self.root_lines):
            raise ValueError("a diagnosed log has a cause and a root line, any other has neither")
        return self

    def label(self) -> Label:
        """Give the label as an incident's; its root lines are counted in what is shown."""
        first, last = self.log.lines or (1, None)
        return Label(
            id=self.id,
            causes=self.causes,
            verdict=self.verdict,
            root_lines=tuple(line - first + 1 for line in self.root_lines),
            changes=self.changes,
            language=self.language,
            kind="short" if last is not None and last - first < _SHORT else "long",
            mechanism=self.id,
            split="test",
            origin=Origin(kind="public", note=self.note),
        )


class Round(Record):
    """Logs that were labelled before any of them was answered; opened after it was scored, so it is spent."""

    round: int
    labelled: date
    logs: tuple[FreshLog, ...]


class Figure(Record):
    """A figure over `count` logs, with a 95 % bootstrap interval; empty where nothing was scored."""

    value: float | None
    low: float | None
    high: float | None
    count: int


class FirstSight(Record):
    """A round's score before anything was learned from it.

    `program` is the commit that answered. `answers` hold for each log what the program named (verdict,
    causes, confidence, evidence lines, changes) and which figures it reached: nothing of the log's text.
    """

    round: int
    scored: date
    program: str
    figures: Mapping[str, Figure]
    answers: tuple[Mapping[str, Any], ...]


def load(number: int, folder: Path = ROUNDS) -> Round:
    """Load a round; raises InvalidRoundError naming file and field, and what two logs have in common."""
    path = folder / f"{number}.yaml"
    if not path.exists():
        raise InvalidRoundError(f"{folder} has no round {number}: there are {numbers(folder)}")
    try:
        found = validated(Round, read_yaml(path), str(path))
    except InvalidCorpusError as error:
        raise InvalidRoundError(str(error)) from error
    for name, keys in (
        ("id", [log.id for log in found.logs]),
        ("text", [f"{log.log.sha256} {log.log.lines}" for log in found.logs]),
    ):
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise InvalidRoundError(f"{path}: two logs have one {name}: {', '.join(twice)}")
    return found


def numbers(folder: Path = ROUNDS) -> list[int]:
    """List the rounds of a folder."""
    return sorted(int(path.stem) for path in folder.glob("*.yaml"))


def recorded(folder: Path = ROUNDS) -> list[FirstSight]:
    """Load the scores at first sight, by round."""
    paths = sorted(folder.glob(f"*{RECORDED}"), key=lambda path: int(path.name.removesuffix(RECORDED)))
    return [FirstSight.model_validate_json(path.read_text(encoding="utf-8")) for path in paths]


def record(score: FirstSight, folder: Path = ROUNDS) -> Path:
    """Keep a round's score; raises EvalError where it has one, as a round is new only once."""
    path = folder / f"{score.round}{RECORDED}"
    if path.exists():
        raise EvalError(f"round {score.round} was scored before ({path}); its logs are no longer new.")
    path.write_text(
        json.dumps(score.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    return path
