"""Ordinary failures of GPU jobs, made up: most by exceptions that no pattern knows.

Each log of `ordinary_failures/` tells which causes are right, and words of the line that says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

FOLDER = Path(__file__).parent / "ordinary_failures"


def failures() -> list[dict[str, Any]]:
    """Read all logs with what they must be told to be."""
    paths = sorted(FOLDER.glob("*.yaml"))
    return [row for path in paths for row in yaml.safe_load(path.read_text(encoding="utf-8"))]


@each_row("row", failures(), ids=lambda row: row["name"] if isinstance(row, dict) else row)
def test_that_the_cause_of_an_ordinary_failure_is_named(row: dict[str, Any], triage: Triage) -> None:
    answer = explained(triage, row["log"])
    lines = row["log"].split("\n")
    root = next((lines[event.line - 1] for event in answer.cascade if event.role == "root"), "")
    assert (answer.verdict, answer.cause in row["causes"]) == ("diagnosed", True), answer.cause
    assert row["line"] in root


@each_row(("signal", "cause"), [("SIGKILL: 9", "host-oom-kill"), ("SIGBUS: 7", "native-crash")])
def test_that_a_child_ended_by_a_signal_is_suspected_of_what_sends_it(
    signal: str, cause: str, triage: Triage
) -> None:
    """Who waits for a process learns the signal and nothing else: too little for a diagnosis."""
    line = f"subprocess.CalledProcessError: Command '['python', 'fit.py']' died with <Signals.{signal}>."
    answer = explained(triage, f"{line}\n")
    assert (answer.verdict, answer.alternatives[0].cause) == ("unknown", cause)
