"""What becomes of the answer where a model's vote sets it."""

from __future__ import annotations

import json
from dataclasses import replace

from service.llm.triage_context import TriageContext
from service.pipeline.triage import Triage
from tests.factories import steps
from tests.service.llm.answering import BARE, asked, asked_of, hear, say
from tests.service.llm.scripted import Turn


def test_a_log_that_stops_amid_work_may_be_said_to_tell_nothing(triage: Triage) -> None:
    """It is unknown then what became of the job, and the answer still says where it stood."""
    triage_context = asked_of(triage, "INFO loading the model\n" + steps(*range(1, 9)))
    first = triage_context.first
    assert (first.verdict, first.standing) == ("no-failure", "none")
    silent = {"cause": "insufficient-evidence", "certainty": "medium", "explanation": "The end is not shown."}
    final = hear(triage, triage_context, [Turn(json.dumps(silent))]).final
    assert (final.verdict, final.cause) == ("unknown", "insufficient-evidence")
    assert final.headline == first.headline
    assert "last sign of work" in final.explanation
    assert "still at work" not in final.explanation


def test_a_change_of_the_models_own_leads_where_it_is_of_the_job(triage: Triage) -> None:
    """Of a cause that the rules missed they propose what helps in general: behind what the model argues.

    So they do where the model chose between two causes. Where the rules found it too, what they have checked
    stays first, but before a value for a setting that they propose themselves; so it does before a setting
    that nothing shows the job to have, and before what finds code.
    """
    part = {"framework": "openrlhf", "key": "--vllm_gpu_memory_utilization", "to": "a part that fits"}
    unseen = {"framework": "lightning", "key": "FSDPStrategy.timeout", "to": "an hour"}
    loader = {"framework": "env", "key": "LD_LIBRARY_PATH", "to": "without the old folder", "kind": "env"}

    def order(context: TriageContext, cause: str | None, own: dict[str, str]) -> list[tuple[str, str]]:
        made = say(context, cause=cause, certainty="high", changes=[own])
        found = hear(triage, context, [made]).final
        assert found.cause == cause
        return [(change.by, change.status) for change in found.changes if change.purpose == "cure"]

    bare = asked(triage, BARE)
    assert order(bare, "gpu-oom-training", part)[:2] == [("model", "unverified"), ("rules", "verified")]
    for own in (unseen, loader):
        assert order(bare, "gpu-oom-training", own)[0] == ("rules", "verified"), own
    known = asked(triage)
    flag = {"framework": "easyr1", "key": "worker.rollout.limit_images", "to": "as few as fit"}
    assert order(known, known.first.cause, flag)[0] == ("model", "unverified")
    open_ = known.first.model_copy(update={"verdict": "ambiguous"})
    assert order(replace(known, first=open_), known.first.cause, flag)[0] == ("model", "unverified")
    network = asked(triage, "brant-13")
    for key in ("NCCL_IB_HCA", "NCCL_NET"):
        own = {"framework": "nccl", "key": key, "to": "mlx5_0", "kind": "env"}
        assert order(network, network.first.cause, own)[0] == ("model", "unverified"), key
