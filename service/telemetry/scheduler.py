"""What Slurm's accounting says of how a job ended."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from corpus.outcomes import slurm_exit_code
from service.telemetry.snapshot import Scheduler, known, unavailable

TIMEOUT_S = 10.0
COMMAND = ("sacct", "--noheader", "--parsable2", "--format=JobID,State,ExitCode", "--jobs")
_JOB = re.compile(r"^\d{1,12}(?:_\d{1,9})?$")
# The states that say why, before those that only say that: sacct gives a row for the job and one for each
# step.
TELLING = (
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "BOOT_FAIL",
    "PREEMPTED",
    "TIMEOUT",
    "DEADLINE",
    "CANCELLED",
    "FAILED",
    "COMPLETED",
    "RUNNING",
)


def read_scheduler(job: str, command: Sequence[str] = COMMAND, timeout_s: float = TIMEOUT_S) -> Scheduler:
    """Ask for a job; where it cannot be asked, the state is not available."""
    if not _JOB.match(job):
        return _no_scheduler("no Slurm job is named: SLURM_JOB_ID is not set")
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the id is checked
            [*command, job], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _no_scheduler(
            f"sacct could not be asked: {getattr(error, 'strerror', '') or type(error).__name__}"
        )
    if done.returncode != 0:
        return _no_scheduler(f"sacct: {done.stderr.strip()[:160] or done.returncode}")
    return parse_sacct(done.stdout)


def parse_sacct(text: str) -> Scheduler:
    """Read sacct's rows; of a job and its steps the state that says most."""
    rows = [row.split("|") for row in text.splitlines() if row.count("|") >= 2]
    states = [row[1].split()[0] for row in rows if row[1].strip()]
    state = next((word for word in TELLING if word in states), states[0] if states else "")
    if not state:
        return _no_scheduler("sacct knows no such job")
    ended = slurm_exit_code(next((row[2] for row in rows if row[1].startswith(state)), ""))
    return Scheduler(
        kind="slurm",
        state=known(state),
        exit_code=known(ended) if ended is not None else unavailable("sacct gives no exit code"),
    )


def _no_scheduler(why: str) -> Scheduler:
    return Scheduler(state=unavailable(why), exit_code=unavailable(why))
