"""The scanner: one pass, every match once, whatever the cuts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.errors import InvalidCorpusError
from corpus.log_patterns import Kind, Pattern, PatternTable
from ingest.logs import scanner
from ingest.logs.matches import Match
from ingest.logs.reader import Reader
from ingest.logs.scanner import AFTER, BEFORE, BLOCK, Block, Scanner, Tally, blocks
from tests.factories import CRI, RAY, SLURM, STAMP, TORCHRUN
from tests.tables import each_row


def pattern(expression: str, kind: Kind = "error", **fields: bool | str) -> Pattern:
    """Make a pattern that is named as it reads."""
    return Pattern(id=expression, kind=kind, expression=expression, examples=(), **fields)  # type: ignore[arg-type]


def whole(data: bytes) -> Block:
    """Make a block of a whole log."""
    return Block(data, 1, 0, len(data))


def cut(data: bytes, size: int) -> Iterator[bytes]:
    """Cut bytes into chunks."""
    return (data[begin : begin + size] for begin in range(0, len(data), size))


def lines_of(rows: tuple[Pattern, ...], data: bytes) -> list[tuple[int, int]]:
    """Give row and line of each match in a log of one block."""
    return [(match.row, match.line) for match in Scanner(rows).matches(whole(data))]


ESCAPED = st.lists(
    st.sampled_from(
        [
            b"step 3 ",
            b"\n",
            b"\r",
            b"\x1b[0m",
            b"\x1b[1;31m",
            b"\x1b[K",
            rb"\u001b[0;31mTypeError\u001b[0m",
            "显存 ".encode(),
            b"x" * 30,
            b"\x1b",
            b"\x1b]8;;file:///job/train.py\x1b\\",
            b"\x1b]0;a title\x07",
            b"\x1b]8;;file:///" + b"deep/" * 20 + b"\x07",
        ]
    ),
    max_size=60,
).map(b"".join)


@given(data=ESCAPED, chunk=st.integers(1, 200), size=st.integers(1, 100))
@settings(max_examples=400, deadline=None)
def test_blocks_join_to_the_log_without_its_escapes(data: bytes, chunk: int, size: int) -> None:
    """No gap, no overlap and the same text, for any size of chunks and blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "BEFORE", 40)
        patch.setattr(scanner, "AFTER", 60)
        joined = b"".join(
            block.data[block.start : block.stop] for block in blocks(cut(data, chunk), Tally(), size)
        )
    assert joined == scanner.ESCAPES.sub(b"", data).replace(b"\r\n", b"\n")


@given(data=ESCAPED, chunk=st.integers(1, 200), size=st.integers(1, 100))
@settings(max_examples=300, deadline=None)
def test_a_block_knows_its_first_line(data: bytes, chunk: int, size: int) -> None:
    """The number of a block's first line is that of the whole log: one more than the newlines before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "BEFORE", 40)
        patch.setattr(scanner, "AFTER", 60)
        before = 0
        for block in blocks(cut(data, chunk), Tally(), size):
            assert block.line + block.data.count(b"\n", 0, block.start) == 1 + before
            before += block.data.count(b"\n", block.start, block.stop)


@given(
    data=st.lists(st.sampled_from([b"a", b"\n", b"\r", b"xyz"]), max_size=40).map(b"".join),
    chunk=st.integers(1, 9),
)
@settings(max_examples=300, deadline=None)
def test_lines_are_counted_by_newline_alone(data: bytes, chunk: int) -> None:
    """A carriage return starts no line; a last line without newline is one."""
    tally = Tally()
    for _ in blocks(cut(data, chunk), tally):
        pass
    assert (tally.size, tally.lines) == (len(data), len(re.findall(rb"[^\n]*\n|[^\n]+\Z", data)))


@each_row(
    ("data", "expected"),
    [
        (b"boom\n", [(0, 1)]),
        (b"boom", [(0, 1)]),
        (b"a\nb\nboom\n", [(0, 3)]),
        (b"a\rb\rboom\n", [(0, 1)]),
        (b"boom boom boom\n", [(0, 1)]),
        (b"boom\nboom\n", [(0, 1), (0, 2)]),
        (b"done\nboom\n", [(1, 1), (0, 2)]),
        (b"\n\n\nboom done\n", [(0, 4), (1, 4)]),
        (b"\xff\xfe boom \x00\n", [(0, 1)]),
        (b"nothing\n", []),
    ],
)
def test_a_pattern_matches_once_a_line(data: bytes, expected: list[tuple[int, int]]) -> None:
    """Matches come by line, with the number of their line."""
    assert lines_of((pattern("boom"), pattern("done")), data) == expected


@each_row("after", ["", "\n", "\n\n", "\n\n\n", " \n", "\n \nnext\n"])
def test_an_expression_that_runs_over_the_lines_end_matches_once(after: str) -> None:
    """`\\s*$` also takes newlines; that makes no second match, and none on the line after."""
    assert lines_of((pattern(r"^KeyError: \w+\s*$"),), f"KeyError: k\n{after}".encode()) == [(0, 1)]


def test_no_shipped_pattern_matches_an_example_twice(table: PatternTable, reader: Reader) -> None:
    """The same holds for the real table, with a blank line after each message."""
    twice = {
        row.id
        for number, row in enumerate(table.rows)
        for line in row.examples
        if [match.row for match in fresh(reader, f"{line}\n\n\n")].count(number) > 1
    }
    assert twice == set()


def fresh(reader: Reader, text: str) -> list[Match]:
    """Scan one text with the real table."""
    reader.scanner.fresh()
    return reader.scanner.matches(whole(text.encode()))


def unseen(table: PatternTable, reader: Reader, form: str, exempt: str) -> set[str]:
    """Name the failures whose examples are not found when written as `form`."""
    return {
        row.id
        for number, row in enumerate(table.rows)
        for line in row.examples
        if row.fails
        and exempt not in row.id
        and number not in {match.row for match in fresh(reader, form.replace("LINE", line) + "\n")}
    }


@each_row(
    ("form", "exempt"),
    [
        # What a shell says of its children carries no prefix of the child's.
        (f"{RAY}LINE", ".shell-"),
        (f"{TORCHRUN}LINE", ".shell-"),
        (f"{SLURM}LINE", ".shell-"),
        (f"{CRI}LINE", "no exemption"),
        (f"{STAMP}LINE", ".shell-"),
        ("LINE\r", "no exemption"),
        ("  5%|▌         | 1/10\rLINE", ".shell-"),
    ],
    ids=["ray", "torchrun", "slurm", "kubernetes", "timestamp", "crlf", "after-a-bar"],
)
def test_a_failure_is_found_behind_any_prefix(
    table: PatternTable, reader: Reader, form: str, exempt: str
) -> None:
    """Every failure's example is found however its line is dressed."""
    assert unseen(table, reader, form, exempt) == set()


