"""The engine: claims jobs, has them read, has one of each crash answered, and records the end of each.

An accepted job ends exactly once, whichever process ends: its lease is renewed only by a running engine,
and only its holder may record a result. Several engines, in one process or many, share the work.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic

from corpus.message import Message
from ingest.workers.backoff import Backoff, backoff_delay
from service.batches import deadlines, owners
from service.batches.batches import BatchService
from service.batches.commands import (
    JobCommand,
    JobReading,
    JobWasAnswered,
    JobWasLost,
    JobWasRead,
    StepFailed,
    StepResult,
)
from service.batches.executor import ExecutorLostError
from service.batches.executor_slots import OPENERS, ExecutorSlot, Opener, SlotName
from service.batches.journal import journal_of
from service.batches.result_writer import ResultWriter
from service.persistence.errors import DamagedStoreError
from service.persistence.outcomes import JobResult
from service.persistence.store import Store
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import DiskFullError, NotFoundError, RequestError, StoreError
from service.schemas.failures import failing_frame
from service.schemas.records import BatchRecord, JobRecord, team_of
from service.settings import Settings

# Seconds for which a job is claimed; after so many without a renewal, another engine may claim it.
LEASE = 30.0
RENEW = 10.0
# Seconds between two looks at what was cancelled and what is over.
LOOK = 0.4
# Seconds until an engine that found nothing asks again.
IDLE = 0.5
MAX_ATTEMPTS = 3
# A job that was started so often without ending is taken for one that kills its engine.
MAX_CLAIMS = 6
# Jobs claimed ahead for each worker, at least; else what is done in so many seconds, as a claim costs as much
# for a hundred as for one, at most so many.
AHEAD = 8
AHEAD_SECONDS = 2.0
MOST_AHEAD = 512
# Seconds that are waited for workers before the store is looked at again.
TURN = 0.2
# Seconds until an engine starts again after an unexpected error.
AGAIN = 5.0
# Seconds until the next try: the least, doubled each time, and the most.
RETRY = (1.0, 60.0)

Watch = Callable[[JobRecord], None]
_LOG = logging.getLogger("whycrash.batch")


@dataclass
class _InFlightJob:
    """A job that this engine holds."""

    job: JobRecord
    slot: ExecutorSlot
    reading: JobReading | None = None


@dataclass
class ClaimRate:
    """How fast jobs end, and so how many are claimed ahead: `least`, or what is done in AHEAD_SECONDS."""

    least: int
    rate: float = 0.0
    since: float = field(default_factory=monotonic)

    @property
    def claim_count(self) -> int:
        """How many jobs to have at hand."""
        return max(self.least, min(MOST_AHEAD, int(AHEAD_SECONDS * self.rate)))

    def count_ended(self, count: int) -> None:
        """Count jobs that have ended; a few slow ones lower the rate within seconds."""
        now = monotonic()
        passed = max(now - self.since, 1e-3)
        share = min(1.0, passed / AHEAD_SECONDS)
        self.rate += share * (count / passed - self.rate)
        self.since = now


def ignore_event(job: JobRecord) -> None:
    """Ignore the end of a job."""


class BatchEngine:
    """Works on batches, all or one, until it is stopped.

    Not to be shared between threads but for `start`, `stop` and `wake`.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        batch: str | None = None,
        watch: Watch = ignore_event,
        openers: Mapping[SlotName, Opener] = OPENERS,
    ) -> None:
        """Prepare; `watch` is called with each job that has ended."""
        self.owner = owners.new_owner()
        self._settings = settings
        self._store = store
        self._batch = batch
        self._watch = watch
        self._slots: dict[SlotName, ExecutorSlot] = {
            name: ExecutorSlot(name, settings, openers) for name in openers
        }
        self._pace = ClaimRate(AHEAD * (settings.workers or os.cpu_count() or 1))
        # What waits for the store, by the step that does.
        self.pauses: dict[str, Backoff] = {}
        self._due: dict[str, float] = {}
        self._over = False
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin with nothing at hand."""
        self._result_writer = ResultWriter(self._store, self._settings.home, self.owner, self._watch)
        self._in_flight: dict[str, _InFlightJob] = {}
        self._undecided: deque[str] = deque()
        self._batches: dict[str, BatchRecord] = {}
        # Which jobs stand for which crash, with which files, of which batch, as far as this engine has asked.
        self._representatives: dict[tuple[str, str, str], tuple[str, str]] = {}

    @property
    def executor_slots(self) -> Mapping[SlotName, ExecutorSlot]:
        """Where jobs run."""
        return self._slots

    def start(self) -> None:
        """Work in a thread of its own until stopped."""
        self._thread = threading.Thread(target=self.run_forever, name="batch-engine", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End soon: what is held goes back as if not tried. Waits for the thread, if there is one."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=30)

    def wake(self) -> None:
        """Look for jobs at once."""
        self._wake.set()

    @property
    def failure(self) -> str:
        """What keeps the engine from its work; empty where nothing does."""
        return next((slot.failure for slot in self._slots.values() if slot.failure), "")

    def run(self) -> None:
        """Work until stopped, or until the one batch that was named is over.

        Raises ExecutorLostError where that one cannot go on; all of it is kept, and goes on with the next
        engine.
        """
        try:
            self._guarded("end orphaned leases", lambda: _end_orphaned_leases(self._store))
            while not self._stop.is_set() and not self._over:
                self._tick()
                if self._batch and self.failure:
                    raise ExecutorLostError(self.failure)
        finally:
            for slot in self._slots.values():
                slot.close()
            self._guarded("record", self._record)
            self._guarded("give back", lambda: self._store.batches.give_back(self.owner))

    def run_forever(self) -> None:
        """Work until stopped, restarting after unexpected errors: the store holds all that is needed."""
        while not self._stop.is_set() and not self._over:
            try:
                self.run()
            except Exception as error:  # noqa: BLE001 - a fault in one batch must not end all
                _LOG.error("%s", failing_frame(error))
                self._begin()
                self._stop.wait(AGAIN)

    def _tick(self) -> None:
        if self._wake.is_set():
            self._wake.clear()
            self._due.clear()
        self._regularly("look", LOOK, self._look)
        self._regularly("renew", RENEW, self._renew)
        self._regularly("claim", 0.0, self._claim)
        self._listen()
        self._guarded("decide", self._decide)
        if self._result_writer.is_due:
            self._guarded("record", self._record)

    def _regularly(self, step: str, every: float, act: Callable[[], None]) -> None:
        now = monotonic()
        if now >= self._due.get(step, 0.0):
            self._due[step] = now + every
            self._guarded(step, act)

    def _guarded(self, step: str, act: Callable[[], object]) -> None:
        """Do a step that needs the store.

        Where that fails, it is done again after a while, and nothing is lost.
        """
        pause = self.pauses.setdefault(step, Backoff(0.2, 10.0))
        if not pause.over:
            return
        try:
            act()
            pause.end()
        except DamagedStoreError as error:
            self._replace_store(error, pause)
        except (StoreError, DiskFullError) as error:
            _LOG.warning("batches wait %.1f s for the database: %s", pause.begin(), error)

    def _replace_store(self, damage: DamagedStoreError, pause: Backoff) -> None:
        """Go on with a new database, whose jobs come from the journals; what is at hand is of the old one."""
        _LOG.error("%s", damage)
        pause.begin()
        try:
            self._store.renew(self._settings)
            count = BatchService(self._settings, self._store).resume()
        except RequestError as error:
            _LOG.warning("the database cannot be replaced: %s", error)
            return
        _LOG.warning("%d batches were put together from their journals", count)
        self._abandon(list(self._in_flight))
        self._begin()

    # Upkeep of claimed jobs.

    def _look(self) -> None:
        """Release what was cancelled, and close the batches that have nothing left to do."""
        running = set(self._store.batches.running())
        self._abandon(
            [job for job, in_flight in self._in_flight.items() if in_flight.job.batch not in running]
        )
        busy = {in_flight.job.batch for in_flight in self._in_flight.values()}
        for batch in sorted(running - busy):
            if self._batch in (None, batch) and self._store.batches.settle(batch, datetime.now(UTC)):
                journal_of(self._settings.home, batch).close("done")
                running.discard(batch)
        for batch in set(self._batches) - running:
            del self._batches[batch]
            self._representatives = {
                key: jobs for key, jobs in self._representatives.items() if key[0] != batch
            }
        self._over = self._batch is not None and self._batch not in running

    def _renew(self) -> None:
        held = self._store.batches.renew(self.owner, list(self._in_flight), LEASE, datetime.now(UTC))
        self._abandon([job for job in self._in_flight if job not in held])

    def _abandon(self, jobs: Iterable[str]) -> None:
        gone = set(jobs)
        for job in gone:
            self._in_flight.pop(job).slot.abandon(job)
        if gone:
            self._undecided = deque(job for job in self._undecided if job not in gone)
            self._result_writer.drop(gone)

    # Claiming jobs.

    def _claim(self) -> None:
        ahead = self._pace.claim_count
        wanted = ahead - sum(slot.waiting for slot in self._slots.values())
        if wanted < ahead // 2:
            return
        jobs = self._store.batches.claim(self.owner, wanted, LEASE, datetime.now(UTC), self._batch)
        if not jobs:
            self._due["claim"] = monotonic() + IDLE
        for job in jobs:
            self._take_in(job)

    def _take_in(self, job: JobRecord) -> None:
        try:
            batch = self._batches.get(job.batch) or self._store.batches.get(job.batch)
        except NotFoundError:
            return  # deleted meanwhile
        self._batches[job.batch] = batch
        # Claimed anew after our own lease ran out, say because the database was away for long.
        self._abandon([job.id] if job.id in self._in_flight else [])
        name: SlotName = "ray" if batch.total >= self._settings.ray_from and "ray" in self._slots else "local"
        in_flight = self._in_flight[job.id] = _InFlightJob(job, self._slots[name])
        if job.attempts > MAX_CLAIMS:
            self._result_writer.add_failure(
                job,
                f"It was begun {MAX_CLAIMS} times, and each time the program that worked on it ended.",
                None,
            )
        else:
            place, model = job.place, batch.options.model
            seconds = deadlines.step_deadline(place.paths, self._settings, model=model)
            command = JobCommand(
                job.id,
                job.name,
                place.paths,
                place.configs,
                batch.options.language,
                model,
                seconds,
                job.outcome,
                job.batch,
                team_of(batch.caller),
            )
            in_flight.slot.add(command)

    # Outcomes.

    def _listen(self) -> None:
        busy = [slot for slot in self._slots.values() if not slot.empty]
        for slot in self._slots.values():
            for outcome in slot.outcomes(TURN / len(busy) if slot in busy else 0.0):
                if in_flight := self._in_flight.get(outcome.id):
                    self._apply(in_flight, outcome)
                else:
                    slot.abandon(outcome.id)
        if not busy:
            self._wake.wait(LOOK)

    def _apply(self, in_flight: _InFlightJob, outcome: StepResult) -> None:
        match outcome:
            case JobWasRead():
                in_flight.reading = outcome.reading
                self._undecided.append(outcome.id)
            case JobWasAnswered():
                self._result_writer.add_answer(
                    in_flight.job,
                    _result(in_flight, None, outcome.diagnosis.model_copy(update={"id": outcome.id})),
                )
            case StepFailed():
                self._failed(in_flight.job, outcome.error, final=outcome.final)
            case JobWasLost():
                self._failed(in_flight.job, outcome.error, final=False)

    def _failed(self, job: JobRecord, error: str, *, final: bool) -> None:
        again = (
            None
            if final or job.attempts >= MAX_ATTEMPTS
            else datetime.now(UTC) + timedelta(seconds=backoff_delay(job.attempts, *RETRY))
        )
        self._result_writer.add_failure(
            job,
            error if again or final else Message("errors.job-after-tries", error=error, tries=job.attempts),
            again,
        )

    def _decide(self) -> None:
        """Have jobs answered, but each crash of a batch only once."""
        while self._undecided:
            job = self._undecided[0]
            in_flight = self._in_flight.get(job)
            try:
                can_answer = in_flight is not None and in_flight.slot.has_read(job)
                found = self._representatives_of(in_flight) if in_flight and can_answer else None
            except NotFoundError:
                self._abandon([job])  # its batch was deleted meanwhile
                continue
            self._undecided.popleft()
            if in_flight is not None and found is not None:  # else its worker is gone, and it is read again
                self._dispatch_answer(in_flight, *found)

    def _dispatch_answer(self, in_flight: _InFlightJob, first_of_crash: str, same_files: str) -> None:
        """Have a job answered, as far as no other one, given as by `_representatives_of`, has its answer."""
        job = in_flight.job.id
        if same_files != job:
            in_flight.slot.drop(job)
            self._result_writer.add_answer(in_flight.job, _result(in_flight, same_files, None))
        elif first_of_crash != job:
            # The crash is known, these files are not: what is to be changed in them takes no model, which
            # costs as much each time.
            in_flight.slot.answer_by_rules(job)
        else:
            in_flight.slot.answer(job)

    def _representatives_of(self, in_flight: _InFlightJob) -> tuple[str, str]:
        """Give the job that stands for the crash, and the one whose answer fits this job's files as well."""
        job, reading = in_flight.job, in_flight.reading
        if reading is None or not reading.fingerprint:
            return job.id, job.id
        key = (job.batch, reading.fingerprint, reading.config)
        if key not in self._representatives:
            self._representatives[key] = self._store.batches.representatives(
                job.batch, reading.fingerprint, reading.config, job.id
            )
        return self._representatives[key]

    def _record(self) -> None:
        try:
            self._result_writer.record()
        finally:
            settled, doubtful = self._result_writer.has_settled()
            self._pace.count_ended(len(settled))
            for job in settled:
                self._in_flight.pop(job, None)
            if doubtful:
                self._representatives = {
                    key: jobs for key, jobs in self._representatives.items() if doubtful.isdisjoint(jobs)
                }


def _end_orphaned_leases(store: Store) -> None:
    if count := owners.end_orphaned_leases(store, datetime.now(UTC)):
        _LOG.info("%d jobs of an engine that was killed are taken up again", count)


def _result(in_flight: _InFlightJob, same_as: str | None, diagnosis: Diagnosis | None) -> JobResult:
    reading = in_flight.reading
    if reading is None:
        return JobResult(in_flight.job.id, diagnosis=diagnosis)
    return JobResult(
        in_flight.job.id,
        reading.fingerprint,
        same_as,
        reading.root_line,
        reading.root_file,
        reading.root_text,
        diagnosis,
        reading.config,
    )
