"""Who failed first."""

from __future__ import annotations

from typing import Any

from ingest.logs.cascade import arrange_cascade
from ingest.logs.progress import Progress, ProgressMark
from ingest.logs.stacks.stack import Frame
from ingest.logs.timeline import Timeline
from tests.factories import event
from tests.tables import each_row

ORIGIN: dict[str, Any] = {"pattern": "origin"}
COLLATERAL: dict[str, Any] = {"pattern": "collateral", "pattern_role": "collateral", "strength": "hints"}
STATED: dict[str, Any] = {"pattern": "stated", "pattern_role": "collateral", "strength": "states"}
WRAPPER: dict[str, Any] = {"pattern": "wrapper", "pattern_role": "wrapper"}
PLAIN: dict[str, Any] = {"pattern": "plain", "cause": None, "strength": "hints"}
PASSING: dict[str, Any] = {"pattern": "passing", "passing": True}
MUTE: dict[str, Any] = {
    "pattern": "mute",
    "handled": True,
    "body": "AssertionError",
    "exception": "AssertionError",
}


def progress(*marks: tuple[int, float], finished: int = 0) -> Progress:
    """Make marks of line and step."""
    made = Progress(finished=finished)
    for line, step in marks:
        made.add(ProgressMark(line, step))
    return made


@each_row(
    ("kinds", "root"),
    [
        ([], None),
        ([ORIGIN], 1),
        ([ORIGIN, ORIGIN], 1),
        ([COLLATERAL, ORIGIN], 2),
        ([WRAPPER, ORIGIN], 2),
        ([PLAIN, ORIGIN], 2),
        ([COLLATERAL, PLAIN], 2),
        ([WRAPPER, COLLATERAL], 2),
        ([COLLATERAL, STATED, COLLATERAL], 2),
        ([STATED, PLAIN], 2),
        ([WRAPPER, WRAPPER], 1),
        ([COLLATERAL, COLLATERAL], 1),
        ([PASSING], 1),
        ([PASSING, ORIGIN], 2),
        ([PASSING, PLAIN], 2),
        ([PASSING, COLLATERAL], 2),
        ([PASSING, WRAPPER], 1),
        ([MUTE], 1),
        ([MUTE, PLAIN], 2),
        ([MUTE, COLLATERAL], 1),
    ],
    ids=lambda value: "-".join(kind["pattern"] for kind in value) if isinstance(value, list) else None,
)
def test_the_root_is_the_first_of_those_that_say_most(kinds: list[dict[str, Any]], root: int | None) -> None:
    """An origin beats what follows failures, that beats what repeats them; equals go by line."""
    events = [event(number, **{"body": str(number), **kind}) for number, kind in enumerate(kinds, 1)]
    found = arrange_cascade(events, [progress()], Timeline())
    assert (found.root.line if found.root else None) == root
    assert [one.line for one in found.events if one.role == "root"] == ([root] if root else [])
    assert len(found.events) == len(events)


@each_row(
    ("marks", "finished", "recovered"),
    [
        ([], 0, False),
        ([(11, 1)], 0, False),
        ([(5, 1), (11, 2)], 0, False),
        ([(5, 1), (11, 2), (12, 3)], 0, True),
        ([(5, 7), (11, 2), (12, 3)], 0, True),
        ([(5, 7), (11, 7), (12, 7), (13, 7)], 0, False),
        ([(1, 1), (2, 2), (3, 3)], 0, False),
        ([(11, -1), (12, -1)], 0, False),
        ([(11, -1), (12, -1), (13, -1)], 0, True),
        ([], 20, True),
        ([], 5, False),
    ],
)
def test_an_error_is_recovered_where_work_counts_on_after_it(
    marks: list[tuple[int, float]], finished: int, recovered: bool
) -> None:
    """Two rising steps (a restart's, too), three uncounted marks or a good end.

    One mark may have been in flight.
    """
    found = arrange_cascade([event(10)], [progress(*marks, finished=finished)], Timeline())
    assert [one.role for one in found.events] == (["recovered"] if recovered else ["root"])


