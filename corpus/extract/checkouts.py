"""A framework's source: an unpacked archive, or one revision of a git directory."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Protocol

from corpus.errors import InvalidCorpusError

_VERSION = re.compile(r"\d+([.-]\d+)+([._-]?(post|rc|dev)\d+)?")


class Checkout(Protocol):
    """The files of a framework at one version."""

    @property
    def paths(self) -> Sequence[str]:
        """Give all files, relative to the root."""

    def read(self, path: str) -> str:
        """Give the text of one file."""


@dataclass(frozen=True)
class Folder:
    """A source tree that lies unpacked."""

    root: Path

    @cached_property
    def paths(self) -> Sequence[str]:
        """Give all files, relative to the root."""
        return sorted(
            path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()
        )

    def read(self, path: str) -> str:
        """Give the text of one file."""
        return (self.root / path).read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Revision:
    """One commit, branch or tag of a git directory; nothing is checked out."""

    git: Path
    name: str

    @cached_property
    def paths(self) -> Sequence[str]:
        """Give all files, relative to the root."""
        return self._ask("ls-tree", "-r", "--name-only", self.name).splitlines()

    def read(self, path: str) -> str:
        """Give the text of one file."""
        return self._ask("show", f"{self.name}:{path}")

    def files(self, under: str, ending: str) -> Iterator[tuple[str, str]]:
        """Give path and text of the files below a folder whose names end so, all in one go."""
        archive = self._run("archive", "--format=tar", self.name, under)
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            for member in opened:
                stream = opened.extractfile(member) if member.name.endswith(ending) else None
                if stream is not None:
                    yield member.name, stream.read().decode("utf-8", "replace")

    def _ask(self, *words: str) -> str:
        return self._run(*words).decode(errors="replace")

    def _run(self, *words: str) -> bytes:
        command = ["git", f"--git-dir={self.git}", *words]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - fixed words, no shell
        if done.returncode:
            raise InvalidCorpusError(
                f"{self.git}@{self.name}: {done.stderr.decode(errors='replace').strip()}"
            )
        return done.stdout


def opened(place: str) -> Checkout:
    """Open `FOLDER`, or `GITDIR@REVISION`."""
    path, _, revision = place.partition("@")
    return Revision(Path(path), revision) if revision else Folder(Path(path))


def version_of(place: str) -> str:
    """Read the version off the end of a checkout's name, as in `repo@v0.5.0` or `verl/0.9.1`."""
    found = list(_VERSION.finditer(place))
    if not found:
        raise InvalidCorpusError(f"{place}: no version in its name; give one with --version")
    return re.sub(r"(?<=\d)-(?=\d)", ".", found[-1][0])


def matching(checkout: Checkout, patterns: Sequence[str]) -> dict[str, str]:
    """Give the texts of the files whose path ends as one of the patterns says."""
    chosen = [
        path
        for path in checkout.paths
        if any((fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}")) for pattern in patterns)
    ]
    return {path: checkout.read(path) for path in chosen}
