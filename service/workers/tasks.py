"""What a worker process is asked, and what it answers besides events."""

from __future__ import annotations

from dataclasses import dataclass

from service.patching.patches import ConfigFile
from service.schemas.diagnosis import CaseHit, Diagnosis, Outcome
from service.schemas.records import Excerpt, MessageRecord


@dataclass(frozen=True)
class TriageTask:
    """Triage one job.

    `files` are names and paths of what it wrote, `telemetry` a snapshot as JSON or `live`,
    `outcome` how it ended.
    """

    id: str
    name: str
    text: str = ""
    files: tuple[tuple[str, str], ...] = ()
    configs: tuple[ConfigFile, ...] = ()
    telemetry: str = ""
    language: str = ""
    model: bool = True
    outcome: Outcome | None = None


@dataclass(frozen=True)
class KeptTriage:
    """A triage as it was kept: what further answers to it are made of."""

    diagnosis: Diagnosis
    excerpt: Excerpt
    configs: tuple[tuple[str, str], ...] = ()
    telemetry: str = ""
    language: str = ""


@dataclass(frozen=True)
class QuestionTask:
    """Answer a follow-up question; `talk` is what was said before."""

    kept: KeptTriage
    question: str
    talk: tuple[MessageRecord, ...] = ()
    model: bool = True


@dataclass(frozen=True)
class PromptTask:
    """Give what a model would be sent."""

    kept: KeptTriage


@dataclass(frozen=True)
class SearchTask:
    """Search cases, notes and past reports."""

    words: str
    count: int
    language: str


Task = TriageTask | QuestionTask | PromptTask | SearchTask


@dataclass(frozen=True)
class TriageMaterial:
    """What is to be kept of a triage beside its answer, redacted; for the store, not for the caller."""

    excerpt: Excerpt | None
    configs: tuple[tuple[str, str], ...]
    telemetry: str


@dataclass(frozen=True)
class PromptShown:
    """What a model would be sent."""

    text: str


@dataclass(frozen=True)
class SearchHits:
    """What a search found, best first."""

    hits: tuple[CaseHit, ...]
