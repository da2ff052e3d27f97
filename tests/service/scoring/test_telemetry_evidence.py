"""What the machine says changes the answer: it decides, confirms, contradicts, and absent it says nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ingest.logs.progress import LogEnd
from ingest.logs.report import CrashReport
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate
from service.scoring.telemetry_evidence import evaluate_rules, weigh_by_telemetry
from service.telemetry.snapshot import Cgroup, Gpu, Host, Kernel, Snapshot, known, unavailable
from tests.factories import OOM, event
from tests.service.factories import composed_of, failed, report
from tests.service.telemetry.makers import CRASH, died, kernel, root, snapshot, xid
from tests.tables import each_row
from tests.warm import diagnosed

NOTHING = Retrieval((), ())
KILLED = snapshot(cgroup=Cgroup(oom_kill_new=known(1)))
CLEAN = snapshot(cgroup=Cgroup(oom_kill_new=known(0)), host=Host(oom_kill_new=known(0)))


def answered(triage: Triage, told: CrashReport, made: Snapshot | None, language: Any = "en") -> Diagnosis:
    """Answer for a report by signatures alone."""
    return composed_of(told, triage.library, language, telemetry=made)


def killed_line() -> CrashReport:
    """Make the report of a task that a signal ended, which suggests memory."""
    return report(root("torch.elastic-sigkill", kind="kill", cause="host-oom-kill"))


@each_row(
    ("told", "made", "cause"),
    [
        (died(), KILLED, "host-oom-kill"),
        (killed_line(), KILLED, "host-oom-kill"),
        (
            died("torch.nccl-watchdog", kind="hang", cause="collective-straggler"),
            snapshot(kernel=kernel(xid(79, 600))),
            "gpu-hardware-fault",
        ),
        (died("slurm.task-exited"), snapshot(kernel=kernel(xid(94))), "gpu-hardware-fault"),
    ],
)
def test_that_a_reading_decides_what_the_log_leaves_open(
    told: CrashReport, made: Snapshot, cause: str, triage: Triage
) -> None:
    assert answered(triage, told, None).verdict == "unknown"
    answer = answered(triage, told, made)
    assert (answer.verdict, answer.cause, answer.standing, answer.telemetry.says) == (
        "diagnosed",
        cause,
        "supported",
        "agrees",
    )
    assert "What the machine itself says" in answer.explanation


def test_that_an_xid_after_the_time_out_decides_nothing(triage: Triage) -> None:
    made = snapshot(kernel=kernel(xid(79, -3600)), taken_at=CRASH + timedelta(hours=2))
    assert answered(triage, died("torch.nccl-watchdog", kind="hang"), made).verdict == "unknown"


@each_row(
    "event_fields",
    [
        {"cause": "disk-full", "pattern": "python.no-space"},
        {"cause": "batch-not-divisible", "pattern": "verl.batch"},
    ],
)
def test_that_a_log_that_states_its_cause_is_not_overruled(
    event_fields: dict[str, str], triage: Triage
) -> None:
    """A kill that the machine counts beside it is another process's, or what came after."""
    told = report(failed(time="2026-03-02 10:00:00Z", **event_fields))
    assert answered(triage, told, KILLED).cause == event_fields["cause"]


def test_that_without_a_snapshot_the_answer_says_not_available(triage: Triage) -> None:
    answer = answered(triage, killed_line(), None)
    assert (answer.telemetry.says, answer.telemetry.causes) == ("not available", ())
    assert "telemetry" in answer.telemetry.why


@each_row(
    "made",
    [
        snapshot(),
        snapshot(kernel=Kernel(events=unavailable("not permitted"))),
        snapshot(cgroup=Cgroup(oom_kill_new=known(1)), taken_at=CRASH - timedelta(hours=3)),
    ],
)
def test_that_what_was_not_measured_changes_nothing(made: Snapshot, triage: Triage) -> None:
    told = report(failed(cause="host-oom-kill", pattern="linux.oom-killed", time="2026-03-02 10:00:00Z"))
    without, with_it = answered(triage, told, None), answered(triage, told, made)
    assert (with_it.cause, with_it.confidence) == (without.cause, without.confidence)
    assert with_it.telemetry.says == "not available"
    assert all(item.value is None for cause in with_it.telemetry.causes for item in cause.readings)


