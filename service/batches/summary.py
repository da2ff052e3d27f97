"""A summary of a batch's failures by cause and crash: their cost, and which change would have saved most.

A job died where its answer is not that nothing failed. What a group cost is what its jobs held: GPU hours
where they were given, nodes by their names where those are known, else as many as the jobs count.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from corpus.message import MessageText, References, Translatable
from corpus.schema import Action, Language, Scalar
from service.schemas.diagnosis import ProposedChange, Standing, Verdict
from service.schemas.parts import Part
from service.schemas.records import BatchState, JobState, SourceKind

# A change that would have saved less of the GPU hours, or jobs, that were lost is not what to do first.
REAL_SHARE = 0.1


class Cost(Part):
    """What jobs cost. `nodes` and `gpu_hours` are None where nothing is known of them.

    `timed` jobs had GPU hours given.
    """

    jobs: int = 0
    nodes: int | None = None
    gpu_hours: float | None = None
    timed: int = 0
    first: datetime | None = None
    last: datetime | None = None


class JobName(Part):
    """A job that stands for others."""

    id: str
    name: str


class NodeCount(Part):
    """A node, and how many of the jobs that died ran on it."""

    name: str
    jobs: int


class CrashGroup(Cost):
    """The jobs that died of one crash, the first of them by name in `members`.

    `proof` is what the failing line says, empty where there is none; `step` what to do first where no change
    is known.
    """

    fingerprint: str
    representative: JobName
    headline: str
    verdict: Verdict
    standing: Standing
    action: Action
    change: ProposedChange | None = None
    confidence: float | None = None
    proof: str = ""
    step: str = ""
    members: tuple[JobName, ...] = ()
    nodes_hit: tuple[NodeCount, ...] = ()


class CauseGroup(Cost):
    """The jobs that died of one cause, by crash, most first; `more` crashes are not listed."""

    cause: str
    title: str
    category: str
    crashes: int
    groups: tuple[CrashGroup, ...]
    more: int = 0


class Saving(Cost):
    """A change, and what the jobs cost whose first change it is: what it would have saved.

    `to` is the value that most of them should have; `values` how many different ones were proposed.
    """

    framework: str
    kind: str
    key: str
    to: Scalar
    values: int
    why: str
    costs: str = ""
    causes: tuple[str, ...] = ()


class FailureReason(Translatable, Part):
    """Why jobs have no answer."""

    error: MessageText
    jobs: int
    example: JobName
    messages: References = Field(default={})


class ModelUse(Part):
    """A model's part in a batch: of `asked` jobs it explained some and gave no answer for `silent` ones.

    `sent` and `received` are its tokens, as far as they were counted; `counted` is False where some are an
    estimate.
    """

    asked: int
    explained: int
    silent: int
    sent: int
    received: int
    counted: bool


class TimeBin(Part):
    """How many jobs died in a stretch of time, by cause."""

    begin: datetime
    causes: dict[str, int]


class Summary(Part):
    """A batch's failures. `jobs` counts all; `died` what was lost in those that died.

    `untriaged` those without an answer.

    `healthy` jobs show a good end; `open_ends` show neither a failure nor an end. The first of both are named
    in `healthy_jobs` and `open_jobs`.
    """

    batch: str
    name: str
    source: SourceKind
    state: BatchState
    created: datetime
    finished: datetime | None
    language: Language = "en"
    jobs: int
    states: dict[JobState, int]
    verdicts: dict[Verdict, int]
    actions: dict[Action, int]
    died: Cost
    healthy: int
    open_ends: int = 0
    healthy_jobs: tuple[JobName, ...] = ()
    open_jobs: tuple[JobName, ...] = ()
    untriaged: int
    crashes: int
    causes: tuple[CauseGroup, ...]
    changes: tuple[Saving, ...]
    failures: tuple[FailureReason, ...]
    nodes_hit: tuple[NodeCount, ...]
    times: tuple[TimeBin, ...]
    left_out: dict[str, int | str]
    model: ModelUse | None = None

    @property
    def best_saving(self) -> Saving | None:
        """The change that would have saved most, where that is a real share of what was lost.

        Without hours it takes more than one job: what one of ten needs says nothing of the others.
        """
        best, lost = next(iter(self.changes), None), self.died
        if best is None:
            return None
        if best.gpu_hours and lost.gpu_hours:
            return best if best.gpu_hours / lost.gpu_hours >= REAL_SHARE else None
        is_shared = best.jobs > 1 or best.jobs == lost.jobs
        return best if is_shared and best.jobs / lost.jobs >= REAL_SHARE else None
