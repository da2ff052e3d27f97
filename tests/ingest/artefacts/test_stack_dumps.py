"""Stacks of all processes are read in every tool's form, and tell who is waited for."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence

import pytest

from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.artefacts.records import stack_records
from ingest.artefacts.stack_dumps import ProcessStacks, read_stacks
from ingest.artefacts.stack_table import StackVerdict, process_positions, stack_verdict
from ingest.errors import ArtefactError
from tests.ingest.artefacts.stack_files import (
    BARRIER,
    DEBUGGER,
    GDB,
    LAUNCHER,
    LOADS,
    LOCK,
    LOOP,
    NATIVE,
    REDUCE,
    Call,
    faulthandler,
    py_spy,
    py_spy_json,
)
from tests.tables import each_row

Writer = Callable[[Sequence[Call]], str]


def read(text: str, name: str) -> list[ProcessStacks]:
    return read_stacks(text.encode(), name)


def verdict(*stacks: Sequence[Call], write: Writer = py_spy) -> StackVerdict:
    """Compare ranks, whose files are named after them."""
    found = [
        process for rank, calls in enumerate(stacks) for process in read(write(calls), f"rank_{rank}.txt")
    ]
    told = stack_verdict(process_positions(found))
    assert told is not None
    return told


def ranks(told: StackVerdict) -> tuple[list[int], list[int]]:
    return [one.process.rank for one in told.outliers], [one.process.rank for one in told.others]


@each_row("write", [py_spy, py_spy_json, faulthandler])
def test_all_tools_tell_the_same(write: Writer) -> None:
    """Whatever printed the stacks: who loads data while the others wait, where, and in what they wait."""
    told = verdict(REDUCE, REDUCE, LOADS, REDUCE, write=write)
    assert (told.kind, *ranks(told)) == ("elsewhere", [2], [0, 1, 3])
    (late,) = told.outliers
    assert (late.activity, late.inner.function) == ("data", "raw_decode")
    assert late.own is not None
    assert (late.own.file.rpartition("/")[2], late.own.line) == ("train.py", 38)
    assert {one.operation for one in told.others} == {"all_reduce"}


VERDICTS: list[tuple[str, list[Sequence[Call]], str, list[int]]] = [
    ("the first rank is the odd one", [LOADS, REDUCE, REDUCE], "elsewhere", [0]),
    ("two ranks", [REDUCE, LOADS], "elsewhere", [1]),
    ("a rank in another collective", [BARRIER, REDUCE, REDUCE], "different-collectives", [0]),
    ("two halves accuse each other", [BARRIER, REDUCE], "different-collectives", []),
    ("one alone in a barrier", [BARRIER, LOOP, LOOP], "waits-alone", [0]),
    ("all wait in one place", [REDUCE, REDUCE, REDUCE], "same-wait", []),
    ("nobody waits for another", [LOCK, LOOP, LOOP], "apart", [0]),
    ("all do the same", [LOCK, LOCK], "same-place", []),
    ("a launcher is no rank", [REDUCE, LAUNCHER, REDUCE], "same-wait", []),
]


@each_row(("name", "stacks", "kind", "outliers"), VERDICTS)
def test_the_majority_tells_who_stands_elsewhere(
    name: str, stacks: list[Sequence[Call]], kind: str, outliers: list[int]
) -> None:
    told = verdict(*stacks)
    assert (told.kind, ranks(told)[0]) == (kind, outliers), name


def test_a_rank_without_a_stack_is_named() -> None:
    """A gap in the ranks that were looked at: its process may be gone."""
    found = [process for rank in (0, 1, 3) for process in read(py_spy(REDUCE), f"rank{rank}.txt")]
    told = stack_verdict(process_positions(found))
    assert told is not None
    assert (told.kind, told.missing) == ("same-wait", (2,))
    assert next(iter(stack_records(told))).endswith("no_dump=2")


@each_row(
    ("labels", "expected"),
    [(["0", "1", "2"], ([2], [0, 1])), (["gpu-01", "gpu-02", "gpu-03"], ([-1], [-1, -1]))],
)
def test_labels_of_a_launcher_tell_rank_or_host(
    labels: list[str], expected: tuple[list[int], list[int]]
) -> None:
    """srun --label writes the task before each line, pdsh the host; their lines come woven."""
    texts = [
        py_spy(calls, 4711, label=label) for label, calls in zip(labels, (REDUCE, REDUCE, LOADS), strict=True)
    ]
    woven = "\n".join(
        row for rows in zip(*(text.rstrip("\n").split("\n") for text in texts), strict=False) for row in rows
    )
    assert artefact_kind(woven.encode()[:HEAD]) == "stacks" or labels[0] == "0"
    told = stack_verdict(process_positions(read(woven + "\n" + texts[2], "all.txt")))
    assert told is not None
    assert (told.kind, ranks(told)) == ("elsewhere", expected)


def test_several_processes_in_one_file_are_told_by_their_numbers() -> None:
    """`ray stack` prints one after the other; a rank may stand in the command."""
    text = "Stack dump for user\n" + py_spy(REDUCE, 11) + "\n" + py_spy(LOADS, 12) + "\n" + py_spy(REDUCE, 13)
    assert artefact_kind(text.encode()[:HEAD]) == "stacks"
    told = stack_verdict(process_positions(read(text, "stacks.txt")))
    assert told is not None
    assert "processes=12 others=11,13 count=2 op=all_reduce" in next(iter(stack_records(told)))
    told = stack_verdict(
        process_positions(read(py_spy(LOADS, 12, "python train.py --local_rank=3"), "x.txt"))
    )
    assert told is not None
    assert told.others[0].process.rank == 3


def test_native_calls_do_not_hide_what_python_waits_in() -> None:
    """py-spy --native and --locals; gdb knows compiled calls alone."""
    (stand,) = process_positions(read(NATIVE, "rank_0"))
    assert (stand.operation, stand.own and stand.own.function) == ("all_reduce", "train_step")
    (stand,) = process_positions(read(GDB, "rank_1.txt"))
    assert (stand.waits, stand.operation) == (True, "wait")


@each_row(
    ("text", "kind"),
    [
        (py_spy(REDUCE), "stacks"),
        (py_spy_json(REDUCE)[:HEAD], "stacks"),
        (faulthandler(REDUCE), "stacks"),
        (GDB, "stacks"),
        ("step 1 loss 2.5\n" + faulthandler(REDUCE), None),
        (faulthandler(REDUCE) + "RuntimeError: x\n", None),
        ("Process 12: started\nstep 1\n", None),
        ('[{"pid": 3, "frames": []}]', None),
    ],
)
def test_a_dump_is_told_by_its_content(text: str, kind: str | None) -> None:
    """A rank's own log that holds a stack among its lines stays a log."""
    assert artefact_kind(text.encode()[:HEAD]) == kind


