"""Jobs that have ended, wherever they ran: a folder of logs, an object store, Ray, Slurm, Kubernetes.

Each is found once under one key.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from corpus.message import Message, message_id
from ingest.logs.inputs.members import Skipped
from service.batches.sources import (
    elasticsearch,
    kubernetes_api,
    loki,
    object_listing,
    object_watch,
    ray_jobs,
    slurm,
    slurmrestd,
)
from service.batches.sources.candidates import JobCandidate
from service.batches.sources.found import NO_JOBS, NO_JOBS_BUT_LOST, FoundJobs, shown_path
from service.batches.sources.spool import open_spool
from service.schemas.errors import InvalidRequestError, LateError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings

# Overlap between two rounds: what is found twice is known by its key.
OVERLAP = timedelta(minutes=10)
# Seconds within which the logs of one job have to come.
FETCH_S = 300.0

# A store's object that is written for long bears the time at which that began.
LONGEST_WRITE = timedelta(days=7)

_Opened = AbstractContextManager[Iterable[JobCandidate]]


@dataclass(frozen=True)
class EndedJob:
    """A job that has ended; `key` is equal for the same end of the same job.

    `fetch` gives it with its logs, None where none are left of it; raises LateError, TooLargeError.
    """

    key: str
    name: str
    fetch: Callable[[], JobSpec | None]


@dataclass(frozen=True)
class WatchedPlace:
    """Where jobs end. `find` gives those that ended since a time, and is left once they are dealt with.

    `all_failed` tells whether only failed ones; `looks_back` how long after its end a job may be found for
    the first time, None where that is for ever, so that all since the beginning are looked at each time.
    """

    name: str
    find: Callable[[datetime], Iterator[EndedJob]]
    all_failed: bool
    looks_back: timedelta | None = timedelta()


def find_in_folder(
    path: Path, settle: float, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> WatchedPlace:
    """Watch a folder of logs: a job is over once none of its files has grown for `settle` seconds.

    Each file or folder in it is a job; NAME.out and NAME.err are one. The rule is simple on purpose: a job
    must keep its key whatever files appear beside it.
    """

    def find(since: datetime) -> Iterator[EndedJob]:
        for name, paths in sorted(_jobs(path).items()):
            statuses = []
            for file in (file for each in paths for file in _files(each)):
                with suppress(OSError):  # a file that went meanwhile does not count
                    statuses.append(os.stat(file, follow_symlinks=False))  # noqa: PTH116 - one call for both
            last = max((status.st_mtime for status in statuses), default=0.0)
            size = sum(status.st_size for status in statuses)
            if size and since.timestamp() <= last <= now().timestamp() - settle:
                spec = JobSpec(name=shown_path(name), place=JobPlace(paths=tuple(sorted(paths))))
                yield _at_hand(f"{name}|{last:.3f}|{size}", spec)

    if not path.is_dir():
        raise InvalidRequestError(Message("errors.no-folder", folder=path))
    return WatchedPlace(str(path), find, all_failed=False, looks_back=None)


def _jobs(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in os.scandir(folder):
        if not entry.name.startswith(".") and not entry.is_symlink():
            name = entry.name if entry.is_dir() else re.sub(r"\.(?:out|err)$", "", entry.name)
            found.setdefault(name, []).append(entry.path)
    return found


def _at_hand(key: str, spec: JobSpec) -> EndedJob:
    return EndedJob(key, spec.name, lambda: spec)


def find_on_ray(dashboard: str, settings: Settings) -> WatchedPlace:
    """Watch the jobs of a Ray cluster through its dashboard."""
    address = ray_jobs.base(dashboard)

    def opened(since: datetime, _skipped: Skipped) -> _Opened:
        return ray_jobs.open_jobs(ray_jobs.RayJobQuery(address, since))

    return WatchedPlace(address, _fetched_anew(opened, settings), all_failed=True)


def find_in_kubernetes(url: str, settings: Settings) -> WatchedPlace:
    """Watch the pods of a cluster, or of a name space, through its API."""

    def opened(since: datetime, skipped: Skipped) -> _Opened:
        return kubernetes_api.open_jobs(kubernetes_api.KubernetesQuery(url, since), skipped)

    return WatchedPlace(shown_path(url), _fetched_anew(opened, settings), all_failed=True)


def find_in_loki(url: str, selector: str, job_label: str, settle: float, settings: Settings) -> WatchedPlace:
    """Watch what Loki has lines of: a job is over once none has come for `settle` seconds."""
    quiet = timedelta(seconds=settle)

    def opened(since: datetime, skipped: Skipped) -> _Opened:
        # What was not yet quiet in the last round ended before it.
        return loki.open_jobs(loki.LokiQuery(url, since - quiet, selector, job_label, quiet), skipped)

    name = shown_path(f"{url} {selector}".strip())
    return WatchedPlace(name, _fetched_anew(opened, settings), all_failed=False)


def find_in_elasticsearch(
    url: str, words: str, job_field: str, settle: float, settings: Settings
) -> WatchedPlace:
    """Watch what Elasticsearch or OpenSearch has lines of, as Loki is watched."""
    quiet = timedelta(seconds=settle)

    def opened(since: datetime, skipped: Skipped) -> _Opened:
        asked = elasticsearch.ElasticsearchQuery(url, since - quiet, words, job_field, quiet)
        return elasticsearch.open_jobs(asked, skipped)

    name = shown_path(f"{url} {words}".strip())
    return WatchedPlace(name, _fetched_anew(opened, settings), all_failed=False)


def find_in_objects(url: str, settle: float, settings: Settings) -> WatchedPlace:
    """Watch an object store: a job is over once none of its logs was written for `settle` seconds."""
    if object_listing.check_url(url) in ("http", "https"):
        raise InvalidRequestError(Message("errors.watch-tells-no-times", url=shown_path(url)))
    watched = object_watch.ObjectWatch(url, timedelta(seconds=settle), settings)

    def opened(since: datetime, _skipped: Skipped) -> _Opened:
        return nullcontext(watched.candidates(since))

    return WatchedPlace(
        shown_path(url), _fetched_anew(opened, settings), all_failed=False, looks_back=LONGEST_WRITE
    )


def _fetched_anew(
    opened: Callable[[datetime, Skipped], _Opened], settings: Settings
) -> Callable[[datetime], Iterator[EndedJob]]:
    """Find jobs whose logs are fetched once they are asked for, and kept while they are dealt with."""

    def find(since: datetime) -> Iterator[EndedJob]:
        skipped = Skipped()
        with (
            tempfile.TemporaryDirectory(prefix="whycrash-", ignore_cleanup_errors=True) as base,
            opened(since - OVERLAP, skipped) as candidates,
        ):
            for number, candidate in enumerate(candidates):
                place = Path(base) / str(number)
                yield EndedJob(
                    candidate.key, candidate.name, partial(_fetch, candidate, place, settings, skipped)
                )
                shutil.rmtree(place, ignore_errors=True)

    return find


def _fetch(candidate: JobCandidate, place: Path, settings: Settings, skipped: Skipped) -> JobSpec | None:
    late = time.monotonic() + FETCH_S

    def check() -> None:
        if time.monotonic() > late:
            raise LateError(Message("errors.source-late", seconds=f"{FETCH_S:.0f}"))

    return candidate.fetched(open_spool(place, settings, check), skipped)


def find_in_slurm(users: str, settings: Settings, url: str = "") -> WatchedPlace:
    """Watch Slurm's accounting, by sacct or by the REST API at an address."""

    def read(since: datetime) -> FoundJobs:
        asked = slurm.SlurmQuery(since - OVERLAP, users=users)
        return slurmrestd.find_jobs(url, asked, settings) if url else slurm.find_jobs(asked, settings)

    def find(since: datetime) -> Iterator[EndedJob]:
        for spec in _specs(lambda: read(since)):
            yield _at_hand(spec.place.source_key, spec)

    return WatchedPlace(shown_path(url) if url else "slurm", find, all_failed=True)


def _specs(read: Callable[[], FoundJobs]) -> Iterator[JobSpec]:
    try:
        found = read()
    except InvalidRequestError as error:
        if message_id(str(error)) in (NO_JOBS, NO_JOBS_BUT_LOST):
            return  # no jobs yet
        raise
    yield from found.specs


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):  # noqa: PTH112 - a name, as scandir gives it
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)  # noqa: PTH118 - as above
