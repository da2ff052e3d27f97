"""Checks and steps are filled with the log's plain values, or say how to find what is missing."""

from __future__ import annotations

from ingest.logs.facts import Fact
from ingest.logs.stacks.stack import Frame
from service.composition.blanks import LogValues
from service.pipeline.triage import Triage
from tests.factories import whole_corpus
from tests.service.factories import failed, report, setting
from tests.tables import each_row
from tests.warm import explained

OWN = Frame("/job/plan.py", 4, "plan", "go()")


@each_row(
    ("command", "expected"),
    [
        ("ss -ltnp | grep ':PORT'", "ss -ltnp | grep ':8123'"),
        ("git log -3 -- CODE_FILE", "git log -3 -- /job/plan.py"),
        ("ls -t CHECKPOINT_DIR", "ls -t /data/run-7"),
        ("echo $PATH && echo $PORT", "echo $PATH && echo $PORT"),
        ("MASTER_PORT=1 PORT=2 ls", "MASTER_PORT=1 PORT=2 ls"),
        ("ps -p PID", "ps -p PID (PID: the process's number, as `ps` and `nvidia-smi` list it)"),
    ],
)
def test_blanks_are_filled_from_facts_calls_and_settings(command: str, expected: str) -> None:
    told = report(
        failed(frames=(OWN,)),
        facts=[Fact("port", 3, {"port": 8123})],
        settings=[setting("trainer.output_dir", "/data/run-7")],
    )
    assert list(LogValues(told, whole_corpus()).checks([command], "en")) == [expected]


def test_that_nothing_is_filled_that_a_shell_would_read_as_more_than_a_word() -> None:
    for value in ("$(reboot)", "a b", "a;b", "-rf", "a'b", "`x`", "a\nb", "数据"):
        told = report(failed(), settings=[setting("trainer.output_dir", value)])
        assert LogValues(told, whole_corpus()).filled("ls CHECKPOINT_DIR", "en")[0] == "ls CHECKPOINT_DIR", (
            value
        )


def test_that_a_module_is_told_by_the_package_that_brings_it(triage: Triage) -> None:
    """`pip show` knows packages alone."""
    answer = explained(triage, "ModuleNotFoundError: No module named 'sklearn'\n", language="en")
    assert any("pip show scikit-learn" in check for check in answer.checks)


def test_that_a_step_has_the_port_of_the_message(triage: Triage) -> None:
    log = "OSError: [Errno 98] cannot bind ('0.0.0.0', 8123): address already in use\n"
    answer = explained(triage, log, language="en")
    assert any(":8123" in check for check in answer.checks)
    assert all("PORT" not in step.run for step in answer.steps)
    # What acts is never filled with a process's number.
    assert [step.run for step in answer.steps if step.acts] == ["kill PID"] or not answer.steps


def test_that_a_check_of_a_scheduler_is_left_out_where_the_job_shows_none(triage: Triage) -> None:
    """Whoever pressed Ctrl-C in a terminal has no job id; a job of Slurm has one."""
    lone = (
        "Traceback (most recent call last):\n"
        '  File "/job/run.py", line 3, in main\n'
        "    fit()\n"
        "KeyboardInterrupt\n"
    )
    slurm = "slurmstepd: error: *** JOB 88121 ON a07 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***\n"
    assert "JOBID" not in " ".join(explained(triage, lone, language="en").checks)
    assert "sacct -j 88121" in " ".join(explained(triage, slurm, language="en").checks)
