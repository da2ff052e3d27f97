"""Types of an experiment: the job, the limits of its sandbox, and the labels of its incident."""

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["diagnosed", "unknown", "no-failure"]


@dataclass(frozen=True)
class LineMatch:
    """Identify a line of the log by text that it contains."""

    text: str
    which: Literal["first", "last"] = "first"
    """Which of the lines that contain `text` is meant."""


@dataclass(frozen=True)
class Change:
    """State one fix that an expert would accept; any one of an experiment's changes suffices."""

    framework: str
    key: str
    to: str | int | float | bool


@dataclass(frozen=True)
class Limits:
    """Bound what the job's sandbox may use; `None` leaves the machine's own bound."""

    memory_mib: int | None = None
    """Limit of the memory cgroup; the kernel's OOM killer enforces it."""
    tasks: int | None = None
    """Threads and processes in the pids cgroup."""
    user_processes: int | None = None
    """`ulimit -u`; the job then runs as an ordinary user, since root is exempt from it."""
    disk_mib: int = 6144
    """Size of the tmpfs that holds the home folder."""
    scratch_mib: int = 6144
    """Size of the tmpfs on /tmp."""
    shm_mib: int = 4096
    """Size of the tmpfs on /dev/shm."""


@dataclass(frozen=True)
class Experiment:
    """Describe a job that fails (or not) for a known reason, and how its log proves it."""

    id: str
    """Must not hint at the failure nor occur in the log."""
    causes: tuple[str, ...]
    """Ids of causes.yaml, the best answer first; empty for a healthy run."""
    script: str
    """The job, a file of `experiments/`."""
    project: str
    """Name of the job's folder under /home/user."""
    launch: str
    """The shell command that starts the job, in its folder."""
    mechanism: str
    verdict: Verdict = "diagnosed"
    root: tuple[LineMatch, ...] = ()
    """The decisive lines; they become `root_lines`."""
    shows: tuple[str, ...] = ()
    """Texts that must be in the log for the run to count; they are not root lines."""
    shown_as: str = "train.py"
    """The script's name in the job's folder."""
    extra: tuple[tuple[str, str], ...] = ()
    """More files of `experiments/` with their names in the job's folder."""
    needs: tuple[str, ...] = ()
    """Distributions that must be installed; their versions go into the label."""
    absent: tuple[str, ...] = ()
    """Distributions that must not be installed."""
    limits: Limits = field(default_factory=Limits)
    env: tuple[tuple[str, str], ...] = ()
    timeout_s: int = 120
    """After this many seconds the sandbox is killed and nothing is recorded."""
    beside: bool = False
    """The job writes files into its folder `beside`, which are recorded with the log."""
    changes: tuple[Change, ...] = ()
    traps: tuple[str, ...] = ()
    language: Literal["en", "zh"] = "en"
