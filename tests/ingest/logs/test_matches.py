"""Headings of samples, which are found many at a time, against patterns that are noted one by one."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.log_patterns import Pattern, SamplePart
from ingest.logs import hits, matches, scanner
from ingest.logs.matches import Match
from ingest.logs.scanner import Scanner, Tally, blocks

PARTS: tuple[tuple[SamplePart, str], ...] = (("asked", r"^ask(?:ed)?\s*"), ("answered", r"reply:?\s*$"))
TEXTS = st.lists(
    st.sampled_from(("ask", "ed", "reply", ":", " ", "\n", "\r", "[1]: ", "x" * 30)), max_size=60
).map("".join)


@cache
def scanners() -> tuple[Scanner, Scanner]:
    """Compile the same expressions as headings and as failures."""
    rows = [
        Pattern(id=part, kind="fact", sample=part, expression=expression, examples=())
        for part, expression in PARTS
    ]
    noted = [row.model_copy(update={"kind": "error", "sample": None}) for row in rows]
    return Scanner(tuple(rows)), Scanner(tuple(noted))


def found(compiled: Scanner, text: str, size: int) -> list[list[Match]]:
    """Give the matches of each block of a log."""
    return [compiled.matches(block) for block in blocks([text.encode()], Tally(), size)]


@given(text=TEXTS, size=st.integers(20, 400), longest=st.sampled_from((4, 40, 1000)))
@settings(max_examples=300, deadline=None)
def test_that_headings_are_told_as_other_matches_are(text: str, size: int, longest: int) -> None:
    """Each row once a line, or once in so many bytes of a long one, and none that ran on over its line."""
    headings, noted = scanners()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "LONG_LINE", longest)
        patch.setattr(scanner, "LONG_LINE", longest)
        patch.setattr(hits, "LONG_LINE", longest)
        patch.setattr(scanner, "BEFORE", 40)
        patch.setattr(scanner, "AFTER", 60)
        assert found(headings, text, size) == found(noted, text, size)
