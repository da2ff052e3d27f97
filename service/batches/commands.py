"""The commands to an executor and their outcomes, as values that pass between processes."""

from __future__ import annotations

from dataclasses import dataclass

from service.schemas.diagnosis import Diagnosis, Outcome

# What one job may take of memory beyond what a loaded process has, bytes. A log is read in bounded memory, so
# only one that was made to break the reader comes near.
JOB_MEMORY = 4 << 30


@dataclass(frozen=True, slots=True)
class JobCommand:
    """A job to work on.

    `paths` are what it wrote, `configs` its own files, `outcome` how it ended, `seconds` the longest that
    one step may take, `batch` the batch that a model's tokens are counted for, `team` whose the batch is.
    """

    id: str
    name: str
    paths: tuple[str, ...]
    configs: tuple[str, ...] = ()
    language: str = ""
    model: bool = False
    seconds: float = 120.0
    outcome: Outcome | None = None
    batch: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class ReadCommand:
    """The step that reads a job's output and keeps the report."""

    command: JobCommand


@dataclass(frozen=True, slots=True)
class AnswerCommand:
    """The step that answers a job that was read.

    `by_rules` where a model was to be asked and has been, about another job of the same crash.
    """

    id: str
    by_rules: bool = False


@dataclass(frozen=True, slots=True)
class DropCommand:
    """Forget the report of a job that another one answers for."""

    id: str


@dataclass(frozen=True, slots=True)
class JobReading:
    """What is known of a job once it is read: its crash, its files' digest, the line that shows the crash."""

    fingerprint: str
    config: str
    root_line: int | None
    root_file: str | None
    root_text: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class JobWasRead:
    """A job was read; it waits to be answered or dropped."""

    id: str
    reading: JobReading


@dataclass(frozen=True, slots=True)
class JobWasAnswered:
    """A job was answered."""

    id: str
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step failed and says why; `final` where another try cannot help, as with a file that is no log."""

    id: str
    error: str
    final: bool = False


@dataclass(frozen=True, slots=True)
class JobWasLost:
    """The process died, or was ended, while it worked on this job."""

    id: str
    error: str


@dataclass(frozen=True, slots=True)
class JobReturned:
    """The job's process is gone for a reason that is not this job's; it is to be handed out again."""

    id: str


StepResult = JobWasRead | JobWasAnswered | StepFailed | JobWasLost | JobReturned
Step = ReadCommand | AnswerCommand | DropCommand
