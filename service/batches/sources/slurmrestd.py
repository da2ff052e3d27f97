"""Failed jobs of a Slurm cluster, by the accounting of its REST API (`slurmrestd`).

Its answers changed with the versions of the API, of which a server has three or four: a state is a word or a
list of words, a number is a number or says beside it whether it is set, output paths came with v0.0.41. They
are read as `sacct`'s rows are, and output is looked for where the jobs wrote it.
https://slurm.schedmd.com/rest_api.html
"""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Container, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from service.batches.sources import slurm
from service.batches.sources.found import FoundJobs, shown_path
from service.batches.sources.http_client import JsonApi
from service.batches.sources.slurm import Row, SlurmQuery
from service.settings import Settings

KIND = "slurmrestd"
# The newest whose answers are known to be read; a server with newer ones alone is asked in its own.
NEWEST = 46
_PATH = re.compile(r"/slurmdb/v0\.0\.(\d+)/jobs/?")
# As v0.0.39 and v0.0.40 write it where a job got no node.
_NO_NODES = ("", "None assigned", "None")
# What v0.0.39 says of each exit that is no signal, whatever the code was.
_ANY_EXIT = "SUCCESS"


class _MaybeNumber(BaseModel):
    set: bool = False
    number: int = 0


_Maybe = int | _MaybeNumber | None


class _EndSignal(BaseModel):
    # v0.0.39, and from v0.0.40 on.
    signal_id: _Maybe = None
    id: _Maybe = None


class _JobExit(BaseModel):
    status: str | list[str] | None = None
    return_code: _Maybe = None
    signal: _EndSignal | None = None


class _JobState(BaseModel):
    current: str | list[str] | None = None


class _JobTime(BaseModel):
    elapsed: int = 0
    start: _Maybe = None
    end: _Maybe = None


class _Tres(BaseModel):
    type: str = ""
    name: str | None = None
    count: int = 0


class _AllTres(BaseModel):
    allocated: list[_Tres] | None = None


class _JobArray(BaseModel):
    job_id: int = 0
    task_id: _Maybe = None


class _JobOwner(BaseModel):
    user: str | None = None


class _AccountedJob(BaseModel):
    job_id: int
    name: str | None = None
    user: str | None = None
    association: _JobOwner | None = None
    state: _JobState = _JobState()
    exit_code: _JobExit | None = None
    time: _JobTime = _JobTime()
    nodes: str | None = None
    allocation_nodes: int | None = None
    tres: _AllTres | None = None
    array: _JobArray | None = None
    working_directory: str | None = None
    stdout: str | None = None
    stderr: str | None = None

    @property
    def states(self) -> tuple[str, ...]:
        """Its state, and what stands beside it, such as REQUEUED."""
        now = self.state.current
        # An older server writes `CANCELLED by 1000` as sacct does.
        return tuple(word.split()[0] for word in ([now] if isinstance(now, str) else now or ()) if word)

    @property
    def id(self) -> str:
        """Its id as people write it: ARRAY_TASK for a task of an array."""
        array, task = self.array, _known(self.array.task_id) if self.array else None
        return f"{array.job_id}_{task}" if array and array.job_id and task is not None else str(self.job_id)

    @property
    def exit(self) -> str:
        """Exit code and signal as sacct writes them; empty where it cannot be told."""
        told = self.exit_code
        if told is None:
            return ""
        signal = told.signal and (_known(told.signal.id) or _known(told.signal.signal_id))
        if signal:
            return f"0:{signal}"
        code = _known(told.return_code)
        # A job that failed with code 0 is one of the version that says so of each.
        return "" if code is None or (code <= 0 and _ANY_EXIT in (told.status or ())) else f"{code}:0"


class _RestError(BaseModel):
    error: str | None = None
    description: str | None = None


class _Accounting(BaseModel):
    jobs: list[_AccountedJob] = []
    errors: list[_RestError] | None = None


class _Description(BaseModel):
    paths: dict[str, Any] = {}


def find_jobs(url: str, asked: SlurmQuery, settings: Settings, answered: Container[str] = ()) -> FoundJobs:
    """Ask slurmrestd for failed jobs and find their output; raises InvalidRequestError, TooLargeError."""
    where = f"{shown_path(url)}, since {asked.since:%Y-%m-%d %H:%M},"
    with JsonApi(KIND, url, _headers(), _reason) as api:
        found = sorted(_failed(api, asked), key=lambda job: job.job_id)
    return slurm.jobs_of(map(_row, found), where, settings, None, answered)


def _failed(api: JsonApi, asked: SlurmQuery) -> Iterator[_AccountedJob]:
    # Not by `state`: v0.0.39 takes numbers of a state, later ones names.
    given = {"start_time": f"uts{int(asked.since.timestamp())}", "skip_steps": "true"}
    if asked.until:
        given["end_time"] = f"uts{int(asked.until.timestamp())}"
    if asked.users:
        given["users"] = asked.users
    answer = api.get(_jobs_path(api), given, _Accounting)
    if answer.errors:
        raise api.refused(_error_text(answer.errors))
    for job in answer.jobs:
        ended = _known(job.time.end) or 0
        # What ran within the time is given too, and ended after it or before.
        if set(job.states) & set(asked.states) and ended >= asked.since.timestamp():
            yield job


def _jobs_path(api: JsonApi) -> str:
    """Choose among the versions that a server says it has."""
    paths = api.get("/openapi/v3", {}, _Description).paths
    found = {int(match[1]): path for path in paths if (match := _PATH.fullmatch(path))}
    if not found:
        raise api.refused("it has no accounting (slurmdbd)")
    return found[max((version for version in found if version <= NEWEST), default=min(found))]


def _row(job: _AccountedJob) -> Row:
    """Give a job as sacct gives it."""
    resources = job.tres.allocated or [] if job.tres else []
    nodes = job.nodes or ""
    return {
        "JobID": job.id,
        "JobIDRaw": str(job.job_id),
        "JobName": job.name or "",
        "User": job.user or (job.association.user if job.association else "") or "",
        "State": next((word for word in job.states if word in slurm.STATES), ""),
        "ExitCode": job.exit,
        "NNodes": str(job.allocation_nodes or 0),
        "NodeList": "" if nodes in _NO_NODES else nodes,
        "AllocTRES": ",".join(
            f"{each.type}{f'/{each.name}' if each.name else ''}={each.count}" for each in resources
        ),
        "ElapsedRaw": str(job.time.elapsed),
        "Start": _moment(job.time.start),
        "End": _moment(job.time.end),
        "WorkDir": job.working_directory or "",
        "StdOut": job.stdout or "",
        "StdErr": job.stderr or "",
    }


def _known(number: _Maybe) -> int | None:
    if isinstance(number, _MaybeNumber):
        return number.number if number.set else None
    return number


def _moment(number: _Maybe) -> str:
    seconds = _known(number)
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""


def _headers() -> Mapping[str, str]:
    """Give who asks: the token that `scontrol token` prints is in Slurm's own variable."""
    if token := os.environ.get("SLURM_JWT"):
        return {"X-SLURM-USER-NAME": os.environ.get("USER") or getpass.getuser(), "X-SLURM-USER-TOKEN": token}
    return {}


def _reason(raw: bytes) -> str:
    try:
        return _error_text(_Accounting.model_validate({"errors": json.loads(raw)["errors"]}).errors or [])
    except (ValueError, KeyError, TypeError):
        return raw.decode("utf-8", "replace")


def _error_text(errors: list[_RestError]) -> str:
    words = (error.description or error.error or "" for error in errors)
    return "; ".join(word for word in words if word) or "it says that it failed, and not why"
