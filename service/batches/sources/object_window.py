"""The objects of one folder of a store, in the order of names, of which a window is held at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from service.batches.sources.grouping import MAX_SHARED, JobFiles, group_beside
from service.batches.sources.object_files import ObjectFile
from service.batches.sources.object_listing import ObjectListing

# Logs that are held of a folder; beyond, what stands far enough before the last name is given away.
WINDOW = 5000
# Names of one job stand beside each other but for few: a job with one of the last so many may go on.
OPEN = 500

# Objects of a folder, and the jobs that they are.
Unit = tuple[ObjectListing, list[JobFiles]]


class FolderWindow:
    """Takes a folder's objects page by page, and gives jobs once no more names of theirs are to come.

    What a job is called and made of does not depend on where windows end, unless more than OPEN names of
    others stand between two of its own; such a job is given twice, with a part of its logs each time.
    """

    def __init__(self, name: str) -> None:
        """`name` is the folder's below the address."""
        self._name = name
        self._listed = ObjectListing(0)
        self._full = WINDOW

    def add(self, files: Iterable[ObjectFile]) -> Unit | None:
        """Take the next objects; gives those of a window that is full."""
        for file in files:
            self._listed.add(file)
        if len(self._listed.logs) < self._full:
            return None
        listed, jobs = self.rest()
        last = set(islice(reversed(listed.logs), OPEN))
        is_open = [bool(last.intersection(job.logs)) for job in jobs]
        self._keep(listed, [job for job, kept in zip(jobs, is_open, strict=True) if kept])
        return listed, [job for job, kept in zip(jobs, is_open, strict=True) if not kept]

    def rest(self) -> Unit:
        """Give what is held."""
        listed, self._listed = self._listed, ObjectListing(0)
        return listed, group_beside(listed.logs, listed.configs, self._name)

    def _keep(self, listed: ObjectListing, jobs: Iterable[JobFiles]) -> None:
        """Keep the logs of jobs that may go on, and configurations that may be theirs or anybody's."""
        self._listed.logs |= {log: listed.logs[log] for job in jobs for log in job.logs}
        # A job that fills the window is not grouped again for each page.
        self._full = max(WINDOW, 2 * len(self._listed.logs))
        names = list(listed.configs)
        for name in dict.fromkeys([*names[:MAX_SHARED], *names[-OPEN:]]):
            self._listed.configs[name] = listed.configs[name]
