"""What lines mean by their text: judged once for all that differ in digits which nobody tells apart."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from corpus import log_patterns
from ingest.digit_blind import told_apart
from ingest.logs import judgements, samples, wording
from ingest.logs.judgements import FailureJudgement, Judgements, LineJudgement
from ingest.logs.lines import line_like, parse_line, printed_layout, shape_of
from ingest.logs.stacks import tracebacks
from tests.tables import each_row

TABLE = log_patterns.load()
NUMBERS = {row.id: number for number, row in enumerate(TABLE.rows)}
# Expressions that a judgement asks and that tell digits apart: what `_HEXADECIMAL` keeps away, and a mark of
# quotation that is found again.
TELLING = {"_OF_JOBS", "_CONTINUED"}
# What is asked of each line anew.
ASKED_ANEW = {"_GOES_ON", "_PART_FAILED"}


def _varied(text: str, table: bytes, dice: random.Random) -> str:
    """Give a text with other digits of those that a table makes alike."""
    return re.sub(
        r"\d",
        lambda digit: dice.choice(
            [other for other in "0123456789" if table[ord(other)] == table[ord(digit[0])]]
        ),
        text,
    )


def _told(judged: LineJudgement) -> list[object]:
    """Give all that a judgement tells."""
    told: list[object] = [judged.is_entered, judged.rows, judged.begins_traceback, judged.calm_rows]
    for ignored in (False, True):
        failures = judged.failures(ignored=ignored)
        told += _told_of(failures) if failures is not None else [None]
    return told


def _told_of(judged: FailureJudgement) -> list[object]:
    return [
        judged.ranked,
        judged.is_general_talk,
        judged.is_general,
        judged.is_warning_call,
        judged.masked,
        judged.lists_misfits,
        judged.is_supposed,
        judged.alone,
        judged.within_traceback,
    ]


def _examples() -> Iterator[tuple[int, str]]:
    return ((number, text) for number, row in enumerate(TABLE.rows) for text in row.examples)


def test_other_digits_change_no_judgement_that_is_remembered() -> None:
    """Each pattern's examples mean the same with all digits that its expression does not tell apart."""
    dice, remembered = random.Random(7), 0  # noqa: S311 - made numbers, no secret
    for number, text in _examples():
        line, table = parse_line(text.encode(), 1), told_apart([TABLE.rows[number].expression])
        if table is None or shape_of(line.text) is None or re.search(r"\dx", line.text):
            continue
        first = Judgements(TABLE).of((number,), line)
        other = parse_line(_varied(line.text, table, dice).encode(), 1)
        assert _told(LineJudgement([TABLE.rows[number]], other)) == _told(first)
        remembered += 1
    assert remembered > len(TABLE.rows) // 2


def test_lines_that_differ_in_their_numbers_are_judged_once() -> None:
    """A step's number is no reason to judge anew, a number that a pattern looks for is."""
    judged = Judgements(TABLE)
    number = next(
        number
        for number, row in enumerate(TABLE.rows)
        if row.fails and told_apart([row.expression]) == told_apart([])
    )
    one, two = (parse_line(f"worker {rank} failed at step 12".encode(), 1) for rank in (3, 8))
    assert judged.of((number,), one) is judged.of((number,), two)
    status = NUMBERS["plain.exit-status"]
    one, two = (parse_line(f"exited with status {code}".encode(), 1) for code in (0, 1))
    assert judged.of((status,), one) is not judged.of((status,), two)


def test_lines_with_other_digits_that_a_pattern_knows_elsewhere_are_judged_once() -> None:
    """What counts is where a pattern stands in a line, and not which digits it would tell apart."""
    judged, status = Judgements(TABLE), NUMBERS["plain.exit-status"]
    one, two, other = (
        parse_line(f"worker {rank} exited with status {code}".encode(), 1)
        for rank, code in ((1, 1), (7, 1), (7, 0))
    )
    assert judged.of((status,), one) is judged.of((status,), two)
    assert judged.of((status,), one) is not judged.of((status,), other)
    raw = b"worker 5 exited with status 1"
    assert judged.known((status,), raw) is None
    first = judged.of((status,), one)
    first.layout = printed_layout(one.text.encode())
    assert first.layout is not None
    assert judged.known((status,), one.text.encode()) is first
    assert line_like(first.layout, raw, 3) == parse_line(raw, 3)


def test_what_a_judgement_asks_tells_no_digits_apart() -> None:
    """Each expression is known here that finds something else in a line with other digits."""
    found = {
        name
        for module in (judgements, samples, wording)
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
        if told_apart([value.pattern]) != told_apart([])
    }
    assert found - {"_CLAUSE"} == TELLING | ASKED_ANEW
    # Its digits name the signs of Chinese.
    assert not wording.has_many_clauses("1234 " * 40)
    assert told_apart([tracebacks._WARNS.pattern, tracebacks._WARNED.pattern]) == told_apart([])


@each_row(
    ("expression", "alike"),
    [
        (r"\bstep \d{1,9}\b", "0000000000"),
        (r"[0-9a-f]+ [^\d]", "0000000000"),
        (r"\w{12}", "0000000000"),
        ("H100", "0122222222"),
        ("[1-9]\\d*", "0111111111"),
        ("[45]\\d\\d", "0000450000"),
        ("[^0]", "0111111111"),
        ("a0-9", "0111111119"),
        ("[+-5]", None),
        (r"(a)\1", None),
        (r"\x31", None),
        ("(?P<q>.)(?P=q)", None),
    ],
)
def test_digits_that_an_expression_tells_apart(expression: str, alike: str | None) -> None:
    """Those are alike that each of its places takes together; None where it cannot be said."""
    table = told_apart([expression])
    assert (None if table is None else table[48:58].decode()) == alike
