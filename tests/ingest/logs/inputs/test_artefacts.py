"""Flight recorder dumps beside a log are part of the job, in folders and archives, and decide."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.errors import EmptyInputError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from tests.ingest.artefacts.dumps import done, dump_value, entry
from tests.ingest.artefacts.stack_files import DEBUGGER, LOADS, LOCK, REDUCE, Call, py_spy, py_spy_json
from tests.tables import each_row

WATCHDOG = (
    "[rank0]:[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran "
    "for 600012 milliseconds before timing out.\n"
)
FULL = [*done(1, 2), entry(3)]
WRONG = [*done(1, 2), entry(3, "broadcast")]


def job(folder: Path, *, log: str = WATCHDOG) -> Path:
    """Write a job whose rank 0 calls something else: dumps of three ranks as pickles, of one as JSON."""
    folder.mkdir()
    if log:
        (folder / "train.log").write_text(log)
    for rank in range(3):
        value = dump_value(FULL if rank else WRONG)
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(value, 2))
    (folder / "trace_rank_3.json").write_text(json.dumps(dump_value(FULL)))
    return folder


def as_folder(folder: Path) -> Path:
    return folder


def as_zip(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "zip", folder))


def as_packed_tar(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "gztar", folder))


def as_tar(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "tar", folder))


def read_job(reader: Reader, path: Path) -> CrashReport:
    return reader.read(open_job(path))


@each_row("given", [as_folder, as_zip, as_packed_tar, as_tar])
def test_dumps_decide_over_a_time_out(reader: Reader, given: Callable[[Path], Path], tmp_path: Path) -> None:
    """The watchdog's line is what follows from the rank that called something else."""
    report = read_job(reader, given(job(tmp_path / "job")))
    assert report.root is not None
    assert (report.root.cause, report.root.strength) == ("collective-desync", "states")
    (fact,) = (fact for fact in report.facts if fact.kind == "flight_recorder")
    assert (fact.fields["ranks"], fact.fields["others"], fact.fields["found"]) == (0, "1,2,3", "broadcast")
    assert report.place(report.root.line).file == "flight recorder (4)"
    watchdog = next(event for event in report.events if event.pattern == "torch.nccl-watchdog")
    assert watchdog.role == "collateral"
    rows = [text for _, text in report.surroundings if text.startswith("flight_recorder rank=")]
    assert [row.split()[1] for row in rows] == [f"rank={rank}" for rank in range(4)]


def test_dumps_alone_are_a_job(reader: Reader, tmp_path: Path) -> None:
    report = read_job(reader, job(tmp_path / "job", log=""))
    assert report.root is not None
    assert report.root.cause == "collective-desync"


def test_an_earlier_failure_of_a_rank_stays_the_cause(reader: Reader, tmp_path: Path) -> None:
    """Who never came may have a reason in the log."""
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    folder = job(tmp_path / "job", log=f"Traceback (most recent call last):\n{oom}\n{WATCHDOG}")
    report = read_job(reader, folder)
    assert report.root is not None
    assert report.root.pattern == "torch.cuda-oom"


@each_row("given", [as_folder, as_zip, as_packed_tar, as_tar])
def test_stacks_of_the_ranks_tell_who_is_waited_for(
    reader: Reader, given: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The log only stops; the stacks show the rank that the others wait for."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.log").write_text("step 1 loss 2.5\nstep 2 loss 2.25\n")
    for rank, calls in enumerate((REDUCE, LOADS, REDUCE, REDUCE)):
        text = py_spy_json(calls) if rank == 3 else py_spy(calls)
        (folder / f"stacks_rank{rank}.{'json' if rank == 3 else 'txt'}").write_text(text)
    report = read_job(reader, given(folder))
    assert report.root is not None
    assert (report.root.cause, report.root.pattern) == ("collective-straggler", "stacks.elsewhere")
    (fact,) = (fact for fact in report.facts if fact.kind == "stacks")
    assert (fact.fields["ranks"], fact.fields["doing"], fact.fields["op"]) == (1, "data", "all_reduce")
    assert report.place(report.root.line).file == "stacks (4)"


@each_row(
    ("calls", "cause"),
    [(LOCK, "stale-state"), (DEBUGGER, "user-code-error"), (LOADS, "collective-straggler")],
)
def test_what_the_rank_is_doing_tells_the_cause(
    reader: Reader, calls: list[Call], cause: str, tmp_path: Path
) -> None:
    """A rank in a debugger or at a lock file does not come by itself."""
    for rank, stack in enumerate((REDUCE, calls, REDUCE)):
        (tmp_path / f"rank{rank}.txt").write_text(py_spy(stack))
    report = read_job(reader, tmp_path)
    assert report.root is not None
    assert report.root.cause == cause


def test_one_dump_alone_is_read(reader: Reader, tmp_path: Path) -> None:
    """A file that is given by itself tells where its process stands."""
    (tmp_path / "stack.txt").write_text(py_spy(LOCK))
    report = read_job(reader, tmp_path / "stack.txt")
    assert report.root is not None
    assert (report.root.cause, report.root.pattern) == ("stale-state", "stacks.no-wait")


class Hostile:
    """A value whose pickle prints."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("run",)


def test_what_is_no_dump_or_damaged_is_left_out_with_its_reason(
    reader: Reader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.log").write_text(WATCHDOG)
    (folder / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump_value([entry(1)]) | {"x": Hostile()}, 2))
    (folder / "nccl_trace_rank_1").write_bytes(pickle.dumps(dump_value(FULL), 2)[:-20])
    (folder / "state").write_bytes(pickle.dumps({"weights": [1.5]}, 2))
    (folder / "rank_2.json").write_text('{"loss": 2.5}')
    report = read_job(reader, folder)
    assert report.root is not None
    assert report.root.pattern == "torch.nccl-watchdog"
    omitted = report.limits.omitted
    assert "nccl_trace_rank_0 (The pickle asks" in str(omitted["damaged_dump"])
    assert "nccl_trace_rank_1 (The pickle is cut" in str(omitted["damaged_dump"])
    assert (omitted["binary"], omitted["not_a_log"]) == ("1: state", "1: rank_2.json")
    assert capsys.readouterr().out == ""


def test_a_folder_without_log_and_dump_holds_nothing(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "rank_2.json").write_text('{"loss": 2.5}')
    with pytest.raises(EmptyInputError, match=r"rank_2\.json"):
        read_job(reader, tmp_path)


def test_a_packed_dump_is_read(reader: Reader, tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    for rank in range(3):
        path = folder / f"nccl_trace_rank_{rank}"
        (folder / f"nccl_trace_rank_{rank}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    report = read_job(reader, folder)
    assert report.root is not None
    assert report.root.cause == "collective-desync"
