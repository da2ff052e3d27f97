"""How a worker answers each task, as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from corpus.message import edited, is_chinese
from ingest.errors import InputError
from ingest.logs.inputs import jobs, sources
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.members import LIMITS
from ingest.logs.inputs.sources import Budget
from ingest.logs.inputs.streams import Decompressed
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from service.llm.models import ChatMessage
from service.llm.stages import FinalStage, LookStage, TextStage
from service.llm.triage_context import TriageContext
from service.patching.patches import ConfigFile
from service.pipeline import excerpts
from service.pipeline.triage import Taking, Triage
from service.schemas.confirmations import ConfirmedCause
from service.schemas.diagnosis import CaseHit, Diagnosis
from service.schemas.events import (
    CasesMatched,
    Event,
    ExplanationParagraph,
    FinalAnswer,
    FirstAnswer,
    LogLookedAt,
    LogRead,
    Progress,
    TurnAnswered,
)
from service.settings import Settings
from service.telemetry import opening, snapshot
from service.telemetry.snapshot import Snapshot
from service.workers.retelling import retell
from service.workers.tasks import (
    KeptTriage,
    PromptShown,
    PromptTask,
    QuestionTask,
    RetellTask,
    RetoldDiagnosis,
    SearchHits,
    SearchTask,
    Submission,
    Task,
    TriageMaterial,
)

# Seconds between two progress events while reading.
BEAT = 0.2
# What the work on a task is called in a trace.
SPANS: Mapping[type, str] = {
    Submission: "triage",
    QuestionTask: "question",
    PromptTask: "prompt",
    RetellTask: "retell",
    SearchTask: "search",
}
_TELL = Callable[[Event], None]

Answer = Event | TriageMaterial | PromptShown | RetoldDiagnosis | SearchHits


def handle_task(triage: Triage, settings: Settings, task: Task, tell: _TELL) -> Iterator[Answer]:
    """Answer a task; `tell` passes on progress from within a long step."""
    match task:
        case Submission():
            yield from _triaged(triage, settings, task, tell)
        case QuestionTask():
            yield from _answer_question(triage, task)
        case PromptTask():
            yield PromptShown(triage.prompt(_triage_context(triage, task.kept)))
        case RetellTask():
            yield RetoldDiagnosis(_retold(triage, task))
        case SearchTask():
            yield SearchHits(tuple(_hits(triage, task)))


@dataclass
class _CountedBudget(Budget):
    """A budget that tells how much of it was used."""

    tell: _TELL = lambda _event: None
    total: int = 0
    _used: int = 0
    _next: float = 0.0

    def take(self, chunk: bytes) -> bytes:
        """Give as much of a chunk as may be read."""
        chunk = super().take(chunk)
        self._used += len(chunk)
        if (now := monotonic()) >= self._next:
            self._next = now + BEAT
            self.tell(Progress(bytes=self._used, total=self.total))
        return chunk


def _opened(task: Submission, settings: Settings, tell: _TELL) -> JobSource:
    """Open what was handed in, bounded and watched; raises InputError."""
    if not task.paths:
        source = sources.from_text(task.text, task.name)
        return JobSource(task.name, source.omitted, single=source)
    limits = replace(LIMITS, bytes=settings.max_unpacked_mb << 20)
    job = (
        jobs.open_job(task.paths[0], limits)
        if len(task.paths) == 1
        else jobs.open_named(task.files, task.name, limits)
    )
    job.name = task.name
    total = sum(path.stat().st_size for path in task.paths)
    left = job.budget.left if job.budget else limits.bytes
    # A packed file's size says nothing of how much there is to read.
    is_plain = job.single is not None and not isinstance(job.single.stream, Decompressed)
    job.budget = _CountedBudget(left, tell, total if is_plain else 0)
    if job.single:
        job.single.name = task.name
        job.single.budget = job.budget
    return job


def _triaged(triage: Triage, settings: Settings, task: Submission, tell: _TELL) -> Iterator[Answer]:
    told = task.telemetry
    machine = opening.open_telemetry(told, settings) if isinstance(told, str) else told
    try:
        read = triage.read(_opened(task, settings, tell), task.language, task.configs, outcome=task.outcome)
    except InputError as error:

        def with_own_names(text: str) -> str:
            # Their temporary paths mean nothing to their owner.
            for name, path in task.files:
                text = text.replace(str(path), name)
            return text

        raise type(error)(edited(str(error), with_own_names)) from error
    report = read.report
    yield _read(report, machine)
    again = partial(_opened, task, settings, lambda _event: None)
    triage_context = triage.diagnose(replace(read, reopen=again, known=task.known, team=task.team), machine)
    triage_context = replace(triage_context, first=triage_context.first.model_copy(update={"id": task.id}))
    yield CasesMatched(cases=triage_context.first.cases)
    yield FirstAnswer(diagnosis=triage_context.first)
    excerpt = excerpts.make_excerpt(report, again())
    # Text by text: a mark across the quotes of two fields would be no JSON any more.
    snapshot_text = ""
    if (found := triage_context.assessment.snapshot) is not None:
        masked = _masked(json.loads(found.to_json(None)), Redactor().clean)
        snapshot_text = json.dumps(masked, ensure_ascii=False)
    clean = Redactor().clean
    files = tuple((clean(file.name), clean(file.text)) for file in triage_context.files)
    yield TriageMaterial(excerpt, files, snapshot_text)
    if not task.model:
        yield FinalAnswer(diagnosis=triage_context.first)
        return
    for stage in triage.explain(triage_context):
        if isinstance(stage, LookStage):
            yield LogLookedAt(tool=stage.step.tool, says=stage.step.found)
        elif isinstance(stage, TextStage):
            yield ExplanationParagraph(text=stage.text)
        elif isinstance(stage, FinalStage):
            yield FinalAnswer(diagnosis=stage.diagnosis)


def _read(report: CrashReport, machine: Snapshot | Taking | None) -> LogRead:
    place = report.place(report.root.line) if report.root else None
    names = tuple(f"{item.name} {item.version or ''}".strip() for item in report.frameworks)
    return LogRead(
        bytes=report.limits.bytes,
        lines=report.limits.lines,
        events=len(report.events),
        root_line=place.line if place else None,
        root_file=(place.file or None) if place else None,
        frameworks=names,
        redactions=report.redactions,
        truncated=report.limits.truncated,
        telemetry=machine.sources if isinstance(machine, Snapshot) else (),
    )


def _masked(value: object, clean: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_masked(item, clean) for item in value]
    if isinstance(value, dict):
        return {key: _masked(item, clean) for key, item in value.items()}
    return value


def _triage_context(triage: Triage, kept: KeptTriage) -> TriageContext:
    """Make the context of a triage that was kept; its answer is the one that was given."""
    return replace(_answered_again(triage, kept), first=kept.diagnosis)


def _answered_again(triage: Triage, kept: KeptTriage) -> TriageContext:
    """Read what was kept of a triage and answer it by the rules."""
    files = [ConfigFile.of(name, text) for name, text in kept.configs]
    machine = snapshot.parse_snapshot(kept.telemetry, "telemetry") if kept.telemetry else None
    # Of the output, what was kept is all that is at hand.
    again = partial(excerpts.restore_excerpt, kept.excerpt, kept.diagnosis.source)
    read = triage.read(again(), kept.language, files, outcome=kept.diagnosis.outcome)
    told, crash = kept.diagnosis.confirmed, kept.diagnosis.fingerprint
    known = (ConfirmedCause(fingerprint=crash, cause=told.cause, on=told.on),) if told else ()
    return triage.diagnose(replace(read, reopen=again, known=known, team=kept.team), machine)


def _retold(triage: Triage, task: RetellTask) -> Diagnosis | None:
    """Give a kept answer in another language.

    None where too little was kept to tell it anew, or where that comes to something else.
    """
    try:
        new = _answered_again(triage, replace(task.kept, language=task.language)).first
    except InputError:
        return None
    return retell(task.kept.diagnosis, new, triage.library, task.language)


def _answer_question(triage: Triage, task: QuestionTask) -> Iterator[Answer]:
    talk = triage.conversation(_triage_context(triage, task.kept), with_model=task.model)
    talk.resume(ChatMessage(item.role, item.text) for item in task.talk)
    for piece in talk.ask(task.question):
        if isinstance(piece, LookStage):
            yield LogLookedAt(tool=piece.step.tool, says=piece.step.found)
        elif isinstance(piece, TextStage):
            yield ExplanationParagraph(text=piece.text)
        else:
            yield TurnAnswered(
                text=piece.text, diagnosis=piece.diagnosis, engine=piece.engine, constraints=piece.constraints
            )


def _hits(triage: Triage, task: SearchTask) -> Iterator[CaseHit]:
    chinese = task.language == "zh" or (not task.language and is_chinese(task.words))
    for item in triage.retriever.search(task.words, task.count, task.team):
        case = triage.library.cases.get(item.owner)
        title = (
            case.title.to("zh" if chinese else "en")
            if case
            else (item.document.title if item.document else "")
        )
        urls = tuple(source.url for source in case.sources) if case else ()
        fix = item.document.fix if item.document else ""
        yield CaseHit(
            id=item.owner, title=title, score=round(item.score, 4), urls=urls, kind=item.kind, fix=fix
        )
