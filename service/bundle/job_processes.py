"""The processes of a job that still runs on this machine, by what Linux tells of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from corpus.bundle_items import ProcessSigns

PROC = Path("/proc")
MOST = 256
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class JobProcess:
    """One process; `rank` is empty where its environment tells none, `variables` hold paths."""

    pid: int
    rank: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    pid: int
    parent: int
    command: str
    environment: Mapping[str, str]


def job_processes(
    kind: str, name: str, signs: ProcessSigns, paths: frozenset[str], proc: Path = PROC
) -> tuple[JobProcess, ...]:
    """Give the processes of a job that this user may look at, by rank.

    Of a process with its id: that one and what it started. Of a Slurm job: those whose environment names it.
    Of any other, or without one: those that show the `signs` of a job over several processes. `paths` are
    the variables that are kept.
    """
    entries = {entry.pid: entry for entry in _entries(proc)}
    chosen = [entry for entry in entries.values() if _belongs(entry, entries, kind, name, signs)]
    found = [
        JobProcess(
            entry.pid,
            next((rank for key in signs.ranks if (rank := entry.environment.get(key, "")).isdecimal()), ""),
            {key: value for key, value in entry.environment.items() if key in paths and value},
        )
        for entry in chosen
    ]
    found.sort(key=lambda process: (not process.rank, int(process.rank or 0), process.pid))
    return tuple(found[:MOST])


def _belongs(entry: _Entry, entries: Mapping[int, _Entry], kind: str, name: str, signs: ProcessSigns) -> bool:
    if kind == "process":
        return int(name) in _line(entry, entries)
    if kind == "slurm":
        return any(entry.environment.get(key) == name.partition("_")[0] for key in signs.jobs)
    return bool(signs.command.search(entry.command)) or any(
        key in entry.environment for key in signs.variables
    )


def _line(entry: _Entry, entries: Mapping[int, _Entry]) -> set[int]:
    """Give a process and all that it descends from."""
    line: set[int] = set()
    at: _Entry | None = entry
    while at is not None and at.pid not in line:
        line.add(at.pid)
        at = entries.get(at.parent)
    return line


def _entries(proc: Path) -> Iterator[_Entry]:
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            raw = _bytes(folder / "environ")
            command = _bytes(folder / "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
            # The name in brackets may hold anything; the parent is the second field behind it.
            status = _bytes(folder / "stat").rpartition(b")")[2].split()
        except OSError:  # another user's, or gone meanwhile
            continue
        pairs = (part.partition(b"=") for part in raw.split(b"\0"))
        environment = {
            key.decode("utf-8", "replace"): value.decode("utf-8", "surrogateescape")
            for key, _, value in pairs
            if key
        }
        yield _Entry(int(folder.name), int(status[1]) if len(status) > 1 else 0, command, environment)


def _bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_MOST_BYTES)
