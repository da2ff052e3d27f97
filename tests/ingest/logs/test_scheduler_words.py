"""The scheduler's own word on a job is taken from its row, not from those of its steps."""

from __future__ import annotations

import io

from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from tests.tables import each_row

HEAD = "JobID           JobName      State ExitCode    Elapsed\n"
EXTERN = "48213.extern     extern  COMPLETED      0:0   02:11:09\n"
SHOWN = "   JobState={state} Reason={reason} Dependency=(null)\n   ExitCode={code} DerivedExitCode=0:0\n"


def row(state: str, code: str) -> str:
    return HEAD + f"48213             train {state:>10} {code:>8}   02:11:09\n" + EXTERN


def bars(state: str, code: str) -> str:
    return f"JobID|JobName|State|ExitCode|\n48213|train|{state}|{code}|\n48213.extern|extern|COMPLETED|0:0|\n"


@each_row(
    ("text", "cause", "pattern"),
    [
        (row("OUT_OF_ME+", "0:125"), "host-oom-kill", "slurm.account-oom"),
        (bars("OUT_OF_MEMORY", "0:125"), "host-oom-kill", "slurm.account-oom"),
        (row("TIMEOUT", "0:0"), "scheduler-terminated", "slurm.account-ended"),
        (bars("PREEMPTED", "0:0"), "scheduler-terminated", "slurm.account-ended"),
        (row("NODE_FAIL", "1:0"), "node-lost", "slurm.account-node"),
        (row("CANCELLED+", "0:0"), "scheduler-terminated", "slurm.account-cancelled"),
        (row("FAILED", "0:9"), "host-oom-kill", "slurm.account-killed"),
        (row("FAILED", "0:11"), "native-crash", "slurm.account-crashed"),
        (
            SHOWN.format(state="FAILED", reason="NonZeroExitCode", code="0:9"),
            "host-oom-kill",
            "slurm.state-killed",
        ),
        (
            SHOWN.format(state="TIMEOUT", reason="TimeLimit", code="0:0"),
            "scheduler-terminated",
            "slurm.state-ended",
        ),
    ],
)
def test_the_jobs_own_row_tells(reader: Reader, text: str, cause: str, pattern: str) -> None:
    report = reader.read(LogSource("sacct.txt", io.BytesIO(text.encode())))
    assert report.root is not None
    assert (report.root.cause, report.root.pattern) == (cause, pattern)
    assert not report.finished


@each_row(
    "text",
    [
        row("FAILED", "1:0"),
        bars("FAILED", "1:0"),
        SHOWN.format(state="FAILED", reason="NonZeroExitCode", code="0:9"),
        SHOWN.format(state="FAILED", reason="NonZeroExitCode", code="1:0"),
    ],
)
def test_a_failed_job_has_no_good_end(reader: Reader, text: str) -> None:
    """The step that held its resources ended well, and `0:9` is no exit code of zero."""
    report = reader.read(LogSource("sacct.txt", io.BytesIO(text.encode())))
    assert not report.finished


@each_row(
    "text",
    [
        row("COMPLETED", "0:0"),
        bars("COMPLETED", "0:0"),
        SHOWN.format(state="COMPLETED", reason="None", code="0:0"),
    ],
)
def test_a_job_that_completed_has(reader: Reader, text: str) -> None:
    report = reader.read(LogSource("sacct.txt", io.BytesIO(text.encode())))
    assert report.finished
