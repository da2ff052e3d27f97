"""The jobs of Ray clusters that are gone, out of the sessions that KubeRay's history server keeps.

Ray names a driver's log by its submission, and its workers' logs by the job's core id; which is whose, and
how it ended, stands in the events. A session that several jobs shared becomes a job for each of them: for
each submission, and for each program that was a driver itself, such as a notebook.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from service.batches.sources.grouping import JobFiles
from service.batches.sources.ray_events import NOTHING_TOLD, RayEvents, RayJobEnd, Read, read_events
from service.batches.sources.ray_layout import is_ray_log, is_record, job_of_events, session_of

# A supervisor's log is some lines, and tells the driver's exit code.
_SUPERVISION = 1 << 20
# A worker that was started ahead of any job is named by no job; its first lines tell whose it became.
_HEAD = 4 << 10
_AHEAD = "ffffffff"

_DRIVER = re.compile(r"(?:^|/)job-driver-(?P<submission>.+)\.log(?:\.\d+)?$")
_SUPERVISOR = re.compile(r"(?:^|/)supervisor-(?P<submission>.+)\.log$")
_OF_JOB = re.compile(
    r"(?:^|/)(?:worker-[0-9a-f]+-|python-core-driver-|runtime_env_setup-)(?P<job>[0-9a-f]{8})(?=[-_.])"
)
_EXIT = re.compile(rb"entrypoint command exited with code (?P<code>-?\d{1,3})\b")
_WORKER = re.compile(r"(?:^|/)worker-[0-9a-f]+-")
_SUPERVISES = re.compile(rb"^:actor_name:JobSupervisor\s*$", re.MULTILINE)
_WHOSE = re.compile(rb"^:job_id:(?P<job>[0-9a-f]{8})\s*$", re.MULTILINE)


@dataclass(frozen=True)
class HistoryJob:
    """One job's files, and how it ended as far as its cluster told.

    `own` are the logs that no other job has, where some are its nodes'.
    """

    files: JobFiles
    end: RayJobEnd = NOTHING_TOLD
    own: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Tell whether it may have failed: nothing tells that it did not."""
        return self.end.status not in ("SUCCEEDED", "STOPPED")

    @property
    def own_logs(self) -> tuple[str, ...]:
        """The logs that tell this job from others of its session."""
        return self.own or self.files.logs


@dataclass
class _Session:
    """Names of a session's events: of jobs, of all else, and Ray's own log of them."""

    job_events: list[str] = field(default_factory=list)
    other_events: list[str] = field(default_factory=list)
    ray_logs: list[str] = field(default_factory=list)


def split_sessions(jobs: Sequence[JobFiles], names: Iterable[str], read: Read) -> list[HistoryJob]:
    """Give the jobs of each session by its events; what is no session of the store stays as it is.

    `names` are those of all files, events among them.
    """
    sessions: dict[str, _Session] = defaultdict(_Session)
    wanted = {job.folder for job in jobs if not job.is_whole}
    for name in names:
        if (session := session_of(name)) is not None and session in wanted:
            _add(sessions[session], name)
    return [
        made
        for job in jobs
        for made in (
            (HistoryJob(job),)
            if job.is_whole or job.folder is None
            else _of_session(job, sessions[job.folder], read)
        )
    ]


def _add(session: _Session, name: str) -> None:
    if is_ray_log(name):
        session.ray_logs.append(name)
    elif job_of_events(name):
        session.job_events.append(name)
    elif is_record(name):
        session.other_events.append(name)


def _of_session(job: JobFiles, session: _Session, read: Read) -> Iterator[HistoryJob]:
    own: dict[str, list[str]] = defaultdict(list)
    events = read_events(session.ray_logs, (*session.job_events, *session.other_events), read)
    for name in job.logs:
        if match := _DRIVER.search(name):
            own[match["submission"]].append(name)
        elif (match := _SUPERVISOR.search(name)) and (code := _EXIT.search(read(name, _SUPERVISION))):
            told = events.ends.get(match["submission"], NOTHING_TOLD)
            events.ends[match["submission"]] = replace(told, exit_code=int(code["code"]))
    drivers = {name for names in own.values() for name in names}
    others = {name: _owner(name, read) for name in job.logs if name not in drivers}
    alone = _alone(events, own, others, read)
    if len(own) + len(alone) < 2:
        end = events.ends.get(next(iter(own), ""), events.drivers.get(next(iter(alone), ""), NOTHING_TOLD))
        yield HistoryJob(job, end)
        return
    for submission, logs, mine in _shares(own, alone, others, events.core_ids):
        files = replace(job, name=f"{job.name}/{submission}", logs=(*mine, *logs))
        end = events.ends.get(submission) or events.drivers.get(submission) or NOTHING_TOLD
        yield HistoryJob(files, end, mine)


def _alone(events: RayEvents, own: Mapping[str, object], others: Mapping[str, str], read: Read) -> list[str]:
    """Give the core ids of jobs that nobody submitted: a program that was the driver itself, or a notebook.

    Where a submission's core id is not known, one that has no definition may be its own. Of what Ray itself
    runs there is no definition: its workers supervise submissions.
    """
    known = {*events.core_ids.values(), *own, ""}
    is_told = all(submission in events.core_ids for submission in own)
    found: set[str] = set()
    for name, owner in others.items():
        if owner in known or owner in found or not _WORKER.search(name):
            continue
        if owner in events.drivers or (is_told and not _SUPERVISES.search(read(name, _HEAD))):
            found.add(owner)
    return sorted(found)


def _shares(
    own: Mapping[str, Sequence[str]], alone: Sequence[str], others: Mapping[str, str], ids: Mapping[str, str]
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Give each job's logs: those that it shares, then its own and those of its core id."""
    known = {*ids.values(), *own, *alone}
    shared = tuple(name for name, owner in others.items() if not owner)
    for submission, names in own.items():
        mine = {submission, ids.get(submission, submission)}
        workers = tuple(name for name, owner in others.items() if owner in mine)
        # What no event gives to anybody may be of each whose core id is not known.
        is_unknown = submission not in ids
        nobodys = tuple(name for name, owner in others.items() if owner and owner not in known and is_unknown)
        yield submission, (*shared, *nobodys), (*names, *workers)
    for core_id in alone:
        yield core_id, shared, tuple(name for name, owner in others.items() if owner == core_id)


def _owner(name: str, read: Read) -> str:
    """Give the submission or the core id of the job that a log is of; empty where it is of a node."""
    if supervisor := _SUPERVISOR.search(name):
        return supervisor["submission"]
    match = _OF_JOB.search(name)
    if match is None or match["job"] != _AHEAD:
        return match["job"] if match else ""
    told = _WHOSE.search(read(name, _HEAD))
    return told["job"].decode() if told else ""
