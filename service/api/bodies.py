"""The bodies of requests and answers, as far as they are not the service's own values."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from corpus.message import MessageText, References, Translatable
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.schemas.diagnosis import CaseHit, EndState, ExitCode, Outcome, SignalName, Verdict
from service.schemas.records import (
    BatchOptions,
    CrashNote,
    CrashState,
    Feedback,
    Origin,
    TriageRecord,
    TriageState,
)
from service.telemetry.snapshot import Snapshot

LOG = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/job/train.py", line 88, in <module>\n'
    "[rank0]:     loss.backward()\n"
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of "
    "79.15 GiB of which 1.25 GiB is free.\n"
)
MAX_CONFIG = 1 << 20
MAX_WORDS = 2000
MAX_STATE = 80


Language = Literal["", "en", "zh"]
# Cleaned first: without its control characters, a secret with a colour in its middle is none that could
# be known.
Words = Annotated[str, AfterValidator(lambda text: printable(Redactor().clean(text), "\t\n"))]

# How a truth value is written where there is only text, in a query or a form. Pydantic would also take `on`,
# `t` or `1`, which no client was told of, and in which a mistake goes unnoticed.
SWITCHES = {"true": True, "false": False}
Switch = Annotated[StrictBool, BeforeValidator(lambda given: SWITCHES.get(given, given))]


def _number(value: object) -> object:
    """Refuse a number that is written as text, or as a truth value."""
    if isinstance(value, str | bool):
        raise ValueError("should be a whole number")  # noqa: TRY004 - pydantic passes a TypeError on
    return value


def _text(value: object) -> object:
    """Refuse what is no text."""
    if value is not None and not isinstance(value, str):
        raise ValueError("should be text")
    return value


def _state(value: object) -> object:
    """Refuse a state that is none as it stands; blanks around it would else be taken off unseen."""
    text = _text(value)
    if isinstance(text, str) and (not text or text[0].isspace() or len(text) > MAX_STATE):
        raise ValueError("should be a word of a scheduler's, or be left out")
    return text


class Body(BaseModel):
    """What a client sends; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class ConfigText(Body):
    """One of the job's own files, which a patch may change."""

    name: Annotated[Words, Field(min_length=1, max_length=300, examples=["run.sh"])]
    text: str = Field(max_length=MAX_CONFIG, examples=["python train.py --micro_batch_size 8\n"])


class TriageRequest(Body):
    """One job that died."""

    text: str = Field(min_length=1, description="What the job printed.", examples=[LOG])
    name: Annotated[Words, Field(max_length=300, description="What to call it.")] = ""
    language: Language = Field(default="", description="Language of the answer; empty follows the log.")
    model: StrictBool = Field(default=True, description="Whether a model that the server has may explain.")
    configs: list[ConfigText] = Field(default=[], max_length=20, description="The job's own files.")
    telemetry: Snapshot | Literal["live"] | None = Field(
        default=None,
        description=(
            "What the machine said: a snapshot of `whycrash snapshot`, or `live` for the server's own "
            "machine (scope admin)."
        ),
    )
    exit_code: Annotated[ExitCode, BeforeValidator(_number)] = Field(
        default=None, description="The exit code that the job ended with; 137 and -9 tell of SIGKILL."
    )
    signal: Annotated[SignalName, BeforeValidator(_text)] = Field(
        default=None, description="The signal that killed it, such as SIGKILL or 9."
    )
    state: Annotated[EndState, BeforeValidator(_state)] = Field(
        default=None,
        description=(
            "What its scheduler says of its end, such as OUT_OF_MEMORY, OOMKilled, FAILED, COMPLETED."
        ),
    )
    stream: StrictBool = Field(default=False, description="Answer with server-sent events, as they come.")

    @property
    def outcome(self) -> Outcome | None:
        """How the job ended, as far as it was told."""
        return Outcome(exit_code=self.exit_code, signal=self.signal, state=self.state).if_given

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": LOG, "name": "train.log", "model": False}]}
    )


