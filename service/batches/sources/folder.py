"""Jobs out of a folder of this machine; its files are read where they lie.

A server takes only folders under its `batch_roots`, and no link that leads out of the folder is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from corpus.message import Message
from ingest.logs.inputs.archives import Contents, read_folder
from ingest.logs.inputs.members import LIMITS, Skipped, kind_of
from service.batches.sources.found import FoundJobs, check_limits, clean_spec, collect_jobs, shown_path
from service.batches.sources.grouping import JobFiles, group_files
from service.schemas.errors import ForbiddenError, InvalidRequestError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings

# The first bytes of a line of results, and all that the file beside unfinished ones holds: the batch's ULID.
_OUTPUT = re.compile(rb'\{"schema": ?"whycrash\.diagnosis/|[0-7][0-9A-HJKMNP-TV-Z]{25}\n?\Z')
_HEAD = 64


class _FolderListing(Contents):
    """Names of a folder's files; an archive in it is a job's log."""

    def wants(self, name: str) -> bool:
        """Tell whether a file is of a job."""
        if kind_of(name) == "nested_archive":
            self.seen += 1
            return True
        return super().wants(name)


def find_jobs(folder: Path, settings: Settings) -> FoundJobs:
    """Find the jobs of a folder; raises InvalidRequestError, TooLargeError."""
    home = Path(os.path.realpath(folder))
    if not home.is_dir():
        raise InvalidRequestError(Message("errors.no-folder", folder=folder))
    listed = list_folder(home, settings)
    outputs = {member.name for member in listed.logs if is_output(home / member.name)}
    for name in sorted(outputs):
        listed.skipped.add("output_of_a_batch", name)
    found = [
        # Its whole folder holds what is left out, too.
        replace(job, folder=None)
        if job.folder is not None
        and any(is_under(name, job.folder) or job.folder in ("", ".") for name in outputs)
        else job
        for job in group_files(
            [member.name for member in listed.logs if member.name not in outputs],
            [member.name for member in listed.configs],
            home.name or "job",
        )
    ]
    check_limits(len(found), str(folder), settings, listed.skipped.omitted)
    return FoundJobs(
        lambda: (JobSpec(name=shown_path(job.name), place=_place(job, home)) for job in found),
        len(found),
        clean_spec(listed.skipped.omitted),
    )


def find_all_jobs(paths: Sequence[Path], settings: Settings) -> FoundJobs:
    """Find the jobs of several files and folders: each file is one by itself, an archive too."""
    if len(paths) == 1 and paths[0].is_dir():
        return find_jobs(paths[0], settings)
    specs: list[JobSpec] = []
    left_out = Skipped()
    for path in paths:
        if path.is_dir():
            found = find_jobs(path, settings)
            specs += [
                spec.model_copy(update={"name": shown_path(f"{path.name}/{spec.name}")})
                for spec in found.specs
            ]
            for reason, told in found.left_out.items():
                left_out.add(reason, f"{path.name}: {told}")
    loose = [path for path in paths if not path.is_dir() and not is_output(path)]
    specs += _loose(loose)
    check_limits(len(specs), "What was given", settings, left_out.omitted)
    return collect_jobs(specs, left_out.omitted)


def is_output(path: Path) -> bool:
    """Tell whether a file is what a batch wrote: its results, or what names it until they are whole."""
    try:
        with path.open("rb") as file:
            return _OUTPUT.match(file.read(_HEAD)) is not None
    except OSError:
        return False


def allowed(path: str, settings: Settings) -> Path:
    """Give a folder that a request names.

    Raises ForbiddenError where it is under none of the settings' `batch_roots`.

    Whether a folder outside is there is not told.
    """
    real = os.path.realpath(path)
    if not any(is_under(real, root) for root in roots(settings)):
        raise ForbiddenError(Message("errors.none-folders-batches-read", path=shown_path(path)))
    return Path(real)


def roots(settings: Settings) -> tuple[str, ...]:
    """Give the folders under which batches may read, as they really are."""
    return tuple(os.path.realpath(root) for part in settings.batch_roots.split(",") if (root := part.strip()))


def is_under(path: str, root: str) -> bool:
    """Tell whether a real path is a real folder or below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def list_folder(home: Path, settings: Settings) -> Contents:
    """List a folder's logs and configurations by name."""
    listed = _FolderListing(replace(LIMITS, files=10 * settings.max_jobs), Skipped())
    read_folder(home, listed)
    return listed


def _place(job: JobFiles, home: Path) -> JobPlace:
    is_packed = any(kind_of(log) == "nested_archive" for log in job.logs)
    if job.folder is not None and job.is_whole and not is_packed:
        return JobPlace(paths=(str(home / job.folder),))
    return JobPlace(
        paths=tuple(str(home / log) for log in job.logs),
        configs=tuple(str(home / config) for config in job.configs),
    )


def _loose(paths: Sequence[Path]) -> list[JobSpec]:
    """Group files that were named one by one within the folder that each lies in."""
    by_folder: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise InvalidRequestError(Message("errors.no-file", path=path))
        by_folder.setdefault(path.absolute().parent, []).append(path)
    specs: list[JobSpec] = []
    for folder, files in by_folder.items():
        configs = [path.name for path in files if kind_of(path.name) == "config"]
        logs = [path.name for path in files if path.name not in configs]
        found = group_files(logs, configs, folder.name or "job")
        # Their folder holds more than was named.
        specs += [
            JobSpec(name=shown_path(job.name), place=_place(replace(job, folder=None), folder))
            for job in found
        ]
    return specs
