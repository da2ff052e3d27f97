"""What the events of a Ray cluster tell of its jobs: which core id is whose, how each ended, and when.

Ray writes a log of events of its own (`event_JOBS.log`), and sends others to KubeRay's collector, which keeps
them as rows of JSON, gzipped or not; its first releases kept arrays of them, and filed some of the jobs' with
the nodes'.
https://github.com/ray-project/ray/blob/master/src/ray/protobuf/public/events_base_event.proto
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from service.batches.sources.ray_jobs import own_words, read_time
from service.batches.sources.ray_layout import job_of_events
from service.schemas.diagnosis import Outcome

# Of a session's events so much is read at most, in bytes; a job has two of those that are looked for.
MOST_EVENTS = 64 << 20
_ENDED = re.compile(r"Completed a ray job (?P<submission>\S+) with a status (?P<status>[A-Z]+)\.")
_CORE_ID = re.compile(r"[0-9a-f]{8}")
_OVER = ("FAILED", "SUCCEEDED", "STOPPED")

# Gives the beginning of a file of the store, unpacked, no longer than so many bytes; empty where it cannot.
Read = Callable[[str, int], bytes]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class RayJobEnd:
    """How a job ended, in Ray's own words; empty and None where nothing tells."""

    status: str = ""
    message: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The end as the caller of a triage knows it."""
        return Outcome.told(self.exit_code, None, self.status).if_given

    def filled(self, other: RayJobEnd) -> RayJobEnd:
        """Give this end with what another one tells beside it."""
        return RayJobEnd(
            self.status or other.status,
            self.message or other.message,
            self.started or other.started,
            self.ended or other.ended,
            other.exit_code if self.exit_code is None else self.exit_code,
        )


NOTHING_TOLD = RayJobEnd()


@dataclass
class RayEvents:
    """What a session's events tell.

    `core_ids` by submission, `ends` by submission, `drivers` by the core id of each job that a program of its
    own began, such as a notebook.
    """

    core_ids: dict[str, str] = field(default_factory=dict)
    ends: dict[str, RayJobEnd] = field(default_factory=dict)
    drivers: dict[str, RayJobEnd] = field(default_factory=dict)


def read_events(ray_logs: Iterable[str], exported: Iterable[str], read: Read) -> RayEvents:
    """Read a session's events: Ray's own log of them, and those that the collector kept."""
    found = RayEvents()
    times: dict[str, RayJobEnd] = {}
    for _, row in _rows(ray_logs, read):
        _add_own(row, found)
    for name, row in _rows(exported, read):
        _add_definition(row.get("driverJobDefinitionEvent"), job_of_events(name), found)
        told = row.get("driverJobLifecycleEvent")
        if isinstance(told, dict) and (core_id := core_id_of(told.get("jobId"))):
            # When a driver came and went; that it went does not tell how.
            at = {state: moment for state, moment, _ in _transitions(told)}
            end = RayJobEnd(started=at.get("CREATED"), ended=at.get("FINISHED"))
            times[core_id] = times.get(core_id, NOTHING_TOLD).filled(end)
        _add_submission(row.get("submissionJobLifecycleEvent"), found)
    for core_id, end in times.items():
        if core_id in found.drivers:
            found.drivers[core_id] = end
    return found


def core_id_of(told: object) -> str:
    """Give a job's core id as Ray's names of files have it: eight digits; empty where it is none."""
    text = str(told)
    if _CORE_ID.fullmatch(text.lower()):
        return text.lower()
    try:
        raw = b64decode(text, validate=True)
    except (NoBase64, ValueError):
        return ""
    return raw.hex() if len(raw) == 4 else ""


def _add_own(row: Row, found: RayEvents) -> None:
    """Take in a row of Ray's own log of events."""
    fields = row.get("custom_fields")
    submission = str(fields.get("submission_id") or "") if isinstance(fields, dict) else ""
    if row.get("source_type") != "JOBS" or not submission:
        return
    known, at = found.ends.get(submission, NOTHING_TOLD), _time(row.get("timestamp"))
    message = str(row.get("message", ""))
    match = _ENDED.match(message)
    if match is None:
        found.ends[submission] = replace(known, started=known.started or at)
    elif match["submission"] == submission:
        said = own_words(message[match.end() :])
        found.ends[submission] = replace(known, status=match["status"], message=said, ended=at)


def _add_definition(event: object, filed: str, found: RayEvents) -> None:
    """Take in whose a core id is: the event's own, else the one that it was filed with."""
    if not isinstance(event, dict) or not (core_id := core_id_of(event.get("jobId")) or core_id_of(filed)):
        return
    config = event.get("config")
    metadata = config.get("metadata") if isinstance(config, dict) else None
    submission = metadata.get("job_submission_id") if isinstance(metadata, dict) else None
    if submission:
        found.core_ids[str(submission)] = core_id
    else:
        found.drivers.setdefault(core_id, NOTHING_TOLD)


def _add_submission(event: object, found: RayEvents) -> None:
    """Take in how a submission ended, where Ray's own log of events did not tell."""
    submission = str(event.get("submissionId") or "") if isinstance(event, dict) else ""
    if not isinstance(event, dict) or not submission:
        return
    end = NOTHING_TOLD
    for state, at, row in _transitions(event):
        if state == "RUNNING":
            end = replace(end, started=end.started or at)
        elif state in _OVER:
            code = row.get("driverExitCode")
            end = replace(
                end,
                status=state,
                message=own_words(str(row.get("message") or "")),
                ended=at,
                exit_code=code if isinstance(code, int) else None,
            )
    found.ends[submission] = found.ends.get(submission, NOTHING_TOLD).filled(end)


def _transitions(event: Row) -> Iterator[tuple[str, datetime | None, Row]]:
    rows = event.get("stateTransitions")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield str(row.get("state", "")), _time(row.get("timestamp")), row


def _rows(names: Iterable[str], read: Read) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of files of JSON, a row or an array each, with their file's name."""
    left = MOST_EVENTS
    for name in names:
        content = read(name, left)
        left -= len(content)
        for line in content.splitlines():
            try:
                told = json.loads(line)
            except (ValueError, RecursionError):
                continue
            rows = told if isinstance(told, list) else (told,)
            yield from ((name, row) for row in rows if isinstance(row, dict))


def _time(told: object) -> datetime | None:
    """Read seconds since 1970, or a time as ISO 8601 writes it, which is in UTC where it names no zone."""
    text = str(told)
    if text.isascii() and text.isdecimal():
        return read_time(1000 * int(text)) if len(text) < 12 else None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
