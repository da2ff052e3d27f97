"""The lines of one process among others': found by their marks, as where every line is parsed."""

from __future__ import annotations

import json
import random

import pytest

from eval.bench.made_logs import FORMS
from ingest.logs.lines import Line
from ingest.logs.scanner import Block
from ingest.logs.stacks.stack import LinesAbove, LinesBelow, source_marks

RANKS = 12


def _nested(rank: int, text: str) -> str:
    inner = json.dumps({"level": "info", "rank": rank, "msg": text})
    return json.dumps({"log": inner, "stream": "stderr", "time": "2026-05-03T10:00:07Z"})


def _number(rank: int, text: str) -> str:
    return f'{{"level": "info", "pid": {rank}.50, "msg": "{text}"}}'


def _escaped(rank: int, text: str) -> str:
    return f'{{"level": "info", "hostname": "a\\/b{rank}", "msg": "{text}"}}'


def _mixed(rank: int, text: str) -> str:
    return random.Random(f"{rank} {text}").choice(list(FORMS.values()))(rank, text)  # noqa: S311


WRITERS = {**FORMS, "nested": _nested, "number": _number, "escaped": _escaped, "mixed": _mixed}


@pytest.mark.parametrize("name", WRITERS)
def test_marks_pass_no_line_of_the_process(name: str) -> None:
    dice = random.Random(name)  # noqa: S311 - made lines
    rows = [WRITERS[name](dice.randrange(RANKS), f"step {step} of rank 3: 7") for step in range(400)]
    rows[60] = f"\r{rows[60]}\r{rows[61]}"
    data = ("\n".join(rows) + "\n").encode()
    block = Block(data, 1, 0, len(data))
    for at in (0, 60, 200, 399):
        place = sum(len(row.encode()) + 1 for row in rows[:at])
        known: dict[int, Line] = {}
        like = next(LinesBelow(block, place, at + 1, known))
        for kind in (LinesBelow, LinesAbove):
            every = [line for line in kind(block, place, at + 1, {}) if line.source == like.source]
            assert list(kind(block, place, at + 1, known).own(like)) == every
        near = [line for line in LinesBelow(block, place, at + 1, {}) if line.number <= at + 50]
        assert list(LinesBelow(block, place, at + 1, {}).own(like, at + 50)) == [
            line for line in near if line.source == like.source
        ]


def test_a_process_is_known_by_what_its_lines_hold() -> None:
    assert source_marks(Line(1, "", "", pid="4001", rank="3")) == (b"4001",)
    assert b"[rank3]" in (source_marks(Line(1, "", "", rank="3")) or ())
    assert source_marks(Line(1, "", "", pid="1.5")) is None
    assert source_marks(Line(1, "", "", node="a/b")) is None
    assert source_marks(Line(1, "", "")) is None
