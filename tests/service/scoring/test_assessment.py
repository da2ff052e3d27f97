"""The assessment: every cause with its odds, what speaks against which, and what is shared of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.llm.prompt_context import build_prompt_context
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Outcome
from service.scoring.assessment import Assessment, Objection, assess
from service.telemetry.snapshot import Cgroup, Host, Snapshot, known
from tests.factories import event
from tests.service.factories import NOTHING_FOUND, failed, report
from tests.service.llm.answering import asked
from tests.service.telemetry.makers import root, snapshot

KILLED = report(root("torch.elastic-sigkill", kind="kill", cause="host-oom-kill"))
CLEAN = snapshot(cgroup=Cgroup(oom_kill_new=known(0)), host=Host(oom_kill_new=known(0)))


def assessed(
    triage: Triage, told: CrashReport, telemetry: Snapshot | None = None, outcome: Outcome | None = None
) -> Assessment:
    """Assess a report without a search."""
    return assess(told, NOTHING_FOUND, triage.library, telemetry=telemetry, outcome=outcome)


def test_the_probabilities_of_all_candidates_and_doubt_are_one(triage: Triage) -> None:
    """Each cause keeps the signs that it was weighed by."""
    found = assessed(triage, report(failed(cause="disk-full"), event(9, cause="port-in-use")))
    assert {item.cause for item in found.candidates} == {"disk-full", "port-in-use"}
    assert sum(item.probability for item in found.candidates) + found.doubt == pytest.approx(1.0)
    for item in found.candidates:
        assert item.signs["score"] == pytest.approx(math.log((item.score + 0.02) / (1.02 - item.score)))


def test_what_speaks_against_a_cause_is_kept(triage: Triage) -> None:
    """A telemetry rule, a cause behind it, and a proved outcome each object by their id."""
    stated = failed(cause="host-memory-leak", strength="states")
    killed_by = "host-oom-kill"
    deeper = report(stated, event(9, cause=killed_by, strength="states"))
    slurm = Outcome(state="OUT_OF_MEMORY")
    follower = report(failed(pattern_role="wrapper", cause="disk-full", strength="hints"))
    rows = [
        (KILLED, CLEAN, None, killed_by, "telemetry"),
        (deeper, None, None, killed_by, "deeper-cause"),
        (follower, None, slurm, "disk-full", "outcome"),
    ]
    for told, telemetry, outcome, cause, by in rows:
        found = assessed(triage, told, telemetry, outcome).objections
        assert (cause, by) in {(item.cause, item.by) for item in found}, (by, found)
    (against,) = assessed(triage, deeper).objections
    assert against == Objection(killed_by, "deeper-cause", "host-memory-leak")
    assert assessed(triage, KILLED).objections == ()


def test_a_job_in_which_nothing_failed_has_no_candidates(triage: Triage) -> None:
    found = assessed(triage, report())
    assert (found.candidates, found.doubt, found.objections) == ((), 0.0, ())


def test_prompt_and_answer_share_one_assessment(triage: Triage) -> None:
    """What a model is told of the causes is what the first answer was worked out from."""
    triage_context = asked(triage)
    prompt_context = build_prompt_context(triage_context)
    assert prompt_context.assessment is triage_context.assessment
    assert prompt_context.candidates[0].cause == triage_context.first.cause
    assert prompt_context.retrieval.ranked[0].owner == triage_context.first.cases[0].id


def test_what_a_run_printed_outranks_the_defaults_of_its_code(triage: Triage) -> None:
    """What a launch script gives comes before both."""
    printed = Setting("batch", "8", 4, "dump")
    default, given = Setting("batch", "16", 0, "dump"), Setting("lr", "1e-4", 0, "flag")
    found = assess(report(settings=[printed]), NOTHING_FOUND, triage.library, [default, given])
    # The default gives way to what the run had.
    assert found.settings == (given, printed, replace(default, value="8"))


def test_that_what_the_tracker_kept_is_what_the_run_had(triage: Triage) -> None:
    """A launch file may be another run's, or edited since: the tracker's own record comes before it."""
    kept = [Setting("batch-size", "512", 0, "flag", file="wandb-metadata.json")]
    own = [Setting("batch-size", "256", 0, "flag", file="queue.sh")]
    found = assess(report(failed()), NOTHING_FOUND, triage.library, own, kept=kept)
    assert [item.value for item in found.settings] == ["512", "256"]
