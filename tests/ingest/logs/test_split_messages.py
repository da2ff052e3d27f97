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


CAUGHT = """\
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/metrics/base.py", line 12, in update
    self.add(rows)
  File "/usr/lib/python3/site-packages/metrics/dice.py", line 4, in add
    self.hits += rows
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!

{link}

Traceback (most recent call last):
  File "/job/train.py", line 40, in <module>
    main()
  File "/job/train.py", line 31, in main
    metric.update(rows)
  File "/usr/lib/python3/site-packages/metrics/{file}", line 14, in update
    raise RuntimeError("The metric met different devices") from error
RuntimeError: The metric met different devices
"""


@each_row(
    ("link", "file", "calls"),
    [
        (
            "The above exception was the direct cause of the following exception:",
            "base.py",
            ["<module>", "main", "update", "add"],
        ),
        (
            "During handling of the above exception, another exception occurred:",
            "base.py",
            ["<module>", "main", "update", "add"],
        ),
        # Not through the function that caught it.
        (
            "During handling of the above exception, another exception occurred:",
            "other.py",
            ["update", "add"],
        ),
        # Two exceptions that have nothing to do with each other.
        ("The next round begins.", "base.py", ["update", "add"]),
    ],
)
def test_that_what_a_library_caught_has_the_calls_above_it(
    link: str, file: str, calls: list[str], read: ReadLog
) -> None:
    """Whose call it was stands in the stack of the exception that came of it."""
    root = read(CAUGHT.format(link=link, file=file)).root
    assert root is not None
    if root.body.endswith("cpu!"):
        assert [frame.function for frame in root.frames] == calls
