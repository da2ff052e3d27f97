"""The failed jobs of a Ray cluster, by its dashboard's Jobs API; their logs are kept as redacted copies.

Asked over HTTP, so that Ray need not be installed where whycrash runs.
https://docs.ray.io/en/latest/cluster/running-applications/job-submission/openapi.html
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, Field, ValidationError

from corpus.message import Message
from ingest.errors import EmptyInputError, InputError
from ingest.logs.inputs.members import Skipped
from ingest.logs.inputs.sources import LogSource
from service.batches.sources.candidates import JobCandidate, fetch_all
from service.batches.sources.copies import PieceStream
from service.batches.sources.found import FoundJobs, shown_path
from service.batches.sources.http_client import bounded, open_client
from service.batches.sources.spool import BatchSpool, SpooledJob
from service.schemas.diagnosis import Outcome
from service.schemas.errors import ForbiddenError, InvalidRequestError
from service.schemas.records import JobSpec
from service.settings import Settings
from service.telemetry.ray_state import token

# A list of jobs is a few hundred bytes each, and a runtime environment more.
MAX_LIST = 256 << 20
# What Ray says of a job's end is kept under this name, beside its logs.
STATUS_LOG = "ray-job-status.log"
# Ray puts the end of the log into a job's message; what stands before it is Ray's own word.
_TAIL = re.compile(r"last available logs|The last \d{1,9} lines", re.IGNORECASE)
# As much of a JSON text as is whole; what follows is its closing quote, or an escape that is not all there
# yet.
_WHOLE = re.compile(r'(?>(?:[^"\\]++|\\(?:u[0-9a-fA-F]{4}|[^u]))*)')
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")


class RayJob(BaseModel):
    """A job as the dashboard gives it; fields that are not used here are passed over."""

    status: str
    submission_id: str | None = None
    job_id: str | None = None
    entrypoint: str = ""
    message: str | None = None
    start_time: int | None = None
    end_time: int | None = None
    metadata: dict[str, str] | None = None
    runtime_env: dict[str, Any] | None = None
    driver_exit_code: int | None = None

    @property
    def name(self) -> str:
        """What people call it: its name where it was given one, and its id."""
        given = (self.metadata or {}).get("name") or (self.metadata or {}).get("job_name") or ""
        known = self.submission_id or self.job_id or "?"
        return known if given in ("", known) else f"{given} ({known})"


class _RayJobList(BaseModel):
    jobs: list[RayJob] = Field(default_factory=list)


@dataclass(frozen=True)
class RayJobQuery:
    """What is asked for: jobs that failed since a time, of a dashboard such as http://127.0.0.1:8265."""

    dashboard: str
    since: datetime | None = None


def allowed(dashboard: str, settings: Settings) -> str:
    """Give a dashboard's address that a request names.

    Raises ForbiddenError where the settings do not list it.
    """
    listed = {base(item.strip()) for item in settings.ray_dashboards.split(",") if item.strip()}
    if base(dashboard) not in listed:
        raise ForbiddenError(Message("errors.none-ray-dashboards-batches", dashboard=shown_path(dashboard)))
    return base(dashboard)


