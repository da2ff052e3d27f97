"""A log that breaks off inside a traceback is told so: the line that names its exception is missing."""

from __future__ import annotations

from service.pipeline.triage import Triage
from tests.factories import STRANGE, traceback
from tests.tables import each_row
from tests.warm import explained

CALLS = traceback(STRANGE).removesuffix(f"{STRANGE}\n")


@each_row(
    ("rows", "language", "said"),
    [
        (CALLS, "en", "The log breaks off inside a traceback"),
        (CALLS.rsplit("\n", 2)[0] + "\n", "en", "The log breaks off inside a traceback"),
        (CALLS, "zh", "日志在堆栈中途中断"),
    ],
)
def test_that_calls_without_their_exception_are_told_as_such(
    rows: str, language: str, said: str, triage: Triage
) -> None:
    answer = explained(triage, "step 10/90 loss 0.5\n" + rows, language=language)
    assert answer.verdict == "unknown"
    assert said in answer.headline
    assert "stderr" in answer.explanation


@each_row("rows", [traceback(STRANGE), "Killed\n", "step 20/90 loss 0.5\n"])
def test_that_no_other_log_breaks_off(rows: str, triage: Triage) -> None:
    assert "breaks off" not in explained(triage, "step 10/90 loss 0.5\n" + rows).headline
