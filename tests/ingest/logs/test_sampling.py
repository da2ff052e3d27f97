"""What the scanner looks for where: failures everywhere, a healthy run's progress where it can matter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.log_patterns import PatternTable
from ingest.logs import line_index, scan_windows, scanner
from ingest.logs.hits import FEW, FEWER
from ingest.logs.line_index import LineIndex
from ingest.logs.matches import Match
from ingest.logs.reader import Reader
from ingest.logs.scan_windows import (
    BEHIND,
    HEAD,
    LAST_BYTES,
    LONGEST_SAMPLE,
    SAMPLED_OVER,
    TAIL,
    around_matches,
)
from ingest.logs.scanner import BLOCK, Block, Scanner, Tally, blocks, literal_places
from tests.factories import OOM, ReadLog
from tests.ingest.logs.test_scanner import cut, lines_of, pattern, whole
from tests.tables import each_row

FILLER = b"all is well\n"
STEP, BOOM, VERL = pattern("step done", "progress"), pattern("boom"), pattern("verl", "version")
ASKED = pattern("asked", "fact", sample="asked")
LARGE = 2 * SAMPLED_OVER
MIDDLE = LARGE // 2


def filled(size: int) -> bytes:
    """Make whole lines of about that many bytes."""
    return FILLER * (size // len(FILLER))


def placed(rows: dict[int, bytes], size: int = LARGE) -> bytes:
    """Make a log of filler in which these lines begin behind so many bytes, rounded to a line."""
    parts, done = [], 0
    for place, row in sorted(rows.items()):
        parts += [filled(place - done), row]
        done = place
    return b"".join([*parts, filled(size - done)])


@each_row(
    ("rows", "seen"),
    [
        ({0: b"step done\n"}, True),
        ({HEAD // 2: b"step done\n"}, True),
        ({2 * HEAD: b"step done\n"}, False),
        ({MIDDLE: b"step done\n"}, False),
        ({LARGE - TAIL // 2: b"step done\n"}, True),
        ({LARGE: b"step done\n"}, True),
        ({MIDDLE: b"boom\n", MIDDLE + BEHIND // 2: b"step done\n"}, True),
        ({MIDDLE: b"boom\n", MIDDLE + 2 * BEHIND: b"step done\n"}, False),
        ({MIDDLE - 2000: b"step done\n", MIDDLE: b"boom\n"}, False),
    ],
    ids=[
        "first-line",
        "head",
        "behind-the-head",
        "middle",
        "tail",
        "last-line",
        "behind-a-failure",
        "long-behind-it",
        "before-it",
    ],
)
def test_progress_of_a_large_block_is_read_where_it_can_matter(rows: dict[int, bytes], seen: bool) -> None:
    """At its ends, where a neighbour's failure may stand, and behind what failed: there it may tell of
    recovery.
    """
    data = placed(rows)
    found = [line for row, line in lines_of((STEP, BOOM), data) if row == 0]
    assert found == ([data[: data.index(b"step done")].count(b"\n") + 1] if seen else [])


@each_row(
    ("rows_off", "seen"),
    [
        (-LONGEST_SAMPLE - 1, False),
        (-LONGEST_SAMPLE, True),
        (-1, True),
        (1, True),
        (LONGEST_SAMPLE, True),
        (LONGEST_SAMPLE + 1, False),
    ],
)
def test_headings_of_samples_are_read_near_other_matches(rows_off: int, seen: bool) -> None:
    """In a large block only those count that a line with a match may stand below or above."""
    rows = [FILLER] * (LARGE // len(FILLER))
    at = len(rows) // 2
    rows[at], rows[at + rows_off] = b"boom\n", b"asked\n"
    found = [line for row, line in lines_of((ASKED, BOOM), b"".join(rows)) if row == 0]
    assert found == ([at + rows_off + 1] if seen else [])


@each_row(("size", "seen"), [(SAMPLED_OVER - 4096, True), (LARGE, False)])
def test_headings_of_samples_are_read_in_all_of_a_small_block_and_at_the_end(size: int, seen: bool) -> None:
    """A stack without a header may end a log, and stand within a sample, where nothing else matched."""
    data = placed({size // 2: b"asked\n", size - LAST_BYTES: b"asked\n"}, size)
    assert len(lines_of((ASKED,), data)) == 1 + seen


@given(
    places=st.lists(st.integers(0, 3 * SAMPLED_OVER // 2), max_size=12).map(sorted),
    ends=st.lists(st.integers(1, 60_000), max_size=60),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_is_read_around_matches_is_whole_lines_without_overlap(
    places: list[int], ends: list[int]
) -> None:
    """Each place has so many lines on either side, and each byte is searched once."""
    data = b"".join(b"x" * size + b"\n" for size in ends).ljust(3 * SAMPLED_OVER // 2 + 1, b"y")
    parts = around_matches(LineIndex(data, literal_places), data, 0, len(data), places)
    assert all(begin < end < later for (begin, end), (later, _) in pairwise(parts))
    for begin, end in parts:
        assert begin == 0 or data[begin - 1 : begin] == b"\n"
        assert end == len(data) or data[end - 1 : end] == b"\n"
    for place in places:
        above = data[:place].split(b"\n")[-LONGEST_SAMPLE - 1 :]
        below = data[place:].split(b"\n")[: LONGEST_SAMPLE + 1]
        first, last = place - len(b"\n".join(above)), place + len(b"\n".join(below))
        assert any(begin <= first and last <= end for begin, end in parts)


@each_row("place", range(0, SAMPLED_OVER - 4096, 150_000))
def test_progress_of_a_small_block_is_read_everywhere(place: int) -> None:
    """Up to a mebibyte nothing is sampled."""
    assert len(lines_of((STEP,), placed({place: b"step done\n"}, SAMPLED_OVER - 4096))) == 1


@each_row(("size", "few"), [(SAMPLED_OVER - 4096, FEW), (LARGE, FEWER)])
def test_of_progress_the_first_and_the_last_lines_stay(size: int, few: int) -> None:
    """A log that consists of progress gives a bounded number of matches, from both of its ends."""
    count = size // 10
    found = [line for _, line in lines_of((STEP,), b"step done\n" * count)]
    assert found == [*range(1, few + 1), *range(count - few + 1, count + 1)]


def test_of_failures_all_lines_stay() -> None:
    """What fails is never sampled, however often."""
    assert [line for _, line in lines_of((BOOM,), b"boom\n" * 50_000)] == list(range(1, 50_001))


def test_no_failure_is_missed_wherever_it_stands() -> None:
    """Twenty megabytes with failures at random and around every border of blocks: each is found, on its
    line.
    """
    draw = Random(7)  # noqa: S311 - places in a log
    borders = [BLOCK * number + shift for number in range(1, 5) for shift in (-40, -12, 0, 1, 13, 40)]
    places = sorted({0, *borders, *(draw.randrange(20_000_000) for _ in range(500))})
    data = placed(dict.fromkeys(places, b"boom\n"), 20_000_000) + b"boom"
    found = [
        match.line
        for _, scanned in Scanner((STEP, BOOM)).scan(blocks(cut(data, 1 << 20), Tally()))
        for match in scanned.matches
    ]
    assert found == [number for number, row in enumerate(data.split(b"\n"), 1) if row == b"boom"]
    assert len(found) == len(places) + 1


def test_every_failure_of_the_table_is_found_amid_progress(table: PatternTable, reader: Reader) -> None:
    """Twenty megabytes of a training's steps hide no pattern's example, whatever block it falls into."""
    step = b"step:%d - actor/pg_loss:0.1 - perf/throughput:812.4\n"
    wanted = [
        (number, row.examples[0]) for number, row in enumerate(table.rows) if row.fails and row.examples
    ]
    gap = b"".join(step % number for number in range(1 + 20_000_000 // len(wanted) // 50))
    data = b"".join(gap + example.encode() + b"\n" for _, example in wanted)
    reader.scanner.fresh()
    found = {
        (match.row, match.line)
        for _, scanned in reader.scanner.scan(blocks(cut(data, 1 << 20), Tally()))
        for match in scanned.matches
    }
    expected, line = set(), 0
    for number, example in wanted:
        line += gap.count(b"\n") + 1
        expected.add((number, line))
        line += example.count("\n")
    assert len(data) > 19_000_000
    assert expected - found == set()


@each_row("place", [0, BLOCK - 30, BLOCK + 30, 3 * BLOCK // 2, 2 * BLOCK, 20_000_000], ids=str)
def test_a_root_in_a_long_log_has_its_line(read: ReadLog, place: int) -> None:
    """One failure in twenty megabytes is the root, at its place, wherever a block begins."""
    data = placed({place: OOM.encode() + b"\n"}, 20_000_000)
    root = read(data).root
    assert root is not None
    assert (root.pattern, root.line, root.body) == (
        "torch.cuda-oom",
        data[: data.index(b"torch.")].count(b"\n") + 1,
        OOM,
    )


@each_row(("behind", "role"), [(0, "recovered"), (BEHIND // 2, "recovered"), (None, "root")])
def test_a_failure_amid_a_long_log_is_recovered_by_what_follows(
    read: ReadLog, behind: int | None, role: str
) -> None:
    """Steps right behind a failure are read also where the log is too long to read all of them."""
    steps = b"".join(
        b"step:%d - actor/pg_loss:0.1 - perf/throughput:812.4\n" % number for number in range(1, 4)
    )
    rows = {BLOCK // 2: OOM.encode() + b"\n"} | ({} if behind is None else {BLOCK // 2 + 12 + behind: steps})
    assert [event.role for event in read(placed(rows, 3 * BLOCK)).events] == [role]


TEXT = st.lists(
    st.sampled_from(
        [b"boom\n", b"boom ", b"step done\n", b"verl\n", b"\n", b"\r", b"all is well\n", b"x" * 30]
    ),
    max_size=80,
).map(b"".join)


@given(data=TEXT, chunk=st.integers(1, 200), size=st.integers(1, 100))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_two_cores_find_what_one_does(data: bytes, chunk: int, size: int) -> None:
    """`scan` gives the blocks in order, each with what `find` gives of it, and what it counts over blocks
    too.
    """
    compiled = _compiled()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "BEFORE", 40)
        patch.setattr(scanner, "AFTER", 60)
        parts = list(blocks(cut(data, chunk), Tally(), size))
        compiled.fresh()
        alone = [(block, compiled.find(block)) for block in parts]
        compiled.fresh()
        assert list(compiled.scan(iter(parts))) == alone
    found = [match.line for _, one in alone for match in one.matches if match.row == 1]
    assert sorted(set(found)) == [number for number, row in enumerate(data.split(b"\n"), 1) if b"boom" in row]


@cache
def _compiled() -> Scanner:
    return Scanner((STEP, BOOM, VERL))


@given(
    piece=st.lists(
        st.sampled_from([b"\n", b"a", b"row\n", b"\r\n", b"x" * 97, "日志\n".encode()]),
        min_size=1,
        max_size=30,
    ).map(b"".join),
    size=st.sampled_from([0, 100, 4095, 4096, 5000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 600_000]),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_that_lines_are_counted_as_python_counts_them(
    piece: bytes, size: int, cuts: tuple[float, float]
) -> None:
    """Before any place, also across the stretches that are counted once."""
    data = (piece * (1 + size // len(piece)))[:size]
    index = LineIndex(data, literal_places)
    places = [int(share * len(data)) for share in (0, 1, *cuts)]
    counted = [data.count(b"\n", 0, place) for place in places]
    assert [index.before(place) for place in places] == counted
    # Many are looked up in another way.
    assert index.before_each(places) == counted
    assert index.before_each(places * 100) == counted * 100


@given(
    rows=st.lists(
        st.sampled_from([b"", b"1 word", b"2 word, a word", b"2 wor", b"d", b"x" * 1500]), max_size=40
    ),
    ends=st.booleans(),
    within=st.integers(0, 12),
    bits=st.integers(0, 4),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_that_lines_with_a_word_are_found_by_their_groups(
    rows: list[bytes], ends: bool, within: int, bits: int
) -> None:
    """Among so many lines above each, whatever stretches they are grouped in; each is grouped once."""
    data = b"\n".join(rows) + b"\n" * ends
    asked: list[int] = []

    def group_of(begin: int, end: int, number: int) -> str | None:
        asked.append(number)
        assert data[begin:end] == rows[number]
        return {b"1": "one", b"2": "two"}.get(data[begin : begin + 1])

    words = b"word", b"wor"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "_GROUPED_BITS", bits)
        index = LineIndex(data, literal_places)
        for number in range(len(rows)):
            above = range(max(0, number - within), number)
            for group, first in (("one", b"1"), ("two", b"2")):
                held = [at for at in above if rows[at].startswith(first) and b"wor" in rows[at]]
                found = index.last_among("", words, group, (number - within, number - 1), group_of)
                assert found == max(held, default=None)
    assert len(asked) == len(set(asked))


@each_row("least", [0, 1 << 30])
def test_that_texts_are_found_alike_in_few_bytes_and_in_many(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Hyperscan where there are many: each place, in order, also of a text with signs of expressions."""
    monkeypatch.setattr(scanner, "SEARCHED_FROM", least)
    data = b"[rank3]: a.b [rank] ]: a+b\na.b"
    assert literal_places(data, b"a.b") == [9, len(data) - 3]
    assert literal_places(data, b"none") == []
    assert scanner.held_literals(data, (b"[rank", b"]:", b"a.b", b"a-b", b"\r")) == {b"[rank", b"]:", b"a.b"}


