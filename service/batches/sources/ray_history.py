"""The jobs of Ray clusters that are gone, out of the sessions that KubeRay's history server keeps.

Ray names a driver's log by its submission, and its workers' logs by the job's core id; which is whose, and
how it ended, stands in the events. A session that several jobs shared becomes a job for each submission.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from service.batches.sources.grouping import JobFiles
from service.batches.sources.ray_jobs import own_words, read_time
from service.batches.sources.ray_layout import core_id_of_events, is_ray_log, session_of
from service.schemas.diagnosis import Outcome

# Of a session's events so much is read at most, in bytes; a job has two of those that are looked for.
MOST_EVENTS = 64 << 20
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
_ENDED = re.compile(r"Completed a ray job (?P<submission>\S+) with a status (?P<status>[A-Z]+)\.")
_EXIT = re.compile(rb"entrypoint command exited with code (?P<code>-?\d{1,3})\b")
_WHOSE = re.compile(rb"^:job_id:(?P<job>[0-9a-f]{8})\s*$", re.MULTILINE)

# Gives the beginning of a file of the store, unpacked, no longer than so many bytes; empty where it cannot.
Read = Callable[[str, int], bytes]


@dataclass(frozen=True)
class RayJobEnd:
    """How a submitted job ended, in Ray's own words; empty and None where nothing tells."""

    status: str = ""
    message: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The end as the caller of a triage knows it."""
        return Outcome.told(self.exit_code, None, self.status).if_given


@dataclass(frozen=True)
class HistoryJob:
    """One job's files, and how it ended as far as its cluster told."""

    files: JobFiles
    end: RayJobEnd = RayJobEnd()

    @property
    def has_failed(self) -> bool:
        """Tell whether it may have failed: nothing tells that it did not."""
        return self.end.status not in ("SUCCEEDED", "STOPPED")


@dataclass
class _Session:
    job_events: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    events: list[str] = field(default_factory=list)


def split_sessions(jobs: Sequence[JobFiles], names: Iterable[str], read: Read) -> list[HistoryJob]:
    """Give the jobs of each session by its events; what is no session of the store stays as it is.

    `names` are those of all files, events among them.
    """
    sessions: dict[str, _Session] = defaultdict(_Session)
    for name in names:
        if (session := session_of(name)) is not None:
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
        session.events.append(name)
    elif core_id := core_id_of_events(name):
        session.job_events[core_id].append(name)


def _of_session(job: JobFiles, session: _Session, read: Read) -> Iterator[HistoryJob]:
    own: dict[str, list[str]] = defaultdict(list)
    supervisors: dict[str, str] = {}
    for name in job.logs:
        if match := _DRIVER.search(name):
            own[match["submission"]].append(name)
        elif match := _SUPERVISOR.search(name):
            supervisors[match["submission"]] = name
    ends = _ends(_rows(session.events, read))
    for submission, name in supervisors.items():
        if code := _EXIT.search(read(name, _SUPERVISION)):
            ends[submission] = replace(ends.get(submission, RayJobEnd()), exit_code=int(code["code"]))
    if len(own) < 2:
        yield HistoryJob(job, ends.get(next(iter(own), ""), RayJobEnd()))
        return
    for submission, logs in _shares(job.logs, own, _core_ids(session.job_events, read), read):
        files = replace(job, name=f"{job.name}/{submission}", logs=logs)
        yield HistoryJob(files, ends.get(submission, RayJobEnd()))


def _shares(
    logs: Sequence[str], own: Mapping[str, Sequence[str]], ids: Mapping[str, str], read: Read
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give each submission's logs: its own, those of its core id, and those of the nodes."""
    drivers = {name for names in own.values() for name in names}
    others = {name: _owner(name, read) for name in logs if name not in drivers}
    known = {*ids.values(), *own}
    for submission, names in own.items():
        mine = {"", submission, ids.get(submission, "")}
        # What no event gives to anybody may be of each whose core id is not known.
        is_unknown = submission not in ids
        rest = [
            name for name, owner in others.items() if owner in mine or (is_unknown and owner not in known)
        ]
        yield submission, (*names, *rest)


def _owner(name: str, read: Read) -> str:
    """Give the submission or the core id of the job that a log is of; empty where it is of a node."""
    if supervisor := _SUPERVISOR.search(name):
        return supervisor["submission"]
    match = _OF_JOB.search(name)
    if match is None or match["job"] != _AHEAD:
        return match["job"] if match else ""
    told = _WHOSE.search(read(name, _HEAD))
    return told["job"].decode() if told else ""


def _core_ids(events: Mapping[str, Sequence[str]], read: Read) -> dict[str, str]:
    """Give the core id of each submission, by the definitions of the jobs."""
    found: dict[str, str] = {}
    for core_id, names in events.items():
        for row in _rows(names, read):
            told = row.get("driverJobDefinitionEvent")
            config = told.get("config") if isinstance(told, dict) else None
            metadata = config.get("metadata") if isinstance(config, dict) else None
            if isinstance(metadata, dict) and (submission := metadata.get("job_submission_id")):
                found[str(submission)] = core_id
    return found


def _ends(rows: Iterable[Mapping[str, Any]]) -> dict[str, RayJobEnd]:
    """Give how each submission ended, by what Ray's own log of events tells of jobs."""
    found: dict[str, RayJobEnd] = {}
    for row in rows:
        fields = row.get("custom_fields")
        submission = str(fields.get("submission_id") or "") if isinstance(fields, dict) else ""
        if row.get("source_type") != "JOBS" or not submission:
            continue
        known, at = found.get(submission, RayJobEnd()), _time(row.get("timestamp"))
        message = str(row.get("message", ""))
        match = _ENDED.match(message)
        if match is None:
            found[submission] = replace(known, started=known.started or at)
        elif match["submission"] == submission:
            said = own_words(message[match.end() :])
            found[submission] = replace(known, status=match["status"], message=said, ended=at)
    return found


def _rows(names: Iterable[str], read: Read) -> Iterator[dict[str, Any]]:
    """Yield the objects of files of JSON lines; what is none is passed over."""
    left = MOST_EVENTS
    for name in names:
        content = read(name, left)
        left -= len(content)
        for line in content.splitlines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row


def _time(told: object) -> datetime | None:
    text = str(told)
    return read_time(1000 * int(text)) if text.isascii() and text.isdecimal() and len(text) < 12 else None
