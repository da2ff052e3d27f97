"""A kept answer in another language: words of a new reading, all else as it was given."""

from __future__ import annotations

from typing import Any

import pytest

from service.schemas.diagnosis import Alternative, CascadeEntry, Diagnosis, Engine, Evidence, Tokens
from service.schemas.value_bounds import ValueBounds
from service.workers.retelling import retell
from tests.factories import whole_corpus
from tests.service.factories import diagnosis, proposal
from tests.tables import each_row


def entry(event: str, count: int, line: int = 3) -> CascadeEntry:
    """Make a kind of event."""
    return CascadeEntry(line=line, time=None, source="rank 0", event=event, role="root", count=count)


def evidence(why: str, line: int = 3) -> Evidence:
    """Make the line that proves the cause."""
    return Evidence(line=line, text="No space left", role="root", why=why)


def answered(**fields: Any) -> Diagnosis:
    """Make the answer that was given."""
    made: dict[str, Any] = {
        "headline": "The disk is full",
        "confidence": 0.91,
        "evidence": (evidence("It says so"),),
        "cascade": (entry("Disk full", 512),),
        "alternatives": (Alternative(cause="nccl-network", confidence=0.05, tell_apart="Look"),),
        "changes": (
            proposal(to=64, from_="128", why="Less", bounds=ValueBounds(at_most=70)),
            proposal("disk", to="use another disk", why="More"),
        ),
        "engine": Engine(name="m", note="asked", tokens=Tokens(sent=5)),
    }
    return diagnosis(**{**made, **fields})


def again(**fields: Any) -> Diagnosis:
    """Make what the rules say of what was kept of its log, in the other language."""
    made: dict[str, Any] = {
        "headline": "\u78c1\u76d8\u5df2\u6ee1",
        "explanation": "\u6ee1\u3002",
        "confidence": 0.7,
        "evidence": (evidence("\u5982\u6b64"),),
        "cascade": (entry("\u78c1\u76d8\u6ee1", 2),),
        "alternatives": (
            Alternative(cause="nccl-network", confidence=0.2, tell_apart="\u770b"),
            Alternative(cause="port-in-use", confidence=0.1, tell_apart="\u770b"),
        ),
        "changes": (
            proposal(to=64, from_="96", why="\u5c11"),
            proposal("disk", to="\u6362\u4e00\u5757", why="\u591a"),
        ),
        "engine": Engine(),
    }
    return answered(**{**made, **fields})


def test_that_words_alone_are_taken() -> None:
    """Counts, odds, values and what a model wrote stay those that were given."""
    told = retell(answered(), again(), whole_corpus(), "zh")
    assert told is not None
    assert (told.headline, told.evidence[0].why, told.changes[0].why) == (
        again().headline,
        again().evidence[0].why,
        again().changes[0].why,
    )
    assert (told.cascade[0].event, told.cascade[0].count) == (again().cascade[0].event, 512)
    assert [(item.tell_apart, item.confidence) for item in told.alternatives] == [("\u770b", 0.05)]
    first, second = told.changes
    assert (first.from_, first.to, first.bounds) == ("128", 64, ValueBounds(at_most=70))
    assert second.to == again().changes[1].to
    assert (told.engine, told.confidence) == (answered().engine, 0.91)


@pytest.mark.long
@each_row(
    "other",
    [
        {"cause": "port-in-use"},
        {"action": "retry"},
        {"evidence": (evidence("x", line=4),)},
        {"cascade": (entry("x", 2, line=9),)},
        {"alternatives": ()},
        {"changes": (proposal(to=32, why="x"), again().changes[1])},
    ],
)
def test_that_an_answer_of_another_kind_is_not_taken_for_it(other: dict[str, Any]) -> None:
    """Its words would not be true of what was given."""
    assert retell(answered(), again(**other), whole_corpus(), "zh") is None
