"""The control group of a process: its limits, what it uses, and how often it hit them.

Version 2, and version 1's names.

https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.telemetry.snapshot import Cgroup, Reading, gib, known, unavailable

ROOT = Path("/sys/fs/cgroup")
SELF = Path("/proc/self/cgroup")
# Version 1 writes a limit that is none as the largest multiple of a page.
NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class CgroupReading:
    """A reading and where it stands: the file, and the key in it where it holds several.

    Then version 1's place.
    """

    field: str
    file: str
    key: str = ""
    old: str = ""
    old_key: str = ""
    in_gib: bool = False


FILES: tuple[CgroupReading, ...] = (
    CgroupReading("memory_max_gib", "memory.max", old="memory/memory.limit_in_bytes", in_gib=True),
    CgroupReading("memory_current_gib", "memory.current", old="memory/memory.usage_in_bytes", in_gib=True),
    CgroupReading("memory_peak_gib", "memory.peak", old="memory/memory.max_usage_in_bytes", in_gib=True),
    CgroupReading(
        "oom_kill", "memory.events", "oom_kill", old="memory/memory.oom_control", old_key="oom_kill"
    ),
    CgroupReading("max_events", "memory.events", "max", old="memory/memory.failcnt"),
    CgroupReading("pids_max", "pids.max", old="pids/pids.max"),
    CgroupReading("pids_max_events", "pids.events", "max", old="pids/pids.events", old_key="max"),
    CgroupReading("pids_current", "pids.current", old="pids/pids.current"),
)


def read_cgroup(root: Path = ROOT, membership: Path = SELF) -> Cgroup:
    """Read the group that this process is in."""
    try:
        rows = membership.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return _no_cgroup(f"{membership} cannot be read: {error.strerror or error}")
    places = {
        controllers: path
        for row in rows
        if row.count(":") > 1
        for _, controllers, path in [row.split(":", 2)]
    }
    if (root / "cgroup.controllers").exists():
        path = places.get("", "/")
        return _group(path, lambda file: _value(_inside(root, path) / file.file, file.key, file))
    if (root / "memory").is_dir():
        path = places.get("memory", "/")

        def old(file: CgroupReading) -> Reading[Any]:
            controller, _, name = file.old.partition("/")
            folder = _inside(root / controller, places.get(controller, "/"))
            return _value(folder / name, file.old_key, file)

        return _group(path, old)
    return _no_cgroup(f"{root} holds no control groups")


def _no_cgroup(why: str) -> Cgroup:
    return _group("", lambda _: unavailable(why))


def _group(path: str, value: Callable[[CgroupReading], Reading[Any]]) -> Cgroup:
    return Cgroup(path=path, **{file.field: value(file) for file in FILES})


def _inside(root: Path, path: str) -> Path:
    """Give the group's folder.

    In a container its path is that of the host, and the root is the group itself.
    """
    folder = root / path.lstrip("/")
    return folder if folder.is_dir() and ".." not in path else root


def _value(path: Path, key: str, file: CgroupReading) -> Reading[Any]:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        return unavailable(f"{path.name}: {error.strerror or error}")
    if key:
        pairs = dict(row.split(None, 1) for row in text.splitlines() if " " in row)
        text = pairs.get(key, "")
    if text == "max" or (text.isdecimal() and file.field.endswith("_max_gib") and int(text) >= NO_LIMIT):
        return unavailable("the group has no such limit of its own")
    if not text.isdecimal():
        return unavailable(f"{path.name} has no {key or 'number'}")
    return known(gib(int(text)) if file.in_gib else int(text))
