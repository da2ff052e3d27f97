"""A worker pool: workers that each do one step after the other, with a deadline for each, and are replaced when they die."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from service.batches.backoff import Backoff
from service.batches.commands import (
    AnswerCommand,
    DropCommand,
    JobCommand,
    JobReturned,
    JobWasLost,
    JobWasRead,
    Outcome,
    ReadCommand,
    Step,
)
from service.batches.executor import ExecutorLostError
from service.workers.tasks import WorkerReady

# Jobs that one worker has at a time: one that it works on, one decided upon meanwhile, one ahead.
DEPTH = 3
# Workers that die while they load, in a row, until it is clear that none will come up.
MAX_STARTS = 5
# Seconds for a worker to load, the making of a first index included.
LOADING = 600.0
# A job that nobody wants any more is ended with its worker once it took this many seconds.
PATIENCE = 0.5

Reply = Outcome | WorkerReady


class Worker(Protocol):
    """One worker process; steps are done in the order in which they are handed over."""

    def send(self, step: Step) -> None:
        """Hand over a step; never waits, and a dead member takes no notice."""

    def kill(self) -> None:
        """End it at once."""

    def exit_reason(self) -> str:
        """Say how it died."""


class WorkerSpawner(Protocol):
    """Where members come from and how their replies are heard."""

    def spawn(self) -> Worker:
        """Start one; its first reply is Ready. Raises ExecutorLostError."""

    def receive(self, members: Sequence[Worker], timeout: float) -> Iterable[tuple[Worker, Reply | None]]:
        """Wait for replies; None from one who is gone. Raises ExecutorLostError."""

    def close(self) -> None:
        """End what belongs to all members."""


@dataclass
class WorkerState:
    """A member with what it has to do: `steps` in their order, since when it does the first, the jobs that it holds.

    `unwanted` are jobs that were abandoned while their steps stood in line.
    """

    member: Worker
    since: float
    ready: bool = False
    steps: deque[ReadCommand | AnswerCommand] = field(default_factory=deque)
    held: dict[str, float] = field(default_factory=dict)
    unwanted: set[str] = field(default_factory=set)

    @property
    def at_work_on(self) -> str | None:
        """The job of the step that is being done."""
        return _job(self.steps[0]) if self.steps else None

    @property
    def ends(self) -> float:
        """The moment at which the step that is being done is too late."""
        if not self.ready:
            return self.since + LOADING
        if not self.steps:
            return float("inf")
        step = self.steps[0]
        if _job(step) in self.unwanted:
            return self.since + PATIENCE
        return self.since + (step.order.seconds if isinstance(step, ReadCommand) else step.seconds)


class WorkerPool:
    """An executor over members of one kind. Only the job that a member worked on when it died pays for it."""

    def __init__(self, hiring: WorkerSpawner, size: int, *, first_alone: bool = False) -> None:
        self._hiring = hiring
        self._size = size
        # What the first one has to make, such as an index, the others then find.
        self._first_alone = first_alone
        self._posts: list[WorkerState] = []
        self._pause = Backoff(0.2, 10.0)
        self._told: list[Outcome] = []

    @property
    def capacity(self) -> int:
        """How many more orders the ready members take."""
        return sum(max(0, DEPTH - len(post.held)) for post in self._posts if post.ready)

    @property
    def ready(self) -> int:
        """How many members have loaded and take orders."""
        return sum(post.ready for post in self._posts)

    @property
    def workers(self) -> Sequence[Worker]:
        """The members at work."""
        return [post.member for post in self._posts]

    def submit(self, order: JobCommand) -> None:
        """Hand an order to the member with the least to do."""
        ready = [post for post in self._posts if post.ready]
        if not ready:
            self._told.append(JobReturned(order.id))
            return
        post = min(ready, key=lambda post: len(post.held))
        post.held[order.id] = order.seconds
        self._hand(post, ReadCommand(order))

    def answer(self, job_id: str) -> None:
        """Have the member that read a job answer it."""
        self._answer(job_id, by_rules=False)

    def answer_by_rules(self, job_id: str) -> None:
        """Have the member that read a job answer it without a model."""
        self._answer(job_id, by_rules=True)

    def drop(self, job_id: str) -> None:
        """Have the member that read a job forget it."""
        if post := self._holder(job_id):
            del post.held[job_id]
            post.member.send(DropCommand(job_id))

    def abandon(self, job_id: str) -> None:
        """Want no more of a job; the member is ended should a step on it go on for long."""
        if post := self._holder(job_id):
            del post.held[job_id]
            if any(_job(step) == job_id for step in post.steps):
                post.unwanted.add(job_id)
            else:
                post.member.send(DropCommand(job_id))

    def outcomes(self, timeout: float) -> Sequence[Outcome]:
        """Wait for outcomes; replaces who died and ends who is late."""
        self._restaff()
        if not self._told:
            nearest = min((post.ends for post in self._posts), default=float("inf")) - monotonic()
            for member, reply in self._hiring.receive(self.workers, max(0.0, min(timeout, nearest))):
                self._told += self._replied(member, reply)
        self._told += self._late()
        told, self._told = self._told, []
        return told

    def close(self) -> None:
        """End all members."""
        for post in self._posts:
            post.member.kill()
        self._posts = []
        self._hiring.close()

    def _answer(self, job_id: str, *, by_rules: bool) -> None:
        if post := self._holder(job_id):
            self._hand(post, AnswerCommand(job_id, post.held[job_id], by_rules))

    def _hand(self, post: WorkerState, step: ReadCommand | AnswerCommand) -> None:
        if not post.steps:
            post.since = monotonic()
        post.steps.append(step)
        post.member.send(step)

    def _holder(self, job_id: str) -> WorkerState | None:
        return next((post for post in self._posts if job_id in post.held), None)

    def _restaff(self) -> None:
        alone = self._first_alone and not any(post.ready for post in self._posts)
        while self._pause.over and len(self._posts) < (1 if alone else self._size):
            self._posts.append(WorkerState(self._hiring.spawn(), monotonic()))

    def _replied(self, member: Worker, reply: Reply | None) -> Iterator[Outcome]:
        post = next((post for post in self._posts if post.member is member), None)
        if post is None:
            return
        if reply is None:
            yield from self._ended(post, member.exit_reason())
        elif isinstance(reply, WorkerReady):
            self._started(post, reply.wrong)
        else:
            yield from self._done(post, reply)

    def _done(self, post: WorkerState, outcome: Outcome) -> Iterator[Outcome]:
        post.steps.popleft()
        post.since = monotonic()
        if outcome.id in post.unwanted:
            post.unwanted.discard(outcome.id)
            post.member.send(DropCommand(outcome.id))
            return
        if not isinstance(outcome, JobWasRead):
            post.held.pop(outcome.id, None)
        yield outcome

    def _started(self, post: WorkerState, wrong: str) -> None:
        if wrong:
            # It would be so for each of them.
            raise ExecutorLostError(f"No worker can work: {wrong}")
        post.ready = True
        self._first_alone = False
        self._pause.end()

    def _ended(self, post: WorkerState, why: str | None) -> Iterator[Outcome]:
        """End a member; the job that it worked on is lost where there is a reason, the others come back."""
        self._posts.remove(post)
        post.member.kill()
        if not post.ready:
            self._pause.begin()
            if self._pause.failures >= MAX_STARTS:
                raise ExecutorLostError(f"No worker can be started: {why}")
        guilty = post.at_work_on
        for job_id in post.held:
            yield JobWasLost(job_id, why) if why and job_id == guilty else JobReturned(job_id)

    def _late(self) -> Iterator[Outcome]:
        now = monotonic()
        for post in [post for post in self._posts if post.ends <= now]:
            yield from self._ended(
                post, f"It took longer than {post.ends - post.since:.0f} seconds and was ended."
            )


def _job(step: Step) -> str:
    return step.order.id if isinstance(step, ReadCommand) else step.id
