"""Triage jobs as they fail, tell whoever is to know, and tell nobody twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ingest.errors import IngestError
from ingest.logs import jobs
from ingest.redact import Redactor
from service.diagnosis import Diagnosis
from service.errors import ServiceError
from service.records import JobSpec
from service.triage import Triage, read_config
from service.watching.finding import Ended, Place
from service.watching.known import Known
from service.watching.posting import PostError
from service.watching.targets import Target

_LOG = logging.getLogger("whycrash.watch")
# Rounds in which a job's answer is tried to be sent; then it is let go, and said so.
TRIES = 5

Show = Callable[[Diagnosis, JobSpec], None]


@dataclass
class Watcher:
    """Looks at one place, round by round."""

    triage: Triage
    place: Place
    known: Known
    targets: Sequence[Target]
    show: Show
    language: str = ""
    _failures: dict[str, int] = field(default_factory=dict)

    def round(self) -> int:
        """Look once; gives how many jobs were dealt with. What cannot be reached is logged and tried in the next round."""
        began = datetime.now(UTC)
        count = 0
        try:
            for ended in self.place.find(self.known.since):
                if ended.key not in self.known and self._deal(ended):
                    self.known.add(ended.key)
                    count += 1
        except (ServiceError, OSError) as error:
            _LOG.warning("%s could not be looked at: %s", self.place.name, Redactor().clean(str(error)))
            return count
        # A place that keeps its jobs is not asked again for those of long ago; a folder's jobs may settle late.
        if self.place.all_failed and not self._failures:
            self.known.since = began
        self.known.save()
        return count

    def _deal(self, ended: Ended) -> bool:
        """Triage a job and tell; gives whether it is dealt with, whatever came of it."""
        try:
            diagnosis = self._answer(ended.spec)
        except IngestError as error:
            _LOG.warning("%s cannot be read: %s", ended.spec.name, Redactor().clean(str(error)))
            return True
        if diagnosis.verdict == "no-failure" and not self.place.all_failed:
            return True
        if not self._told(ended, diagnosis):
            return False
        self.show(diagnosis, ended.spec)
        return True

    def _answer(self, spec: JobSpec) -> Diagnosis:
        source = jobs.open_jobs([Path(path) for path in spec.place.paths])
        source.name = spec.name
        if source.single:
            source.single.name = spec.name
        return self.triage.explain(source, self.language, [read_config(Path(path)) for path in spec.place.configs])

    def _told(self, ended: Ended, diagnosis: Diagnosis) -> bool:
        try:
            for target in self.targets:
                target(diagnosis, ended.spec)
        except PostError as error:
            tries = self._failures[ended.key] = self._failures.get(ended.key, 0) + 1
            _LOG.warning("%s: %s (try %d of %d)", ended.spec.name, error, tries, TRIES)
            if tries < TRIES:
                return False
        self._failures.pop(ended.key, None)
        return True
