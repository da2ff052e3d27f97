"""A line that nearly matches a pattern, as long as a line may be, costs no more than its length asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import thread_time

import pytest

from corpus.log_patterns import Pattern, PatternTable
from ingest.logs.lines import MAX_TEXT
from ingest.logs.reader import Reader
from ingest.logs.scanner import Block
from tests.factories import ReadLog
from tests.tables import each_row

LENGTHS = (1000, 8000)
# What is repeated: the words of the row's example from its beginning, and a sign of each class that repeats.
CUTS = 4
RUNS = ("0", "a", " ", "a.", "/a", "a ")
# Seconds of the longest text under which growth cannot be told from noise, and does no harm.
HARMLESS = 0.02
# How much slower twice the length may be; a linear search is twice as slow, a quadratic one four times.
GROWTH = 3.2
TRIES = 3
MEASUREMENTS = 20

_WORD = re.compile(r"\w+\W?")


def attacks(row: Pattern) -> Iterator[tuple[str, str]]:
    """Give beginnings and what is repeated behind them: parts of what the row's first example matches."""
    match = next(filter(None, map(row.compiled.search, row.examples)), None)
    if match is None:
        return
    cuts = [part.end() for part in _WORD.finditer(match[0])]
    for cut in {len(match[0]), *cuts[:: max(1, len(cuts) // CUTS)]}:
        begun = match[0][:cut]
        yield from (("", begun), ("", begun[-12:]))
        yield from ((begun, run) for run in RUNS)


def seconds(row: Pattern, attack: tuple[str, str], length: int, runs: int = 1) -> float:
    """Measure the quickest of some searches through an attack of a length."""
    begun, repeated = attack
    text = (begun + repeated * (length // len(repeated)))[:length]
    return min(_seconds(row.compiled, text) for _ in range(runs))


def _seconds(expression: re.Pattern[str], text: str) -> float:
    started = thread_time()
    expression.search(text)
    return thread_time() - started


def grows(row: Pattern, attack: tuple[str, str]) -> bool:
    """Tell whether twice the length costs far more than twice the time, twice in a row and every time."""
    # The shortest that takes its time: what grows with the third power would not come to an end on the
    # longest.
    length = next((length for length in LENGTHS if seconds(row, attack, length) > HARMLESS), 0)
    return length > 0 and all(_grew(row, attack, length) for _ in range(TRIES))


def _grew(row: Pattern, attack: tuple[str, str], length: int) -> bool:
    short, middle, long = (seconds(row, attack, length // part, runs=3) for part in (4, 2, 1))
    return middle > GROWTH * short and long > GROWTH * middle


def slow(row: Pattern) -> tuple[str, str] | None:
    """Give an attack under which a row's cost grows faster than the text.

    Of what is quick nobody asks how.
    """
    return next((attack for attack in attacks(row) if grows(row, attack)), None)


@pytest.mark.long
def test_that_no_pattern_is_slower_than_linear(table: PatternTable) -> None:
    """Runs of what a row repeats, and its own words again and again, cost in proportion to their length."""
    assert {row.id: found for row in table.rows if (found := slow(row))} == {}


@pytest.mark.long
@each_row(
    ("expression", "example"),
    [
        (r"\w+ of \w+ failed", "rank of world failed"),
        (r"\d+ nodes", "12 nodes"),
        (r"neptune\.[\w.]*[\w.]*Error: ", "neptune.a.b.Error: "),
        (r"(?:\w+\.)+Error", "a.b.Error"),
    ],
)
def test_that_a_slow_pattern_would_be_found(expression: str, example: str) -> None:
    """The measure tells those that grow with the square of the text, or worse.

    Other work on the machine can hide growth from one measurement, never from all of them.
    """
    row = Pattern(id="x.slow", kind="error", expression=expression, examples=(example,))
    assert any(slow(row) is not None for _ in range(MEASUREMENTS))


@each_row("name", ["load_policy", "load_policy_vllm/", "update_weights.", "collate_fn ", "a(", "(("])
def test_that_a_long_name_in_a_traceback_is_read_through_once(read: ReadLog, name: str) -> None:
    """Functions whose names say again and again what is looked for among the frames keep nobody waiting."""
    frame = f'  File "/env/site-packages/verl/worker.py", line 3, in {name * (5000 // len(name))}\n    go()\n'
    started = thread_time()
    report = read("Traceback (most recent call last):\n" + frame * 6 + "KeyError: 'x'\n")
    assert [event.pattern for event in report.events] == ["python.key-error"]
    assert thread_time() - started < 20  # cubic, it takes hours


def test_that_the_longest_text_is_looked_at() -> None:
    """The lengths reach beyond the longest line that the reader searches."""
    assert LENGTHS[-1] >= MAX_TEXT


def test_that_hyperscan_takes_every_row(table: PatternTable, reader: Reader) -> None:
    """All rows are compiled into one table, none is exempt: each is found there by its own example."""
    assert [
        row.id for number, row in enumerate(table.rows) if number not in rows_of(reader, row.examples[0])
    ] == []


def rows_of(reader: Reader, text: str) -> set[int]:
    """Give the numbers of the rows that the compiled table finds in a text."""
    reader.scanner.fresh()
    data = text.encode() + b"\n"
    return {match.row for match in reader.scanner.matches(Block(data, 1, 0, len(data)))}
