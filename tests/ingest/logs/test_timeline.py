"""The order of what several files of one job say, and the way back to file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs.inputs import jobs
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from ingest.logs.timeline import JITTER, LAST_LINES, MIN_STEPS, Place, Timeline
from tests.factories import OOM, STRANGE, ReadLog, event, traceback
from tests.tables import each_row

ReadFolder = Callable[[dict[str, str]], CrashReport]
NOTHING = "all is well\n"
DISK = "OSError: [Errno 28] No space left on device\n"
END = "Training script finished successfully\n"


def clock(minute: int, second: float = 0.0) -> str:
    """Write a time of the day of the crash."""
    return f"2025-03-02 10:{minute:02}:{second:06.3f} "


def stamped(*rows: tuple[int, str], skew: int = 0) -> str:
    """Write a log whose lines were printed at these minutes, by a clock that is so many minutes ahead."""
    return "".join(
        f"{clock(minute + skew)}{row}" if row.endswith("\n") else f"{clock(minute + skew)}{row}\n"
        for minute, row in rows
    )


def stepped(*numbers: int, begin: int = 0) -> list[tuple[int, str]]:
    """Write a step a minute, as verl prints it."""
    return [
        (begin + number, f"step:{number} - actor/pg_loss:0.1 - perf/throughput:812.4") for number in numbers
    ]


@pytest.fixture
def read_folder(reader: Reader, tmp_path: Path) -> ReadFolder:
    """Read files as one job's output."""

    def from_files(files: dict[str, str]) -> CrashReport:
        for name, text in files.items():
            path = tmp_path / "job" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return reader.read(jobs.open_job(tmp_path / "job"))

    return from_files


def root_of(report: CrashReport) -> tuple[str, str]:
    """Give the root's file and line, and its cause."""
    assert report.root is not None
    return str(report.place(report.root.line)), report.root.cause or ""


def test_files_of_ranks_are_ordered_by_their_clocks(read_folder: ReadFolder) -> None:
    """The first failure is the one that was printed first, whichever file is read first."""
    report = read_folder(
        {
            "rank0.log": stamped((1, NOTHING), (9, OOM)),
            "rank1.log": stamped((1, NOTHING), (2, NOTHING), (5, DISK)),
            "rank2.log": stamped((8, OOM)),
        }
    )
    assert root_of(report) == ("rank1.log:L3", "disk-full")


@pytest.mark.parametrize(
    ("files", "root"),
    [
        ({"rank0.log": NOTHING + OOM, "rank1.log": DISK}, "rank0.log:L2"),
        ({"rank10.log": DISK, "rank9.log": NOTHING + OOM}, "rank9.log:L2"),
        ({"a.log": DISK, "driver.log": NOTHING * 50 + OOM}, "driver.log:L51"),
    ],
    ids=["by-name", "by-number", "driver-first"],
)
def test_without_clocks_files_are_ordered_by_place(
    read_folder: ReadFolder, files: dict[str, str], root: str
) -> None:
    """The order of reading is all that is known then."""
    assert root_of(read_folder(files))[0] == root


def test_a_file_without_a_clock_comes_after_those_with_one(read_folder: ReadFolder) -> None:
    """When its line was printed is not known; a line that is known to be early wins."""
    assert (
        root_of(read_folder({"rank0.log": NOTHING + OOM, "rank1.log": stamped((5, DISK))}))[0]
        == "rank1.log:L1"
    )


def test_a_traceback_has_the_time_of_the_line_above(read_folder: ReadFolder) -> None:
    """Python prints no clock before its frames; they share that of the last line that had one."""
    report = read_folder(
        {
            "rank0.log": stamped((7, NOTHING)) + traceback(OOM),
            "rank1.log": stamped((3, NOTHING), (4, "ERROR saving failed")) + traceback(DISK.strip()),
        }
    )
    assert root_of(report)[0] == "rank1.log:L8"


@pytest.mark.parametrize(
    ("skew", "steps", "root"),
    [
        (0, 6, "rank1.log"),
        (30, 6, "rank1.log"),
        (-8, 6, "rank1.log"),
        # Too few common steps tell nothing: the clocks are believed.
        (30, MIN_STEPS - 1, "rank0.log"),
    ],
    ids=["same-clock", "ahead", "behind", "few-steps"],
)
def test_clocks_of_two_nodes_are_put_right_by_the_steps_of_both(
    read_folder: ReadFolder, skew: int, steps: int, root: str
) -> None:
    """Node 1 fails a minute before node 0, whatever its clock says."""
    common = stepped(*range(1, steps + 1), begin=10)
    report = read_folder(
        {"rank0.log": stamped(*common, (20, OOM)), "rank1.log": stamped(*common, (19, DISK), skew=skew)}
    )
    assert root_of(report)[0].partition(":")[0] == root


def test_progress_in_another_file_recovers_nothing(read_folder: ReadFolder) -> None:
    """That rank 1 goes on counting does not mean that rank 0 did."""
    steps = "".join(f"{row}\n" for _, row in stepped(*range(1, 20)))
    report = read_folder({"rank0.log": steps + OOM, "rank1.log": steps})
    assert (root_of(report)[0], [one.role for one in report.events]) == ("rank0.log:L20", ["root"])


def test_progress_in_the_same_file_does_recover(read_folder: ReadFolder) -> None:
    """Each file is judged by its own marks."""
    steps = "".join(f"{row}\n" for _, row in stepped(*range(1, 20)))
    report = read_folder({"rank0.log": OOM + "\n" + steps, "rank1.log": steps})
    assert (report.root, [one.role for one in report.events]) == (None, ["recovered"])