@each_row(
    ("file", "function", "role"),
    [
        ("/job/main.py", "_save_model", "root"),
        ("/env/ray/train/_checkpoint.py", "to_directory", "root"),
        ("/env/transformers/modeling_utils.py", "push_to_hub", "root"),
        ("/job/main.py", "export", "root"),
        ("/env/wandb/sdk/run.py", "upload_file", "recovered"),
        ("/job/main.py", "evaluate", "recovered"),
        ("/job/main.py", "savefig", "recovered"),
    ],
)
def test_that_results_which_could_not_be_kept_are_a_failure_though_the_script_ends_well(
    file: str, function: str, role: str
) -> None:
    """A trainer that logs the failed export and says that it is done has nothing to show for it."""
    lost = event(
        10, pattern_role="origin", strength="states", traceback=4, frames=(Frame(file, 3, function, ""),)
    )
    found = arrange_cascade([lost], [progress((1, 1), (2, 2), finished=20)], Timeline())
    assert [one.role for one in found.events] == [role]


def test_the_last_sight_of_an_event_decides_on_recovery() -> None:
    """An error that comes back after the progress stands."""
    marks = progress((11, 1), (12, 2), (13, 3))
    assert arrange_cascade([event(10, last=20, count=2)], [marks], Timeline()).root is not None


def test_after_a_recovered_error_the_next_is_the_root() -> None:
    """Progress between two failures separates them."""
    found = arrange_cascade(
        [event(10), event(30, pattern="other")], [progress((11, 1), (12, 2), (13, 3))], Timeline()
    )
    assert [(one.line, one.role) for one in found.events] == [(10, "recovered"), (30, "root")]


def test_a_bar_redrawn_at_one_step_is_one_mark() -> None:
    """Only what counts up is progress; a mark that counts nothing always is."""
    made = progress((1, 3), (2, 3), (3, 3), (4, -1), (5, 4), (6, -1))
    assert (made.count, [mark.line for mark in made.latest]) == (4, [1, 4, 5, 6])


MAIN = Frame("/job/train.py", 3, "<module>")
OPS = Frame("/job/ops.py", 4, "<module>")
BUILD = Frame("/job/ops.py", 9, "<module>")
LOAD = Frame("/env/torch/utils/cpp_extension.py", 5, "load")


@each_row(
    ("fields", "later", "expected"),
    [
        # The program went on from where the import was caught, and failed there.
        ({}, {"frames": (MAIN, BUILD, LOAD)}, "recovered"),
        # What began at the same place was another process, or the same one once more.
        ({}, {"frames": (BUILD, LOAD)}, "root"),
        ({}, {"frames": (MAIN, LOAD)}, "root"),
        ({}, {"frames": (MAIN, BUILD, LOAD), "source": "rank 1"}, "root"),
        ({"passing": False}, {"frames": (MAIN, BUILD, LOAD)}, "root"),
        ({"handled": True}, {"frames": (MAIN, BUILD, LOAD), "linked": True}, "root"),
    ],
)
def test_that_what_a_later_stack_went_on_from_was_caught(
    fields: dict[str, Any], later: dict[str, Any], expected: str
) -> None:
    body = "ModuleNotFoundError: No module named 'ops_cuda'"
    made: dict[str, Any] = {"passing": True, "traceback": 1, "frames": (OPS,), "body": body}
    events = [event(3, **{**made, **fields}), event(20, traceback=12, **later)]
    found = arrange_cascade(events, [progress()], Timeline())
    assert found.events[0].role == expected


def test_that_an_exception_is_no_passing_word_of_a_program() -> None:
    """Only what a program says itself, without dying of it, may be passed over."""
    named = event(1, passing=True, body="ModuleNotFoundError: No module named 'x'")
    assert arrange_cascade([named, event(2)], [progress()], Timeline()).root.line == 1  # type: ignore[union-attr]  # both stand


@each_row(
    "behind, ended",
    [([], True), ([(21, 5)], True), ([(21, 5), (22, 6)], False), ([(21, 201), (22, 202)], True)],
)
def test_that_a_count_which_begins_again_behind_a_good_end_is_another_run(
    behind: list[tuple[int, float]], ended: bool
) -> None:
    """One mark may be a last word; two of a smaller count that rises are work."""
    run = progress((1, 199), (2, 200))
    run.close(20, finished=False)
    for line, step in behind:
        run.add(ProgressMark(line, step))
    assert run.well_ended == (20 if ended else 0)
