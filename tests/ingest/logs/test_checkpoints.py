"""The last whole checkpoint that a job's own lines tell of."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

DIED = "RuntimeError: CUDA error: an illegal memory access was encountered\n"


def megatron(step: int) -> str:
    """Print a step of a training as Megatron does."""
    return f" iteration {step:8d}/    1000 | consumed samples: {step} | lm loss: 2.1E+00 |\n"


def hf(step: int) -> str:
    """Say where the trainer of transformers begins to write."""
    return f"Saving model checkpoint to out/checkpoint-{step}\n"


def bar(step: int) -> str:
    """Draw the trainer's bar."""
    return f" {step // 10}%|##        | {step}/1000 [00:10<01:00, 10.00it/s]\n"


@each_row(
    ("text", "expected"),
    [
        # What is said to be written is whole, whatever follows.
        (
            megatron(100) + "  successfully saved checkpoint at iteration     100 to /ckpt/run7\n" + DIED,
            ("/ckpt/run7", 100),
        ),
        (
            "[INFO] [x.py:33:commit] [Torch] Checkpoint global_step500 is ready now!\n" + DIED,
            ("global_step500", 500),
        ),
        ("Saved checkpoint to runs/a/step_40.pt\n" + DIED, ("runs/a/step_40.pt", 40)),
        # A statement that would say so has said nothing.
        (
            'Saved checkpoint to runs/a/step_40.pt\n    logger.info(f"Saved checkpoint in cloud to {path}")\n'
            + DIED,
            ("runs/a/step_40.pt", 40),
        ),
        # What was begun is whole once steps were counted behind it.
        (bar(500) + hf(500) + bar(501) + DIED, ("out/checkpoint-500", 500)),
        (bar(500) + hf(500) + DIED, None),
        (bar(500) + hf(500) + bar(510) + bar(1000) + hf(1000) + DIED, ("out/checkpoint-500", 500)),
        # A model that is saved under another name is no checkpoint.
        (bar(900) + "Saving model checkpoint to out/final\n" + bar(901) + DIED, None),
        # Written over by one that was not finished.
        (
            bar(10)
            + "Saving current state to out/state\n"
            + bar(20)
            + "Saving current state to out/state\n"
            + DIED,
            None,
        ),
        # What a library wrote is a part of what its caller began.
        (
            bar(500) + hf(500) + "[Torch] Checkpoint global_step500 is ready now!\n" + DIED,
            ("out/checkpoint-500", 500),
        ),
        # Another part of the same checkpoint broke off.
        (bar(7) + "Saved checkpoint to out/step-7\nSaving current state to out/step-7/state\n" + DIED, None),
        (megatron(3) + DIED, None),
    ],
)
def test_that_the_last_whole_checkpoint_is_found(
    text: str, expected: tuple[str, int] | None, read: ReadLog
) -> None:
    found = read(text).checkpoint
    assert (None if found is None else (found.path, found.step)) == expected


def test_that_the_time_of_a_log_is_that_of_its_most_frequent_clock(read: ReadLog) -> None:
    """A clock of another form or zone beside it is not taken for the job's first or last."""
    rows = [f"2025-01-01 0{hour}:00:00,000 INFO iteration {hour}/10 | lm loss: 2.0\n" for hour in range(1, 6)]
    other = "[2025/06/01 00:00:00] RuntimeError: CUDA error: an illegal memory access was encountered\n"
    assert read("".join([*rows, other])).timeline.seconds == 4 * 3600
    assert read("iteration 1/10 | lm loss: 2.0\n").timeline.seconds is None


def test_that_steps_with_a_whole_checkpoint_are_counted_once(read: ReadLog) -> None:
    """One that only began to be written is none."""
    saved = "".join(f"Saved checkpoint to runs/step_{step}\n" for step in (10, 20, 20, 30))
    assert read(saved + hf(500) + DIED).saved_n == 3
