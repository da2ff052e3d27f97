"""Triage jobs as they fail, and report each once to every target."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ingest.errors import IngestError
from ingest.logs.inputs import jobs
from ingest.redaction.redactor import Redactor
from service.monitoring.ended_jobs import EndedJob, WatchedPlace
from service.monitoring.known_jobs import KnownJobs
from service.monitoring.targets import Target
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import LateError, ServiceError, TooLargeError
from service.schemas.records import JobSpec

_LOG = logging.getLogger("whycrash.watch")
# Rounds in which a job's answer is tried to be sent; then it is let go, and said so.
TRIES = 5
# Seconds after which a round begins no other job: what comes meanwhile is to be seen too.
ROUND_S = 900.0

Show = Callable[[Diagnosis, JobSpec], None]


@dataclass
class Watcher:
    """Watches one place in rounds."""

    triage: Triage
    place: WatchedPlace
    known: KnownJobs
    targets: Sequence[Target]
    show: Show
    language: str = ""
    # Whether the place could be looked at in the last round.
    reached: bool = True
    _failures: dict[str, int] = field(default_factory=dict)
    # Of a job whose answer could not be sent to all, the targets that still wait for it.
    _left: dict[str, list[Target]] = field(default_factory=dict)

    def run_once(self) -> int:
        """Triage the jobs that have ended since the last round; gives how many.

        What cannot be reached is logged and tried in the next round.
        """
        began, over = datetime.now(UTC), time.monotonic() + ROUND_S
        count = 0
        met: list[str] = []
        self.reached = False
        try:
            for ended in self.place.find(self.known.since):
                met.append(ended.key)
                if ended.key in self.known:
                    continue
                if time.monotonic() > over:
                    _LOG.warning("%s: this round is over; its other jobs are for the next", self.place.name)
                    self.reached = True
                    return count
                count += self._triage_job(ended)
        except (ServiceError, OSError) as error:
            _LOG.warning("%s could not be looked at: %s", self.place.name, Redactor().clean(str(error)))
            return count
        self.reached = True
        # A place that keeps its jobs is not asked again for those of long ago; a folder's jobs may settle
        # late.
        if self.place.looks_back is not None and not self._failures:
            self.known.since = max(self.known.since, began - self.place.looks_back)
        self._note(lambda: self.known.tidy(met))
        return count

    def _triage_job(self, ended: EndedJob) -> bool:
        """Triage a job and tell; gives whether it is dealt with, whatever came of it."""
        try:
            spec = ended.fetch()
        except (LateError, TooLargeError) as error:
            return self._is_given_up(ended, error)
        if spec is None:
            return False  # nothing of it is left, or not yet there
        diagnosis = self._answer(spec)
        if diagnosis is not None and not self._notify_targets(ended, spec, diagnosis):
            return False
        # Before it is shown: standard output may be closed, and targets that were told must not be told
        # again.
        self._note(lambda: self.known.add(ended.key))
        if diagnosis is not None:
            self.show(diagnosis, spec)
        return True

    def _is_given_up(self, ended: EndedJob, error: ServiceError) -> bool:
        """Tell whether a job whose logs did not come is let go; what is late may come in a later round."""
        tries = self._failures.pop(ended.key, 0) + 1
        _LOG.warning("%s could not be fetched: %s", Redactor().clean(ended.name), _words(error))
        if isinstance(error, LateError) and tries < TRIES:
            self._failures[ended.key] = tries
            return False
        self._note(lambda: self.known.add(ended.key))
        return True

    def _note(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            _LOG.warning(
                "what is known of %s cannot be written (%s); after a restart jobs may be told again",
                self.place.name,
                error.strerror,
            )

    def _answer(self, spec: JobSpec) -> Diagnosis | None:
        """Triage a job; None where there is nothing to tell of it."""
        try:
            diagnosis = self._triaged(spec)
        except Exception as error:  # noqa: BLE001 - one log that cannot be read does not end the watch
            _LOG.warning("%s cannot be read: %s", spec.name, _words(error))
            return None
        return diagnosis if diagnosis.shows_failure or self.place.all_failed else None

    def _triaged(self, spec: JobSpec) -> Diagnosis:
        configs = [read_config(Path(path)) for path in spec.place.configs]
        with jobs.open_jobs([Path(path) for path in spec.place.paths]) as source:
            source.name = spec.name
            if source.single:
                source.single.name = spec.name
            read = self.triage.read(source, self.language, configs, outcome=spec.outcome)
        return self.triage.diagnose(read).first

    def _notify_targets(self, ended: EndedJob, spec: JobSpec, diagnosis: Diagnosis) -> bool:
        """Tell all who were not told yet; gives whether no further try is made."""
        waiting = self._left.pop(ended.key, list(self.targets))
        left = [target for target in waiting if not self._reached(target, spec, diagnosis)]
        tries = self._failures.pop(ended.key, 0) + 1
        if not left:
            return True
        _LOG.warning(
            "%s: the answer was not sent to %d of %d (try %d of %d)",
            spec.name,
            len(left),
            len(self.targets),
            tries,
            TRIES,
        )
        if tries >= TRIES:
            return True
        self._left[ended.key], self._failures[ended.key] = left, tries
        return False

    def _reached(self, target: Target, spec: JobSpec, diagnosis: Diagnosis) -> bool:
        try:
            target(diagnosis, spec)
        except Exception as error:  # noqa: BLE001 - the other targets are told all the same
            _LOG.warning("%s: %s", spec.name, _words(error))
            return False
        return True


def _words(error: Exception) -> str:
    """Say what went wrong; the words of an error that is not ours may hold lines of the log."""
    known = isinstance(error, (ServiceError, IngestError, OSError))
    return Redactor().clean(str(error)) if known else f"{type(error).__name__}, which is a fault of whycrash"