@pytest.mark.parametrize(
    ("errors", "role"),
    [
        (DISK + NOTHING * (LAST_LINES + 1), "recovered"),
        (NOTHING * 100 + DISK, "root"),
        (DISK + NOTHING * (LAST_LINES - 2), "root"),
    ],
    ids=["early", "last-line", "among-the-last-lines"],
)
def test_a_finish_beside_the_errors_counts_for_them(read_folder: ReadFolder, errors: str, role: str) -> None:
    """Slurm writes two files: that the .out says it is done clears the .err, but for what stands at its
    end.
    """
    report = read_folder({"slurm-7.out": NOTHING + END, "slurm-7.err": errors})
    assert [one.role for one in report.events] == [role]


def test_evidence_around_the_root_is_of_its_file(read_folder: ReadFolder) -> None:
    """Surroundings carry numbers that lead back to the file's own lines."""
    report = read_folder({"rank0.log": NOTHING * 5, "rank1.log": "one\ntwo\n" + OOM + "\nfour\n"})
    assert [(str(report.place(line)), text.split(":")[0]) for line, text in report.surroundings] == [
        ("rank1.log:L1", "one"),
        ("rank1.log:L2", "two"),
        ("rank1.log:L3", "torch.OutOfMemoryError"),
        ("rank1.log:L4", "four"),
    ]


def test_a_secret_in_a_files_name_is_masked(read_folder: ReadFolder) -> None:
    """Names are shown in an answer as well."""
    token = "hf_" + "Ab" * 17
    report = read_folder({f"{token}.log": OOM, "rank1.log": NOTHING})
    assert token not in repr(report)


def test_one_file_alone_has_no_name_in_its_places(read_folder: ReadFolder) -> None:
    """Line 2 is line 2."""
    assert root_of(read_folder({"rank0.log": NOTHING + OOM}))[0] == "L2"


@given(lengths=st.lists(st.integers(0, 30), min_size=2, max_size=12))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_place_leads_back_to_its_line(lengths: list[int]) -> None:
    """For any files, each number of the whole is one line of one file, in order."""
    timeline, first = Timeline(), 1
    for number, length in enumerate(lengths):
        timeline.begin(f"{number}.log", first)
        timeline.end(length)
        first += length
    expected = [
        Place(f"{number}.log", line) for number, length in enumerate(lengths) for line in range(1, length + 1)
    ]
    assert [timeline.place(line) for line in range(1, first)] == expected
    for line in range(1, first):
        part = timeline.parts[timeline.number(line)]
        assert part.first <= line <= timeline.until(line) == part.first + part.lines - 1


@given(
    skew=st.floats(-5000, 5000),
    steps=st.integers(MIN_STEPS, 40),
    gap=st.floats(60, 120),
    jitter=st.lists(st.floats(-0.4, 0.4), min_size=40, max_size=40),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_skew_is_found_and_jitter_is_none(skew: float, steps: int, gap: float, jitter: list[float]) -> None:
    """Failures a minute apart come in their order, however far the clocks of their nodes are apart."""
    base, timeline = 1_740_909_600, Timeline()
    for number, ahead in enumerate((0.0, skew)):
        timeline.begin(f"{number}.log", 1 + 100 * number)
        for step in range(1, steps + 1):
            timeline.mark(step, f"{base + 10 * step + ahead + number * jitter[step - 1]:.3f}")
        timeline.event(50 + 100 * number, f"{base + 1000 - number * gap + ahead:.3f}")
        timeline.end(100)
    events = [event(50), event(150)]
    timeline.settle(events)
    assert [one.line for one in sorted(events, key=timeline.order)] == [150, 50]


@each_row(
    ("gaps", "offset"),
    [([JITTER / 2] * 9, 0), ([60] * 9, 60), ([-60] * 2, 0), ([60, -600, 900, 5, 77, -40], 0)],
)
def test_what_steps_do_not_agree_on_is_no_skew(gaps: list[float], offset: float) -> None:
    """A step's own jitter, too few steps and steps that tell different things leave the clocks alone."""
    timeline = Timeline()
    timeline.begin("0.log", 1)
    for step in range(10):
        timeline.mark(step, str(1_740_909_600 + 10 * step))
    timeline.begin("1.log", 100)
    for step, gap in enumerate(gaps):
        timeline.mark(step, f"{1_740_909_600 + 10 * step + gap:.1f}")
    assert timeline.offsets(2025) == [0, offset]


def test_a_clock_without_a_year_takes_that_of_the_jobs_other_clocks() -> None:
    """A glog line of another file is of the same year as the dated ones."""
    timeline = Timeline()
    for number, time in enumerate(("2026-11-21 10:00:00", "1121 10:05:00")):
        timeline.begin(f"{number}.log", 1 + 100 * number)
        timeline.event(50 + 100 * number, time)
        timeline.end(100)
    events = [event(150), event(50)]
    timeline.settle(events)
    assert [one.line for one in sorted(events, key=timeline.order)] == [50, 150]


def test_a_message_alone_still_is_a_root(read_folder: ReadFolder) -> None:
    """What no pattern knows and only one file says, after the others ended well."""
    report = read_folder({"rank0.log": NOTHING, "rank1.log": traceback(STRANGE)})
    assert root_of(report)[0] == "rank1.log:L6"


def test_that_a_launcher_s_first_rows_tell_when_the_job_began(read: ReadLog) -> None:
    """What torchrun prints first is of glog's form and tells nothing else."""
    head = "W0302 10:00:05.118000 4077 torch/distributed/run.py:792] \nmodel: 632.0M parameters\n"
    where = "torch/distributed/elastic/multiprocessing/api.py:869]"
    ended = f"E0302 10:06:05.118000 4077 {where} failed (exitcode: 1)"
    report = read(f"{head}{NOTHING * 60}{ended} local_rank: 0 (pid: 71) of binary: /usr/bin/python\n")
    assert report.timeline.seconds == 360