@given(
    rows=st.lists(st.sampled_from([5, 40, 400, 3000]), min_size=40, max_size=120),
    places=st.lists(st.floats(0, 1), max_size=12),
    ends=st.tuples(st.floats(0, 0.3), st.floats(0.7, 1)),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_searched_for_progress_are_whole_lines_in_order(
    rows: list[int], places: list[float], ends: tuple[float, float]
) -> None:
    """The windows do not overlap, begin and end with a line, and hold what stands behind each failure."""
    data = b"".join(b"." * length + b"\n" for length in rows)
    block = Block(data, 1, int(ends[0] * len(data)), int(ends[1] * len(data)))
    failures = [block.start + int(place * (block.stop - block.start)) for place in places]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SAMPLED_OVER": 0, "HEAD": 300, "TAIL": 900, "BEHIND": 200}.items():
            patch.setattr(scan_windows, name, value)
        windows = scan_windows.windows(block.data, block.start, block.stop, failures)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(windows))
    assert all(
        (begin == 0 or data[begin - 1] == 10) and (end == len(data) or data[end - 1] == 10)
        for begin, end in windows
    )
    for place in failures:
        assert any(begin <= place and min(place + 200, len(data)) <= end for begin, end in windows)


def test_a_flood_of_failures_makes_few_windows() -> None:
    """However many lines fail, a bounded part is searched for progress."""
    data = filled(BLOCK)
    windows = scan_windows.windows(data, 0, len(data), range(0, BLOCK, 100))
    searched = sum(end - begin for begin, end in windows)
    assert searched < HEAD + TAIL + scan_windows.WINDOWS * BEHIND
    assert windows[-1][1] == len(data)


@each_row("count", [0, 1, 2, 3, 30])
def test_few_blocks_are_held_at_a_time(count: int) -> None:
    """Reading ahead of the one who works on the blocks ends after some, so memory does not grow with
    the log.
    """
    pulled = 0

    def parts() -> Iterator[Block]:
        nonlocal pulled
        for _ in range(count):
            pulled += 1
            yield whole(b"boom\n")

    ahead, got = 0, 0
    for _, scanned in Scanner((BOOM,)).scan(parts()):
        assert scanned.matches == [Match(0, 1, 3)]
        got += 1
        ahead = max(ahead, pulled - got)
    assert got == count
    assert ahead <= 2
