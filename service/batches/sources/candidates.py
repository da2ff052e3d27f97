"""Jobs that a source knows of before anything of them is fetched: what was answered before costs no log."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from ingest.logs.inputs.members import Skipped
from service.batches.sources.found import FoundJobs, check_limits, collect_jobs, shown_path
from service.batches.sources.spool import BatchSpool, SpooledJob
from service.schemas.records import JobSpec
from service.settings import Settings


@dataclass(frozen=True)
class JobCandidate:
    """A job that ended, by its name; `key` is equal for the same end of the same job."""

    key: str
    name: str
    fetch: Callable[[SpooledJob, Skipped], JobSpec | None] = field(repr=False)

    def fetched(self, spool: BatchSpool, skipped: Skipped) -> JobSpec | None:
        """Fetch its logs; None where there is nothing of it to read."""
        spec = self.fetch(spool.begin(), skipped)
        if spec is None:
            skipped.add("no_logs", self.name)
            return None
        place = spec.place.model_copy(update={"source_key": self.key})
        return spec.model_copy(update={"name": shown_path(self.name), "place": place})


# Asks a source for its jobs, and holds the connection by which they are fetched.
Opened = Callable[[Skipped], AbstractContextManager[Sequence[JobCandidate]]]


def fetch_all(
    opened: Opened, where: str, spool: BatchSpool, settings: Settings, answered: Container[str] = ()
) -> FoundJobs:
    """Fetch the logs of all jobs but those that were answered before.

    Raises InvalidRequestError, TooLargeError, DiskFullError; where it raises, no copy stays.
    """
    skipped = Skipped()
    try:
        with opened(skipped) as found:
            new = [candidate for candidate in found if candidate.key not in answered]
            if len(new) < len(found):
                skipped.add("answered_before", where, len(found) - len(new))
            if new:
                check_limits(len(new), where, settings, {})
            specs = [spec for candidate in new if (spec := candidate.fetched(spool, skipped))]
        check_limits(len(specs), where, settings, skipped.omitted)
    except BaseException:
        spool.discard()
        raise
    return collect_jobs(specs, skipped.omitted)
