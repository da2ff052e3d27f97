"""What a worker process is asked, and what it answers besides events."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ulid import ULID

from corpus.schema import Language
from service.patching.patches import ConfigFile
from service.schemas.confirmations import ConfirmedCause
from service.schemas.diagnosis import CaseHit, Diagnosis, Outcome
from service.schemas.records import Excerpt, MessageRecord
from service.telemetry.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class WorkerTask:
    """What every task carries: `parent` is the span that it belongs to, a W3C traceparent, if any."""

    parent: str = ""


@dataclass(frozen=True)
class Submission(WorkerTask):
    """One job that a person or a program hands in: the same value from the way in to the worker.

    `text` is a pasted log; else `paths` are log files, folders or archives that are one job's output, which
    the caller removes once the last event came; `names` are what they are called, where their paths do not
    tell. `telemetry` is a snapshot, or `live` for this machine now. `outcome` is how the job ended, as far as
    the caller knows. `channel` is where it was asked, such as a channel of Slack; `known` what persons there
    confirmed of crashes before. `team` is the one that asks, if any. `id` names the triage.
    """

    name: str
    text: str = ""
    paths: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    configs: tuple[ConfigFile, ...] = ()
    telemetry: Snapshot | Literal["live"] | None = None
    language: str = ""
    model: bool = True
    outcome: Outcome | None = None
    channel: str = ""
    known: tuple[ConfirmedCause, ...] = ()
    team: str = ""
    id: str = field(default_factory=lambda: str(ULID()))

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no log in it."""
        return not self.text.strip() and not self.paths

    @property
    def files(self) -> tuple[tuple[str, Path], ...]:
        """Give the job's files, each with what it is called."""
        return tuple(zip(self.names or [path.name for path in self.paths], self.paths, strict=True))


@dataclass(frozen=True)
class KeptTriage:
    """A triage as it was kept: what further answers to it are made of."""

    diagnosis: Diagnosis
    excerpt: Excerpt
    configs: tuple[tuple[str, str], ...] = ()
    telemetry: str = ""
    language: str = ""
    team: str = ""


@dataclass(frozen=True)
class QuestionTask(WorkerTask):
    """Answer a follow-up question; `talk` is what was said before."""

    kept: KeptTriage
    question: str
    talk: tuple[MessageRecord, ...] = ()
    model: bool = True


@dataclass(frozen=True)
class PromptTask(WorkerTask):
    """Give what a model would be sent."""

    kept: KeptTriage


@dataclass(frozen=True)
class RetellTask(WorkerTask):
    """Give a kept triage's answer in another language, out of what was kept."""

    kept: KeptTriage
    language: Language


@dataclass(frozen=True)
class SearchTask(WorkerTask):
    """Search cases, notes and past reports, everybody's and a team's."""

    words: str
    count: int
    language: str
    team: str = ""


Task = Submission | QuestionTask | PromptTask | RetellTask | SearchTask


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
class RetoldDiagnosis:
    """A kept answer in another language; None where too little was kept to come to the same one."""

    diagnosis: Diagnosis | None


@dataclass(frozen=True)
class SearchHits:
    """What a search found, best first."""

    hits: tuple[CaseHit, ...]
