"""Tracebacks that are open: each stream's own, until its end meets a pattern or the stream goes on."""

from __future__ import annotations

from typing import Any

from ingest.logs.repeats import Sighting
from ingest.logs.stacks.open_tracebacks import MESSAGE_LINES, Stacks
from ingest.logs.stacks.stack import Frame, Traceback
from tests.factories import OOM, STRANGE, ReadLog, interleaved, prefixed, steps, traceback
from tests.tables import each_row


def made(start: int, end: int, source: str = "rank=0", **fields: Any) -> Traceback:
    """Make a traceback of one frame."""
    told: dict[str, Any] = {
        "frames": (Frame("train.py", 3, "step"),),
        "exception": "ValueError",
        "message": "odd",
        "text": "ValueError: odd",
    }
    return Traceback(start, end, source, **{**told, **fields})


def opened(*tracebacks: Traceback) -> Stacks:
    """Open tracebacks of these streams."""
    stacks = Stacks()
    for one in tracebacks:
        stacks.open(one.source, one, one.start, Sighting())
    return stacks


def ends(stacks: Stacks, source: str | None = None, before: int | None = None) -> list[tuple[str, int]]:
    """Close; give stream and last line of what no pattern knew."""
    return [(stack.traceback.source, stack.traceback.end) for stack in stacks.close(source, before)]


def test_each_stream_has_tracebacks_of_its_own() -> None:
    """What one process prints neither ends nor hides another's, though their lines alternate."""
    stacks = opened(made(1, 11, "rank=0"), made(2, 12, "rank=1"))
    assert stacks.ending("rank=0", 12) is None
    assert [stacks.ending(f"rank={rank}", 11 + rank) is not None for rank in (0, 1)] == [True, True]
    assert [(found.start if (found := stacks.latest(f"rank={rank}")) else None) for rank in (0, 1, 2)] == [
        1,
        2,
        None,
    ]


def test_a_chain_begins_with_its_first_line() -> None:
    """The latest traceback of a stream knows where its whole chain starts."""
    stacks = Stacks()
    stacks.open("", made(20, 26, ""), 3, Sighting())
    latest = stacks.latest("")
    assert latest is not None
    assert (latest.start, latest.end) == (3, 26)


@each_row(
    ("number", "source", "found"),
    [
        (6, "rank=0", True),
        (7, "rank=0", True),
        (6 + MESSAGE_LINES, "rank=0", True),
        (7 + MESSAGE_LINES, "rank=0", False),
        (5, "rank=0", False),
        (6, "rank=1", False),
        (7, "rank=1", False),
    ],
)
def test_a_line_belongs_to_the_traceback_that_ends_there_or_just_above(
    number: int, source: str, found: bool
) -> None:
    """A message may run on over some lines, of the same stream."""
    assert (opened(made(1, 6)).of(source, number) is not None) is found


def test_a_line_belongs_to_the_nearest_traceback_above() -> None:
    """Of two that end within reach the later one is meant."""
    found = opened(made(1, 4, message="first"), made(5, 7, message="second")).of("rank=0", 8)
    assert found is not None
    assert found.message == "second"


@each_row(("number", "left"), [(6, []), (7, [("rank=0", 6)])], ids=["its-last-line", "a-line-below"])
def test_a_traceback_whose_last_line_a_pattern_knew_is_no_event_of_its_own(
    number: int, left: list[tuple[str, int]]
) -> None:
    """Of a message that runs on, the first line is still nobody's."""
    stacks = opened(made(1, 6))
    stacks.of("rank=0", number)
    assert ends(stacks) == left


@each_row(("language", "left"), [("python", 1), ("go", 1), ("java", 1), ("native", 0), ("rust", 0)])
def test_a_stack_of_compiled_code_alone_is_no_failure(language: str, left: int) -> None:
    """It lends its calls to the banner that some pattern knows."""
    assert len(ends(opened(made(1, 6, language=language)))) == left


@each_row(
    ("source", "before", "closed", "left"),
    [
        (None, None, [("rank=0", 6), ("rank=0", 16), ("rank=1", 7)], []),
        ("rank=0", None, [("rank=0", 6), ("rank=0", 16)], [("rank=1", 7)]),
        ("rank=2", None, [], [("rank=0", 6), ("rank=0", 16), ("rank=1", 7)]),
        (None, 10, [("rank=0", 6), ("rank=1", 7)], [("rank=0", 16)]),
        (None, 6, [], [("rank=0", 6), ("rank=0", 16), ("rank=1", 7)]),
    ],
    ids=["all", "one-stream", "another-stream", "before-a-line", "none-before"],
)
def test_closing_takes_out_what_is_asked_for(
    source: str | None, before: int | None, closed: list[tuple[str, int]], left: list[tuple[str, int]]
) -> None:
    """By stream or by line, each once."""
    stacks = opened(made(1, 6), made(11, 16), made(2, 7, "rank=1"))
    assert ends(stacks, source, before) == closed
    assert ends(stacks) == left


def test_a_stream_that_is_closed_has_no_latest() -> None:
    """Code that its last traceback quotes does not hide what it prints later."""
    stacks = opened(made(1, 6))
    ends(stacks, before=100)
    assert stacks.latest("rank=0") is not None
    ends(stacks, "rank=0")
    assert stacks.latest("rank=0") is None


