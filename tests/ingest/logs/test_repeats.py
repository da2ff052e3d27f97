"""Lines that say again what was read: counted exactly, and hiding nothing that is rare."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs import repeats
from ingest.logs.repeats import FULL, Repeats
from ingest.logs.report import CrashReport
from tests.factories import OOM, STRANGE, ReadLog, prefixed, steps, traceback
from tests.tables import each_row

WATCHDOG = (
    "[rank{rank}]:[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught "
    "collective operation timeout: "
    "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 "
    "milliseconds before timing out.\n"
)
DISK = "OSError: [Errno 28] No space left on device\n"
# Long enough for two tracebacks to differ behind what of them makes the wording.
DEEP = "Traceback (most recent call last):\n" + "".join(
    f'  File "/job/deep/{letter}.py", line 3, in call_{letter}\n    return inner(batch)\n'
    for letter in "abcdefghijklmnopqrst"
)


def told(report: CrashReport) -> list[tuple[str, int, int, int, str]]:
    """Give pattern, first and last line, count and role of each event."""
    return [(event.pattern, event.line, event.last, event.count, event.role) for event in report.events]


def word(number: int) -> str:
    """Make a word of a number, without digits, which do not tell wordings apart."""
    return "".join(chr(97 + number // 26**place % 26) for place in range(4))


def worded(data: bytes) -> bytes:
    """Give what tells the traceback from others that some bytes begin with."""
    return repeats.stack_wording(data, repeats.stack_extent(data, 0))


@each_row(
    ("first", "second", "same"),
    [
        (((1,), b"GPU 0 of 8"), ((1,), b"GPU 71 of 256"), True),
        (((1,), b"GPU 0 of 8"), ((1,), b"CPU 0 of 8"), False),
        (((1,), b"boom"), ((2,), b"boom"), False),
        (((1, 2), b"boom"), ((1,), b"boom"), False),
    ],
)
def test_a_wording_is_a_lines_patterns_and_its_text_without_digits(
    first: tuple[tuple[int, ...], bytes], second: tuple[tuple[int, ...], bytes], same: bool
) -> None:
    """Ranks and counts do not tell two lines apart; what other patterns match does."""
    seen = Repeats()
    assert (seen.sight(*first, 1) is seen.sight(*second, 2)) is same


def test_a_wording_is_known_once_it_was_read_often() -> None:
    """So many lines are read in full; only what comes after is counted alone."""
    seen = Repeats()
    known = [seen.sight((1,), b"boom", line).is_known for line in range(1, FULL + 3)]
    assert known == [False] * FULL + [True] * 2
    (sight,) = seen.counted()
    assert (sight.count, sight.last) == (FULL + 2, FULL + 2)


def test_an_allowance_is_each_patterns_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of one pattern uses up no other's.

    A line stands as long as one of its patterns has some left.
    """
    monkeypatch.setattr(repeats, "ALLOWANCE", 3)
    seen = Repeats()
    assert [seen.is_spent((1,)) for _ in range(5)] == [False, False, False, True, True]
    assert [seen.is_spent((1, 2)) for _ in range(4)] == [False, False, False, True]
    assert not seen.is_spent((3,))
    assert seen.omitted == 3


