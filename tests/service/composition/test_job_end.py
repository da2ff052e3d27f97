"""The job's outcome beside its log: a failed end is never green, and what a state proves is named where the
log is silent.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from corpus import outcomes
from corpus.outcomes import OTHER, Ending
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis, Outcome
from tests.warm import diagnosed

STEPS = "".join(f"step {number}: loss 0.{900 - number}, grad_norm 0.5\n" for number in range(1, 40))
CRASH = STEPS + (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 88, in <module>\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.15 GiB of which 1.25 GiB is free.\n"
)


def answer(triage: Triage, text: str, outcome: Outcome | None, language: str = "en") -> Diagnosis:
    """Triage a text with an outcome."""
    return diagnosed(triage, sources.from_text(text), language, outcome=outcome)


def of_table() -> list[tuple[Outcome, Ending]]:
    """Give an outcome for each word of the table, with its row."""
    table = outcomes.load()
    made = [(Outcome(state=name), row) for row in dict.fromkeys(table.states.values()) for name in row.names]
    made += [
        (Outcome(signal=name if name != OTHER else "SIGSTKFLT"), row)
        for row in dict.fromkeys(table.signals.values())
        for name in row.names
    ]
    return made + [
        (Outcome(exit_code=int(name) if name != OTHER else 7), row)
        for row in dict.fromkeys(table.exit_codes.values())
        for name in row.names
    ]


def test_a_silent_log_is_read_by_how_the_job_ended(triage: Triage) -> None:
    """Each word of the table: failed ends are unknown, or diagnosed where they prove a cause.

    Good ends are proved; others stay as the log is.
    """
    wrong = []
    for outcome, row in of_table():
        found = answer(triage, STEPS, outcome)
        expected = {
            "failed": (
                "diagnosed" if row.cause else "unknown",
                row.cause or "insufficient-evidence",
                row.proof or "none",
            ),
            "succeeded": ("no-failure", None, "established"),
            "unknown": ("no-failure", None, "none"),
        }[row.end]
        if (
            found.rests_on_end != (row.cause is not None)
            or (found.verdict, found.cause, found.standing) != expected
            or (row.end == "failed" and found.action == "none")
        ):
            wrong.append((outcome, found.verdict, found.cause, found.standing))
    assert not wrong


def test_what_ended_a_silent_job_stands_in_the_headline_of_either_language(triage: Triage) -> None:
    """The signal, the exit code or the state is named, and what tells more of it."""
    for outcome, name in (
        (Outcome(exit_code=137), "SIGKILL"),
        (Outcome(exit_code=3), "3"),
        (Outcome(state="OOMKilled"), "OOMKilled"),
    ):
        for language in ("en", "zh"):
            found = answer(triage, STEPS, outcome, language)
            row = outcome.readings[0]
            assert name in found.headline
            assert row.next is not None
            assert row.next.to("zh" if language == "zh" else "en") in found.explanation


def test_that_an_end_that_tells_more_than_its_cause_says_what_to_do(triage: Triage) -> None:
    """A time limit, a preemption and a cancel are one cause, and call for different things."""
    advice = {state: answer(triage, STEPS, Outcome(state=state)) for state in ("TIMEOUT", "PREEMPTED")}
    assert {found.cause for found in advice.values()} == {"scheduler-terminated"}
    for state, found in advice.items():
        row = Outcome(state=state).readings[0]
        assert row.next is not None
        assert f"**What to do.** {row.next.en}" in found.explanation
        assert "Ctrl-C" not in found.explanation


def test_the_outcome_stands_in_the_answer_with_the_signal_and_the_last_step(triage: Triage) -> None:
    """What was given is given back; the exit code's signal and the log's last step are added.

    Without one all but the step is null.
    """
    assert answer(triage, STEPS, Outcome(exit_code=-9, state="FAILED")).outcome == Outcome(
        exit_code=-9, signal="SIGKILL", state="FAILED", last_step=39
    )
    assert answer(triage, STEPS, None).outcome == Outcome(last_step=39)


def test_a_cause_that_the_log_states_stands_whatever_state_came_of_it(triage: Triage) -> None:
    """A job that a person cancels, or whose limit comes, after it ran out of GPU memory died of that."""
    plain = answer(triage, CRASH, None)
    for outcome in (
        Outcome(exit_code=1),
        Outcome(state="CANCELLED by 0"),
        Outcome(state="TIMEOUT"),
        Outcome(state="OUT_OF_MEMORY"),
        Outcome(exit_code=0),
    ):
        found = answer(triage, CRASH, outcome)
        assert not found.rests_on_end
        assert (found.verdict, found.cause, found.standing, found.headline) == (
            plain.verdict,
            plain.cause,
            plain.standing,
            plain.headline,
        )


def test_a_kill_that_the_log_only_shows_is_named_by_the_state(triage: Triage) -> None:
    """`Killed` alone may be a dozen things; the scheduler knows which."""
    killed = STEPS + "/job/run.sh: line 12: 4711 Killed                  python train.py\n"
    found = {
        state: answer(triage, killed, Outcome(state=state, exit_code=137)).cause
        for state in ("OUT_OF_MEMORY", "PREEMPTED", "NODE_FAIL")
    }
    assert found == {
        "OUT_OF_MEMORY": "host-oom-kill",
        "PREEMPTED": "scheduler-terminated",
        "NODE_FAIL": "node-lost",
    }


def test_one_sign_of_a_failure_outweighs_those_of_a_good_end() -> None:
    """Slurm may record an exit code of 0 for what it ended itself, and a wrapper a good state for what was
    killed.
    """
    table = (
        (Outcome(exit_code=0, state="COMPLETED"), "succeeded", "program"),
        (Outcome(exit_code=0, state="OUT_OF_MEMORY"), "failed", "system"),
        (Outcome(exit_code=0, state="CANCELLED by 5"), "failed", "person"),
        (Outcome(exit_code=137, state="COMPLETED"), "failed", "system"),
        (Outcome(exit_code=143, state="PREEMPTED"), "failed", "scheduler"),
        (Outcome(exit_code=1, state="RUNNING"), "failed", "program"),
        (Outcome(state="RUNNING"), "unknown", None),
        (Outcome(state="Blorp"), "unknown", None),
        (Outcome(), "unknown", None),
    )
    assert [(item.end, item.ended_by) for item, _, _ in table] == [(end, by) for _, end, by in table]


def test_what_is_no_exit_code_signal_or_state_is_refused_and_left_out_of_what_a_scheduler_says() -> None:
    """A request is told; a scheduler's odd word costs nothing but itself."""
    for field, wrong in (
        ("signal", "SIGNOTHING"),
        ("signal", 999),
        ("exit_code", "one"),
        ("exit_code", 2**40),
        ("state", "<b>x</b>"),
        ("state", "x" * 200),
    ):
        with pytest.raises(ValidationError):
            Outcome.model_validate({field: wrong})
    assert Outcome.model_validate({"exit_code": "137", "signal": "", "state": " "}) == Outcome(exit_code=137)
    assert Outcome.told(1, "SIGNOTHING", "FAILED") == Outcome(exit_code=1, state="FAILED")
