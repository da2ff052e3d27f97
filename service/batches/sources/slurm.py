"""Failed jobs of a Slurm cluster, by its accounting (`sacct`), and their output where the jobs wrote it.

https://slurm.schedmd.com/sacct.html, and for the patterns in output paths
https://slurm.schedmd.com/sbatch.html
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from corpus.message import Message
from ingest.logs.inputs.members import Skipped
from service.batches.sources import folder, nodelist
from service.batches.sources.found import FoundJobs, check_limits, collect_jobs, shown_path
from service.schemas.diagnosis import Outcome
from service.schemas.errors import InvalidRequestError, LateError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings

TIMEOUT_S = 120.0
# What a cluster of thousands of jobs a day gives for a month is a tenth of it.
MAX_OUTPUT = 256 << 20
STATES = ("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")
FIELDS = (
    "JobID",
    "JobIDRaw",
    "JobName",
    "User",
    "State",
    "ExitCode",
    "NNodes",
    "NodeList",
    "AllocTRES",
    "ElapsedRaw",
    "Start",
    "End",
    "WorkDir",
)
# Since Slurm 24.05; an older sacct refuses them.
PATHS = ("StdOut", "StdErr")
# A job's name may hold the usual bar.
_APART = "\x1f"
_TIME = "%Y-%m-%dT%H:%M:%S"
_PATTERNS = re.compile(r"(%\d*[%AaJjNnstuxb])")
# Patterns that are another file for each node, task or step.
_SEVERAL = frozenset("Nnst")
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_GPUS_BY_TYPE = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
_JOB_ID = re.compile(r"(?P<job>\d+)(?:_(?P<task>\d+))?(?:\+(?P<part>\d+))?")
MAX_FILES = 1000

# A job as sacct gives it, by the names of its fields.
Row = Mapping[str, str]


@dataclass(frozen=True)
class SlurmQuery:
    """What is asked for: jobs that ended in one of the states since a time.

    `users` by commas, empty is those that sacct gives by itself.
    """

    since: datetime
    until: datetime | None = None
    states: tuple[str, ...] = STATES
    users: str = ""


def find_jobs(
    asked: SlurmQuery, settings: Settings, roots: Sequence[str] | None = None, answered: Container[str] = ()
) -> FoundJobs:
    """Ask sacct for failed jobs and find their output; raises InvalidRequestError, TooLargeError, LateError.

    With `roots`, only output under one of these real folders is taken: who submits a job chooses its path,
    and may choose one that only the server may read.
    """
    return jobs_of(rows(asked), f"Slurm, since {asked.since:%Y-%m-%d %H:%M},", settings, roots, answered)


def jobs_of(
    found: Iterable[Row],
    where: str,
    settings: Settings,
    roots: Sequence[str] | None,
    answered: Container[str],
) -> FoundJobs:
    """Find the output of failed jobs; raises InvalidRequestError, TooLargeError."""
    skipped = Skipped()
    specs: list[JobSpec] = []
    for row in found:
        paths = output_files(row)
        allowed = [
            path
            for path in paths
            if roots is None or any(folder.is_under(os.path.realpath(path), root) for root in roots)
        ]
        if allowed:
            spec = _spec(row, allowed)
            if spec.place.source_key in answered:
                skipped.add("answered_before", row["JobID"])
                continue
            specs.append(spec)
            check_limits(len(specs), where, settings, {})
        else:
            skipped.add("outside_batch_roots" if paths else "no_output_found", row["JobID"])
    check_limits(len(specs), where, settings, skipped.omitted)
    return collect_jobs(specs, skipped.omitted)


def rows(asked: SlurmQuery) -> Iterator[Row]:
    """Give the jobs that sacct knows; raises InvalidRequestError with what it says, LateError."""
    names: tuple[str, ...] = (*FIELDS, *PATHS)
    ended = _run(_command(asked, names))
    if ended.returncode and "invalid field" in ended.stderr.lower():
        names = FIELDS
        ended = _run(_command(asked, names))
    if ended.returncode:
        raise InvalidRequestError(
            Message(
                "errors.sacct-failed",
                split=shown_path(" ".join(ended.stderr.split())) or f"exit code {ended.returncode}",
            )
        )
    for line in ended.stdout[:MAX_OUTPUT].splitlines():
        cells = line.split(_APART)
        if len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def output_files(row: Row) -> list[str]:
    """Give the files that a job wrote its output to, as far as they are there, standard output first."""
    default = "slurm-%A_%a.out" if "_" in row["JobID"] else "slurm-%j.out"
    patterns = dict.fromkeys(pattern for name in PATHS if (pattern := row.get(name))) or {default: None}
    found = [path for pattern in patterns for path in _paths(pattern, row)]
    return [path for path in dict.fromkeys(found) if os.path.isfile(path)]  # noqa: PTH113 - as text


def _paths(pattern: str, row: Row) -> list[str]:
    if "\\" in pattern:
        # A backslash switches patterns off.
        names = [pattern.replace("\\", "")]
    else:
        pieces = _PATTERNS.split(pattern)
        several = any(piece[-1] in _SEVERAL for piece in pieces[1::2])
        name = "".join(
            _filled(piece, row, several) if place % 2 else _escaped(piece, several)
            for place, piece in enumerate(pieces)
        )
        names = [name]
        if several:  # as text: the pattern may be an absolute path
            names = sorted(glob.glob(name, root_dir=row["WorkDir"]))[:MAX_FILES]  # noqa: PTH207
    # An absolute name takes the place of the folder.
    return [os.path.join(row["WorkDir"], name) for name in names]  # noqa: PTH118


def _filled(piece: str, row: Row, several: bool) -> str:
    sign, width = piece[-1], piece[1:-1]
    if sign in _SEVERAL:
        return "*"
    value = _VALUES[sign](row) if sign in _VALUES else "%"
    # Slurm pads numbers alone, to ten digits at most.
    return value.zfill(min(int(width[:3]), 10)) if width and value.isdecimal() else _escaped(value, several)


def _escaped(text: str, several: bool) -> str:
    return glob.escape(text) if several else text


def _ids(row: Row) -> re.Match[str] | None:
    return _JOB_ID.match(row["JobID"])


def _task(row: Row) -> str:
    found = _ids(row)
    # What a job has that is no array's.
    return (found["task"] if found else None) or "4294967294"


_VALUES: Mapping[str, Callable[[Row], str]] = {
    "A": lambda row: found["job"] if (found := _ids(row)) else row["JobIDRaw"],
    "a": _task,
    "b": lambda row: str(int(_task(row)) % 10),
    "j": lambda row: row["JobIDRaw"],
    "J": lambda row: row["JobIDRaw"],
    "u": lambda row: row["User"],
    "x": lambda row: row["JobName"],
}


def _command(asked: SlurmQuery, names: Sequence[str]) -> list[str]:
    program = shutil.which("sacct")
    if program is None:
        raise InvalidRequestError(Message("errors.no-sacct-machine-run"))
    until = asked.until.astimezone().strftime(_TIME) if asked.until else "now"
    users = [f"--user={asked.users}"] if asked.users else []
    return [
        program,
        "--allocations",
        "--array",
        "--parsable2",
        "--noheader",
        f"--delimiter={_APART}",
        f"--format={','.join(names)}",
        f"--state={','.join(asked.states)}",
        f"--starttime={asked.since.astimezone().strftime(_TIME)}",
        f"--endtime={until}",
        *users,
    ]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # Times come with their offset, so that they are right wherever they are read.
    surroundings = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "SLURM_TIME_FORMAT": f"{_TIME}%z",
        "SLURM_BITSTR_LEN": "0",
    }
    try:
        return subprocess.run(  # noqa: S603 - no shell; sacct's path and our own options
            command,
            env=surroundings,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise LateError(Message("errors.sacct-not-answer-within", timeout_s=f"{TIMEOUT_S:.0f}")) from error


def _spec(row: Row, paths: Sequence[str]) -> JobSpec:
    # A cluster may count GPUs as a whole, by type, or both.
    by_type = [int(count) for count in _GPUS_BY_TYPE.findall(row["AllocTRES"])]
    gpus = sum(by_type) if by_type else None
    if whole := _GPUS.search(row["AllocTRES"]):
        gpus = int(whole[1])
    elapsed = row["ElapsedRaw"]
    # How a job ended; sacct's ExitCode is the exit code and the signal, such as 1:0 or 0:9.
    code, _, number = row["ExitCode"].partition(":")
    outcome = Outcome.told(
        code or None, number if number.isdecimal() and int(number) else None, row["State"]
    ).if_given
    name, ended = shown_path(f"{row['JobName']} ({row['JobID']})"), _time(row["End"])
    real = tuple(dict.fromkeys(os.path.realpath(path) for path in paths))
    return JobSpec(
        name=name,
        place=JobPlace(paths=real, source_key=f"{name}|{ended}"),
        nodes=int(row["NNodes"]) if row["NNodes"].isdecimal() and int(row["NNodes"]) else None,
        gpus=gpus,
        gpu_hours=round(gpus * int(elapsed) / 3600, 3) if gpus is not None and elapsed.isdecimal() else None,
        started=_time(row["Start"]),
        ended=ended,
        node_names=nodelist.expand(row["NodeList"]),
        outcome=outcome,
    )


def _time(text: str) -> datetime | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None  # Unknown, or None
    return when.astimezone() if when.tzinfo is None else when
