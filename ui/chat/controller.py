"""One page's dealings with the triage service: a log in, states of the page out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from corpus import library
from corpus.library import Library
from corpus.schema import Language
from ingest.logs.inputs.members import CONFIG, kind_of
from service.api.access import own_triage
from service.app.admission import Caller, Principal, demand_live
from service.app.triage_service import TriageService
from service.composition import ticket
from service.html.markup import EMPTY, Html, join
from service.patching.patches import ConfigFile
from service.persistence.crashes import TriageScope
from service.schemas.errors import RequestError
from service.schemas.events import Event, ExplanationParagraph, FinalAnswer, FirstAnswer, TurnAnswered
from service.schemas.failures import failure_of
from service.schemas.records import CrashNote, CrashState, Feedback, TriageRecord
from service.settings import Settings
from service.telemetry import snapshot
from service.telemetry.errors import TelemetryError
from service.telemetry.snapshot import Snapshot
from service.workers.tasks import Submission
from ui.chat import (
    answer,
    cascade,
    cases,
    conversation,
    curves,
    evidence,
    feedback,
    history,
    privacy,
    stages,
    telemetry,
)
from ui.chat.uploads import SubmittedFiles, Uploaded, Uploads
from ui.chat.view import NOTHING, TriageView, after, of_record
from ui.chat.words import EXAMPLE, PASTED

EXAMPLES = Path(__file__).parent / "examples"
# A page sends longer text as a file.
MAX_PASTE = 4 << 20
MAX_QUESTION = 4000
PER_PAGE = 30
# How long an answer that is kept may be put into another language, before it is shown as it is.
RETELLING_S = 10.0
# Batches that stand above past triages.
LATEST = 4

# What the browser is given: words, numbers, and HTML by the name of its panel.
State = dict[str, Any]


class BrowserForm(BaseModel):
    """What a browser sends; unknown fields are errors.

    `ticket` comes back with each state, so that a page that has turned to something else knows what is late.
    """

    model_config = ConfigDict(extra="forbid")

    language: Language = "en"
    ticket: int = 0


class TriageForm(BrowserForm):
    """A log to explain: pasted, uploaded, or one of our examples."""

    text: str = Field(default="", max_length=MAX_PASTE)
    files: list[Uploaded] = []
    example: str = Field(default="", pattern=r"^[a-z-]*$")
    live: bool = False
    model: bool = True


class QuestionForm(BrowserForm):
    """A follow-up question about a triage."""

    triage: str
    question: str = Field(max_length=MAX_QUESTION)


class TriageReference(BrowserForm):
    """A triage by its id."""

    triage: str


class HistoryQuery(BrowserForm):
    """A page of past triages: those that hold all words, after an id."""

    words: str = Field(default="", max_length=200)
    after: str | None = None


class FeedbackForm(TriageReference):
    """What a person thinks of an answer."""

    right: bool
    cause: str | None = None
    fix: str = Field(default="", max_length=2000)


class CrashForm(TriageReference):
    """What a person notes of all triages of the crash that a triage is of."""

    state: CrashState
    owner: str = Field(default="", max_length=100)
    fixed_by: str = Field(default="", max_length=500)


class PanelCache:
    """The panels of one page; a panel is rendered anew only where what it shows has changed."""

    def __init__(self, corpus: Library, ticket: int = 0) -> None:
        self._ticket = ticket
        self._seen: dict[str, tuple[tuple[object, ...], Html]] = {}
        self._panels: dict[
            str, tuple[Callable[[TriageView], Html], Callable[[TriageView], tuple[object, ...]]]
        ] = {
            "stages": (stages.render, lambda view: (view,)),
            "head": (partial(answer.head, library=corpus), lambda view: (*_answer_of(view), view.recurrence)),
            "changes": (answer.changes, _answer_of),
            "why": (
                partial(answer.why, library=corpus),
                lambda view: (view.diagnosis, view.language, view.said, view.state),
            ),
            "feedback": (
                partial(feedback.render, library=corpus),
                lambda view: (view.diagnosis and view.diagnosis.id, view.language, view.state, view.crash),
            ),
            "evidence": (evidence.render, lambda view: (view.diagnosis, view.language, view.excerpt)),
            "cascade": (cascade.render, _answer_of),
            "cases": (cases.render, _answer_of),
            "curves": (curves.render, lambda view: (view.diagnosis, view.language)),
            "machine": (
                partial(telemetry.render, library=corpus),
                lambda view: (view.diagnosis, view.language, view.snapshot),
            ),
            "privacy": (privacy.render, lambda view: (view.diagnosis, view.language, view.excerpt)),
            "talk": (conversation.render, lambda view: (view,)),
        }

    def paint(self, view: TriageView) -> State:
        """Give the state of the page for a view."""
        diagnosis = view.diagnosis
        return {
            "ticket": self._ticket,
            "triage": view.triage,
            "state": view.state,
            "elsewhere": view.is_elsewhere,
            "asking": bool(view.asking),
            "headline": diagnosis.headline if diagnosis is not None else "",
            "patch": diagnosis.patch if diagnosis is not None else None,
            "command": diagnosis.command if diagnosis is not None else None,
            "markdown": ticket.text(view.answer) if view.answer is not None else "",
            "panels": {name: self._panel(name, view) for name in self._panels},
        }

    def _panel(self, name: str, view: TriageView) -> str:
        render, key = self._panels[name]
        now, (seen, html) = key(view), self._seen.get(name, ((), EMPTY))
        if len(seen) != len(now) or any(
            one is not other and one != other for one, other in zip(seen, now, strict=True)
        ):
            html = render(view)
            self._seen[name] = (now, html)
        return str(html)


def _answer_of(view: TriageView) -> tuple[object, ...]:
    return view.diagnosis, view.language, view.is_elsewhere


class ChatController:
    """What the page's events do, each for a principal who was let in.

    Safe to use from many threads, as the triage service is.

    What is another's is not there, as in the API: a triage's id opens nothing by itself.
    """

    def __init__(self, triage_service: TriageService, settings: Settings, uploads: Uploads) -> None:
        self._triage_service = triage_service
        self._settings = settings
        self._uploads = uploads

    @cached_property
    def library(self) -> Library:
        """The corpus, for the names of causes."""
        return library.load(cache=self._settings.home / "cache")

    def explain(self, asked: TriageForm, principal: Principal) -> Iterator[State]:
        """Triage what was sent, and give the page's state after each event."""
        canvas, view = (
            PanelCache(self.library, asked.ticket),
            TriageView(asked.language, submission_name(asked), self._settings.model if asked.model else ""),
        )
        yield canvas.paint(view)
        try:
            if asked.live:
                demand_live(principal)
            with self._uploads.claimed(asked.files, principal.caller.name, asked.text) as files:
                view = replace(view, snapshot=files.telemetry)
                for event in self._triage_service.triage(_submission(asked, files), _caller(principal)):
                    view = self._enriched(after(event, view), event, principal)
                    yield canvas.paint(view)
        except RequestError as error:
            yield canvas.paint(after(failure_of(error), view))

    def ask(self, question: QuestionForm, principal: Principal) -> Iterator[State]:
        """Answer a question about a triage."""
        own_triage(self._triage_service, principal, question.triage)
        canvas, view = (
            PanelCache(self.library, question.ticket),
            self._view(question.triage, question.language, principal),
        )
        view = replace(view, asking=question.question)
        yield canvas.paint(view)
        try:
            for event in self._triage_service.ask(question.triage, question.question, _caller(principal)):
                view = self._enriched(after(event, view), event, principal)
                yield canvas.paint(view)
        except RequestError as error:
            yield canvas.paint(after(failure_of(error), view))

    def open(self, named: TriageReference, principal: Principal) -> State:
        """Show a triage that is kept."""
        return PanelCache(self.library, named.ticket).paint(
            self._view(named.triage, named.language, principal)
        )

    def log(self, named: TriageReference, principal: Principal) -> str:
        """Give the log panel of a triage, for a page that had its first answer before the log was kept."""
        own_triage(self._triage_service, principal, named.triage)
        return str(evidence.render(self._view(named.triage, named.language, principal)))

    def past(self, wanted: HistoryQuery, principal: Principal) -> str:
        """List past triages: one's own, or all where one may see them."""
        page = self._triage_service.records(wanted.words, wanted.after, PER_PAGE, principal.only)
        prints = [item.diagnosis.fingerprint for item in page.items if item.diagnosis is not None]
        crashes = self._triage_service.store.crashes.among(prints, TriageScope(principal.only))
        now, batches = datetime.now(UTC), EMPTY
        if not (wanted.words or wanted.after) and principal.may("batch"):
            latest, _ = self._triage_service.store.batches.page(limit=LATEST, caller=principal.only)
            batches = history.batches(latest, wanted.language, now)
        return str(join(batches, history.render(page, crashes, self.library, wanted.language, now)))

    def judge(self, opinion: FeedbackForm, principal: Principal) -> None:
        """Keep what a person thinks of an answer."""
        own_triage(self._triage_service, principal, opinion.triage)
        self._triage_service.feedback(
            opinion.triage,
            Feedback(right=opinion.right, cause=opinion.cause or None, fix=opinion.fix),
            _caller(principal),
        )

    def note_crash(self, noted: CrashForm, principal: Principal) -> None:
        """Keep what a person says of all triages of a crash."""
        record = own_triage(self._triage_service, principal, noted.triage)
        self._triage_service.note_crash(
            record.diagnosis.fingerprint if record.diagnosis else "",
            CrashNote(state=noted.state, owner=noted.owner, fixed_by=noted.fixed_by),
            _caller(principal),
            TriageScope(principal.only),
        )

    def prompt(self, named: TriageReference, principal: Principal) -> str:
        """Give what a model is sent of a triage."""
        own_triage(self._triage_service, principal, named.triage)
        return self._triage_service.prompt(named.triage)

    def forget(self, named: TriageReference, principal: Principal) -> None:
        """Delete a triage."""
        own_triage(self._triage_service, principal, named.triage)
        self._triage_service.forget(named.triage, _caller(principal))

    def _view(self, triage: str, language: Language, principal: Principal) -> TriageView:
        try:
            record = own_triage(self._triage_service, principal, triage)
            view = of_record(self._retold(record, language), language, self._settings.model)
            given: Snapshot | None = None
            with suppress(TelemetryError):
                if record.telemetry.startswith("{"):
                    given = snapshot.parse_snapshot(record.telemetry, "telemetry")
            return replace(
                view,
                excerpt=self._triage_service.excerpt(triage),
                messages=tuple(self._triage_service.messages(triage)),
                snapshot=given,
                **self._same(view, principal),
            )
        except RequestError as error:
            return TriageView(language, state="failed", failed=failure_of(error))

    def _retold(self, record: TriageRecord, language: Language) -> TriageRecord:
        """Put a record's answer into the page's language; as it is kept where that fails or takes long."""
        with suppress(RequestError):
            told = self._triage_service.retold(record, language, RETELLING_S)
            return record.model_copy(update={"diagnosis": told})
        return record

    def _same(self, view: TriageView, principal: Principal) -> dict[str, Any]:
        """Give the parts of a view that tell of other triages of its crash."""
        if view.diagnosis is None or not (crash := view.diagnosis.fingerprint):
            return {}
        scope = TriageScope(principal.only)
        return {
            "recurrence": self._triage_service.earlier(view.triage, crash, scope),
            "crash": self._triage_service.store.crashes.get(crash, scope),
        }

    def _enriched(self, view: TriageView, event: Event, principal: Principal) -> TriageView:
        """Add what only the store tells: earlier crashes and kept lines of an answer, the talk of a turn."""
        if isinstance(event, FirstAnswer | FinalAnswer) and not view.asking:
            view = replace(view, **self._same(view, principal))
        if (
            isinstance(event, FirstAnswer | ExplanationParagraph | FinalAnswer)
            and not view.asking
            and view.excerpt == NOTHING
        ):
            return replace(view, excerpt=self._triage_service.excerpt(view.triage))
        if isinstance(event, TurnAnswered):
            return replace(view, messages=tuple(self._triage_service.messages(view.triage)))
        return view


