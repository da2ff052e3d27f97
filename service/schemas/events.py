"""What is told while a triage or a turn of a conversation is worked on.

The last event is always a Final, a Turned or a Failed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from corpus.message import MessageText, References, Translatable
from service.schemas.diagnosis import CaseHit, Diagnosis, Engine
from service.schemas.parts import Part


class Accepted(Part):
    """The triage has its id, and stands in the store."""

    kind: Literal["accepted"] = "accepted"
    id: str


class Progress(Part):
    """How far reading has come; `total` is the size of what was given, in bytes, 0 where it is not known."""

    kind: Literal["progress"] = "progress"
    bytes: int
    total: int


class LogRead(Part):
    """What was read.

    Bytes, lines, events of failure, who printed them, what was masked, what telemetry is from.
    """

    kind: Literal["report"] = "report"
    bytes: int
    lines: int
    events: int
    root_line: int | None
    root_file: str | None
    frameworks: tuple[str, ...]
    redactions: int
    truncated: bool
    telemetry: tuple[str, ...]


class CasesMatched(Part):
    """The cases, notes and past reports that fit, best first."""

    kind: Literal["cases"] = "cases"
    cases: tuple[CaseHit, ...]


class FirstAnswer(Part):
    """The first answer, by rules; it stands whatever comes after."""

    kind: Literal["first"] = "first"
    diagnosis: Diagnosis


class LogLookedAt(Translatable, Part):
    """A model looked into the log or what is known; `says` tells a person at what."""

    kind: Literal["look"] = "look"
    tool: str
    says: MessageText
    messages: References = Field(default={})


class ExplanationParagraph(Part):
    """A paragraph, in Markdown, that has passed its checks.

    Of a model's explanation, or of the answer to a question.
    """

    kind: Literal["text"] = "text"
    text: str


class FinalAnswer(Part):
    """The whole answer."""

    kind: Literal["final"] = "final"
    diagnosis: Diagnosis


class TurnAnswered(Part):
    """The answer to a follow-up question.

    `constraints` are what the user ruled out so far, in their words.
    """

    kind: Literal["turn"] = "turn"
    text: str
    diagnosis: Diagnosis
    engine: Engine
    constraints: tuple[str, ...] = ()


class TriageFailed(Translatable, Part):
    """There is no answer.

    `type` is the error's kind (`Busy` of a BusyError), `status` the HTTP status that fits, `error` a sentence
    for the user.
    """

    kind: Literal["error"] = "error"
    type: str
    status: int
    error: MessageText
    retry_after: float | None = None
    messages: References = Field(default={})


Event = Annotated[
    Accepted
    | Progress
    | LogRead
    | CasesMatched
    | FirstAnswer
    | LogLookedAt
    | ExplanationParagraph
    | FinalAnswer
    | TurnAnswered
    | TriageFailed,
    Field(discriminator="kind"),
]
