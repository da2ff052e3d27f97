"""The triage service below the API, the chat page, Slack and MCP: triage, storage, conversation, search."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import Self

from corpus import library
from corpus.library import Library
from corpus.message import Message
from corpus.schema import Language
from ingest.index import Index
from ingest.logs.lines import printable
from ingest.redaction.extra import use_extra
from ingest.redaction.prefilter import save_prefilter
from ingest.redaction.redactor import Redactor
from service.app.admission import Admission, Caller
from service.app.heaps import bound_heaps
from service.batches.batches import open_store
from service.llm.conversation import message_text
from service.persistence.crashes import EVERYBODY, TriageScope
from service.persistence.store import Store
from service.pipeline.triage import Report, no_progress
from service.schemas.diagnosis import CaseHit, Diagnosis
from service.schemas.errors import (
    ConflictError,
    InvalidRequestError,
    LateError,
    NotFoundError,
    QuotaError,
    RequestError,
)
from service.schemas.events import Accepted, Event, FinalAnswer, FirstAnswer, TriageFailed, TurnAnswered
from service.schemas.failures import ReportedError
from service.schemas.records import (
    AuditRecord,
    Crash,
    CrashNote,
    CrashNoteRecord,
    Excerpt,
    Feedback,
    FeedbackRecord,
    MessageRecord,
    Recurrence,
    TriageRecord,
    team_of,
)
from service.settings import Settings
from service.workers.index_builder import opened_index
from service.workers.pool import ProcessPool, TaskHandle, WorkerMessage
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
    TriageMaterial,
)

_LOG = logging.getLogger("whycrash.triage")
MAX_NAME = 200
# When to ask again where a quota is used up: its day ends now, and opens little by little.
_LATER = 3600.0
# A mark in the place of a secret may be longer than the secret was.
MAX_WORDS = 2000
MAX_OWNER, MAX_FIX = 100, 500


@dataclass(frozen=True)
class Page:
    """A page of triages, newest first.

    `next` is what to pass as `after` for the next one, None at the end.
    """

    items: tuple[TriageRecord, ...]
    next: str | None


class TriageService:
    """Triages, stores, converses and searches.

    Safe to use from many threads; its methods block, so an event loop calls them in threads.
    """

    def __init__(self, settings: Settings, report: Report = no_progress) -> None:
        self.settings = settings
        self._report = report
        self.store: Store
        self._index: Index
        self.pool = ProcessPool(settings)
        self.admission = Admission(settings, self.pool)

    def __enter__(self) -> Self:
        bound_heaps()
        use_extra(self.settings.redact_extra)
        save_prefilter(self.settings.home / "cache")
        # Built once here, not by each process for itself.
        self._index = opened_index(self.settings, self._report)
        self.store = open_store(self.settings)
        self.pool.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.close()
        self.store.close()

    @cached_property
    def library(self) -> Library:
        """The corpus."""
        return library.load(cache=self.settings.home / "cache")

    def triage(self, submission: Submission, caller: Caller) -> Iterator[Event]:
        """Triage one job; yields the events of `service.schemas.events` in their order.

        Raises BusyError before the first event where too many wait, InvalidRequestError where nothing was
        handed in. An iterator that is closed early leaves the work to end by itself; its answer is kept.
        """
        if submission.is_empty:
            raise InvalidRequestError(Message("errors.no-log-paste-text"))
        names = tuple(_name(name) for name, _ in submission.files)
        task = replace(submission, name=_name(submission.name), names=names)
        # Before anything is written: a refusal is to cost little.
        self.pool.check_capacity()
        now = datetime.now(UTC)
        with self.quota_taken(caller, 1, now):
            handle = self._submitted(task, caller, now)
        return _events(Accepted(id=task.id), handle)

    def _submitted(self, task: Submission, caller: Caller, now: datetime) -> TaskHandle:
        """Keep a triage and hand it to the workers; raises BusyError, and then nothing of it is kept."""
        seconds = self.settings.request_deadline
        self.store.triages.add(
            TriageRecord(
                id=task.id,
                state="running",
                origin=caller.origin,
                caller=caller.owner,
                source=task.name,
                created=now,
                deadline=now + timedelta(seconds=seconds),
                language=task.language,
                channel=task.channel,
            )
        )
        try:
            known = self.store.crashes.confirmed(TriageScope(caller.owner, task.channel))
            return self.pool.submit(
                replace(task, known=known, team=caller.team),
                seconds,
                _TriageRecorder(self.store, task.id, bool(task.model and self.settings.model)),
            )
        except RequestError:
            self.store.triages.delete(task.id)
            raise

    @contextmanager
    def quota_taken(self, caller: Caller, more: int, now: datetime) -> Iterator[None]:
        """Count so many jobs more for the caller; what raises within gives them back.

        Raises QuotaError where these are more than the caller may hand in within a day.
        """
        quota = self.settings.day_quota
        if not quota:
            yield
            return
        if (used := self.store.usage.take(caller.owner, more, quota, now)) is not None:
            told = Message("errors.quota-reached", quota=quota, used=used, more=more)
            # More than a whole day's never fit, however long one waits.
            raise QuotaError(told, *(() if more > quota else (_LATER,)))
        try:
            yield
        except BaseException:
            self.store.usage.give_back(caller.owner, more, now)
            raise

    def ask(self, triage_id: str, question: str, caller: Caller) -> Iterator[Event]:
        """Answer a follow-up question: Said..., Turned; or Failed.

        Raises NotFoundError, BusyError, ConflictError while it runs.
        """
        said = message_text(question)
        if not said:
            raise InvalidRequestError(Message("errors.question-empty"))
        kept = self._answered_triage(triage_id)
        talk = tuple(self.store.triages.messages(triage_id))
        handle = self.pool.submit(
            QuestionTask(kept, said, talk),
            self.settings.request_deadline,
            _TurnRecorder(self.store, triage_id, said),
        )
        self.note(caller, "ask", triage_id)
        return _events(None, handle)

    def record(self, triage_id: str) -> TriageRecord:
        """Give a triage; raises NotFoundError."""
        return self.store.triages.get(triage_id)

    def records(
        self, words: str = "", after: str | None = None, limit: int = 20, caller: str | None = None
    ) -> Page:
        """Give past triages, newest first, those whose source, headline or cause holds all words."""
        items, following = self.store.triages.page(words, after, limit, caller)
        return Page(tuple(items), following)

    def earlier(self, triage_id: str, fingerprint: str, scope: TriageScope = EVERYBODY) -> Recurrence | None:
        """Give what is known of earlier triages of the same crash; None where this is the first."""
        return self.store.crashes.earlier(triage_id, fingerprint, scope)

    def crash(self, fingerprint: str, scope: TriageScope) -> Crash:
        """Give a crash with its triages counted; raises NotFoundError."""
        found = self.store.crashes.get(fingerprint, scope)
        if found is None:
            raise NotFoundError(Message("errors.no-crash", fingerprint=repr(fingerprint)))
        return found

    def note_crash(self, fingerprint: str, note: CrashNote, caller: Caller, scope: TriageScope) -> Crash:
        """Keep what a person says of a crash that they may see; raises NotFoundError."""
        self.crash(fingerprint, scope)
        clean = Redactor().clean
        made = CrashNoteRecord(
            state=note.state,
            owner=clean(note.owner)[:MAX_OWNER],
            fixed_by=clean(note.fixed_by)[:MAX_FIX],
            fingerprint=fingerprint,
            caller=caller.owner,
            created=datetime.now(UTC),
        )
        self.store.crashes.note(made, scope.channel)
        self.note(caller, "note-crash", fingerprint, note.state)
        return self.crash(fingerprint, scope)

    def messages(self, triage_id: str) -> Sequence[MessageRecord]:
        """Give the conversation about a triage, oldest first."""
        self.record(triage_id)
        return self.store.triages.messages(triage_id)

    def excerpt(self, triage_id: str) -> Excerpt:
        """Give what is kept of the log: empty while it is read."""
        return self.store.triages.excerpt(triage_id)

    def prompt(self, triage_id: str) -> str:
        """Give exactly what a model is sent of this triage, redacted.

        The same whether a model is set or not.
        """
        for message in self.pool.submit(
            PromptTask(self._answered_triage(triage_id)), self.settings.request_deadline
        ):
            if isinstance(message, PromptShown):
                return message.text
            _raise(message)
        raise LateError(Message("errors.no-answer"))

    def retold(
        self, record: TriageRecord, language: Language, seconds: float | None = None
    ) -> Diagnosis | None:
        """Give a triage's answer in a language, made of what was kept of it.

        It is the answer as it is kept where it is in that language already, or where too little was kept.
        `seconds` is how long that may take, where it is less than a request may.
        """
        told = record.diagnosis
        if told is None or told.language == language or record.state == "running":
            return told
        task = RetellTask(self._kept_triage(record, told), language)
        deadline = min(seconds or self.settings.request_deadline, self.settings.request_deadline)
        for message in self.pool.submit(task, deadline):
            if isinstance(message, RetoldDiagnosis):
                return message.diagnosis or told
            _raise(message)
        raise LateError(Message("errors.no-answer"))

    def feedback(self, triage_id: str, feedback: Feedback, caller: Caller) -> FeedbackRecord:
        """Keep what a person says of an answer.

        Raises NotFoundError, InvalidRequestError where the cause is none of ours.
        """
        self.record(triage_id)
        if feedback.cause and feedback.cause not in self.library.causes:
            raise InvalidRequestError(Message("errors.no-cause-see-get", cause=repr(feedback.cause)))
        clean = Redactor().clean
        made = FeedbackRecord(
            right=feedback.right,
            cause=feedback.cause,
            fix=clean(feedback.fix)[:MAX_WORDS],
            comment=clean(feedback.comment)[:MAX_WORDS],
            triage=triage_id,
            caller=caller.owner,
            created=datetime.now(UTC),
        )
        self.store.triages.add_feedback(made)
        self.note(caller, "feedback", triage_id)
        return made

    def forget(self, triage_id: str, caller: Caller) -> None:
        """Delete a triage with all that belongs to it; raises NotFoundError."""
        self.record(triage_id)
        self.store.triages.delete(triage_id)
        self.note(caller, "delete", triage_id)

    def search(self, words: str, count: int = 5, language: str = "", team: str = "") -> Sequence[CaseHit]:
        """Search cases, notes and past reports, everybody's and a team's."""
        task = SearchTask(words, count, language, team)
        for message in self.pool.submit(task, self.settings.request_deadline):
            if isinstance(message, SearchHits):
                return message.hits
            _raise(message)
        raise LateError(Message("errors.no-answer"))

    def ready(self) -> dict[str, str]:
        """Check database, index and workers; an empty text is good, else it says what is wrong."""
        return {"database": self.store.check(), "index": self._index.note, "workers": self.pool.failure}

    def note(self, caller: Caller, action: str, target: str, detail: str = "") -> None:
        """Add a row to the audit."""
        self.store.audit.add(
            AuditRecord(
                at=datetime.now(UTC),
                actor=f"{caller.origin}:{caller.name}",
                action=action,
                target=target,
                detail=detail,
            )
        )

    def forget_old(self, now: datetime) -> int:
        """Delete what is older than the retention.

        Gives how many triages and batches went: none while the clock is not trusted.
        """
        if rest := self.store.clock.observe(now):
            _LOG.warning(
                "the clock is days ahead of what it last said; should it be right, what is old is deleted "
                "from %s on",
                rest.date(),
            )
            return 0
        days = self.settings.retention_days
        if not days:
            self.store.retention.tidy(now)
            return 0
        return self.store.retention.forget(now - timedelta(days=days), now)

    def _answered_triage(self, triage_id: str) -> KeptTriage:
        """Give a triage that has its answer; raises NotFoundError, or ConflictError where it has none."""
        record = self.record(triage_id)
        if record.diagnosis is None:
            raise ConflictError(record.error or Message("errors.triage-still-way-ask"), 1.0)
        return self._kept_triage(record, record.diagnosis)

    def _kept_triage(self, record: TriageRecord, diagnosis: Diagnosis) -> KeptTriage:
        """Put together what further answers to a stored triage are made of."""
        return KeptTriage(
            diagnosis,
            self.excerpt(record.id),
            record.configs,
            record.telemetry,
            record.language,
            team_of(record.caller),
        )


def _name(name: str) -> str:
    return printable(Redactor().clean(name))[:MAX_NAME] or "log"


def _events(first: Event | None, handle: TaskHandle) -> Iterator[Event]:
    """Pass on what is for the caller."""
    if first is not None:
        yield first
    for message in handle:
        if not isinstance(message, TriageMaterial | PromptShown | RetoldDiagnosis | SearchHits):
            yield message


def _raise(message: WorkerMessage) -> None:
    if isinstance(message, TriageFailed):
        raise ReportedError(message)


def _survive(write: Callable[[], None], what: str) -> None:
    """Write to the store; an answer that cannot be kept is still given."""
    try:
        write()
    except RequestError as error:
        _LOG.error("%s could not be kept: %s", what, error)


class _TriageRecorder:
    """Keeps what a triage's task answers, as it comes."""

    def __init__(self, store: Store, triage_id: str, with_model: bool) -> None:
        self._triages = store.triages
        self._id = triage_id
        self._with_model = with_model
        self._first: Diagnosis | None = None
        self._material: TriageMaterial | None = None

    def __call__(self, message: WorkerMessage) -> None:
        match message:
            case FirstAnswer():
                self._first = message.diagnosis
            case TriageMaterial():
                self._material = message
                # A model takes seconds, in which the server may be stopped; without one the final answer is
                # next.
                if self._with_model:
                    self._write(self._first, final=False)
            case FinalAnswer():
                self._write(message.diagnosis, final=True)
            case TriageFailed():
                # The first answer was told and stands, whatever came after.
                self._write(self._first, final=True, error=message.error)

    def _write(self, diagnosis: Diagnosis | None, *, final: bool, error: str = "") -> None:
        kept = self._material or TriageMaterial(None, (), "")
        _survive(
            lambda: self._triages.answer(
                self._id,
                diagnosis,
                final=final,
                now=datetime.now(UTC),
                excerpt=kept.excerpt,
                configs=kept.configs,
                telemetry=kept.telemetry,
                error=error,
            ),
            f"the answer {self._id}",
        )


class _TurnRecorder:
    """Keeps a question with its answer."""

    def __init__(self, store: Store, triage_id: str, question: str) -> None:
        self._triages = store.triages
        self._id = triage_id
        self._question = question
        self._asked = datetime.now(UTC)

    def __call__(self, message: WorkerMessage) -> None:
        if isinstance(message, TurnAnswered):
            question = MessageRecord(role="user", text=self._question, created=self._asked)
            # Not before the question, whatever was done to the clock meanwhile.
            told = max(self._asked, datetime.now(UTC))
            answer = MessageRecord(role="assistant", text=message.text, created=told)
            _survive(lambda: self._triages.add_messages(self._id, question, answer), f"a turn of {self._id}")
