"""Jobs out of an object store, by its address; kept as redacted copies."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import datetime
from functools import partial
from typing import Any

from ingest.logs.inputs.members import LIMITS, JobLimits, Member, Skipped
from service.batches.sources.copies import keep_config, keep_log, label
from service.batches.sources.found import FoundJobs, check_limits, collect_jobs, shown_path
from service.batches.sources.grouping import JobFiles, group_files
from service.batches.sources.object_files import ObjectFile
from service.batches.sources.object_listing import ObjectListing, list_below, open_store, reader_of, refused
from service.batches.sources.object_reading import ObjectStream, reading
from service.batches.sources.ray_history import HistoryJob, split_sessions
from service.batches.sources.ray_jobs import STATUS_LOG
from service.batches.sources.spool import BatchSpool, SpooledJob
from service.schemas.records import JobSpec
from service.settings import Settings


@dataclass(frozen=True)
class ObjectQuery:
    """What is asked for: jobs below an address, of which a log was written since a time."""

    url: str
    since: datetime | None = None


@dataclass(frozen=True)
class StoredJob:
    """A job whose files lie in a store; `key` is equal for the same end of the same job.

    It is empty where the store tells no times.
    """

    store: Any = field(repr=False)
    listed: ObjectListing = field(repr=False)
    made: HistoryJob

    @property
    def key(self) -> str:
        """The job by its name, and by the logs that are its own."""
        return self.listed.fingerprint(self.made.files.name, self.made.own_logs)

    @property
    def logs(self) -> list[ObjectFile]:
        """Its logs, in their order."""
        return [self.listed.logs[name] for name in self.made.files.logs]

    def is_since(self, since: datetime | None) -> bool:
        """Tell whether it ended since a time, or at no time that is known."""
        ended = self.made.end.ended or self.listed.last_written(self.made.own_logs)
        return since is None or ended is None or ended >= since

    def copy(
        self, open_next: Callable[[], ObjectStream], copies: SpooledJob, skipped: Skipped, limits: JobLimits
    ) -> JobSpec | None:
        """Keep its files, each log from the next stream; None where there is nothing of it to read."""
        job, end = self.made.files, self.made.end
        for log in job.logs:
            keep_log(Member(label(log, job), open_next), copies, skipped, limits)
        if end.message:
            copies.log(STATUS_LOG, [f"{end.message}\n".encode()])
        if not copies.logs:
            return None
        for config in job.configs:
            opener = partial(ObjectStream, self.store, self.listed.configs[config].path)
            keep_config(Member(label(config, job), opener), copies, skipped)
        place = copies.place().model_copy(update={"source_key": self.key})
        name = shown_path(job.name)
        return JobSpec(name=name, place=place, started=end.started, ended=end.ended, outcome=end.outcome)


def find_jobs(
    asked: ObjectQuery, spool: BatchSpool, settings: Settings, answered: Container[str] = ()
) -> FoundJobs:
    """Copy the logs of all jobs below an address; raises InvalidRequestError, TooLargeError, DiskFullError.

    Where it raises, no copy stays.
    """
    store, root = open_store(asked.url)
    try:
        return _read(store, root, asked, spool, settings, answered)
    except BaseException:
        spool.discard()
        raise


def limits_of(settings: Settings) -> JobLimits:
    """Give how much is read of a job of a store."""
    most = settings.max_unpacked_mb << 20
    return changed(LIMITS, files=10 * settings.max_jobs, bytes=most, spool=most)


def jobs_of(
    store: Any, grouped: Iterable[JobFiles], since: datetime | None, listed: ObjectListing
) -> list[StoredJob]:
    """Give the jobs that may have failed since a time, those of Ray's sessions by their events."""
    young: list[JobFiles] = []
    for files in grouped:
        last = listed.last_written(files.logs)
        if since is None or last is None or last >= since:
            young.append(files)
        else:
            listed.skipped.add("older", files.name)
    found: list[StoredJob] = []
    for made in split_sessions(young, listed.logs, reader_of(store, listed)):
        job = StoredJob(store, listed, made)
        if not made.has_failed:
            listed.skipped.add("not_failed", made.files.name)
        elif not job.is_since(since):
            listed.skipped.add("older", made.files.name)
        else:
            found.append(job)
    return found


def _read(
    store: Any, root: str, asked: ObjectQuery, spool: BatchSpool, settings: Settings, answered: Container[str]
) -> FoundJobs:
    listed = ObjectListing(10 * settings.max_jobs)
    try:
        if asked.url.startswith("http") and not asked.url.endswith("/"):
            # A web server lists by links in a page; what is no folder is not searched for any.
            listed.add(ObjectFile(root.rpartition("/")[2], root, None, 0))
        else:
            list_below(store, root, root, listed)
    except Exception as error:
        raise refused(asked.url, error) from error
    where = shown_path(root.rpartition("/")[2])
    found = jobs_of(store, group_files(listed.logs, listed.configs, where), asked.since, listed)
    new = [job for job in found if job.key not in answered]
    if len(new) < len(found):
        listed.skipped.add("answered_before", where, len(found) - len(new))
    check_limits(len(new), asked.url, settings, listed.skipped.omitted)
    limits = limits_of(settings)
    specs: list[JobSpec] = []
    with reading(store, [log.path for job in new for log in job.logs]) as open_next:
        for job in new:
            spec = job.copy(open_next, spool.begin(), listed.skipped, limits)
            if spec is not None:
                specs.append(spec)
    check_limits(len(specs), asked.url, settings, listed.skipped.omitted)
    return collect_jobs(specs, listed.skipped.omitted)
