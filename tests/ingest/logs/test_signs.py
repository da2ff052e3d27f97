"""Signs of patterns: what is found faster in a row's place loses none of its matches and adds none."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.log_patterns import Pattern, PatternTable
from eval import incidents
from ingest.logs.scanner import LONG_LINE, Block, Scanner, Tally, blocks

_EXPRESSION = r"(?:\bjob\b[^\n]{0,20}[^\w.]|\d +)FAILED(?:$|[^\w=])"
SIGNED = Pattern(id="job", kind="error", expression=_EXPRESSION, sign="FAILED", examples=())
OTHER = Pattern(id="step", kind="error", expression="step", examples=())
_PIECES = ("job ", "FAILED", "FAILED=", "\n", "\r", " ", "7 ", ".", "step 3", "x" * 30)
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=60).map("".join)


@cache
def scanners(*rows: Pattern) -> tuple[Scanner, Scanner]:
    """Compile rows once for all texts: with their signs, and as they are searched for everywhere."""
    return Scanner(rows), Scanner(without_signs(rows))


def found(scanner: Scanner, data: bytes, size: int) -> list[list[tuple[int, int, int]]]:
    """Give the matches of each block of a log."""
    return [
        [(match.row, match.line, match.offset) for match in scanner.matches(block)]
        for block in blocks([data], Tally(), size)
    ]


def without_signs(rows: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """Give rows as they are searched for everywhere."""
    return tuple(row.model_copy(update={"sign": ""}) for row in rows)


@given(text=TEXTS, size=st.integers(20, 400))
@settings(max_examples=300, deadline=None)
def test_that_a_sign_changes_no_match_wherever_the_text_is_cut(text: str, size: int) -> None:
    """A match may begin in the line above, or end in a neighbour's part."""
    signed, plain = scanners(SIGNED, OTHER)
    assert found(signed, text.encode(), size) == found(plain, text.encode(), size)


def test_that_a_line_without_end_is_searched_behind_its_first_sign_too() -> None:
    """A sign is noted once for so many bytes; the row's own matches are told as without it."""
    text = ("job 1 FAILED " + "x " * LONG_LINE) * 3 + "job FAILED\n"
    signed, plain = scanners(SIGNED)
    assert found(signed, text.encode(), 1 << 20) == found(plain, text.encode(), 1 << 20)
    assert len(found(signed, text.encode(), 1 << 20)[0]) > 3


def test_that_no_shipped_sign_loses_a_line_of_the_incidents(table: PatternTable) -> None:
    """What a row finds it finds with its sign, in its examples and in all labelled logs."""
    rows = tuple(row for row in table.rows if row.sign)
    assert rows
    signed, plain = Scanner(rows), Scanner(without_signs(rows))
    texts = [example for row in rows for example in (*row.examples, *row.near)]
    texts += [incident.text for incident in incidents.load()]
    told = 0
    for text in texts:
        data = text.encode()
        block = Block(data, 1, 0, len(data))
        assert signed.matches(block) == plain.matches(block), text[:200]
        told += len(plain.matches(block))
    assert told > len(rows)
