"""The file systems of a job: those that its log lists with their room, and what its container mounts."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from service.remediation.rules.context import RuleContext, gib_of

# coreutils/src/df.c: source, size, used, available, share, mount point; without -h the sizes count KiB.
_ROW = re.compile(
    r"(?:^|\s)(?P<source>[\w.:/@-]{1,80})\s{1,40}(?:[\d.]{1,15}[KMGTP]?i?\s{1,20}){2}"
    r"(?P<free>[\d.]{1,15}[KMGTP]?)i?\s{1,20}\d{1,3}%\s{1,20}(?P<mount>/\S{0,200})\s*$"
)
# Where a manifest says what a container has below which path.
_MOUNT = "volumeMounts.mountPath"
# What the system itself lies on.
_SYSTEM = re.compile(r"/(?:boot|etc|usr|proc|sys|snap|run)\b")
# A disk with less than so many times what is free now is no cure.
_ROOMIER = 2.0


class FileSystem(NamedTuple):
    """A file system of the node: where it is mounted, how many GiB are free, and whether it is a disk."""

    mount: str
    free_gib: float
    local: bool


def roomy_folder(context: RuleContext, path: str) -> tuple[str, float, str, float] | None:
    """Give a folder on the local disk with the most room, with its free GiB, and the disk of a path with its.

    None where the log lists none that has twice the room of the path's own.
    """
    rows = [row for text in context.texts if (row := _ROW.search(text)) is not None]
    found = [
        FileSystem(
            row["mount"],
            gib_of(row["free"] if row["free"][-1].isalpha() else f"{row['free']}k") or 0.0,
            row["source"].startswith("/dev/"),
        )
        for row in rows
    ]
    on = PurePosixPath(path)
    above = [disk for disk in found if on.is_relative_to(disk.mount)]
    full = max(above, key=lambda disk: len(disk.mount), default=None)
    best = max((disk for disk in found if disk.local), key=lambda disk: disk.free_gib, default=None)
    if best is None or full is None or best.mount == full.mount:
        return None
    if best.free_gib < _ROOMIER * full.free_gib or _SYSTEM.match(best.mount):
        return None
    folder = str(PurePosixPath(best.mount) / (on.name or "tmp"))
    return folder, best.free_gib, full.mount, full.free_gib


def near_mount(context: RuleContext, path: str) -> str | None:
    """Give the one folder that the container mounts beside a path which lies on none of its mounts."""
    mounts = {
        PurePosixPath(setting.value.strip("'\"")).as_posix()
        for setting in context.settings
        if setting.key.endswith(_MOUNT)
    }
    on = PurePosixPath(path.strip("'\""))
    if not on.is_absolute() or any(on.is_relative_to(mount) for mount in mounts):
        return None
    beside = [mount for mount in mounts if PurePosixPath(mount).parent == on.parent != PurePosixPath("/")]
    named = [mount for mount in mounts if PurePosixPath(mount).name == on.name]
    return next((found[0] for found in (beside, named) if len(found) == 1), None)
