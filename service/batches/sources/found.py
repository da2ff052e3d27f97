"""What a source gives: the jobs that it found, and what it left out and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from corpus.message import Message
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.schemas.errors import InvalidRequestError, TooLargeError
from service.schemas.records import JobSpec
from service.settings import Settings

LONGEST_NAME = 200
# What is told where a place holds no job: nothing at all, or nothing that was not left out.
NO_JOBS, NO_JOBS_BUT_LOST = "errors.holds-no-job-log", "errors.holds-no-job-log-left"

PhaseLine = dict[str, int | str]


@dataclass(frozen=True)
class FoundJobs:
    """The jobs of a source, which may be iterated again, their count, and what was left out, by reason."""

    make: Callable[[], Iterable[JobSpec]] = field(repr=False)
    count: int
    left_out: PhaseLine = field(default_factory=dict)

    @property
    def specs(self) -> Iterator[JobSpec]:
        """The jobs; a hundred thousand are made one by one."""
        return iter(self.make())


def collect_jobs(specs: Sequence[JobSpec], left_out: PhaseLine | None = None) -> FoundJobs:
    """Give jobs that are at hand as what was found."""
    return FoundJobs(lambda: specs, len(specs), clean_spec(left_out or {}))


def clean_spec(left_out: PhaseLine) -> PhaseLine:
    """Give what was left out as it may be kept: files' names hold secrets, too."""
    return {
        reason: _encodable(Redactor().clean(told)) if isinstance(told, str) else told
        for reason, told in left_out.items()
    }


def check_limits(count: int, where: str, settings: Settings, left_out: PhaseLine) -> None:
    """Raise InvalidRequestError where there is no job, TooLargeError where there are too many."""
    if not count:
        told = "; ".join(
            f"{reason.replace('_', ' ')} {what}" for reason, what in clean_spec(left_out).items()
        )
        where = Redactor().clean(where)
        raise InvalidRequestError(
            Message(NO_JOBS_BUT_LOST, where=where, told=told) if told else Message(NO_JOBS, where=where)
        )
    if count > settings.max_jobs:
        raise TooLargeError(
            Message("errors.holds-more-jobs-batch", where=Redactor().clean(where), max_jobs=settings.max_jobs)
        )


def shown_path(name: str) -> str:
    """Give a job's name as it may be kept: without secrets and control characters, not too long."""
    return printable(_encodable(Redactor().clean(name)))[:LONGEST_NAME] or "job"


def _encodable(name: str) -> str:
    """Escape what stands for a file name's bytes that are no UTF-8: no JSON holds it."""
    return name.encode("utf-8", "backslashreplace").decode()
