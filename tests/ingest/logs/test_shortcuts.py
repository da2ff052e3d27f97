"""What is recognised before it is parsed: each shortcut gives what the long way does."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval import incidents
from eval.bench.made_logs import FORMS, woven
from ingest.logs import lines
from ingest.logs.failure_log import FailureLog
from ingest.logs.lines import Line, parse_line
from ingest.logs.placed_line import PlacedLine
from ingest.logs.repeats import stack_extent
from ingest.logs.scanner import Block
from ingest.logs.stacks import stack, tracebacks
from ingest.logs.stacks.known_stacks import KnownStacks
from ingest.logs.stacks.stack import LinesAbove, LinesBelow, RememberedRows
from ingest.logs.traceback_log import CLOCK_ABOVE, TracebackLog
from tests.factories import OOM, ReadLog, traceback
from tests.tables import each_row

RANKS = 3
SAID = (
    "step 3: loss 2.5",
    "/job/a.py:7: UserWarning: the first row",
    "  warnings.warn(",
    "its details go on here",
    "    indented",
    '  File "/job/a.py", line 7, in main',
    "    main()",
    "ValueError: no good",
    "The above exception was the direct cause of the following exception:",
    "Traceback (most recent call last):",
    "",
    "2026-05-03 10:00:07,123 all is well",
)
# The rank that prints a row, and what.
ROWS = st.lists(st.tuples(st.integers(0, RANKS), st.sampled_from(SAID)), min_size=1, max_size=60)


def block_of(rows: list[str]) -> Block:
    """Make a block of rows."""
    data = ("\n".join(rows) + "\n").encode()
    return Block(data, 1, 0, len(data))


def placed(block: Block) -> list[PlacedLine]:
    """Give each row of a block with its place."""
    found, place = [], 0
    for number, raw in enumerate(block.data.split(b"\n")[:-1], 1):
        found.append(PlacedLine(parse_line(raw, number), block, place, {}))
        place += len(raw) + 1
    return found


def test_that_lines_of_one_shape_have_their_own_ranks_and_times() -> None:
    """What is remembered of a prefix is where it stands, not what it said."""
    told = [
        parse_line(f"[rank{rank}]: 2026-05-03 10:0{rank}:07,123 ERROR boom {rank}".encode(), 1)
        for rank in range(10)
    ]
    assert [(line.rank, line.time, line.body) for line in told] == [
        (str(rank), f"2026-05-03 10:0{rank}:07,123", f"boom {rank}") for rank in range(10)
    ]


@each_row(
    ("first", "second"),
    [
        ("a100: boom", "a200: boom"),
        ("h800-3: boom", "h500-3: boom"),
        ("#033[31mboom", "#011[31mboom"),
        ('{"level": "info", "rank": 1, "msg": "a 1"}', '{"level": "info", "rank": 2, "msg": "b 2"}'),
        ("time=1 level=info rank=3 msg=a", "time=2 level=warn rank=4 msg=a"),
    ],
)
def test_that_lines_whose_digits_mean_something_are_no_shape(first: str, second: str) -> None:
    """Digits that name a machine or an escape, and records, are read each time."""
    for text in (first, second, first):
        assert lines._taken_apart(text) == lines._read_anew(text, {})


def test_that_shapes_change_no_line_of_the_incidents() -> None:
    """Every prefix of every labelled log, in whatever order its shapes were met."""
    texts = {row for incident in incidents.load() for row in incident.lines[:300] if len(row) < lines.SHAPED}
    for text in sorted(texts):
        clean = lines.printable(text).rstrip()
        assert lines._taken_apart(clean) == lines._read_anew(clean, {}), clean


@given(
    said=st.lists(
        st.sampled_from(
            [*SAID, "a ", "b\t", "c\rd", "\u00e9t\u00e9", "\x1b[0m", "\x07", " " * 3, "x" * 2100]
        ),
        min_size=1,
        max_size=20,
    ),
    form=st.sampled_from(sorted(FORMS)),
    digits=st.integers(10, 99),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_that_a_line_of_a_known_shape_is_read_as_one_of_an_unknown_shape(
    said: list[str], form: str, digits: int
) -> None:
    """What is kept by the raw bytes of another line with other digits changes nothing of what is read."""
    for text in said:
        others = [FORMS[form](number, f"{text} {number}").encode() for number in (digits, 10, digits)]
        lines._printed.clear()
        afresh = parse_line(others[-1], 7)
        for raw in others[:-1]:
            parse_line(raw, 7)
        assert parse_line(others[-1], 7) == afresh
        if lines.names_source(others[-1]):
            assert afresh.source
        bare = lines.bare_text(others[-1])
        assert bare is None or (bare, "") == (afresh.body, afresh.source)


@given(rows=ROWS, form=st.sampled_from(sorted(FORMS)))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_that_lines_of_nobody_are_found_beyond_those_that_name_somebody(
    rows: list[tuple[int, str]], form: str
) -> None:
    """Rows that are passed by their shapes are those that parsing passes."""
    block = block_of([said if rank == 0 else FORMS[form](rank, said) for rank, said in rows])
    for at in placed(block):
        walk = LinesAbove(block, at.offset, at.line.number, {})
        nearest = [row.number for row in walk if row.source == at.line.source]
        own = LinesAbove(block, at.offset, at.line.number, {}).own(at.line)
        assert [row.number for row in own] == nearest
        walk_down = LinesBelow(block, at.offset, at.line.number, {})
        nearest = [row.number for row in walk_down if row.source == at.line.source]
        for until in (len(rows), at.line.number + 2):
            own = LinesBelow(block, at.offset, at.line.number, {}).own(at.line, until)
            assert [row.number for row in own] == [number for number in nearest if number <= until]


@given(rows=ROWS, form=st.sampled_from(sorted(FORMS)))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_that_what_stands_above_is_the_same_where_every_row_is_parsed(
    rows: list[tuple[int, str]], form: str
) -> None:
    """Warnings and stacks without a header, of several processes, whatever line is known above."""
    block = block_of([FORMS[form](rank, said) for rank, said in rows])
    told: list[list[tuple[object, ...]]] = []
    for is_short in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not is_short:
                patch.setattr(stack, "stand_above", lambda *_words: True)
                patch.setattr(stack, "last_among", lambda *_words: 0)
                patch.setattr(stack, "body_above", lambda *_places: None)
                patch.setattr(LinesBelow, "has_below", lambda *_words: True)
            told.append(
                [
                    (
                        tracebacks.ends_warning(at.block, at.offset, at.line, {}),
                        tracebacks.is_in_warning(at.block, at.offset, at.line, {}),
                        tracebacks.headless(at.block, at.offset, at.line, {}),
                        tracebacks.at(at.block, at.offset, at.line.number, {}),
                    )
                    for at in placed(block)
                ]
            )
    assert told[0] == told[1]
    for place, at in enumerate(placed(block)):
        for above in placed(block)[:place]:
            if above.line.source == at.line.source:
                found = tracebacks.headless(at.block, at.offset, at.line, {}, above.line)
                assert found == told[0][place][2]


def counted_as_read(read: ReadLog, data: bytes) -> int:
    """Give how many lines were only counted; the report has to be that of a reader which reads them all."""
    counted, reports = list[bool](), []

    def count(log: FailureLog, *given: Any, count: Callable[..., bool] = FailureLog.count) -> bool:
        counted.append(count(log, *given))
        return counted[-1]

    for is_short in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FailureLog, "count", count if is_short else lambda *_given: False)
            if not is_short:
                patch.setattr(KnownStacks, "like", lambda *_given: None)
            reports.append(read(data))
    for field in dataclasses.fields(reports[0]):
        assert getattr(reports[0], field.name) == getattr(reports[1], field.name), field.name
    return sum(counted)


@pytest.mark.parametrize("form", FORMS)
def test_that_what_is_only_counted_is_what_reading_it_would_count(read: ReadLog, form: str) -> None:
    """Lines and tracebacks like known ones change no field of a report, in whatever company they stand."""
    data = b"".join(woven(150_000, form, 7))
    # Twice, so that the second half is like the first one but for its digits.
    data += re.sub(rb"(?<=[ (=:])[1-9](?=[\n ),])", b"8", data)
    assert counted_as_read(read, data) or form in ("json", "logfmt")  # records are read by their digits


def test_that_general_words_at_the_end_of_a_traceback_are_its_exception(read: ReadLog) -> None:
    """Also where the same line was counted below calls without a header, which no pattern but that knows."""
    ended = traceback("ConnectionResetError: [Errno 803] Connection reset by peer")
    cut = ended.partition("\n")[2]
    counted_as_read(read, f"{cut}all is well\n{cut}well\n{cut}well\n{ended}{ended}{ended}".encode())


@each_row("prefix", ["", "[rank3]: ", "(Worker pid=12) "])
@each_row(
    ("end", "is_like"),
    [
        ("ValueError: no 7", True),
        ("job.errors.Odd: of trouble", True),
        # What another process says below joins nothing to it.
        ("ValueError: no 7\n@[rank5]: Traceback (most recent call last):", True),
        # Another one may be joined to it, or it goes on below.
        ("ValueError: no 7\n{}Traceback (most recent call last):", False),
        ("ValueError: no 7\n{}\n{}The above exception was the direct cause of", False),
        ("ValueError: the following:", False),
        ("job.errors.Odd", False),
        ("RayTaskError(Odd): ray::Worker.run() (pid=7, ip=10.0.0.1)", False),
        ("ValueError: Traceback (most recent call last):", False),
        # No end of it at all.
        ("all is well", False),
        # Whose it is hangs on what stands before it.
        ("[rank5]: [rank5]: ValueError: no 7", None),
    ],
)
def test_that_a_traceback_like_a_known_one_is_read_as_itself(
    prefix: str, end: str, is_like: bool | None
) -> None:
    """With its own end, message and, for whoever asks, calls, whatever the length of its process's number."""
    known, told = KnownStacks(), []
    longer = re.sub(r"\d+", "1280", prefix)
    for mark, number, last in ((prefix, 12, "ValueError: no"), (longer, 3456, end.replace("{}", longer))):
        rows = f"""Traceback (most recent call last):
  File "/job/v1/train.py", line {number}, in main
    run(2)
  File "/job/v2/run.py", line 9{number}, in run
    raise ValueError(4)
{last}
well"""
        data = "".join(
            f"{row[1:]}\n" if row.startswith("@") else f"{mark}{row.removeprefix(mark)}\n"
            for row in rows.split("\n")
        )
        block = Block(data.encode(), 1, 0, len(data))
        at = placed(block)[0]
        extent = stack_extent(block.data, 0)
        found = tracebacks.at(block, at.offset, 1, {})
        told.append((known.like(at, extent), found))
        known.learn(at, extent, found)
    (first, _), (like, found) = told
    assert first is None
    assert is_like in (like is not None, None)
    if like is not None:
        assert dataclasses.replace(like, frames=found[0].frames) == found[0]
        assert [frame.file for frame in like.frames] == [frame.file for frame in found[0].frames]


