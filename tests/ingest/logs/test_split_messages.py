"""An exception whose message begins in the row below its name has that row's reason and its own calls."""

from __future__ import annotations

from tests.factories import ReadLog, traceback
from tests.tables import each_row

NEEDS = "ProTokenizer requires the SentencePiece library but it was not found in your environment."


@each_row(("between", "joined"), [("", True), ("\n", True), ("a\nb\nc\n", False)])
def test_that_the_row_below_a_bare_name_gives_the_reason(between: str, joined: bool, read: ReadLog) -> None:
    """What is said further below is of something else."""
    found = read(f"{traceback('ImportError:')}{between}{NEEDS}\n")
    told = [event for event in found.events if event.body == f"ImportError: {NEEDS}"]
    assert [(event.role, bool(event.frames), event.cause) for event in told] == (
        [("root", True, "package-missing")] if joined else []
    )
