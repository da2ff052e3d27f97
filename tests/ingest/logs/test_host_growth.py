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


def placed(*used: float) -> str:
    """Write what DeepSpeed prints of the host's memory between the parts of its start."""
    return "".join(
        f"[2026-02-03 08:0{minute}:00,114] [INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used "
        f"= {value} GB, percent = 9.3%\n"
        for minute, value in enumerate(used)
    )


LOADED = "Loading checkpoint shards: 100%|##########| 9/9 [01:41<00:00,  9.51s/it]\n"
SET_UP = "Loading checkpoint shards:  50%|#####     | 4/9 [00:41<00:51,  9.51s/it]\n"


def test_that_what_a_start_takes_is_no_growth(read: ReadLog) -> None:
    """Memory that is taken part by part before any step was counted rises from no step to another."""
    report = read(SET_UP + LOADED + placed(40.1, 40.2, 71.5, 120.0, 121.2, 180.9))
    assert not [fact for fact in report.facts if fact.kind == "host_growth"]


def test_that_a_start_does_not_count_beside_steps(read: ReadLog) -> None:
    """Readings from before the first counted step tell nothing of those that follow."""
    steps = "".join(
        f"step:{number} - actor/pg_loss:0.1 - perf/cpu_memory_used_gb:{180 + number / 10}\n"
        for number in range(1, 9)
    )
    report = read(placed(40.1, 40.2, 71.5, 120.0, 121.2, 180.0) + steps)
    growth = next((fact for fact in report.facts if fact.kind == "host_growth"), None)
    assert growth is None or float(str(growth.fields["ratio"])) < 1.1