@each_row("ranks", [2, 16])
@each_row(
    ("message", "pattern"),
    [(OOM, "torch.cuda-oom"), ("odd.Kind: of trouble", "python.exception")],
    ids=["known", "unknown"],
)
def test_interleaved_tracebacks_are_read_whole(read: ReadLog, ranks: int, message: str, pattern: str) -> None:
    """One event with the frames, however many processes print line by line in turn."""
    (event,) = read(
        interleaved(*(prefixed(f"[rank{rank}]: ", traceback(message)) for rank in range(ranks)))
    ).events
    assert (event.pattern, event.count, event.line, event.last) == (pattern, ranks, 5 * ranks + 1, 6 * ranks)
    assert [frame.function for frame in event.frames] == ["main", "step"]


@each_row("below", range(1, MESSAGE_LINES + 1))
def test_a_message_that_runs_on_keeps_its_frames(read: ReadLog, below: int) -> None:
    """The line that some pattern knows stands some lines below the one that names the exception."""
    report = read(
        traceback("odd.Kind: several things went wrong")
        + "more of it\n" * (below - 1)
        + "No space left on device\n"
    )
    found = next(event for event in report.events if event.line == 6 + below)
    assert [frame.function for frame in found.frames] == ["main", "step"]


@each_row(("gap", "count"), [("", 2), ("all is well\n", 2)])
def test_a_traceback_after_another_of_one_stream_is_one_of_its_own(
    read: ReadLog, gap: str, count: int
) -> None:
    """The first is closed when the second begins."""
    report = read(traceback("odd.Kind: first") + gap + traceback("odd.Other: second") + STRANGE + "\n")
    assert [event.exception for event in report.events][:count] == ["odd.Kind", "odd.Other"]


DESTRUCTOR = "Exception ignored in: <function _Iter.__del__ at 0x7f00>\n"
SHUTDOWN = "Exception in thread Thread-4 (most likely raised during interpreter shutdown):\n"
HALF_BUILT = "AttributeError: '_Iter' object has no attribute '_workers_status'"


@each_row(
    "before, after",
    [
        ("", ""),
        ("step 1 loss 2.1\n", ""),
        ("", "step 2 loss 2.0\n"),
        ("step 1 loss 2.1\n" * 400, "step 2 loss 2.0\n"),
    ],
)
def test_that_what_a_destructor_raises_is_no_failure(read: ReadLog, before: str, after: str) -> None:
    """Python says itself that it ignores it, whether or not its stack is the last thing in the log."""
    raised = traceback("AttributeError: 'NoneType' object has no attribute 'dumps'")
    report = read(f"{before}{DESTRUCTOR}{raised}{after}")
    assert report.root is None


@each_row(
    "log, root",
    [
        # What its constructor never gave it: something failed before it was whole.
        (DESTRUCTOR + traceback(HALF_BUILT), HALF_BUILT),
        (DESTRUCTOR + traceback(HALF_BUILT) + steps(4, 5, 6), None),
        (traceback(STRANGE) + DESTRUCTOR + traceback(HALF_BUILT), STRANGE),
        (DESTRUCTOR + traceback(HALF_BUILT) + traceback(STRANGE), STRANGE),
        # Who interrupted the job met it in a destructor, or in a thread that is ended with it.
        (steps(1, 2) + DESTRUCTOR + traceback("KeyboardInterrupt"), "KeyboardInterrupt"),
        (steps(1, 2) + SHUTDOWN + traceback("KeyboardInterrupt: "), "KeyboardInterrupt"),
        (traceback(STRANGE) + DESTRUCTOR + traceback("KeyboardInterrupt"), STRANGE),
        (DESTRUCTOR + traceback("KeyboardInterrupt") + traceback(STRANGE), STRANGE),
        (steps(1, 2) + SHUTDOWN + traceback(STRANGE), None),
        # Two ranks' remarks and stacks row by row among each other.
        (interleaved(*[DESTRUCTOR + traceback(STRANGE)] * 2), None),
        (DESTRUCTOR + "\n" + traceback(STRANGE), None),
    ],
)
def test_that_an_ignored_exception_tells_of_the_job_only_where_nothing_else_does(
    read: ReadLog, log: str, root: str | None
) -> None:
    """An interrupt and an object that was never whole are signs of an end; all others follow from one."""
    found = read(log).root
    assert (found.body.rstrip(": ") if found else None) == root


def test_that_several_destructors_one_after_another_are_no_failure(read: ReadLog) -> None:
    """Stacks that are still open when the next remark comes belong to their own."""
    raised = "".join(
        f"Exception ignored in: <function {name}.__del__ at 0x7f00>\n"
        + traceback(f"{name}Error: {name}Error(")
        for name in ("First", "Second", "Third")
    )
    root = read(f"step 1 loss 2\n{raised}{traceback(STRANGE)}").root
    assert root is not None
    assert root.body == STRANGE


@each_row(
    "remark",
    [
        "Exception ignored in atexit callback: <function save_table at 0x7f00>",
        "Exception ignored while calling atexit callback <function save_table at 0x7f00>:",
        "Error in atexit._run_exitfuncs:",
    ],
)
def test_that_what_exit_handlers_raise_stands_beside_no_failure(read: ReadLog, remark: str) -> None:
    """Each of several processes ignores its own; the exception of the script is the only one left."""
    missed = f"{remark}\n" + traceback("FileNotFoundError: [Errno 2] No such file or directory: 't.tmp'")
    failed = traceback("ValueError: min() arg is an empty sequence")
    report = read(f"{missed}{missed}{failed}")
    assert [event.exception for event in report.events] == ["ValueError"]
    # The very exception is one where nobody says that it was ignored.
    assert read(missed.partition("\n")[2]).root is not None
