"""A log with its first answer: what a model, or a follow-up question, starts from."""

from __future__ import annotations

from dataclasses import dataclass

from corpus.schema import Language
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.patching.patches import ConfigFile
from service.schemas.diagnosis import Diagnosis, Outcome
from service.scoring.retrieval import Retrieval
from service.telemetry.snapshot import Snapshot


@dataclass(frozen=True)
class TriageContext:
    """A log with its first answer, and what further answers to it are made of.

    `own` are the settings of its files.
    """

    report: CrashReport
    retrieval: Retrieval
    language: Language
    own: tuple[Setting, ...]
    files: tuple[ConfigFile, ...]
    first: Diagnosis
    telemetry: Snapshot | None = None
    outcome: Outcome | None = None
