"""Jobs of an object store as they end: listed page by page, so that of no folder of jobs all is held.

Each object and each folder below the address is a job, whatever lies beside it; a folder named by a day is
gone into, and each session that KubeRay's history server keeps of a Ray cluster is its jobs. A job is over
once none of its logs was written for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ingest.logs.inputs.members import LIMITS, Skipped, kind_of
from service.batches.sources.candidates import JobCandidate
from service.batches.sources.found import shown_path
from service.batches.sources.grouping import JobFiles, group_entry, is_dated
from service.batches.sources.object_listing import ObjectListing, list_below, open_store, refused
from service.batches.sources.object_pages import StorePage, read_pages
from service.batches.sources.object_reading import reading
from service.batches.sources.object_store import StoredJob, jobs_of, limits_of
from service.batches.sources.object_window import FolderWindow, Unit
from service.batches.sources.ray_history import HistoryJob
from service.batches.sources.ray_layout import is_above_sessions
from service.batches.sources.spool import SpooledJob
from service.schemas.records import JobSpec
from service.settings import Settings

_LOG = logging.getLogger("whycrash.watch")


class ObjectWatch:
    """Looks at the store under an address; keeps how the sessions of Ray ended that it has read."""

    def __init__(
        self, url: str, settle: timedelta, settings: Settings, now: Callable[[], datetime] | None = None
    ) -> None:
        self.url = url
        self._settle = settle
        self._settings = settings
        self._now = now or (lambda: datetime.now(UTC))
        # The jobs of the sessions that the last whole look met, by what changes with any of their files.
        self._sessions: dict[str, list[StoredJob]] = {}

    def candidates(self, since: datetime) -> Iterator[JobCandidate]:
        """Give the jobs that ended since a time and are over; raises InvalidRequestError."""
        store, root = open_store(self.url)
        until, met = self._now() - self._settle, set[str]()
        for listed, grouped in self._units(store, root):
            for files in grouped:
                last = listed.last_written(files.logs)
                # A mark of no bytes is no job's output.
                if last is None or last < since or not any(listed.logs[log].size for log in files.logs):
                    continue
                for job in self._jobs(store, files, listed, met):
                    ended = listed.last_written(job.made.own_logs)
                    if ended is not None and ended <= until and job.is_since(since):
                        yield JobCandidate(job.key, job.made.files.name, partial(self._fetch, store, job))
        self._sessions = {key: self._sessions[key] for key in met}

    def _jobs(self, store: Any, files: JobFiles, listed: ObjectListing, met: set[str]) -> Sequence[StoredJob]:
        """Give a job, or those of a session of Ray, whose events are read once."""
        if files.is_whole or files.folder is None:
            return [StoredJob(store, listed, HistoryJob(files))]
        names = [name for name in listed.logs if name.startswith(f"{files.folder}/")]
        key = listed.fingerprint(files.folder, names or files.logs)
        met.add(key)
        if key not in self._sessions:
            self._sessions[key] = jobs_of(store, [files], None, listed)
        return self._sessions[key]

    def _fetch(self, store: Any, job: StoredJob, copies: SpooledJob, skipped: Skipped) -> JobSpec | None:
        with reading(store, [log.path for log in job.logs]) as open_next:
            return job.copy(open_next, copies, skipped, limits_of(self._settings))

    # Listing.

    def _units(self, store: Any, root: str) -> Iterator[Unit]:
        """Give the objects of each folder of jobs, window by window, and those of each folder in it."""
        pending = [(root, 0)]
        while pending:
            place, depth = pending.pop()
            name = place.removeprefix(root).strip("/")
            if depth and is_dated(name.rpartition("/")[2]) and self._has_own(store, root, place):
                # Of a day or a time, with logs of its own: it is a job, with all below it.
                yield self._entry(store, root, place)
                continue
            window = FolderWindow(name)
            for page in self._pages(store, root, place):
                if (unit := window.add(page.files)) is not None:
                    yield unit
                for folder in page.folders:
                    inner = folder.removeprefix(root).strip("/")
                    if kind_of(f"{inner}/") or depth + 1 >= LIMITS.depth:
                        continue
                    if is_dated(inner.rpartition("/")[2]) or is_above_sessions(folder):
                        pending.append((folder, depth + 1))
                    else:
                        yield self._entry(store, root, folder)
            yield window.rest()

    def _pages(self, store: Any, root: str, place: str) -> Iterator[StorePage]:
        try:
            yield from read_pages(store, root, place)
        except Exception as error:
            raise refused(self.url, error) from error

    def _has_own(self, store: Any, root: str, place: str) -> bool:
        """Tell whether logs lie in a folder itself, or what Hydra writes beside them."""
        for page in self._pages(store, root, place):
            listed = ObjectListing(len(page.files))
            for file in page.files:
                listed.add(file)
            if listed.logs or any(folder.endswith("/.hydra") for folder in page.folders):
                return True
        return False

    def _entry(self, store: Any, root: str, folder: str) -> Unit:
        listed = ObjectListing(10 * self._settings.max_jobs)
        try:
            list_below(store, root, folder, listed)
        except Exception as error:
            raise refused(self.url, error) from error
        if told := listed.skipped.omitted.get("beyond_limit"):
            _LOG.warning("%s: of its objects not all are looked at (%s)", shown_path(folder), told)
        return listed, group_entry(listed.logs, listed.configs, folder.removeprefix(root).strip("/"))