def test_a_traceback_that_is_left_out_is_no_line_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that ends it is counted; its first line would count it twice."""
    monkeypatch.setattr(repeats, "ALLOWANCE", 0)
    seen = Repeats()
    assert seen.is_spent((1,), counts=False)
    assert seen.omitted == 0


@each_row(
    "behind",
    [
        "\n",
        "\nall is well\n",
        "Traceback (most recent call last):\n",
        "\n  indented words\n\n  and more\n",
        '\nTraceback (most recent call last):\n  File "other.py", line 1, in f\n    g()\nKeyError: 1\n',
    ],
)
@each_row("prefix", ["", "[rank3]: ", "(Actor pid=12) "])
@each_row(
    "above",
    ["", "During handling of the above exception, another exception occurred:"],
    ids=["alone", "linked"],
)
def test_a_tracebacks_wording_is_its_own_whatever_follows(behind: str, prefix: str, above: str) -> None:
    """What stands below is looked at no further than it takes to know that the traceback has ended.

    With a blank row behind each, a flood of them used to be walked through anew, far down, for every one.
    """
    rows = traceback("odd.Kind: of trouble").splitlines()
    rows = [*rows, "", above, "", *rows[:-1], "ValueError: the last"] if above else rows
    own, more = ("".join(f"{prefix}{row}\n" for row in part).encode() for part in (rows, behind.splitlines()))
    wording = worded(own)
    assert wording.endswith(rows[-1].encode())
    assert worded(own + more * 50) == wording


def test_the_exceptions_of_one_traceback_are_followed_a_bounded_way() -> None:
    """Thousands that were raised while others were handled are not all walked through from each."""
    link = (
        traceback("ValueError: x")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
    )
    short, long = (worded((link * count).encode()) for count in (100, 500))
    assert short == long


@given(
    lines=st.lists(
        st.tuples(st.sampled_from([(1,), (2,), (1, 2)]), st.sampled_from([b"a 1", b"a 2", b"b", b"c", b"d"])),
        max_size=120,
    ),
    full=st.integers(1, 6),
    allowance=st.integers(1, 20),
    wordings=st.integers(0, 6),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_every_line_is_read_or_counted_or_told(
    lines: list[tuple[tuple[int, ...], bytes]], full: int, allowance: int, wordings: int
) -> None:
    """Whatever the bounds: none is lost, none counts twice."""
    read = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "ALLOWANCE", allowance)
        patch.setattr(repeats, "WORDINGS", wordings)
        seen = Repeats()
        for number, (rows, raw) in enumerate(lines, 1):
            sight = seen.sight(rows, raw, number, full)
            read += not (sight.is_known or seen.is_spent(rows))
        counted = sum(sight.count - sight.full for sight in seen.counted())
    assert read + counted + seen.omitted == len(lines)
    assert read <= 2 * allowance


@pytest.mark.long
@each_row("count", [1, 2, FULL - 1, FULL, FULL + 1, 3 * FULL, 10_000])
@each_row("line", [OOM + "\n", "[rank0]: " + STRANGE + "\n", DISK], ids=["known", "unknown", "errno"])
def test_a_flood_of_one_wording_is_counted_exactly(read: ReadLog, line: str, count: int) -> None:
    """One event with its first and last line, however many there are."""
    ((_, first, last, found, role),) = told(read("all is well\n" + line * count))
    assert (first, last, found, role) == (2, 1 + count, count, "root")


@each_row("count", [1, 63, 64, 65, 511])
@each_row("message", [OOM, STRANGE, "odd.Kind: of trouble"], ids=["known", "built-in", "unknown"])
def test_a_flood_of_tracebacks_is_counted_exactly(read: ReadLog, message: str, count: int) -> None:
    """Some are read with their frames; the rest says the same."""
    (event,) = read(traceback(message) * count).events
    assert (event.line, event.count, len(event.frames)) == (6, count, 2)
    assert 6 * count - 5 <= event.last <= 6 * count  # of what is only counted, the first line is known


@each_row("message", [OOM, STRANGE], ids=["known", "built-in"])
def test_a_traceback_whose_last_line_is_only_counted_is_counted_once(read: ReadLog, message: str) -> None:
    """The line counts; the frames above it are no further event."""
    assert [event.count for event in read(traceback(message) * (FULL + 100)).events] == [FULL + 100]


def test_floods_that_alternate_are_counted_apart(read: ReadLog) -> None:
    """Each wording has its own count and its own last line."""
    report = read((OOM + "\n" + DISK + "ConnectionResetError: [Errno 104] Connection reset by peer\n") * 2000)
    assert sorted((event.line, event.last, event.count) for event in report.events) == [
        (1, 5998, 2000),
        (2, 5999, 2000),
        (3, 6000, 2000),
    ]


def test_lines_that_ray_folded_count_as_often_as_it_says(read: ReadLog) -> None:
    """Its own count is kept where a line is read."""
    (event,) = read(f"{OOM} [repeated 7x across cluster]\n" * 3).events
    assert event.count == 21


@pytest.mark.long
@each_row("place", [0, 100_000, 199_999])
def test_a_rare_line_among_a_flood_is_the_root(read: ReadLog, place: int) -> None:
    """One line that tells the cause, among two hundred thousand that do not, wherever it stands."""
    forms = [
        WATCHDOG.replace("{rank}", "7"),
        "[rank{n}]: " + STRANGE + " at {n}\n",
        "RuntimeError: worker {n} is not itself\n",
        "ConnectionResetError: [Errno 104] Connection reset by peer\n",
    ]
    rows = [form.replace("{n}", str(number)) for number in range(50_000) for form in forms]
    rows.insert(place, DISK)
    report = read("".join(rows))
    assert report.root is not None
    assert (report.root.cause, report.root.line, report.root.count) == ("disk-full", place + 1, 1)
    assert sum(event.count for event in report.events) == 200_001
    assert report.limits.omitted == {}


def test_distinct_texts_beyond_the_allowance_are_told(read: ReadLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first are read, the rest is in `omitted`, and another pattern's line is read all the same."""
    monkeypatch.setattr(repeats, "ALLOWANCE", 300)
    report = read("".join(f"ValueError: the {word(number)} is wrong\n" for number in range(1000)) + DISK)
    assert report.root is not None
    assert (report.root.cause, report.root.line) == ("disk-full", 1001)
    assert report.limits.omitted == {"events": 700}
    assert report.limits.truncated
    assert sum(event.count for event in report.events) == 301


