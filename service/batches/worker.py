"""A worker process of a batch: it loads once, then reads and answers jobs as it is told."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from corpus.message import Message, edited, words
from ingest.errors import InputError
from ingest.logs.inputs import jobs
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.members import LIMITS
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from ingest.workers.process import Tell
from service.batches.cached_retriever import CachedRetriever
from service.batches.circuit_breaker import CircuitBreaker
from service.batches.commands import (
    JOB_MEMORY,
    AnswerCommand,
    DropCommand,
    JobCommand,
    JobReading,
    JobWasAnswered,
    JobWasRead,
    ReadCommand,
    Step,
    StepFailed,
    StepResult,
)
from service.batches.sources import folder
from service.llm.stages import FinalStage
from service.llm.triage_context import TriageContext
from service.patching.patches import ConfigFile
from service.pipeline import triage
from service.pipeline.triage import ReadJob, Triage
from service.schemas.diagnosis import Diagnosis, Outcome
from service.schemas.failures import failing_frame
from service.scoring.fusion import is_proved
from service.settings import Settings
from service.signals import starting, tracing
from service.signals.tracing import Span
from service.workers.warm_triage import WarmTriage

LONGEST_ERROR = 500
UNEXPECTED = "errors.job-went-wrong"
_LOG = logging.getLogger("whycrash.batch")


@dataclass(frozen=True)
class _HeldJob:
    """A job between its two steps."""

    command: JobCommand
    read: ReadJob


class JobWorker:
    """Works on jobs in two steps: of a hundred jobs with the same crash all are read and one is answered."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.warm = WarmTriage(settings)
        self._held: dict[str, _HeldJob] = {}
        self._breaker = CircuitBreaker()

    def load(self) -> str:
        """Load what every job needs; gives what is wrong, or the empty text."""
        wrong = self.warm.load()
        # Afterwards: what is loaded is no job.
        starting.start("batch-worker")
        return wrong

    def handle(self, task: Step, tell: Tell) -> StepResult | None:
        """Do one step as the task of a worker pool; it says nothing before its outcome."""
        del tell
        return self.run(task)

    def run(self, step: Step) -> StepResult | None:
        """Do one step; a failure is an outcome, so that the process continues. A drop has none."""
        try:
            match step:
                case ReadCommand():
                    with _span("job.read", step.command):
                        return JobWasRead(step.command.id, self.read(step.command))
                case AnswerCommand():
                    with _span("job.answer", self._held[step.id].command):
                        return JobWasAnswered(step.id, self.answer(step.id, by_rules=step.by_rules))
                case DropCommand():
                    self._held.pop(step.id, None)
                    return None
        except InputError as error:
            return self._wrong(step, str(error), final=True)
        except MemoryError:
            return self._wrong(step, Message("errors.job-takes-memory", size=JOB_MEMORY >> 30))
        except OSError as error:
            return self._wrong(
                step, Message("errors.job-cannot-read", reason=error.strerror or type(error).__name__)
            )
        except Exception as error:  # noqa: BLE001 - one job becomes a record, the others go on
            _LOG.error("%s", failing_frame(error))
            return self._wrong(step, Message(UNEXPECTED))

    def read(self, command: JobCommand) -> JobReading:
        """Read a job's output and hold the report; raises InputError."""
        _check_places((*command.paths, *command.configs), self._settings)
        files = [triage.read_config(Path(path)) for path in command.configs]
        with _opened(command, self._settings) as source:
            found = self.warm.fresh().read(source, command.language, files, outcome=command.outcome)
        found = replace(found, reopen=partial(_opened, command, self._settings), team=command.team)
        self._held[command.id] = _HeldJob(command, found)
        return job_reading(found.report, found.files, command.outcome)

    def answer(self, job_id: str, *, by_rules: bool = False) -> Diagnosis:
        """Answer a job that was read, and forget it; `by_rules` asks no model where one was to be."""
        held = self._held.pop(job_id)
        made = self.warm.fresh()
        if not isinstance(made.retriever, CachedRetriever):
            # The crashes of other jobs may read the same.
            made.retriever = CachedRetriever(made.library, made.index, made.embedder)
        triage_context = made.diagnose(held.read)
        diagnosis = triage_context.first
        if held.command.model and self._settings.model:
            diagnosis = self._explained(made, triage_context, held.command.batch, by_rules=by_rules)
        return diagnosis.model_copy(update={"id": job_id})

    def _explained(
        self, made: Triage, triage_context: TriageContext, batch: str, *, by_rules: bool
    ) -> Diagnosis:
        """Have the model explain, unless it is spared; the answer says so then."""
        first = triage_context.first
        if first.verdict == "no-failure":
            # Nothing of the job is known to have failed: a batch spends nothing on it.
            return first
        if why := self._spared(triage_context, by_rules=by_rules):
            note = words(why, triage_context.language)
            return first.model_copy(update={"engine": first.engine.model_copy(update={"note": note})})
        final = next(
            (
                stage.diagnosis
                for stage in made.explain(triage_context, batch)
                if isinstance(stage, FinalStage)
            ),
            first,
        )
        self._breaker.record(final)
        return final

    def _spared(self, triage_context: TriageContext, *, by_rules: bool) -> str:
        """Give the id of the message that says why no model is asked; the empty text where one is to be."""
        first = triage_context.first
        is_certain = first.confidence >= self._settings.model_batch_below
        if first.verdict == "diagnosed" and (is_certain or is_proved(triage_context.assessment)):
            return "answer.model-not-needed"
        if by_rules:
            return "answer.model-asked-elsewhere"
        return "" if self._breaker.allows else "answer.model-not-asked"

    def _wrong(self, step: Step, error: str, *, final: bool = False) -> StepFailed:
        command = step.command if isinstance(step, ReadCommand) else None
        job_id = command.id if command else step.id  # type: ignore[union-attr]
        self._held.pop(job_id, None)
        return StepFailed(job_id, error_text(error, command), final)


