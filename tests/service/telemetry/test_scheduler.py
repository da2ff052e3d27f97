"""Slurm's accounting is read for the state that says why, of the job or of any of its steps."""

from __future__ import annotations

import sys

from service.telemetry import scheduler
from tests.tables import each_row
from tests.waiting import PATIENCE


@each_row(
    ("rows", "state", "code"),
    [
        ("77|OUT_OF_MEMORY|0:125\n77.batch|OUT_OF_MEMORY|0:125\n", "OUT_OF_MEMORY", 0),
        ("77|FAILED|1:0\n77.0|OUT_OF_MEMORY|0:125\n", "OUT_OF_MEMORY", 0),
        ("77|TIMEOUT|0:0\n77.batch|CANCELLED|0:15\n", "TIMEOUT", 0),
        ("77|CANCELLED by 1007|0:0\n", "CANCELLED", 0),
        ("77|FAILED|9:0\n", "FAILED", 9),
        ("77|FAILED|0:9\n", "FAILED", 137),
    ],
)
def test_that_the_state_that_says_most_is_taken(rows: str, state: str, code: int) -> None:
    found = scheduler.parse_sacct(rows)
    assert (found.kind, found.state.value, found.exit_code.value) == ("slurm", state, code)


@each_row(
    ("job", "command", "timeout_s", "reason"),
    [
        ("", ("sacct",), PATIENCE, "no Slurm job"),
        ("77; rm -rf x", ("sacct",), PATIENCE, "no Slurm job"),
        ("77", ("/no/sacct",), PATIENCE, "No such file"),
        ("77", (sys.executable, "-c", ""), PATIENCE, "no such job"),
        ("77", (sys.executable, "-c", "raise SystemExit('denied')"), PATIENCE, "denied"),
        ("77", (sys.executable, "-c", "import time; time.sleep(600)"), 0.5, "TimeoutExpired"),
    ],
)
def test_that_accounting_that_cannot_be_asked_says_why(
    job: str, command: tuple[str, ...], timeout_s: float, reason: str
) -> None:
    found = scheduler.read_scheduler(job, command, timeout_s)
    assert reason in (found.state.unavailable or "")