def test_more_wordings_than_are_told_apart_are_still_read(
    read: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wording beyond the bound has no memory of its own, so each of its lines is read."""
    monkeypatch.setattr(repeats, "WORDINGS", 10)
    report = read(
        "".join(f"ValueError: the {word(number)} is wrong\n" for number in range(50)) * 2 + OOM + "\n"
    )
    assert sorted(event.count for event in report.events) == [1] + [2] * 50


@each_row(("times", "ranks"), [(1, 16), (FULL // 16, 16), (FULL // 16 + 1, 0)])
def test_ranks_of_what_was_only_counted_are_not_invented(read: ReadLog, times: int, ranks: int) -> None:
    """Who says a line is known as long as every line was read.

    Then neither ranks nor missing ones are named.
    """
    log = "".join(
        WATCHDOG.replace("{rank}", str(rank)) for _ in range(times) for rank in range(17) if rank != 5
    )
    (event,) = read(log).events
    assert event.count == 16 * times
    assert event.ranks == (tuple(rank for rank in range(17) if rank != 5) if ranks else ())
    assert event.missing == ((5,) if ranks else ())


@each_row(("tail", "role"), [("", "root"), (steps(1, 2, 3), "recovered")])
def test_the_last_of_a_flood_decides_on_recovery(read: ReadLog, tail: str, role: str) -> None:
    """Lines that are only counted move the event's end all the same."""
    report = read((OOM + "\n") * FULL + steps(1, 2, 3, 4) + (OOM + "\n") * 100 + tail)
    assert [(event.count, event.role) for event in report.events] == [(FULL + 100, role)]


@each_row("last", ["KeyError: 'decisive'", "odd.Kind: of trouble", OOM], ids=["built-in", "unknown", "known"])
@each_row("prefix", ["", "[rank7]: "], ids=["bare", "ranked"])
def test_a_traceback_that_only_begins_like_a_flood_is_read(read: ReadLog, prefix: str, last: str) -> None:
    """Many ranks fail in the same deep calls.

    The one whose last line differs keeps its frames and its count.
    """
    report = read(prefixed(prefix, (DEEP + STRANGE + "\n") * 70 + DEEP + last + "\n"))
    assert sorted((event.count, event.last, len(event.frames)) for event in report.events) == [
        (1, 71 * 42, 20),
        (70, 70 * 42, 20),
    ]