def weighed_one(made: Snapshot, triage: Triage, probability: float = 0.8) -> Candidate:
    """Weigh one cause of which the log is fairly sure."""
    candidate = Candidate("host-oom-kill", 0.7, "supported", (), (), probability, 1 - probability)
    told = killed_line()
    (found,) = weigh_by_telemetry([candidate], evaluate_rules(made, told), told, NOTHING, triage.library)
    return found


def test_that_a_contradiction_goes_to_doubt_and_not_to_others(triage: Triage) -> None:
    found = weighed_one(CLEAN, triage)
    assert found.probability < 0.4 < found.doubt
    assert found.probability + found.doubt == pytest.approx(1.0)


def test_that_a_confirmation_makes_likelier_and_never_certain(triage: Triage) -> None:
    made = snapshot(cgroup=Cgroup(memory_peak_gib=known(10.0), memory_max_gib=known(10.0)))
    assert 0.8 < weighed_one(made, triage).probability < 1


def test_that_two_causes_that_the_machine_shows_stand_side_by_side(triage: Triage) -> None:
    made = snapshot(cgroup=Cgroup(oom_kill_new=known(1)), kernel=kernel(xid(79)))
    answer = answered(triage, died(), made)
    assert {answer.cause, answer.alternatives[0].cause} == {"host-oom-kill", "gpu-hardware-fault"}
    assert answer.confidence < 0.7


@each_row(("language", "word"), [("en", "agrees"), ("zh", "支持")])
def test_that_the_readings_are_told_in_the_answers_language(language: str, word: str, triage: Triage) -> None:
    answer = answered(triage, died(), KILLED, language)
    assert f"host-oom-kill: {word}" in answer.explanation
    assert "`cgroup.oom_kill_new = 1`" in answer.explanation


def test_that_where_readings_speak_neither_way_the_answer_says_so(triage: Triage) -> None:
    told = report(
        failed(cause="gpu-memory-occupied", pattern="torch.device-busy", time="2026-03-02 10:00:00Z")
    )
    made = snapshot(gpus=(Gpu(id="0", others_gib=known(1.0), memory_total_gib=known(80.0)),))
    assert answered(triage, told, made).telemetry.says == "neither"


def test_that_a_snapshots_texts_are_cleaned(triage: Triage) -> None:
    """A snapshot's file is as little to be trusted as a log."""
    secret = "ghp_" + "e5F6" * 9
    line = xid(79).model_copy(update={"text": f"NVRM: Xid 79 token {secret}\x1b[31m `x`"})
    answer = answered(triage, died(), snapshot(kernel=kernel(line)))
    assert answer.cause == "gpu-hardware-fault"
    assert secret not in answer.to_json()
    assert "\\u001b" not in answer.to_json()


def test_that_a_healthy_log_stays_healthy_and_the_readings_are_told(triage: Triage) -> None:
    told = report(marks=3, log_end=LogEnd("open", 3))
    answer = answered(triage, told, KILLED)
    assert (answer.verdict, answer.cause) == ("no-failure", None)


def test_that_a_whole_log_is_explained_with_a_snapshot(triage: Triage) -> None:
    """A CUDA out-of-memory line, and a process of somebody else on the card."""
    from ingest.logs.inputs.sources import from_text

    made = Snapshot(taken_at=CRASH, gpus=(Gpu(id="0", memory_total_gib=known(79.0), others_gib=known(60.0)),))
    without, with_it = (
        diagnosed(triage, from_text(OOM + "\n"), "en", telemetry=found) for found in (None, made)
    )
    assert without.cause != "gpu-memory-occupied"
    assert with_it.cause == "gpu-memory-occupied"


def test_that_what_takes_a_snapshot_is_given_the_report(triage: Triage) -> None:
    from ingest.logs.inputs.sources import from_text

    seen: list[CrashReport] = []

    def take(told: CrashReport) -> Snapshot:
        seen.append(told)
        return Snapshot(taken_at=CRASH)

    diagnosed(triage, from_text(OOM + "\n"), "en", telemetry=take)
    assert [told.root is not None for told in seen] == [True]


def test_that_an_event_with_a_cause_of_its_own_is_kept(triage: Triage) -> None:
    """A cause that the machine shows brings the log's own lines about it as evidence."""
    told = report(
        root("ray.actor-died"), event(5, cause="host-oom-kill", role="collateral", pattern="linux.oom-reaper")
    )
    assert answered(triage, told, KILLED).cause == "host-oom-kill"
