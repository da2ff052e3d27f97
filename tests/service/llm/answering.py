"""Makers of what a scripted model says, and of what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from ingest.logs.inputs import sources
from service.composition.composer import compose
from service.llm.chain import explain_with_model
from service.llm.investigation import SINGLE_SHOT, LookLimits
from service.llm.models import ChatModel, open_model
from service.llm.prompt import for_answer
from service.llm.prompt_context import Prompt, PromptContext, build_prompt_context
from service.llm.stages import FinalStage, LookStage, TextStage
from service.llm.triage_context import TriageContext
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis
from service.scoring.assessment import assess
from service.scoring.retrieval import Retrieval, SignatureMatch
from service.settings import Settings
from tests.factories import event
from tests.service.factories import case, failed, report
from tests.service.llm.scripted import Script, Scripted, Turn, serving
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, opened, script

OFFLOAD = "w-easyr1-offload-host-ram"
SAVE = "openrlhf-save-host-peak"
BARE = "openrlhf-bare-actor-died"
BUDGET = 8000


@cache
def asked(triage: Triage, name: str = OFFLOAD, language: str = "en", patched: bool = True) -> TriageContext:
    """Open a labelled incident, with its launch script."""
    files = [read_config(script(name))] if patched and script(name).exists() else []
    return opened(triage, sources.from_path(INCIDENTS / name / "log.txt"), language, files)


def asked_of(triage: Triage, log: str, language: str = "en") -> TriageContext:
    """Open a log that is at hand."""
    return opened(triage, sources.from_text(log), language)


@cache
def torn(triage: Triage) -> TriageContext:
    """Open a log of which two causes are told alike, by lines and by cases.

    How firmly, the weights of the rules say.
    """
    strengths, rivals = ("suggests", "hints", "states"), (("port-in-use",), ("port-in-use", "shm-exhausted"))
    made = (_torn(triage, *choice) for choice in product(strengths, ("", *strengths), (1, 2, 3, 4), rivals))
    return next(triage_context for triage_context in made if triage_context.first.verdict == "ambiguous")


def _torn(
    triage: Triage, strength: str, second: str, conditions: int, rivals: tuple[str, ...]
) -> TriageContext:
    events = [
        failed(
            3,
            pattern="x.a",
            cause="disk-full",
            strength=strength,
            text="the device gave up",
            body="the device gave up",
        )
    ]
    events += (
        [
            event(
                4,
                pattern="x.b",
                cause="port-in-use",
                strength=second,
                text="the address is bound",
                body="the address is bound",
            )
        ]
        if second
        else []
    )
    told = report(*events)
    retrieval = Retrieval(
        tuple(SignatureMatch(case(cause=rival), conditions, at_root=True) for rival in rivals), ()
    )
    assessment = assess(told, retrieval, triage.library)
    first = compose(assessment, triage.library, "en")
    return TriageContext(assessment, triage.library, "en", (), first)


def context_and_prompt(triage_context: TriageContext, budget: int = BUDGET) -> tuple[PromptContext, Prompt]:
    """Give what a model is told and sent."""
    prompt_context = build_prompt_context(triage_context)
    return prompt_context, for_answer(prompt_context, budget)


def faithful(triage_context: TriageContext, **fields: Any) -> dict[str, Any]:
    """Write an answer that agrees with the rules and cites what stands; fields override."""
    first = triage_context.first
    root = first.evidence[0]
    mark = f"L{root.line}"
    known = f"[case:{first.cases[0].id}]" if first.cases else f"[{mark}]"
    made = {
        "cause": first.cause,
        "certainty": "medium",
        "quotes": [{"line": mark, "text": root.text[:60]}],
        "cases": [first.cases[0].id] if first.cases else [],
        "changes": [
            {"framework": change.framework, "key": change.key, "to": str(change.to)}
            for change in first.changes
        ],
        "explanation": (
            f"The first failure of the job stands in this line. [{mark}]\n\nIt is a known mechanism of "
            f"such jobs. {known}"
        ),
    }
    return {**made, **fields}


def say(triage_context: TriageContext, **fields: Any) -> Turn:
    """Make the turn of a faithful answer."""
    return Turn(json.dumps(faithful(triage_context, **fields), ensure_ascii=False))


@dataclass(frozen=True)
class Heard:
    """What came of one question to a model."""

    texts: tuple[str, ...]
    final: Diagnosis
    server: Scripted
    looks: tuple[str, ...] = ()

    @property
    def dropped(self) -> str:
        """Everything that was dropped, with the reasons."""
        return "\n".join(f"{item.what}: {item.why}" for item in self.final.engine.dropped)


def model_at(url: str, seconds: float = PATIENCE) -> ChatModel:
    """Open a model at a server."""
    model = open_model(Settings(model="openai:scripted", model_base_url=url, model_deadline=seconds))
    assert model is not None
    return model


def hear(
    triage: Triage,
    triage_context: TriageContext,
    script: Script | Sequence[Turn],
    seconds: float = PATIENCE,
    budget: int = BUDGET,
    limits: LookLimits = SINGLE_SHOT,
) -> Heard:
    """Let a scripted server answer for a model."""
    with serving(script) as server:
        model = model_at(server.url, seconds)
        stages = list(explain_with_model(triage_context, model, seconds, budget, limits))
    final = stages[-1]
    assert isinstance(final, FinalStage)
    return Heard(
        tuple(stage.text for stage in stages if isinstance(stage, TextStage)),
        final.diagnosis,
        server,
        tuple(str(stage.step.found) for stage in stages if isinstance(stage, LookStage)),
    )
