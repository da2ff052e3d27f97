"""Makers of what the service works on: reports, cases, settings of a catalogue, proposed changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from corpus.library import ROOT, Library, read_causes
from corpus.schema import Case, Cause, Language, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework
from ingest.logs.report import CrashReport, Limits
from service.composition.composer import compose
from service.schemas.diagnosis import Diagnosis, ProposedChange, ReadLimits
from service.scoring.assessment import assess
from service.scoring.retrieval import Retrieval
from service.telemetry.snapshot import Snapshot
from tests.factories import event

NOTHING_FOUND = Retrieval((), ())
URL = "https://example.org/1"


def text(words: str) -> dict[str, str]:
    """Write a text in both languages."""
    return {"en": words, "zh": f"中文：{words}"}


def case(name: str = "verl/one", **fields: Any) -> Case:
    """Make a case that applies to any CUDA out-of-memory line."""
    made: dict[str, Any] = {
        "title": text("It breaks"),
        "cause": "gpu-oom-training",
        "action": "change-config",
        "signatures": {"any": ["pattern:torch.cuda-oom"]},
        "sources": [{"url": URL, "kind": "issue", "says": "confirmed"}],
        "body": text("### What you see\nIt breaks.\n\n### Why\nToo much.\n\n### What to do\nLess."),
    }
    return Case.model_validate({"id": name, **made, **fields})


def change(key: str = "data.size", to: Scalar = 128, **fields: Any) -> dict[str, Any]:
    """Write a change as a case's front matter holds it."""
    return {"framework": "verl", "kind": "setting", "key": key, "to": to, "why": text("it helps"), **fields}


def spec(key: str = "data.size", **fields: Any) -> SettingSpec:
    """Make a setting: a number from 1 to 512."""
    made: dict[str, Any] = {
        "framework": "verl",
        "type": "int",
        "default": 64,
        "min": 1,
        "max": 512,
        "spelled": "hydra",
        "effect": text("size"),
    }
    return SettingSpec.model_validate({"key": key, **made, **fields})


@cache
def real_causes() -> Mapping[str, Cause]:
    """Give the causes that ship."""
    return {cause.id: cause for cause in read_causes(ROOT / "causes.yaml")}


def library(*specs: SettingSpec, cases: Sequence[Case] = ()) -> Library:
    """Make a corpus of these settings and cases, with the real causes."""
    return Library(
        real_causes(), {made.id: made for made in cases}, {(made.framework, made.key): made for made in specs}
    )


def setting(key: str, value: str) -> Setting:
    """Make a setting as a log's first line shows it."""
    return Setting(key, value, 1, "hydra")


def composed_of(
    told: CrashReport,
    corpus: Library,
    language: Language = "en",
    retrieval: Retrieval = NOTHING_FOUND,
    telemetry: Snapshot | None = None,
) -> Diagnosis:
    """Answer for a report that was made up, without a search unless one is given."""
    return compose(assess(told, retrieval, corpus, telemetry=telemetry), corpus, language)


def report(
    *events: Event,
    frameworks: Sequence[tuple[str, str]] = (("verl", "0.3.1"),),
    settings: Sequence[Setting] = (),
    facts: Sequence[Fact] = (),
    **fields: Any,
) -> CrashReport:
    """Make a report whose root is the event with that role, or else the first."""
    root = next((made for made in events if made.role == "root"), events[0] if events else None)
    seen = tuple(Framework(name, version, 1) for name, version in frameworks)
    return CrashReport(
        "log", tuple(events), root, tuple(facts), seen, tuple(settings), Limits(100, 10), **fields
    )


def failed(line: int = 3, **fields: Any) -> Event:
    """Make a root event."""
    return event(line, **{"role": "root", "pattern": "torch.cuda-oom", **fields})


def proposal(key: str = "data.size", to: Scalar = 128, **fields: Any) -> ProposedChange:
    """Make a change that was checked against the catalogue."""
    made: dict[str, Any] = {"framework": "verl", "kind": "setting", "why": "it helps", "status": "verified"}
    return ProposedChange(key=key, to=to, **{**made, **fields})


def diagnosis(**fields: Any) -> Diagnosis:
    """Make the smallest answer."""
    made: dict[str, Any] = {
        "id": "01J",
        "source": "log",
        "verdict": "diagnosed",
        "cause": "disk-full",
        "category": "storage",
        "confidence": 0.9,
        "standing": "established",
        "action": "change-environment",
        "headline": "The disk is full",
        "explanation": "Full.",
        "limits": ReadLimits(bytes=1, lines=1),
    }
    return Diagnosis(**{**made, **fields})
