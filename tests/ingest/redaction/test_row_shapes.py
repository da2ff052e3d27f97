"""Rows that are passed over by their shape, and that nothing is lost with them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.digit_blind import MASK, blind_beginnings, blind_expressions
from ingest.errors import InvalidExpressionError
from ingest.expression_tree import parse, written
from ingest.logs.scanner import Finder
from ingest.redaction import prefilter, search
from ingest.redaction.prefilter import Prefilter
from ingest.redaction.table import KINDS
from tests.ingest.redaction.test_redaction_recall import texts

SETS = ("g", "n")
CONDITIONS = list(dict.fromkeys(kind.prefilter for kind in KINDS))


@pytest.fixture(scope="module")
def shaped(compiled: Path) -> Prefilter:
    """Give a prefilter of the tests here alone."""
    return Prefilter(compiled)


def _log(name: str) -> bytes:
    """Make a log of a set's secrets and look-alikes, with rows between them that say much the same."""
    dice = random.Random(name)  # noqa: S311 - a made log, no secret
    quiet = [f"step {number} loss {number * 0.37:.4f} lr 1e-{number % 9}" for number in range(400)]
    quiet += ["[rank3]: 2026-05-03 10:00:01 - trainer - INFO - ok", "", "   ", "key", "token usage: 0.31"]
    rows: list[str] = []
    for planted in texts(name):
        rows += [dice.choice(quiet) for _ in range(dice.choice((0, 1, 1, 3, 9)))]
        rows.append(planted.text)
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def _pieces(data: bytes) -> Iterator[bytes]:
    for size in (len(data), 7001):
        yield from (data[place : place + size] for place in range(0, len(data), size))


@pytest.mark.parametrize("name", SETS)
def test_the_rows_that_are_looked_at_hold_what_all_rows_hold(
    name: str, shaped: Prefilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for piece in _pieces(_log(name)):
        whole = shaped.spots(piece)
        with monkeypatch.context() as patch:
            patch.setattr(prefilter, "SHAPED_FROM", 1)
            patch.setattr(prefilter, "PAYS", 0)
            live = shaped.spots(piece)
        found = {(spot.begin, spot.end): spot for spot in live}
        for spot in whole:
            other = found[spot.begin, spot.end]
            assert (spot.kinds, spot.open) == (other.kinds, other.open), piece[spot.begin : spot.end]
        secrets = [
            {(one.kind, one.parts) for one in search.search_rows(piece, rows)} for rows in (whole, live)
        ]
        assert secrets[0] == secrets[1]


def test_a_name_that_a_rows_end_cuts_is_found_wherever_it_stands(
    shaped: Prefilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the text's first byte or behind other rows, its half below at the text's end or before a value."""
    dice = random.Random(28)  # noqa: S311 - a made log, no secret
    starts = [start for kind in KINDS for start in kind.starts if len(start) > 1]
    monkeypatch.setattr(prefilter, "PAYS", 0)
    cut = 0
    for _ in range(400):
        name = dice.choice(starts)
        at = dice.choice((1, len(name) - 1, dice.randrange(1, len(name))))
        above = [dice.choice(("", "x", "step 1 of 9", "  ")) for _ in range(dice.randrange(3))]
        rows = [
            *above,
            dice.choice(("", "", "- ")) + name[:at],
            name[at:] + dice.choice(("", "=hunter2", ": ")),
        ]
        text = "\n".join(rows + dice.choice(([], ["", "step 2 of 9"]))).encode()
        monkeypatch.setattr(prefilter, "SHAPED_FROM", len(text) + 1)
        whole = {(spot.begin, spot.end): (spot.kinds, spot.open) for spot in shaped.spots(text)}
        monkeypatch.setattr(prefilter, "SHAPED_FROM", 1)
        live = {(spot.begin, spot.end): (spot.kinds, spot.open) for spot in shaped.spots(text)}
        assert whole.items() <= live.items(), text
        cut += bool(whole)
    assert cut > 100


def test_most_rows_of_a_log_that_repeats_itself_are_passed_over(shaped: Prefilter) -> None:
    text = "\n".join(
        f"2026-05-03 10:00:{n % 60:02} INFO step {n} loss 0.{n:04}" for n in range(5000)
    ).encode()
    begins = [0, *(found.end() for found in re.finditer(rb"\n", text))]
    assert shaped.shapes is not None
    assert len(shaped.shapes.live_rows(text, begins)) < 10


def test_an_expression_is_written_from_its_tree_as_it_was(compiled: Path) -> None:
    data = b"\n".join(planted.text.encode("utf-8", "surrogatepass") for planted in texts("g"))
    as_given, as_written = Finder(CONDITIONS, compiled), Finder([written(parse(text)) for text in CONDITIONS])
    assert sorted(as_given.ends(data)) == sorted(as_written.ends(data))


def test_whatever_digits_a_match_has_its_masked_row_is_found(compiled: Path) -> None:
    rows = [row.encode() for planted in texts("n") for row in planted.text.split("\n")]
    finder = Finder(CONDITIONS, compiled)
    asked = [*blind_expressions(CONDITIONS), *(one.expression for one in blind_beginnings(CONDITIONS))]
    blind = Finder(asked)
    for row in rows:
        if finder.ends(row + b"\n;"):
            assert blind.ends(b"\n" + row.translate(MASK) + b"\n"), row


@pytest.mark.parametrize(
    ("expression", "row", "holds"),
    [
        (r"r8_[a-z]{4}", b"see r5_abcd", True),  # another digit makes the same shape
        (r"[1-3]x", b"9x", True),
        (r"[^0-9]x", b"9x", False),  # no digit is taken here, whichever it is
        (r"key\s*\z", b"key", False),  # the last row of a text is always looked at
    ],
)
def test_a_place_that_takes_some_digit_takes_any(expression: str, row: bytes, holds: bool) -> None:
    expressions = blind_expressions([expression])
    found = Finder(expressions).ends(row.translate(MASK) + b"\n") if expressions else []
    assert bool(found) == holds


@pytest.mark.parametrize(
    ("expression", "row", "rows"),
    [
        (r"password\s+is\b", b"the password", 1),
        (r"a\n[^\n]*\nb", b"a", 2),
        (r"curl\W", b"curl", 0),  # it ends with the row
        (r"\sis the key", b"nothing", 0),  # the newline before a row is that row's matter
    ],
)
def test_a_match_that_goes_on_below_is_told_by_its_beginning(expression: str, row: bytes, rows: int) -> None:
    beginnings = blind_beginnings([expression])
    finder = Finder([one.expression for one in beginnings]) if beginnings else None
    found = finder.ends(b"\n" + row + b"\n") if finder else []
    assert max((beginnings[number].rows for number, _ in found), default=0) == rows


@pytest.mark.parametrize(
    "expression", [r"(?=a)b", r"a(?s:.)", r"[[:alpha:]]", r"(a)\1", "a++", "(a", r"\x{2d}", r"\x4", r"A\xZZ"]
)
def test_what_is_not_known_of_an_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidExpressionError):
        parse(expression)


def test_a_users_expression_that_is_refused_is_looked_for_in_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = KINDS[0]
    monkeypatch.setattr(prefilter, "KINDS", [*KINDS, type(kind)("own", "[[:upper:]]{7}", "x", linear=True)])
    monkeypatch.setattr(prefilter, "SHAPED_FROM", 1)
    monkeypatch.setattr(prefilter, "PAYS", 0)
    made = Prefilter(tmp_path)
    assert made.shapes is None
    assert [spot.begin for spot in made.spots(b"step 1\nstep ABCDEFG\nstep 3\n")] == [7]