@pytest.mark.parametrize("seed", range(20))
def test_that_the_clock_above_is_that_of_the_nearest_line_with_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever lines were looked at before, and in whichever block."""
    monkeypatch.setattr("ingest.logs.traceback_log.CLOCK_ABOVE", 8)
    dice = random.Random(seed)  # noqa: S311 - made lines
    log = TracebackLog.__new__(TracebackLog)
    log._timeless = (None, 0, 0)
    for _ in range(4):
        rows = [
            f"2026-05-03 10:00:{number % 60:02d},000 well" if dice.random() < 0.08 else f"row {number}"
            for number in range(120)
        ]
        for at in placed(block_of(rows)):
            if dice.random() < 0.5:
                continue
            above = LinesAbove(at.block, at.offset, at.line.number, {}, 8)
            assert log._clock_above(at) == next((row.time for row in above if row.time), "")
    assert CLOCK_ABOVE > 8


def test_that_rows_are_walked_once_however_often_they_are_gone_through() -> None:
    walked = []

    def rows(most: int = 5) -> object:
        for number in range(most):
            walked.append(number)
            yield Line(number, "", "")

    remembered = RememberedRows(rows())  # type: ignore[arg-type]
    assert next(iter(remembered)).number == 0
    assert walked == [0]
    assert [row.number for row in remembered] == [row.number for row in remembered] == list(range(5))
    assert walked == list(range(5))


def test_that_failures_of_one_template_keep_their_count_places_and_numbers(read: ReadLog) -> None:
    """Repeated lines are one event from the first to the last; each one's own numbers are told as facts."""
    rows = [OOM.replace("2.00 GiB", f"{number}.00 GiB") for number in range(1, 41)]
    report = read(
        "".join(f"step {number} loss 0.5\n[rank{number % 8}]: {row}\n" for number, row in enumerate(rows))
    )
    (event,) = [event for event in report.events if event.pattern == "torch.cuda-oom"]
    assert (event.count, event.line, event.last) == (40, 2, 80)
    assert event.ranks == tuple(range(8))
    asked = {fact.line: fact.fields["asked_gib"] for fact in report.facts if fact.kind == "gpu_oom"}
    assert asked == {2 * number: float(number) for number in range(1, 41)}


def test_that_exit_codes_of_one_template_are_not_taken_for_one_another(read: ReadLog) -> None:
    """A number may decide what a line means: one process was killed, the other failed by itself."""
    for code, told in ((1, False), (137, True), (2, False)):
        report = read(f"worker 1 exited with exit code {code}\n" * 3)
        assert [event.count for event in report.events if event.pattern == "kubernetes.exit-137"] == [
            3
        ] * told


def test_that_a_traceback_of_the_same_template_keeps_its_own_lines(read: ReadLog) -> None:
    """The same calls at other lines of source: the first is shown, all are counted, first to last."""
    log = "".join(traceback(f"KeyError: 'sample {number}'") + f"step {number}\n" for number in range(70))
    report = read(log)
    (event,) = report.events
    assert event.count == 70
    assert event.last - event.line == (len(log.splitlines()) // 70) * 69
