"""What is kept: triages with their conversation and feedback, batches with their jobs, keys, the audit.

Values only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, ValidationInfo

from corpus.message import MessageText, References, Translatable
from service.schemas.diagnosis import Diagnosis, Outcome
from service.schemas.parts import Part

Origin = Literal["api", "chat", "slack", "cli", "mcp"]
TriageState = Literal["running", "done", "failed"]
BatchState = Literal["running", "done", "cancelled"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]
CrashState = Literal["open", "fixed", "ignored"]
Scope = Literal["triage", "batch", "admin"]
SourceKind = Literal[
    "upload",
    "folder",
    "ray",
    "slurm",
    "kubernetes",
    "objects",
    "lines",
    "loki",
    "elasticsearch",
    "slurmrestd",
]


# Before a team's name where it stands for those whose work something is; no key and no user is called so.
TEAM = "team:"


def team_of(owner: str) -> str:
    """Name the team whose work something is, by its caller as it is kept; empty where it is of none."""
    return owner.removeprefix(TEAM) if owner.startswith(TEAM) else ""


def _not_before_its_begin(moment: datetime | None, given: ValidationInfo) -> datetime | None:
    began = given.data.get("created")
    return max(moment, began) if moment and began else moment


# When something that was `created` ended. A clock that ran ahead at its begin, and was set right meanwhile,
# would have it end before.
EndTime = Annotated[datetime | None, AfterValidator(_not_before_its_begin)]


class LineRange(Part):
    """Lines of a log that stand together, redacted.

    `begin` is the 1-based number of the first, in its `file`.
    """

    file: str | None
    begin: int
    lines: tuple[str, ...]


class Excerpt(Part):
    """What is kept of a log: all of a short one, else the stretches around what matters and its end.

    `whole` tells which.
    """

    stretches: tuple[LineRange, ...] = ()
    whole: bool = False


class TriageRecord(Translatable, Part):
    """A triage as it is kept. Times are UTC.

    `channel` is where it was asked, such as a channel of Slack, empty elsewhere.

    `running` past its `deadline` means that its server was stopped; the store gives such a one as done where
    it has a first answer, else as failed.
    """

    id: str
    state: TriageState
    origin: Origin
    caller: str
    source: str
    created: datetime
    deadline: datetime
    finished: EndTime = None
    language: str = ""
    diagnosis: Diagnosis | None = None
    error: MessageText = ""
    configs: tuple[tuple[str, str], ...] = ()
    telemetry: str = ""
    channel: str = ""
    messages: References = Field(default={})


class MessageRecord(Part):
    """One side of a conversation about a triage; texts are redacted."""

    role: Literal["user", "assistant"]
    text: str
    created: datetime


class Feedback(Part):
    """What a person says of an answer: whether it was right, else the true cause, and what fixed it."""

    right: bool
    cause: str | None = None
    fix: str = Field(default="", max_length=2000)
    comment: str = Field(default="", max_length=2000)


class FeedbackRecord(Feedback):
    """Feedback as it is kept."""

    triage: str
    caller: str
    created: datetime


class CrashNote(Part):
    """What a person says of all crashes of a kind: whether they are open, fixed (by what), or to be ignored.

    `owner` is who looks after it, empty for nobody.
    """

    state: CrashState = "open"
    owner: str = Field(default="", max_length=100)
    fixed_by: str = Field(default="", max_length=500)


class CrashNoteRecord(CrashNote):
    """A note as it is kept; of several on one crash the latest holds."""

    fingerprint: str
    caller: str
    created: datetime


class Recurrence(Part):
    """Earlier triages of the same crash: how many, first and last, and what persons said of them.

    `job` is what the newest of them was called. `fix` is what cured one, `judged` the cause that was called
    right or given instead; both are what was said last, empty where nothing was. `note` is what stands of all
    of them, `is_back` that the crash came again after it was called fixed.
    """

    times: int
    first: datetime
    last: datetime
    triage: str
    job: str = ""
    fix: str = ""
    judged: str = ""
    note: CrashNoteRecord | None = None
    is_back: bool = False


class Crash(Part):
    """The triages of one crash: how many, first and last, what the newest says, and what persons noted.

    `triage` is the newest, `jobs` what the newest ones were called.
    """

    fingerprint: str
    times: int
    first: datetime
    last: datetime
    triage: str
    cause: str | None
    headline: str
    jobs: tuple[str, ...]
    note: CrashNoteRecord | None = None
    is_back: bool = False


class JobPlace(Part):
    """Where a job's output is: paths on this machine (files, folders, archives), or a job of a Ray cluster.

    `spooled` says that the paths are the service's own redacted copies, which go with the batch.
    `source_key` is by which its source knows the same end of the same job again.
    """

    paths: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    ray_dashboard: str = ""
    ray_job: str = ""
    spooled: bool = False
    source_key: str = ""


class JobSpec(Part):
    """A job of a batch before it is worked on.

    Names and texts are redacted; `outcome` is how it ended, where its source knows.
    """

    name: str
    place: JobPlace
    nodes: int | None = None
    gpus: int | None = None
    gpu_hours: float | None = None
    started: datetime | None = None
    ended: datetime | None = None
    node_names: tuple[str, ...] = ()
    outcome: Outcome | None = None


class JobRecord(Translatable, JobSpec):
    """A job of a batch as it is kept.

    `config` is a digest of the job's own files, empty where it has none.
    """

    id: str
    batch: str
    number: int
    state: JobState = "queued"
    attempts: int = 0
    not_before: datetime | None = None
    owner: str = ""
    leased_until: datetime | None = None
    fingerprint: str = ""
    config: str = ""
    same_as: str | None = None
    root_line: int | None = None
    root_file: str | None = None
    root_text: str = ""
    diagnosis: Diagnosis | None = None
    error: MessageText = ""
    finished: datetime | None = None
    messages: References = Field(default={})


class BatchOptions(Part):
    """How a batch's jobs are triaged."""

    language: Literal["", "en", "zh"] = ""
    model: StrictBool = False


class BatchRecord(Part):
    """A batch as it is kept; `counts` has the number of jobs in each state."""

    id: str
    name: str
    caller: str
    source: SourceKind
    state: BatchState
    created: datetime
    finished: EndTime = None
    options: BatchOptions = BatchOptions()
    left_out: dict[str, int | str] = Field(default_factory=dict)
    counts: dict[JobState, int] = Field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of jobs."""
        return sum(self.counts.values())


class KeyRecord(Part):
    """An API key without its secret; `hash` is a SHA-256 of the secret, which is random and long.

    Keys of one `team` see each other's work, and nobody else's.
    """

    id: str
    name: str
    hash: str
    scopes: tuple[Scope, ...]
    created: datetime
    revoked: datetime | None = None
    last_used: datetime | None = None
    team: str = ""


class AuditRecord(Part):
    """Who did what."""

    at: datetime
    actor: str
    action: str
    target: str
    detail: str = ""
