"""Jobs that have ended, wherever they ran: a folder of logs, a Ray cluster, Slurm, Kubernetes.

Each is found once under one key.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from corpus.message import Message, message_id
from service.batches.sources import kubernetes_api, ray_jobs, slurm
from service.batches.sources.found import NO_JOBS, NO_JOBS_BUT_LOST, FoundJobs, shown_path
from service.batches.sources.spool import BatchSpool, open_spool
from service.schemas.errors import InvalidRequestError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings

# Overlap between two rounds: what is found twice is known by its key.
OVERLAP = timedelta(minutes=10)


@dataclass(frozen=True)
class EndedJob:
    """A job that has ended; `key` is equal for the same end of the same job."""

    key: str
    spec: JobSpec


@dataclass(frozen=True)
class WatchedPlace:
    """Where jobs end. `find` gives those that ended since a time, and is left once they are dealt with.

    `all_failed` tells whether only failed ones.
    """

    name: str
    find: Callable[[datetime], Iterator[EndedJob]]
    all_failed: bool


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
                yield EndedJob(
                    f"{name}|{last:.3f}|{size}",
                    JobSpec(name=shown_path(name), place=JobPlace(paths=tuple(sorted(paths)))),
                )

    if not path.is_dir():
        raise InvalidRequestError(Message("errors.no-folder", folder=path))
    return WatchedPlace(str(path), find, all_failed=False)


def _jobs(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in os.scandir(folder):
        if not entry.name.startswith(".") and not entry.is_symlink():
            name = entry.name if entry.is_dir() else re.sub(r"\.(?:out|err)$", "", entry.name)
            found.setdefault(name, []).append(entry.path)
    return found


def find_on_ray(dashboard: str, settings: Settings) -> WatchedPlace:
    """Watch the jobs of a Ray cluster through its dashboard."""
    address = ray_jobs.base(dashboard)

    def find(since: datetime, spool: BatchSpool) -> FoundJobs:
        return ray_jobs.find_jobs(ray_jobs.RayJobQuery(address, since), spool, settings)

    return WatchedPlace(address, _copied(find, settings, lambda spec: spec.ended), all_failed=True)


def find_in_kubernetes(url: str, settings: Settings) -> WatchedPlace:
    """Watch the pods of a cluster, or of a name space, through its API."""

    def find(since: datetime, spool: BatchSpool) -> FoundJobs:
        return kubernetes_api.find_jobs(kubernetes_api.KubernetesQuery(url, since), spool, settings)

    # A container that is started anew every few minutes ends as often, and is one failure.
    return WatchedPlace(shown_path(url), _copied(find, settings, lambda spec: spec.started), all_failed=True)


def _copied(
    read: Callable[[datetime, BatchSpool], FoundJobs],
    settings: Settings,
    moment: Callable[[JobSpec], datetime | None],
) -> Callable[[datetime], Iterator[EndedJob]]:
    """Find jobs whose logs are copied, and keep the copies for as long as they are dealt with.

    A `moment` of a job tells two jobs of one name apart.
    """

    def find(since: datetime) -> Iterator[EndedJob]:
        with tempfile.TemporaryDirectory(prefix="whycrash-", ignore_cleanup_errors=True) as base:
            place = Path(base) / "spool"
            for spec in _specs(lambda: read(since - OVERLAP, open_spool(place, settings))):
                yield EndedJob(f"{spec.name}|{moment(spec)}", spec)

    return find


def find_in_slurm(users: str, settings: Settings) -> WatchedPlace:
    """Watch Slurm's accounting."""

    def find(since: datetime) -> Iterator[EndedJob]:
        for spec in _specs(lambda: slurm.find_jobs(slurm.SlurmQuery(since - OVERLAP, users=users), settings)):
            yield EndedJob(f"{spec.name}|{spec.ended}", spec)

    return WatchedPlace("slurm", find, all_failed=True)


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
