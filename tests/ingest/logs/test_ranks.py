"""Which ranks told of a failure, which did not, and which told of none at all."""

from __future__ import annotations

from pathlib import Path

from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from ingest.logs.repeats import FULL
from tests.factories import OOM, STRANGE, ReadLog, prefixed, traceback

FAULT = "RuntimeError: CUDA error: an illegal memory access was encountered"
SIZE = "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4\n"


def of(rank: int, text: str) -> str:
    """Label each row with its rank, as torchrun does."""
    return prefixed(f"[rank{rank}]: ", text)


THREE = "".join(of(rank, traceback(FAULT)) for rank in (0, 1, 3))
# What rank 2 prints, whether it is missing from what the three others tell, and whether it is silent.
ROWS = {
    "nothing": ("", True, True),
    "only progress": (of(2, "step:1 - actor/pg_loss:0.1\n"), True, True),
    "another known failure": (of(2, traceback(OOM)), True, False),
    "an exception that no pattern knows": (of(2, traceback("mypkg.errors.OddThing: odd")), True, False),
    "an error without a traceback": (of(2, STRANGE + "\n"), True, False),
    "the same": (of(2, traceback(FAULT)), False, False),
    "the same, on one row with another's": (f"[rank1]: [rank2]: {FAULT}\n", False, False),
    "the same, behind another's on one row": (f"[rank1]: {FAULT}[rank2]: {FAULT}\n", True, False),
    "what its message says it is": (f"[E ProcessGroupNCCL.cpp:1] [Rank 2] {OOM}\n", True, False),
    "under Ray": (f"(Worker rank=2 pid=77) {OOM}\n", True, False),
}


def test_a_rank_is_silent_where_it_told_of_no_failure(read: ReadLog) -> None:
    """One that told of another failure, or whose line met another's on one row, is not."""
    wrong = {}
    for name, (more, is_missing, is_silent) in ROWS.items():
        for log in (SIZE + THREE + more, SIZE + more + THREE):
            events = [event for event in read(log).events if FAULT in event.body]
            told = {(event.missing, event.silent) for event in events if len(event.ranks) > 2}
            if told != {((2,) if is_missing else (), (2,) if is_silent else ())}:
                wrong[name] = [(event.body, event.ranks, event.missing, event.silent) for event in events]
    assert not wrong


def test_nobody_is_silent_where_failures_were_only_counted(read: ReadLog) -> None:
    """Of a flood nobody looked who printed it: any rank may have."""
    flood = "".join(of(rank, f"{OOM}\n") for _ in range(FULL) for rank in (0, 2))
    (event,) = [event for event in read(SIZE + THREE + flood).events if FAULT in event.body]
    assert (event.missing, event.silent) == ((2,), ())


def test_a_file_of_a_rank_speaks_for_it(tmp_path: Path, reader: Reader) -> None:
    """A launcher that writes a file for each rank labels no row."""
    for rank in (0, 1, 3):
        (tmp_path / f"rank_{rank}.log").write_text(SIZE + of(rank, traceback(FAULT)))
    for text, silent in (("loading\n", (2,)), (traceback(OOM), ())):
        (tmp_path / "rank_2.log").write_text(text)
        (event,) = [event for event in reader.read(open_job(tmp_path)).events if FAULT in event.body]
        assert (event.missing, event.silent) == ((2,), silent)