class Question(Body):
    """A follow-up question about a triage."""

    text: Annotated[
        Words, Field(min_length=1, max_length=8000, examples=["What if I cannot change the batch size?"])
    ]
    stream: StrictBool = Field(default=False, description="Answer with server-sent events, as they come.")


class Judgement(Body):
    """What you say of an answer."""

    right: StrictBool = Field(description="Whether the named cause is the real one.")
    cause: (
        Annotated[Words, Field(max_length=100, description="The real cause, an id of `GET /v1/causes`.")]
        | None
    ) = None
    fix: Annotated[Words, Field(max_length=MAX_WORDS, description="What fixed it.")] = ""
    comment: Annotated[Words, Field(max_length=MAX_WORDS)] = ""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"right": False, "cause": "gpu-oom-training", "fix": "smaller micro batch"}]
        }
    )

    def feedback(self) -> Feedback:
        """Give it as the triage service takes it."""
        # A mask may be longer than what it masks.
        return Feedback(
            right=self.right,
            cause=self.cause or None,
            fix=self.fix[:MAX_WORDS],
            comment=self.comment[:MAX_WORDS],
        )


class CrashNoted(Body):
    """What you say of all crashes of a kind."""

    state: CrashState = Field(default="open", description="Whether it is open, fixed, or to be ignored.")
    owner: Annotated[Words, Field(max_length=100, description="Who looks after it.")] = ""
    fixed_by: Annotated[Words, Field(max_length=500, description="What fixed it, such as a change.")] = ""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"state": "fixed", "owner": "ann", "fixed_by": "pull request 812"}]}
    )

    def note(self) -> CrashNote:
        """Give it as the triage service takes it."""
        return CrashNote(state=self.state, owner=self.owner[:100], fixed_by=self.fixed_by[:500])


class TriageRow(Translatable):
    """A triage in a list."""

    id: str
    state: TriageState
    origin: Origin
    source: str
    created: datetime
    finished: datetime | None
    verdict: Verdict | None
    cause: str | None
    headline: str
    error: MessageText
    messages: References = Field(default={})

    @classmethod
    def of(cls, record: TriageRecord) -> TriageRow:
        """Shorten a record."""
        answer = record.diagnosis
        return cls(
            id=record.id,
            state=record.state,
            origin=record.origin,
            source=record.source,
            created=record.created,
            finished=record.finished,
            verdict=answer.verdict if answer else None,
            cause=answer.cause if answer else None,
            headline=answer.headline if answer else "",
            error=record.error,
        )


class Hits(BaseModel):
    """What a search found, best first."""

    items: list[CaseHit]


class CauseRow(BaseModel):
    """A root cause that an answer can name."""

    id: str
    category: str
    title: str
    means: str


class CaseRow(BaseModel):
    """A case in a list."""

    id: str
    title: str
    cause: str
    frameworks: list[str]


class CasePage(CaseRow):
    """A case with its write-up, in Markdown."""

    action: str
    body: str
    checks: list[str]
    urls: list[str]


class BatchRequest(Body):
    """A batch of jobs that the server finds itself; uploads are sent as multipart."""

    source: Literal["folder", "ray", "slurm", "kubernetes"]
    where: Annotated[
        Words,
        Field(
            max_length=1000,
            description=(
                "The folder (`folder`, `kubernetes`), or the dashboard's address (`ray`); not needed for "
                "`slurm`."
            ),
        ),
    ] = ""
    since: datetime | None = Field(
        default=None, description="Only jobs that ended since then (`ray`, `slurm`)."
    )
    name: Annotated[Words, Field(max_length=300)] = ""
    options: BatchOptions = BatchOptions()

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"source": "folder", "where": "/var/log/jobs", "name": "night of 21 November"}]
        }
    )


class Status(BaseModel):
    """Whether the server can do its work.

    Each check is empty where it is well, else it says what is wrong.
    """

    ready: bool
    checks: dict[str, str] = {}
