"""The desk: what every face of whycrash asks. It triages, keeps, converses, searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from service.diagnosis import CaseHit
from service.events import Event
from service.patching.patches import ConfigFile
from service.records import Excerpt, Feedback, FeedbackRecord, MessageRecord, Origin, TriageRecord
from service.settings import Settings
from service.telemetry.snapshot import Snapshot


@dataclass(frozen=True)
class Submission:
    """What a person or a program hands in.

    `text` is a pasted log; else `paths` are log files, folders or archives that are one job's output, which the
    caller removes once the last event came. `telemetry` is a snapshot, or `live` for this machine now.
    """

    name: str
    text: str = ""
    paths: tuple[Path, ...] = ()
    configs: tuple[ConfigFile, ...] = ()
    telemetry: Snapshot | Literal["live"] | None = None
    language: str = ""
    model: bool = True


@dataclass(frozen=True)
class Caller:
    """Who asks: through which face, by which name (a key's id, a Slack user, `local`)."""

    origin: Origin
    name: str = "local"


@dataclass(frozen=True)
class Page:
    """A page of triages, newest first; `next` is what to pass as `after` for the next one, None at the end."""

    items: tuple[TriageRecord, ...]
    next: str | None


class Desk:
    """What every face asks. Safe to use from many threads; its methods block, so an event loop calls them in threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> Desk:
        raise NotImplementedError

    def triage(self, submission: Submission, caller: Caller) -> Iterator[Event]:
        """Triage one job: Accepted, Progress..., Read, Matched, First, Said..., Final; or Failed at any place.

        Raises BusyError before the first event where too many wait, InvalidRequestError where nothing was handed in.
        An iterator that is closed early ends the work; what was answered so far is kept.
        """
        raise NotImplementedError

    def ask(self, triage_id: str, question: str, caller: Caller) -> Iterator[Event]:
        """Answer a follow-up question: Said..., Turned; or Failed. Raises NotFoundError, BusyError, ConflictError while it runs."""
        raise NotImplementedError

    def record(self, triage_id: str) -> TriageRecord:
        """Give a triage; raises NotFoundError."""
        raise NotImplementedError

    def records(self, words: str = "", after: str | None = None, limit: int = 20, caller: str | None = None) -> Page:
        """Give past triages, newest first, those whose source, headline or cause holds all words."""
        raise NotImplementedError

    def messages(self, triage_id: str) -> Sequence[MessageRecord]:
        """Give the conversation about a triage, oldest first."""
        raise NotImplementedError

    def excerpt(self, triage_id: str) -> Excerpt:
        """Give what is kept of the log: empty while it is read."""
        raise NotImplementedError

    def prompt(self, triage_id: str) -> str:
        """Give exactly what a model is sent of this triage, redacted; the same whether a model is set or not."""
        raise NotImplementedError

    def feedback(self, triage_id: str, feedback: Feedback, caller: Caller) -> FeedbackRecord:
        """Keep what a person says of an answer; raises NotFoundError, InvalidRequestError where the cause is none of ours."""
        raise NotImplementedError

    def forget(self, triage_id: str, caller: Caller) -> None:
        """Delete a triage with all that belongs to it; raises NotFoundError."""
        raise NotImplementedError

    def search(self, words: str, count: int = 5, language: str = "") -> Sequence[CaseHit]:
        """Search cases, notes and past reports."""
        raise NotImplementedError

    def ready(self) -> dict[str, str]:
        """Check database, index and workers; an empty text is good, else it says what is wrong."""
        raise NotImplementedError

    def forget_old(self, now: datetime) -> int:
        """Delete what is older than the retention; gives how many triages and batches went."""
        raise NotImplementedError