def base(dashboard: str) -> str:
    """Give an address in one form; raises InvalidRequestError where it is none."""
    try:
        parts = urlsplit(dashboard if "://" in dashboard else f"http://{dashboard}")
        port = parts.port
    except ValueError as error:
        raise InvalidRequestError(
            Message("errors.no-address-dashboard", dashboard=shown_path(dashboard), reason=error)
        ) from error
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username
        or parts.query
        or parts.fragment
    ):
        raise InvalidRequestError(
            Message("errors.no-address-dashboard-http", dashboard=shown_path(dashboard))
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def find_jobs(
    asked: RayJobQuery, spool: BatchSpool, settings: Settings, answered: Container[str] = ()
) -> FoundJobs:
    """Fetch the logs of all failed jobs; raises InvalidRequestError, TooLargeError, DiskFullError.

    Where it raises, no copy stays.
    """
    where = f"{base(asked.dashboard)}, of failed jobs,"
    return fetch_all(lambda _skipped: open_jobs(asked), where, spool, settings, answered)


@contextmanager
def open_jobs(asked: RayJobQuery) -> Iterator[list[JobCandidate]]:
    """Give the jobs that failed, oldest first; raises InvalidRequestError."""
    address = base(asked.dashboard)
    headers = {"Authorization": f"Bearer {known}"} if (known := token()) else {}
    with open_client(address, headers) as client:
        yield [_candidate(client, job, address) for job in _failed(client, asked)]


def _failed(client: httpx.Client, asked: RayJobQuery) -> list[RayJob]:
    """Give the jobs that failed, oldest first.

    Raises InvalidRequestError where the dashboard does not tell.
    """
    try:
        with client.stream("GET", "/api/jobs/") as response:
            response.raise_for_status()
            listed = _RayJobList.model_validate({"jobs": json.loads(bounded(response, MAX_LIST))})
    except (httpx.HTTPError, httpx.InvalidURL, ValidationError, ValueError, RecursionError) as error:
        raise InvalidRequestError(
            Message("errors.ray-dashboard-not-asked", base_url=client.base_url, reason=_error_text(error))
        ) from error
    since = asked.since.timestamp() * 1000 if asked.since else 0
    failed = [
        job
        for job in listed.jobs
        if job.status == "FAILED" and (job.end_time or job.start_time or 0) >= since
    ]
    return sorted(failed, key=lambda job: (job.end_time or 0, job.name))


def _error_text(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError) and error.response.status_code in (401, 403):
        return "it wants a token; set RAY_AUTH_TOKEN to the cluster's"
    return (
        "what it gives is no list of jobs"
        if isinstance(error, ValueError | RecursionError)
        else shown_path(str(error) or type(error).__name__)
    )


def _candidate(client: httpx.Client, job: RayJob, dashboard: str) -> JobCandidate:
    def fetch(copies: SpooledJob, skipped: Skipped) -> JobSpec | None:
        if job.submission_id:
            _log(client, job.submission_id, copies, skipped)
        # What Ray says of the end may be all there is: no log is written where an environment cannot be set
        # up.
        if said := own_words(job.message or ""):
            copies.log(STATUS_LOG, [f"{said}\n".encode()])
        if not copies.logs:
            return None
        for name, text in _configs(job):
            copies.config(name, text.encode())
        place = copies.place().model_copy(
            update={"ray_dashboard": dashboard, "ray_job": job.submission_id or job.job_id or ""}
        )
        return JobSpec(
            name=job.name,
            place=place,
            started=read_time(job.start_time),
            ended=read_time(job.end_time),
            outcome=Outcome.told(job.driver_exit_code, None, job.status).if_given,
        )

    return JobCandidate(f"{shown_path(job.name)}|{read_time(job.end_time)}", job.name, fetch)


def own_words(message: str) -> str:
    """Give what Ray itself says of a job's end, without the end of the log behind it."""
    tail = _TAIL.search(message)
    if tail is None:
        return message.strip()
    said = message[: tail.start()].rstrip()
    return (said[:-1] if said.endswith((",", ".")) else said).strip()


def _log(client: httpx.Client, submission: str, copies: SpooledJob, skipped: Skipped) -> None:
    """Keep a job's log; where it is not given, the job may still have Ray's own words."""
    try:
        with client.stream("GET", f"/api/jobs/{quote(submission, safe='')}/logs") as response:
            response.raise_for_status()
            source = LogSource(
                submission,
                PieceStream(json_text(response.iter_bytes(), "logs"), "the dashboard", copies.spool.check),
            )
            with closing(source):
                source.head()
                copies.log("driver.log", source.chunks())
    except EmptyInputError:
        return
    except (httpx.HTTPError, InputError) as error:
        skipped.add("logs_not_given", f"{shown_path(submission)} ({type(error).__name__})")
        return
    for reason, told in source.omitted.items():
        skipped.add(reason, f"{shown_path(submission)} ({told})")


def _configs(job: RayJob) -> Iterator[tuple[str, str]]:
    """Give what the job was submitted with as files that a change can be written into."""
    if job.entrypoint:
        yield "entrypoint.sh", f"{job.entrypoint}\n"
    # What Ray itself puts in begins with an underscore.
    if kept := {key: value for key, value in (job.runtime_env or {}).items() if not key.startswith("_")}:
        yield "runtime_env.yaml", json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def json_text(chunks: Iterable[bytes], key: str) -> Iterator[bytes]:
    """Yield the text under `key` of a JSON object, piece by piece: it may be larger than the memory.

    Raises ValueError where the object is cut or has no such text.
    """
    texts = codecs.iterdecode(chunks, "utf-8", "replace")
    held = _begun(texts, key)
    while True:
        whole = _WHOLE.match(held)
        end = whole.end() if whole else 0
        if held[end : end + 1] == '"':
            yield _unescaped(held[:end])
            return
        if pair := _HALF_PAIR.search(held, 0, end):
            end = pair.start()
        yield _unescaped(held[:end])
        more = next(texts, "")
        if not more:
            raise ValueError(f"{key} is cut")
        held = held[end:] + more


def _begun(texts: Iterator[str], key: str) -> str:
    begin = re.compile(rf'"{re.escape(key)}"\s*:\s*"')
    held = ""
    for text in texts:
        held += text
        if match := begin.search(held):
            return held[match.end() :]
        held = held[-1000:]
    raise ValueError(f"there is no {key}")


def _unescaped(text: str) -> bytes:
    return str(json.loads(f'"{text}"', strict=False)).encode("utf-8", "surrogatepass")


def read_time(milliseconds: int | None) -> datetime | None:
    """Read milliseconds since 1970; None where there are none, or they are beyond what a date can be."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
    except (ValueError, OverflowError, OSError):
        return None  # beyond what a time can be
