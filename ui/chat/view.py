"""What the page knows of one triage, and how each event changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Literal

from corpus.schema import Language
from service.composition.diagnosis_view import DiagnosisView, diagnosis_view
from service.schemas.diagnosis import CaseHit, Diagnosis
from service.schemas.events import (
    Accepted,
    CasesMatched,
    Event,
    ExplanationParagraph,
    FinalAnswer,
    FirstAnswer,
    LogLookedAt,
    LogRead,
    Progress,
    TriageFailed,
    TurnAnswered,
)
from service.schemas.records import Crash, Excerpt, MessageRecord, Recurrence, TriageRecord
from service.telemetry.snapshot import Snapshot

NOTHING = Excerpt()
State = Literal["waiting", "running", "done", "failed"]


@dataclass(frozen=True)
class TriageView:
    """One triage as the page shows it.

    `model` is the model that the server has, or nothing; `first` the rules' answer where it came while the
    page was watching; `looks` what the model has looked at so far; `said` the paragraphs of the model so far;
    `asking` the question that is being answered now, `turn_looks` what the model has looked at for it, and
    `reply` what stands of its answer; `is_elsewhere` that another page, or a server that stopped, works on
    it; `recurrence` what is known of earlier triages
    of the same crash, `crash` what of all of them; `job` the job of a batch whose answer
    it is, which is no triage.
    """

    language: Language
    name: str = ""
    model: str = ""
    triage: str = ""
    state: State = "waiting"
    progress: Progress | None = None
    read: LogRead | None = None
    cases: tuple[CaseHit, ...] | None = None
    first: Diagnosis | None = None
    diagnosis: Diagnosis | None = None
    looks: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    failed: TriageFailed | None = None
    excerpt: Excerpt = NOTHING
    snapshot: Snapshot | None = None
    messages: tuple[MessageRecord, ...] = ()
    asking: str = ""
    turn_looks: tuple[str, ...] = ()
    reply: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    is_elsewhere: bool = False
    recurrence: Recurrence | None = None
    crash: Crash | None = None
    job: str = ""

    @property
    def address(self) -> str:
        """Where the page shows it, relative to the page."""
        return f"?job={self.job}" if self.job else f"?triage={self.triage}"

    @cached_property
    def answer(self) -> DiagnosisView | None:
        """What is shown of the answer, in the page's language; None as long as there is none."""
        return diagnosis_view(self.diagnosis, self.language) if self.diagnosis is not None else None

    @property
    def wants_model(self) -> bool:
        """Tell whether a model's words are still to come."""
        return (
            self.state == "running"
            and bool(self.model)
            and self.first is not None
            and self.first.verdict != "no-failure"
        )


def of_record(record: TriageRecord, language: Language, model: str) -> TriageView:
    """Show a triage that is kept."""
    failed = (
        TriageFailed(type="TriageError", status=500, error=record.error) if record.state == "failed" else None
    )
    return TriageView(
        language=language,
        name=record.source,
        model=model,
        triage=record.id,
        state=record.state,
        failed=failed,
        diagnosis=record.diagnosis,
        is_elsewhere=record.state == "running",
    )


@singledispatch
def after(event: Event, view: TriageView) -> TriageView:
    """Give what is known after an event."""
    raise TypeError(f"{type(event).__name__} is no event of the triage {view.triage}")


@after.register
def _(event: Accepted, view: TriageView) -> TriageView:
    return replace(view, triage=event.id, state="running")


@after.register
def _(event: Progress, view: TriageView) -> TriageView:
    return replace(view, progress=event, state="running")


@after.register
def _(event: LogRead, view: TriageView) -> TriageView:
    return replace(view, read=event, state="running")


@after.register
def _(event: CasesMatched, view: TriageView) -> TriageView:
    return replace(view, cases=event.cases)


@after.register
def _(event: FirstAnswer, view: TriageView) -> TriageView:
    return replace(view, first=event.diagnosis, diagnosis=event.diagnosis)


@after.register
def _(event: LogLookedAt, view: TriageView) -> TriageView:
    if view.asking:
        return replace(view, turn_looks=(*view.turn_looks, event.says))
    return replace(view, looks=(*view.looks, event.says))


@after.register
def _(event: ExplanationParagraph, view: TriageView) -> TriageView:
    if view.asking:
        return replace(view, reply=(*view.reply, event.text))
    return replace(view, said=(*view.said, event.text))


@after.register
def _(event: FinalAnswer, view: TriageView) -> TriageView:
    return replace(view, diagnosis=event.diagnosis, state="done")


@after.register
def _(event: TurnAnswered, view: TriageView) -> TriageView:
    return replace(
        view, diagnosis=event.diagnosis, constraints=event.constraints, asking="", turn_looks=(), reply=()
    )


@after.register
def _(event: TriageFailed, view: TriageView) -> TriageView:
    # A turn that fails leaves the answer as it is.
    return replace(
        view, failed=event, state="done" if view.asking else "failed", asking="", turn_looks=(), reply=()
    )
