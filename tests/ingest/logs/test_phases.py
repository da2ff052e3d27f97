"""What the job was doing: calls tell it, and lines; a job that counts steps is not being set up."""

from __future__ import annotations

from pathlib import Path

from ingest.logs.inputs.jobs import open_job
from ingest.logs.phases import of_frames
from ingest.logs.reader import Reader
from ingest.logs.stacks.tracebacks import Frame
from tests.factories import OOM, ReadLog, steps, traceback

START = "> initializing tensor model parallel with size 4"


def calls(*functions: str) -> tuple[Frame, ...]:
    """Make frames of functions, the outermost first."""
    return tuple(Frame("/job/code.py", number, function) for number, function in enumerate(functions, 1))


# The calls, the phase before any step was counted, and after.
ROWS = (
    (calls("main", "__init__"), "initialise", ""),
    (calls("main", "init_process_group"), "initialise", ""),
    (calls("main", "train_step", "__init__"), "update", "update"),
    (calls("fit", "training_step", "forward", "setup"), "update", "update"),
    (calls("main", "generate_sequences", "__init__"), "rollout", "rollout"),
    (calls("fit", "_validate", "__init__"), "validate", "validate"),
    (calls("main", "save_checkpoint", "__init__"), "save", "save"),
    (calls("__init__", "from_pretrained"), "load", "load"),
    (calls("__init__", "load_state_dict", "__init__"), "initialise", "load"),
    (calls("main", "forward"), "", ""),
    # A package's own file has the name that a class gives its beginning.
    ((Frame("/env/lib/python3.11/site-packages/lark/__init__.py", 3, "wrapper"),), "", ""),
    ((), "", ""),
)


def test_calls_tell_the_phase() -> None:
    """The innermost that tells.

    But an object made within a turn of the loop is that turn's, and later ones are no start's.
    """
    wrong = [
        ([frame.function for frame in frames], has_begun, of_frames(frames, has_begun=has_begun))
        for frames, before, after in ROWS
        for has_begun, wanted in ((False, before), (True, after))
        if of_frames(frames, has_begun=has_begun) != wanted
    ]
    assert not wrong


INSIDE = traceback(OOM, "__init__")


def test_a_job_at_its_steps_is_not_initialised(read: ReadLog) -> None:
    """Whatever a function is called, unless the lines show that it was started again after its last step."""
    rows = {
        "no step": (INSIDE, "initialise"),
        "no step, a start": (f"{START}\n{INSIDE}", "initialise"),
        "steps": (steps(1, 2, 1240) + INSIDE, ""),
        "a start and steps": (f"{START}\n" + steps(1, 2, 1240) + INSIDE, ""),
        "a start, steps and no call": (f"{START}\n" + steps(1, 2, 1240) + OOM + "\n", ""),
        "steps and a start again": (steps(1, 2, 1240) + f"{START}\n{INSIDE}", "initialise"),
        "steps, a start and steps again": (steps(1, 2) + f"{START}\n" + steps(3, 4) + INSIDE, ""),
        "the zeroth step": (steps(0) + INSIDE, "initialise"),
        "steps after the failure": (INSIDE + steps(1), "initialise"),
    }
    wrong = {name: read(log).phase for name, (log, wanted) in rows.items() if read(log).phase != wanted}
    assert not wrong


def test_a_phase_that_a_later_step_has_left_is_not_told(read: ReadLog) -> None:
    """A checkpoint that was written, or weights that were loaded, a thousand steps before the failure say
    nothing of it.
    """
    marks = {
        "save": "saving checkpoint at iteration     500 to /ckpt in torch format",
        "load": " loading checkpoint from /ckpt at iteration 500",
    }
    wrong = {}
    for phase, line in marks.items():
        told = [
            read(log).phase
            for log in (
                f"{line}\n{OOM}\n",
                steps(1) + f"{line}\n{OOM}\n",
                f"{line}\n" + steps(501, 502) + f"{OOM}\n",
            )
        ]
        if told != [phase, phase, ""]:
            wrong[phase] = told
    assert not wrong


def test_the_steps_of_one_file_are_those_of_the_job(tmp_path: Path, reader: Reader) -> None:
    """The first rank counts for all; a worker's own file has none."""
    (tmp_path / "driver.log").write_text(steps(1, 2, 1240))
    (tmp_path / "worker-3.err").write_text(INSIDE)
    assert reader.read(open_job(tmp_path)).phase == ""
