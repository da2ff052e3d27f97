"""Executor slots: each opens an executor when it has jobs, and again when all its workers are lost."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from time import monotonic, sleep
from typing import Literal

from ingest.workers.backoff import Backoff
from service.batches.commands import JobCommand, JobReturned, JobWasLost, JobWasRead, StepResult
from service.batches.executor import Executor, ExecutorLostError
from service.batches.pool_executor import open_local, open_ray
from service.settings import Settings

SlotName = Literal["local", "ray"]
Opener = Callable[[Settings], Executor]

OPENERS: Mapping[SlotName, Opener] = {"local": open_local, "ray": open_ray}
# Seconds after which workers that have nothing to do are ended.
IDLE = 30.0
# A job that was returned so often is taken for the reason that the workers end.
MAX_RETURNS = 8
# After so many failures in a row, what Ray was to do is done by processes of this machine.
MAX_LOSSES = 5
# After so many failures with processes of this machine, the batch stops.
HOPELESS = 2
_LOG = logging.getLogger("whycrash.batch")


class ExecutorSlot:
    """An executor with what waits for it.

    Returned jobs are handed out again, so that callers see only final outcomes.
    """

    def __init__(
        self, name: SlotName, settings: Settings, openers: Mapping[SlotName, Opener] = OPENERS
    ) -> None:
        self.name = name
        self._settings = settings
        self._openers = openers
        self._opener = openers[name]
        self._executor: Executor | None = None
        self._pause = Backoff(0.5, 30.0)
        self._waiting: deque[JobCommand] = deque()
        # What the executor has, by handle, and the handle of each job: one that was let go of and came anew
        # has another.
        self._out: dict[str, JobCommand] = {}
        self._handles: dict[str, str] = {}
        self._numbers = count(1)
        self._read: set[str] = set()
        self._returns: Counter[str] = Counter()
        self._busy = monotonic()
        self._wrong = ""

    @property
    def failure(self) -> str:
        """What keeps all workers from working, again and again; empty where nothing does."""
        return (
            self._wrong if self._pause.failures >= HOPELESS and self._opener is self._openers["local"] else ""
        )

    @property
    def waiting(self) -> int:
        """How many commands wait for a worker."""
        return len(self._waiting)

    @property
    def empty(self) -> bool:
        """Tell whether there is nothing to do or to be told."""
        return not self._waiting and not self._out

    @property
    def executor(self) -> Executor | None:
        """The executor, while one is open."""
        return self._executor

    def add(self, command: JobCommand) -> None:
        """Add a command."""
        self._waiting.append(command)

    def has_read(self, job_id: str) -> bool:
        """Tell whether a worker holds the report of a job; after its end the job is read again."""
        return job_id in self._read

    def answer(self, job_id: str) -> None:
        """Have a job that was read answered."""
        if handle := self._handles.get(job_id):
            self._tell(lambda executor: executor.answer(handle))

    def answer_by_rules(self, job_id: str) -> None:
        """Have a job that was read answered without a model."""
        if handle := self._handles.get(job_id):
            self._tell(lambda executor: executor.answer_by_rules(handle))

    def drop(self, job_id: str) -> None:
        """Have a job that was read forgotten."""
        if handle := self._take_handle(job_id):
            self._tell(lambda executor: executor.drop(handle))

    def abandon(self, job_id: str) -> None:
        """Stop work on a job that is no longer wanted."""
        self._waiting = deque(command for command in self._waiting if command.id != job_id)
        self._returns.pop(job_id, None)
        if handle := self._take_handle(job_id):
            self._tell(lambda executor: executor.abandon(handle))

    def outcomes(self, timeout: float) -> list[StepResult]:
        """Hand out what waits, and wait for outcomes."""
        if self._executor is None and not self._opened(timeout):
            return []
        found: list[StepResult] = []
        self._tell(lambda executor: found.extend(self._round(executor, timeout)))
        if not self.empty:
            self._busy = monotonic()
        elif monotonic() - self._busy > IDLE:
            self._end()
        return found

    def close(self) -> None:
        """End the workers, and forget what they were to do."""
        self._end()
        for held in (self._waiting, self._out, self._handles, self._returns, self._read):
            held.clear()

    def _end(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.close()

    def _round(self, executor: Executor, timeout: float) -> Sequence[StepResult]:
        while self._waiting and executor.capacity > 0:
            command = self._waiting.popleft()
            handle = self._handles[command.id] = f"{command.id}~{next(self._numbers)}"
            self._out[handle] = command
            executor.submit(replace(command, id=handle))
        found = [
            told for outcome in executor.outcomes(timeout) if (told := self._result_of(executor, outcome))
        ]
        if found:
            self._pause.end()
        return found

    def _result_of(self, executor: Executor, outcome: StepResult) -> StepResult | None:
        command = self._out.get(outcome.id)
        if command is None:
            if isinstance(outcome, JobWasRead):
                executor.drop(outcome.id)
            return None
        if isinstance(outcome, JobReturned):
            self._take_handle(command.id)
            return self._again(command)
        if isinstance(outcome, JobWasRead):
            self._read.add(command.id)
        else:
            self._take_handle(command.id)
            self._returns.pop(command.id, None)
        return replace(outcome, id=command.id)

    def _again(self, command: JobCommand) -> StepResult | None:
        self._returns[command.id] += 1
        if self._returns[command.id] > MAX_RETURNS:
            del self._returns[command.id]
            return JobWasLost(command.id, f"The workers died {MAX_RETURNS} times while they had it.")
        self._waiting.appendleft(command)
        return None

    def _take_handle(self, job_id: str) -> str | None:
        """Take a job's handle back."""
        self._read.discard(job_id)
        handle = self._handles.pop(job_id, None)
        if handle:
            del self._out[handle]
        return handle

    def _opened(self, timeout: float) -> bool:
        if self._waiting and self._pause.over:
            self._busy = monotonic()
            try:
                self._executor = self._opener(self._settings)
            except ExecutorLostError as error:
                self._lost(error)
        if self._executor is None and self._waiting:
            sleep(timeout)
        return self._executor is not None

    def _tell(self, act: Callable[[Executor], None]) -> None:
        if self._executor is None:
            return
        try:
            act(self._executor)
        except ExecutorLostError as error:
            self._lost(error)

    def _lost(self, error: ExecutorLostError) -> None:
        self._end()
        wait = self._pause.begin()
        self._wrong = str(error)
        _LOG.warning("the %s workers of batches are lost, new ones in %.1f s: %s", self.name, wait, error)
        # Not counted as a return: one log is unlikely to end all workers at once.
        self._waiting.extendleft(reversed(self._out.values()))
        self._out.clear()
        self._handles.clear()
        self._read.clear()
        if self._pause.failures >= MAX_LOSSES and self._opener is not self._openers["local"]:
            _LOG.warning("%s cannot be used; its jobs run on processes of this machine", self.name)
            self._opener = self._openers["local"]
            self._pause.end()