@each_row(
    "data",
    [
        py_spy_json(REDUCE).encode()[:-30],
        b'[{"thread_id": 1, "owns_gil": false, "frames": 7, "pid": "x"}]',
        b"Process 1: x\nPython v3\n",
        b"[" * 100_000,
    ],
)
def test_what_is_damaged_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(ArtefactError):
        read_stacks(data, "x")


@pytest.mark.long
def test_endless_dumps_are_cut() -> None:
    """A million calls, threads and processes take bounded memory."""
    calls = b"    f (x.py:1)\n" * 300_000
    threads = b'Thread 1 (idle): "T"\n    f (x.py:1)\n' * 20_000
    heads = b"Process 1: x\nPython v3\nThread 1 (idle)\n    f (x.py:1)\n" * 10_000
    text = b'Process 1: x\nPython v3\nThread 1 (idle): "MainThread"\n' + calls + threads + heads
    tracemalloc.start()
    found = read_stacks(text, "x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) <= 4096
    assert all(len(thread.calls) <= 200 for process in found for thread in process.threads)
    assert len(found[0].threads) <= 512
    assert peak < 60 << 20


def test_faulthandler_of_this_python_is_read() -> None:
    """What CPython here prints of a process that waits for a thread."""
    code = "import faulthandler, sys\ndef step():\n faulthandler.dump_traceback(file=sys.stdout)\nstep()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    text = done.stdout.decode().replace("Current thread", "Thread")
    assert artefact_kind(text.encode()) == "stacks"
    (process,) = read(text, "rank_5")
    assert process.main is not None
    assert [call.function for call in process.main.calls] == ["<module>", "step"]


def test_json_of_one_process_may_hold_what_is_no_frame() -> None:
    """A field may be missing or of another kind."""
    thread = {"pid": 3, "thread_id": 1, "owns_gil": True, "os_thread_id": 3}
    rows = [thread | {"frames": [{"name": "f", "filename": "x.py", "line": None}, 7, {"line": 3}]}, 5]
    (process,) = read(json.dumps(rows), "x")
    assert process.main is not None
    assert [(call.file, call.line) for call in process.main.calls] == [("x.py", 0)]


@each_row(("calls", "activity"), [(LOCK, "file-lock"), (DEBUGGER, "debugger"), (LOADS, "data"), (LOOP, "")])
def test_an_activity_is_told(calls: Sequence[Call], activity: str) -> None:
    told = verdict(calls)
    assert told.others[0].activity == activity
