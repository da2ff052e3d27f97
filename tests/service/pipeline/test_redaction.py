"""The planted set through the whole path: no answer, no prompt, no JSON and no patch shows a part of a
secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from ingest.logs.inputs import sources
from service.llm.chain import explain_with_model
from service.llm.triage_context import TriageContext
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.telemetry.snapshot import ClusterNode, Kernel, KernelEvent, Snapshot, known
from tests.ingest.redaction import planted, planted_jobs
from tests.ingest.redaction.planted import Planted
from tests.service.llm.answering import BUDGET, model_at
from tests.service.llm.scripted import Turn, serving
from tests.tables import each_row
from tests.waiting import PATIENCE
from tests.warm import opened, triage

__all__ = ["triage"]

KILLED = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
FRAME = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in step\n    go()'
ALL = planted.secrets()
ROWS = [item for item in ALL if "\n" in item.text]
SINGLE = [
    item
    for item in (*ALL, *(item for item in planted_jobs.secrets() if item.form == "beside"))
    if "\n" not in item.text
]
# The lines of a log that an answer shows are few; so there are many logs, of a few secrets each.
LOGS = [
    [ROWS[2 * place % len(ROWS)], ROWS[(2 * place + 1) % len(ROWS)], *SINGLE[11 * place : 11 * place + 11]]
    for place in range(-(-len(SINGLE) // 11))
]
PARTS = 8
FILLER = [f"step {number} loss 0.{number}" for number in range(40)]


def log_of(items: list[Planted]) -> str:
    """Write a failed job's log with secrets before, in, and behind the failure, in one row and over
    several.
    """
    above, below, *single = items
    texts = [item.text for item in single] or ["step 1"]
    raised = f"(Worker pid=1) {FRAME}\nRuntimeError: {texts[0]}"
    command = f"+ python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 +note='{texts[-1]}'"
    return "\n".join(
        [
            command,
            "step 1 loss 0.1",
            texts[0],
            "step 2 loss 0.2",
            above.text,
            KILLED,
            below.text,
            *texts[1:3],
            *FILLER[:14],
            raised,
            *texts[3:],
            "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.",
            "",
        ]
    )


def files_of(items: list[Planted]) -> list[ConfigFile]:
    """Write the job's own files with secrets in them: a script, YAML, JSON."""
    single = [item.text for item in items if "\n" not in item.text and item.form in ("whole", "chinese")]
    script = "\n".join(
        [
            "#!/bin/bash",
            *(f"# {text}" for text in single),
            "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.gpu_memory_utilization=0.9",
            "",
        ]
    )
    config = "\n".join(
        [
            "actor_rollout_ref:",
            "  rollout:",
            "    gpu_memory_utilization: 0.9",
            *(f"    note_{number}: {json.dumps(text)}" for number, text in enumerate(single)),
            "",
        ]
    )
    return [
        ConfigFile("run.sh", script),
        ConfigFile("config.yaml", config),
        ConfigFile("ds.json", json.dumps({"notes": single, "zero_optimization": {"stage": 3}}, indent=2)),
    ]


def machine_of(items: list[Planted]) -> Snapshot:
    """Take a snapshot whose names and kernel lines hold secrets."""
    single = [item.text for item in items if "\n" not in item.text]
    events = tuple(
        KernelEvent(kind="oom-kill", process=text[:200], text=text, device=text) for text in single
    )
    nodes = tuple(ClusterNode(name=text, alive=known(False), why_dead=known(text)) for text in single)
    return Snapshot(
        sources=tuple(single),
        taken_at=datetime(2026, 3, 1, tzinfo=UTC),
        kernel=Kernel(events=known(events)),
        nodes=nodes,
    )


def shown(triage: Triage, triage_context: TriageContext) -> Iterator[tuple[str, str]]:
    """Yield everything that leaves the path, with its name."""
    yield "json", triage_context.first.model_dump_json(by_alias=True)
    yield "text", json.dumps(triage_context.first.model_dump(mode="json", by_alias=True), ensure_ascii=False)
    yield "patch", triage_context.first.patch or ""
    yield "prompt", triage.prompt(triage_context)
    yield "report", repr(triage_context.report)
    yield "settings", repr(triage_context.assessment.settings)


@pytest.mark.long
@each_row("part", range(PARTS), quick=2)
def test_no_output_shows_a_part_of_a_secret(part: int, triage: Triage) -> None:
    """Logs, configs and telemetry hold the planted set; eight characters of none come out anywhere."""
    for items in LOGS[part::PARTS]:
        language = "zh" if part % 4 == 3 else "en"
        triage_context = opened(
            triage, sources.from_text(log_of(items)), language, files_of(items), telemetry=machine_of(items)
        )
        assert not [
            (name, item, run)
            for name, text in shown(triage, triage_context)
            for item in items
            if (run := planted.remains(item, text))
        ]
        assert triage_context.first.redactions > 0


@pytest.mark.long
def test_a_model_is_sent_none_of_it(triage: Triage) -> None:
    """What goes over the wire holds nothing of the planted set, and neither do the stages of the answer."""
    items = LOGS[0]
    triage_context = opened(triage, sources.from_text(log_of(items)), "en", files_of(items))
    with serving([Turn(body='{"error": {"message": "no"}}', status=500)]) as server:
        stages = list(explain_with_model(triage_context, model_at(server.url), PATIENCE, BUDGET))
    assert server.calls
    assert not [item for item in items if planted.remains(item, json.dumps(server.calls) + repr(stages))]


@pytest.mark.long
def test_rows_at_the_rim_of_what_is_shown_are_judged_with_their_neighbours(triage: Triage) -> None:
    """The second row of a secret shows nothing of what it is.

    The first one stands just outside of what an answer shows.
    """
    item = next(item for item in ROWS if item.form == "wrapped" and item.kind == "github-token")
    for place in range(13):
        before, behind = [*FILLER, item.text, *FILLER[:place]], [*FILLER[:place], item.text, *FILLER]
        for rows in ([*before, KILLED, *FILLER], [*FILLER, KILLED, *behind], [*FILLER, KILLED, *before]):
            triage_context = opened(triage, sources.from_text("\n".join((*rows, ""))), "en")
            assert not [name for name, text in shown(triage, triage_context) if planted.remains(item, text)]


@pytest.mark.long
def test_the_sources_of_a_snapshot_show_no_secret(triage: Triage) -> None:
    """A snapshot's file is as little to be trusted as a log."""
    single = tuple(item.text for item in SINGLE)
    triage_context = opened(
        triage,
        sources.from_text(f"{KILLED}\n"),
        "en",
        telemetry=Snapshot(taken_at=datetime(2026, 3, 1, tzinfo=UTC), sources=single),
    )
    told = json.dumps(triage_context.first.model_dump(mode="json", by_alias=True), ensure_ascii=False)
    assert not [item for item in SINGLE if planted.remains(item, told)]