def _caller(principal: Principal) -> Caller:
    return principal.caller.on_page


def submission_name(asked: TriageForm) -> str:
    """Name a submission in lists of past triages: by its log, or by the example that it is."""
    if asked.example:
        return f"{EXAMPLE}{asked.example}"
    # A job is known by its log, and not by the configuration that came with it.
    logs = [file.name for file in asked.files if kind_of(file.name) != CONFIG]
    if not logs and (asked.text.strip() or not asked.files):
        name, others = PASTED, len(asked.files)
    else:
        name, others = (logs or [file.name for file in asked.files])[0], len(asked.files) - 1
    return name[:200] + (f" (+{others})" if others else "")


def _submission(asked: TriageForm, files: SubmittedFiles) -> Submission:
    text, configs = asked.text, files.configs
    if asked.example:
        text, configs = example(asked.example)
    return Submission(
        name=submission_name(asked),
        text=text if not files.logs else "",
        paths=tuple(path for _, path in files.logs),
        names=tuple(name for name, _ in files.logs),
        configs=configs,
        telemetry=files.telemetry or ("live" if asked.live else None),
        language=asked.language,
        model=asked.model,
    )


def example(name: str) -> tuple[str, tuple[ConfigFile, ...]]:
    """Give one of our examples: its log, and the job's own files."""
    folder = EXAMPLES / name
    own = [path for path in sorted(folder.iterdir()) if path.name != "log.txt"] if folder.is_dir() else []
    text = (folder / "log.txt").read_text(encoding="utf-8") if folder.is_dir() else ""
    return text, tuple(ConfigFile(path.name, path.read_text(encoding="utf-8")) for path in own)


def examples() -> list[str]:
    """Name our examples."""
    return sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def broken(error: RequestError, ticket: object, language: Language = "en") -> State:
    """Give the state that says why nothing more comes; what the page shows already stays."""
    view = TriageView(language, state="failed", failed=failure_of(error))
    return {
        "ticket": ticket,
        "state": "failed",
        "elsewhere": False,
        "asking": False,
        "panels": {"stages": str(stages.trouble(view))},
    }
