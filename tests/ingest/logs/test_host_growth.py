"""Where the host's memory leads beside the size of the machine, and a fork that files alone show."""

from __future__ import annotations

from ingest.logs.frameworks import Framework, with_forks
from tests.factories import ReadLog

STEP = '(Runner pid=8134)     "cpu_memory_used_gb": {},\n'
FREE = "Mem:             503          19         452           3          32         477\n"
DIED = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exit "
    "type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2.\n"
)


def readings(*used: float) -> str:
    """Write what a trainer prints of the host's memory with each step."""
    return "".join(STEP.format(value) for value in used)


def test_that_a_rise_that_fills_the_machine_tells_why_a_worker_died(read: ReadLog) -> None:
    """Three readings rise by 55 GiB each to 441 of 503: a fourth would have filled it."""
    report = read(readings(331.8, 386.5, 441.1) + DIED + FREE)
    growth = next(fact for fact in report.facts if fact.kind == "host_growth")
    assert growth.fields["next_share"] == 0.99
    assert report.root is not None
    assert report.root.cause == "host-oom-kill"


def test_that_a_rise_with_room_left_tells_nothing(read: ReadLog) -> None:
    """The same readings below half of the machine leave a bare death without a reason."""
    report = read(readings(131.8, 186.5, 241.1) + DIED + FREE)
    assert report.root is None or report.root.cause != "host-oom-kill"


def test_that_three_readings_without_the_size_are_no_trend(read: ReadLog) -> None:
    """The first steps of any job take memory."""
    report = read(readings(331.8, 386.5, 441.1) + DIED)
    assert not [fact for fact in report.facts if fact.kind == "host_growth"]


def test_that_a_fork_is_told_by_the_files_alone() -> None:
    """What is started as another trainer prints as that one does."""
    base = Framework("verl", "", 7)
    forks = with_forks(
        (base,), ["python -m verl.trainer.main_ppo actor_rollout_ref.rollout.micro_rollout_batch_size=8"]
    )
    assert [found.name for found in forks] == ["simplerl-reason", "verl"]
    assert with_forks((base,), ["python -m verl.trainer.main_ppo trainer.nnodes=1"]) == (base,)
    assert with_forks((), ["cd simpleRL-reason"]) == ()
