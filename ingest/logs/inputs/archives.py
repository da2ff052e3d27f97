"""What a job's folder or archive holds: its logs and configs, how to open each, and what is left out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from ingest.logs.inputs.files import open_found
from ingest.logs.inputs.members import ARTEFACT, CONFIG, JobLimits, Member, Skipped, kind_of
from ingest.logs.inputs.streams import Readable


@dataclass
class Contents:
    """The files of a job, as they are found."""

    limits: JobLimits
    skipped: Skipped
    logs: list[Member] = field(default_factory=list)
    configs: list[Member] = field(default_factory=list)
    artefacts: list[Member] = field(default_factory=list)
    seen: int = 0
    close: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        """Tell whether so many names were seen that the rest is not looked at."""
        return self.left <= 0

    @property
    def left(self) -> int:
        """Give how many names more are looked at."""
        return 10 * self.limits.files - self.seen

    def wants(self, name: str) -> bool:
        """Tell whether a file is a log or a config by its name; note it as skipped where it is not."""
        self.seen += 1
        reason = kind_of(name)
        if reason is None and len(self.logs) >= self.limits.files:
            reason = "beyond_limit"
        if reason in (None, CONFIG, ARTEFACT):
            return True
        self.skipped.add(str(reason), name)
        return False

    def add(self, name: str, opener: Callable[[], Readable]) -> None:
        """Take a wanted file."""
        kinds = {CONFIG: self.configs, ARTEFACT: self.artefacts}
        kinds.get(kind_of(name) or "", self.logs).append(Member(name, opener))

    def stop(self, name: str) -> None:
        """Say that there are more files than are looked at."""
        self.skipped.add("beyond_limit", f"more than {self.seen} files, from {name} on")


def read_folder(root: Path, contents: Contents) -> None:
    """Find a folder's files; links are not followed, and so no loop is."""
    home = os.path.realpath(root)
    pending = [("", 0)]
    while pending and not contents.full:
        name, depth = pending.pop()
        pending += [(inner, depth + 1) for inner in _folders(home, name, depth, contents)]
    if pending:
        contents.stop(pending[-1][0])


def _folders(home: str, name: str, depth: int, contents: Contents) -> list[str]:
    """Take in a folder's files, and give the folders in it that are to be looked into."""
    inner = []
    for entry in _entries(f"{home}/{name}", name, contents):
        child = f"{name}/{entry.name}" if name else entry.name
        if _is_folder(entry, child, depth, contents):
            inner.append(child)
        elif not entry.is_dir(follow_symlinks=False):
            _found(entry, child, home, contents)
    return inner


def _entries(path: str, name: str, contents: Contents) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            entries = list(islice(found, contents.left))
            more = next(found, None)
    except OSError as error:
        contents.skipped.add("not_readable", f"{name or '.'} ({error.strerror})")
        return []
    if more:
        contents.skipped.add("beyond_limit", f"more than {len(entries)} files in {name or '.'}")
    return sorted(entries, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str], name: str, depth: int, contents: Contents) -> bool:
    if not entry.is_dir(follow_symlinks=False):
        return False
    contents.seen += 1
    reason = "too_deep" if depth + 1 >= contents.limits.depth else kind_of(f"{name}/")
    if reason:
        contents.skipped.add(reason, f"{name}/")
    return not reason


def _found(entry: os.DirEntry[str], name: str, home: str, contents: Contents) -> None:
    if entry.is_symlink():
        # What a link inside the folder leads to is read under its own name.
        if not os.path.realpath(entry.path).startswith(f"{home}{os.sep}"):
            contents.skipped.add("link_out_of_the_folder", name)
    elif not entry.is_file(follow_symlinks=False):
        contents.skipped.add("device", name)
    elif contents.wants(name):
        contents.add(name, partial(open_found, entry.path))
