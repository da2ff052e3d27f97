"""Create a control group with limits for one experiment, on cgroup v1 or v2."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


class CgroupUnavailableError(Exception):
    """Control groups cannot be written here; run as root on a machine with a writable cgroup file system."""


@dataclass(frozen=True)
class Cgroup:
    """Hold the folders of one group: one per controller on v1, a single one on v2."""

    folders: tuple[Path, ...]
    covers: tuple[tuple[Path, Path], ...]
    """(folder, place) pairs: in the sandbox the folder is bound over the place, as container runtimes do."""

    @property
    def procs(self) -> tuple[Path, ...]:
        """Return the files that a process writes its id to in order to join."""
        return tuple(folder / "cgroup.procs" for folder in self.folders)


def _settings(memory_mib: int | None, tasks: int | None, *, unified: bool) -> dict[tuple[str, str], int]:
    """Map (controller, file) to the value that sets the limit."""
    rows: dict[tuple[str, str], int] = {}
    if memory_mib is not None:
        rows["memory", "memory.max" if unified else "memory.limit_in_bytes"] = memory_mib << 20
    if tasks is not None:
        rows["pids", "pids.max"] = tasks
    return rows


def _create(rows: dict[tuple[str, str], int], name: str, *, unified: bool) -> Cgroup:
    """Make the group's folders and write its limits."""
    folders: dict[Path, Path] = {}
    for (controller, file), value in rows.items():
        parent = ROOT if unified else ROOT / controller
        if unified:
            (ROOT / "cgroup.subtree_control").write_text(f"+{controller}")
        folder = parent / name
        folder.mkdir(exist_ok=True)
        folders[folder] = parent
        (folder / file).write_text(str(value))
    return Cgroup(tuple(folders), tuple(folders.items()))


def _remove(name: str) -> None:
    """Remove the group; its processes are gone by then."""
    for folder in (ROOT / name, *ROOT.glob(f"*/{name}")):
        with contextlib.suppress(OSError):
            folder.rmdir()


@contextlib.contextmanager
def cgroup(memory_mib: int | None, tasks: int | None) -> Iterator[Cgroup | None]:
    """Yield a group with these limits, or `None` where no limit is asked for.

    Raises:
        CgroupUnavailableError: the cgroup file system is absent or not writable.

    """
    if memory_mib is None and tasks is None:
        yield None
        return
    unified = (ROOT / "cgroup.controllers").exists()
    name = f"job-{secrets.token_hex(4)}"
    try:
        group = _create(_settings(memory_mib, tasks, unified=unified), name, unified=unified)
    except OSError as error:
        _remove(name)
        raise CgroupUnavailableError(
            f"cannot limit the job by cgroup as uid {os.getuid()}: {error}"
        ) from error
    try:
        yield group
    finally:
        _remove(name)