def _span(name: str, command: JobCommand) -> AbstractContextManager[Span]:
    """Record a step on a job below its batch, on whatever machine that is."""
    told = {"whycrash.job.id": command.id}
    return tracing.span(name, parent=tracing.of_batch(command.batch), attributes=told)


def job_reading(
    report: CrashReport, files: Sequence[ConfigFile] = (), outcome: Outcome | None = None
) -> JobReading:
    """Say which crash a report is of, of a job with which files and which end, and by which line."""
    root = report.root
    place = report.place(root.line) if root else None
    return JobReading(
        fingerprint=fingerprint(report, outcome),
        config=digest(files),
        root_line=place.line if place else None,
        root_file=(place.file or None) if place else None,
        root_text=root.text if root else "",
        bytes=report.limits.bytes,
        lines=report.limits.lines,
    )


def fingerprint(report: CrashReport, outcome: Outcome | None = None) -> str:
    """Give a hash that is equal where the same answer fits; the empty text where the log shows no failure.

    Wider than the report's own: what else stands in the log, the phase and the versions may turn the answer,
    and what the job's end says.
    """
    if report.root is None:
        return ""
    parts = [
        report.fingerprint,
        report.phase,
        " ".join(sorted({event.pattern for event in report.standing})),
        " ".join(sorted({f"{item.name}={item.version}" for item in report.frameworks})),
        *(ending.says.en for ending in (outcome.readings if outcome else ())),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def digest(files: Sequence[ConfigFile]) -> str:
    """Give a hash that is equal where a job's own files say the same; the empty text where it has none."""
    if not files:
        return ""
    # Redacted: of what a hash is of, a short secret could be found by trying.
    clean = Redactor().clean
    told = json.dumps(
        [(file.name, clean(file.text), file.exact) for file in sorted(files, key=lambda file: file.name)]
    )
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def error_text(error: str, command: JobCommand | None) -> str:
    """Give an error as it may be kept: no path of this machine, no secret, bounded."""

    def clean(text: str) -> str:
        for path in sorted(command.paths, key=len, reverse=True) if command else ():
            text = text.replace(path, command.name if command else path)
        return Redactor().clean(text)[:LONGEST_ERROR]

    return edited(error, clean)


def _check_places(paths: Sequence[str], settings: Settings) -> None:
    """Raise InputError where a path leads out of the allowed folders: a link may be new."""
    roots = folder.roots(settings)
    for path in paths:
        if any(folder.is_under(path, root) for root in roots) and not any(
            folder.is_under(os.path.realpath(path), root) for root in roots
        ):
            raise InputError(Message("errors.leads-out-folders-batches"))


def _opened(command: JobCommand, settings: Settings) -> JobSource:
    if not command.paths:
        raise InputError(Message("errors.no-output-job"))
    limits = replace(LIMITS, bytes=settings.max_unpacked_mb << 20)
    source = jobs.open_jobs([Path(path) for path in command.paths], limits)
    source.name = command.name
    if source.single:
        source.single.name = command.name
    return source