@each_row("chunk", [1, 7, 4096])
def test_a_match_that_two_chunks_share_is_found(chunk: int) -> None:
    """Escapes inside and cuts anywhere do not hide a message."""
    data = b"x" * 5000 + b"\nCUDA \x1b[31mout of\x1b[0m memory\n"
    (block,) = blocks(cut(data, chunk), Tally())
    found = Scanner((pattern("CUDA out of memory"),)).matches(block)
    assert [match.line for match in found] == [2]


@each_row("shift", range(-20, 21, 4))
def test_a_match_at_the_border_of_two_blocks_is_found_once(shift: int) -> None:
    """Wherever the border falls in the message's line, one block owns it."""
    filler = b"all is well\n" * ((BLOCK + shift) // 12)
    data = filler[: BLOCK + shift - 8] + b"\nCUDA out of memory\n" + b"all is well\n" * 50_000
    compiled, found = Scanner((pattern("CUDA out of memory"),)), []
    parts = list(blocks(cut(data, 1 << 20), Tally()))
    for block in parts:
        found += [match.line for match in compiled.matches(block)]
    assert len(parts) == 2
    assert found == [data[: data.index(b"CUDA")].count(b"\n") + 1]


def test_a_match_at_the_border_inside_one_long_line_is_found_once() -> None:
    """A line longer than a block is cut anywhere; a message on the cut counts once."""
    data = b"." * (BLOCK - 9) + b"CUDA out of memory" + b"." * (BLOCK // 2)
    compiled, found = Scanner((pattern("CUDA out of memory"),)), []
    for block in blocks(cut(data, 1 << 20), Tally()):
        found += [match.line for match in compiled.matches(block)]
    assert found == [1]


def test_one_line_without_end_is_held_in_bounds() -> None:
    """A progress bar that only uses carriage returns never fills the memory, however long it runs."""
    bar = b"  5%|x         | 5/100\r" * (1 << 15)
    longest = max(len(block.data) for block in blocks((bar for _ in range(40)), Tally()))
    assert longest <= BEFORE + BLOCK + AFTER + len(bar)


def test_a_line_of_megabytes_gives_a_few_matches() -> None:
    """One line repeats its message a million times; its matches are bounded, not a million."""
    assert 1 <= len(lines_of((pattern("boom"),), b"boom " * 1_000_000)) <= 100


@given(
    rows=st.lists(
        st.sampled_from([b"boom", b"", b"cause of\n  boom", b"x" * 90, b"boom " * 30, b"sign of boom"]),
        min_size=1,
        max_size=80,
    ),
    ends=st.tuples(st.floats(0, 0.5), st.floats(0.2, 1)),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_that_what_stands_behind_a_blocks_own_part_adds_no_match(
    rows: list[bytes], ends: tuple[float, float]
) -> None:
    """It is not searched, and what ends before it is found as where all is."""
    signed = pattern(r"cause of\s+boom").model_copy(update={"sign": "boom"})
    compiled = Scanner((pattern("boom"), pattern(r"of boom$"), signed))
    data = b"\n".join(rows)
    block = Block(data, 1, *(int(share * len(data)) for share in ends))
    found = compiled.matches(block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "told_until", lambda data, _stop: len(data))
        assert compiled.matches(block) == found


@given(
    parts=st.lists(
        st.sampled_from(
            [b"\x1b", b"[", b"0;1", b"m", b"\\", b"u001b", b"\\u001B[0m", b"\x1b[1m", b"]", b"\x07", b"x"]
        ),
        max_size=14,
    )
)
@settings(max_examples=500, deadline=None, derandomize=True)
def test_escapes_are_taken_out_in_one_pass_whatever_kinds_there_are(parts: list[bytes]) -> None:
    """Those of one kind are looked for alone where there is no other; what is left joins to no new one."""
    text = b"".join(parts)
    assert scanner.without_escapes(text) == scanner.ESCAPES.sub(b"", text)


def test_versions_are_noted_a_few_times_only() -> None:
    """What only shows that a framework is there stops counting; failures never do."""
    rows = (pattern("verl", "version"), pattern("boom"))
    found = [row for row, _ in lines_of(rows, b"verl\nboom\n" * 50)]
    assert (found.count(0), found.count(1)) == (3, 50)


def test_a_fresh_log_forgets_the_last_ones_versions() -> None:
    """Two logs read with one scanner do not know of each other."""
    compiled = Scanner((pattern("verl", "version"),))
    first = len(compiled.matches(whole(b"verl\n" * 9)))
    assert compiled.matches(whole(b"verl\n")) == []
    compiled.fresh()
    assert (first, len(compiled.matches(whole(b"verl\n")))) == (3, 1)


def test_case_counts_unless_the_pattern_says_otherwise() -> None:
    """`caseless` is a pattern's own choice."""
    assert lines_of((pattern("boom"), pattern("done", caseless=True)), b"BOOM DONE\n") == [(1, 1)]


def test_a_stored_database_finds_the_same(tmp_path: Path) -> None:
    """A second start reads the compiled table back."""
    rows, data = (pattern("boom"), pattern("done")), whole(b"done\nboom\n")
    first = Scanner(rows, tmp_path).matches(data)
    (stored,) = tmp_path.glob("*.hsdb")
    assert Scanner(rows, tmp_path).matches(data) == first != []
    assert stored.stat().st_size > 0


def test_a_stored_database_that_is_damaged_is_compiled_anew(tmp_path: Path) -> None:
    """What Hyperscan refuses to load is no error."""
    rows = (pattern("boom"),)
    Scanner(rows, tmp_path)
    (stored,) = tmp_path.glob("*.hsdb")
    stored.write_bytes(b"not a database")
    assert [match.line for match in Scanner(rows, tmp_path).matches(whole(b"boom\n"))] == [1]


def test_other_patterns_make_another_database(tmp_path: Path) -> None:
    """A changed table never meets an old database."""
    Scanner((pattern("boom"),), tmp_path)
    assert Scanner((pattern("done"),), tmp_path).matches(whole(b"done\n")) != []
    assert len(list(tmp_path.glob("*.hsdb"))) == 2


def test_that_what_a_user_adds_leaves_the_databases_that_ship_as_they_are(tmp_path: Path) -> None:
    """They take long to compile; a match of either kind is found, and told by its row's number."""
    shipped = (pattern("boom"), pattern("sample", sample="asked"), pattern("step", "progress"))
    Scanner(shipped, tmp_path)
    before = set(tmp_path.glob("*.hsdb"))
    own = (pattern("my own", sign="own"), pattern("mine", "progress"))
    found = Scanner((*shipped, *own), tmp_path, own=len(own)).matches(whole(b"boom\nstep\nmy own\nmine\n"))
    assert [(match.row, match.line) for match in found] == [(0, 1), (2, 2), (3, 3), (4, 4)]
    after = set(tmp_path.glob("*.hsdb"))
    assert (before - after, len(before), len(after - before)) == (set(), 3, 3)


def test_an_expression_that_hyperscan_does_not_know_is_an_error() -> None:
    """A look-behind cannot ship unseen."""
    with pytest.raises(InvalidCorpusError, match="Hyperscan refuses"):
        Scanner((pattern("(?<=x)boom"),))


@each_row(("offset", "expected"), [(0, (0, 3)), (3, (0, 3)), (4, (4, 9)), (9, (4, 9)), (10, (10, 12))])
def test_a_block_gives_the_bounds_of_a_line(offset: int, expected: tuple[int, int]) -> None:
    """The newline is not part of the line, and the last line may lack it."""
    assert whole(b"one\ntwo 2\nla").line_bounds(offset) == expected
