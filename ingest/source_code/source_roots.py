"""Folders below which code may be read that a traceback names, and the one way to open a file there.

A traceback is anybody's text. It chooses among the files below folders that the user of the command has
given, or, after `whycrash run`, that the job itself could import from. Only plain files ending in `.py` are
opened, each folder on the way by itself and none through a link, so that no name leads out and nothing is
waited for.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LARGEST = 2 << 20
MOST_ROOTS, DEEPEST, MOST_ALIKE = 24, 40, 4
# Where a checkout, an environment or a prefix keeps its packages.
_SOURCES = ("src",)
_INTERPRETERS = ("python", "python3")
_LIBRARIES = ("lib", "lib64", "local/lib")
_PACKAGES = ("site-packages", "dist-packages", "")
# Folders that hold everything are nobody's sources.
_TOO_WIDE = ("/", "/home", "/root", "/usr", "/etc", "/var", "/opt", "/proc", "/sys", "/dev")


@dataclass(frozen=True)
class SourceRoots:
    """The folders; with `by_tail` a path is looked for by its end, else it must itself lie below one."""

    roots: tuple[str, ...]
    by_tail: bool
    folder: str = ""

    def texts(self, path: str) -> Iterator[tuple[str, bool]]:
        """Give the texts of the files that a traceback's path may mean, the likeliest first.

        Each has whether more than its bare name tells that it is this one.
        """
        parts = path.replace("\\", "/").split("/")
        if not parts[-1].endswith(".py") or len(parts) > DEEPEST or "\0" in path:
            return
        found = 0
        for root, below in self._places(path, [part for part in parts if part not in ("", ".")]):
            if below and ".." not in below and (raw := _opened(root, below)) is not None:
                with suppress(UnicodeDecodeError):
                    text = raw.decode()
                    text = text.replace("\r\n", "\n") if "\r" in text else text
                    yield text, not self.by_tail or len(below) > 1
                found += 1
                if found == MOST_ALIKE:
                    return

    def _places(self, path: str, parts: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """Give folders with the rest of the path below each, the longest rest first."""
        if self.by_tail:
            yield from ((root, parts[begin:]) for begin in range(len(parts)) for root in self.roots)
            return
        if not path.startswith("/"):
            yield from [(self.folder, parts)] if self.folder else []
            return
        root = max((each for each in self.roots if path.startswith(f"{each}/")), key=len, default="")
        if root:
            yield root, [part for part in path[len(root) :].split("/") if part not in ("", ".")]


@dataclass(frozen=True)
class FilesAtHand:
    """Texts of the job's own files, which were handed in beside its log, each by its name."""

    files: Mapping[str, str]

    def texts(self, path: str) -> Iterator[tuple[str, bool]]:
        """Give the texts of the files that a traceback's path may mean, the longest common end first.

        None of them is told by more than its name: whoever handed it in may have edited it since.
        """
        parts = path.replace("\\", "/").split("/")
        alike = {name: _common_end(name.split("/"), parts) for name in self.files}
        for name in sorted(alike, key=lambda name: -alike[name]):
            if alike[name]:
                yield self.files[name], False


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the parts at the end of two paths that are the same."""
    return next(
        (
            count
            for count, (left, right) in enumerate(zip(reversed(one), reversed(other), strict=False))
            if left != right
        ),
        min(len(one), len(other)),
    )


def given_roots(folders: Sequence[Path]) -> SourceRoots:
    """Give the folders that a user names, each with where it keeps its packages."""
    real = [os.path.realpath(folder) for folder in folders]
    below = (
        each for folder in real for each in (*(f"{folder}/{name}" for name in _SOURCES), *_packages(folder))
    )
    return SourceRoots(_folders([*real, *below]), by_tail=True)


def job_roots(program: str, folder: str, environment: Mapping[str, str]) -> SourceRoots:
    """Give what a job that was started here could import from; nothing is run to find it.

    These are its working folder, the packages beside its program, else beside the `python` of its `PATH`,
    those of the interpreter that a virtual environment was made of, and what `PYTHONPATH` names.
    """
    found = shutil.which(program, path=environment.get("PATH"))
    if found is None or not any((Path(found).parent / name).exists() for name in _INTERPRETERS):
        places = [shutil.which(name, path=environment.get("PATH")) for name in _INTERPRETERS]
    else:
        places = [found]
    # Beside the name itself lies a virtual environment, beside what it is a link to the interpreter's own.
    named_as = (str(Path(place).absolute()) for place in places if place)
    given = [each for place in named_as for each in (place, os.path.realpath(place))]
    prefixes = [environment.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    prefixes += [str(Path(place).parent.parent) for place in given]
    prefixes += [base for prefix in prefixes if prefix and (base := _base_of(prefix))]
    home = environment.get("HOME", "")
    prefixes += [f"{home}/.local"] if home else []
    named = [path for path in environment.get("PYTHONPATH", "").split(":") if path.startswith("/")]
    packages = [each for prefix in prefixes if prefix for each in _packages(prefix)]
    roots = _folders([folder, *named, *packages])
    return SourceRoots(roots, by_tail=False, folder=folder if folder in roots else "")


def _base_of(prefix: str) -> str:
    """Give the prefix of the interpreter that a virtual environment was made of."""
    with suppress(OSError, ValueError):
        for row in (Path(prefix) / "pyvenv.cfg").read_text(encoding="utf-8")[:4096].splitlines():
            name, _, value = row.partition("=")
            if name.strip() == "home" and value.strip().startswith("/"):
                return os.path.dirname(value.strip())  # noqa: PTH120 - a text
    return ""


def _packages(prefix: str) -> Iterator[str]:
    """Give the folders of packages, and of Python's own library, below a prefix."""
    for library in _LIBRARIES:
        with suppress(OSError):
            names = sorted(each.name for each in os.scandir(f"{prefix}/{library}") if each.is_dir())
            for name in names:
                if name.startswith("python3"):
                    yield from (f"{prefix}/{library}/{name}/{each}".rstrip("/") for each in _PACKAGES)


def _folders(paths: Sequence[str]) -> tuple[str, ...]:
    found = (os.path.abspath(path) for path in paths if path)  # noqa: PTH100 - links stay as they are written
    real = (path for path in found if path not in _TOO_WIDE and Path(path).is_dir())
    return tuple(dict.fromkeys(real))[:MOST_ROOTS]


def _opened(root: str, below: Sequence[str]) -> bytes | None:
    """Read a plain file below a folder, through no link on the way; None where there is none.

    The folder itself is the user's word and may be a link.
    """
    held = -1
    try:
        held = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in below[:-1]:
            further = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
            os.close(held)
            held = further
        # A pipe without a writer must not hold us, nor a device be read.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(below[-1], flags, dir_fd=held), "rb", buffering=0) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                return None
            return stream.read(LARGEST + 1)
    except (OSError, ValueError):
        return None
    finally:
        if held >= 0:
            os.close(held)
