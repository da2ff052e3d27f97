"""The logs that the benchmark makes to break the reader, in small; and what fuzzing begins from."""

from __future__ import annotations

import io
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from eval.bench.hostile import CASES, OOM, MadeStream
from eval.fuzz.invariants import violations
from eval.fuzz.targets import SUBJECTS, InvariantError, read_log
from ingest.logs.inputs import jobs
from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from tests.tables import each_row

# Case, how many of its units, lines, the root's line, and how many lines all events stand for, left out or
# not.
ROWS = [
    ("one-line", 3 << 20, 1, 1, 2),
    ("same-tracebacks", 2000, 14_000, 6, 2000),
    ("other-tracebacks", 4000, 24_000, 6, 4000),
    ("other-errors", 2000, 4000, 2, 4000),
    ("asserts", 5000, 5000, 1, 5000),
]


def made(reader: Reader, name: str, units: int) -> CrashReport:
    """Read a case of a size."""
    return reader.read(LogSource(name, MadeStream(CASES[name].pieces(units))))


@each_row(("name", "units", "lines", "root", "failures"), ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.long
def test_that_every_line_of_a_flood_is_counted(
    reader: Reader, name: str, units: int, lines: int, root: int, failures: int
) -> None:
    """The first failure is the root however many follow.

    Each is in an event's count or said to be left out.
    """
    report = made(reader, name, units)
    omitted = report.limits.omitted.get("events", 0)
    assert (report.limits.lines, report.root.line if report.root else 0) == (lines, root)
    assert sum(event.count for event in report.events) + int(omitted) == failures
    assert violations(report) == []


@pytest.mark.long
@each_row("name", ["nul", "encodings", "colours"])
def test_that_odd_bytes_hide_no_failure(reader: Reader, name: str) -> None:
    """NUL bytes, other encodings and colours around it leave a message what it is."""
    report = made(reader, name, 1)
    assert [event.pattern for event in report.events if event.role == "root"] == ["torch.cuda-oom"]
    assert violations(report) == []


@pytest.mark.long
def test_that_a_sparse_file_is_read_behind_its_hole(reader: Reader, tmp_path: Path) -> None:
    """A gigabyte that was never written takes no memory, and the report says that it was there."""
    path = tmp_path / "log.txt"
    with path.open("wb") as stream:
        stream.seek(1 << 30)
        stream.write(f"step 1\n{OOM}\n".encode())
    report = reader.read(jobs.open_job(path))
    assert (report.limits.bytes, report.root and report.root.line) == (len(OOM) + 8, 2)
    assert str(1 << 30) in str(report.limits.omitted["hole"])


def test_that_a_log_that_grows_is_read_to_where_it_ends(reader: Reader, tmp_path: Path) -> None:
    """What is appended after the file was opened is read too."""
    path = tmp_path / "log.txt"
    path.write_text("step 1\n" * 300_000, encoding="utf-8")
    job = jobs.open_job(path)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(f"{OOM}\n")
    report = reader.read(job)
    assert (report.limits.lines, report.root and report.root.line) == (300_001, 300_001)


@pytest.mark.long
@each_row("name", SUBJECTS, quick=1)
def test_that_a_subject_of_fuzzing_takes_its_own_seeds(name: str) -> None:
    """What fuzzing begins from is no finding."""
    for seed in islice(SUBJECTS[name].seeds(), 60):
        SUBJECTS[name].run(seed)


@pytest.mark.long
def test_that_what_does_not_fit_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that says what is not there ends the fuzzing."""

    def lying(*given: Any) -> list[str]:
        return ["event on line 0"]

    monkeypatch.setattr("eval.fuzz.targets.violations", lying)
    with pytest.raises(InvariantError, match="line 0"):
        read_log(b"hello\n")


def test_that_made_pieces_come_out_whole() -> None:
    """A stream that is made on the way gives the same bytes in reads of any size."""
    stream = MadeStream(iter([b"abc", b"defgh"]))
    assert b"".join(iter(lambda: stream.read(2), b"")) == b"abcdefgh"
    assert io.BytesIO(b"".join(CASES["asserts"].pieces(3))).readlines()[-1].startswith(b"/pytorch/")
