"""The machine that we run on: memory, disks, limits, open files, network, and the job's control group."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from service.telemetry.snapshot import Disk, Host, Nic, Reading, gib, known, unavailable

PROC = Path("/proc")
SYS = Path("/sys")
SHM = Path("/dev/shm")  # noqa: S108 - the file system itself is looked at, nothing is written
# A port's state as the kernel writes it: "4: ACTIVE".
ACTIVE = "ACTIVE"


def _tried(read: Callable[[], Any]) -> Reading[Any]:
    """Make a reading of what a function gives.

    What it may not read, or this system has not, is the reason.
    """
    try:
        value = read()
    except (OSError, psutil.Error, ValueError, KeyError, AttributeError, IndexError) as error:
        return unavailable(str(getattr(error, "strerror", "") or error) or type(error).__name__)
    return known(value) if value is not None else unavailable("no such limit")


def read_host(proc: Path = PROC, shm: Path = SHM) -> Host:
    """Read what is of the machine as a whole, and of the user's limits."""
    return Host(
        name=platform.node(),
        boot_time=_tried(psutil.boot_time),
        utc_offset_s=_tried(utc_offset_s),
        memory_total_gib=_tried(lambda: gib(psutil.virtual_memory().total)),
        memory_available_gib=_tried(lambda: gib(psutil.virtual_memory().available)),
        swap_used_gib=_tried(lambda: gib(psutil.swap_memory().used)),
        oom_kill=_tried(lambda: _pair(proc / "vmstat", "oom_kill")),
        shm_total_gib=_tried(lambda: gib(psutil.disk_usage(str(shm)).total)),
        shm_used_gib=_tried(lambda: gib(psutil.disk_usage(str(shm)).used)),
        files_open=_tried(lambda: _numbers(proc / "sys/fs/file-nr")[0]),
        files_max=_tried(lambda: _numbers(proc / "sys/fs/file-nr")[2]),
        nofile_limit=_tried(lambda: _limit(resource.RLIMIT_NOFILE)),
        nofile_used=_tried(lambda: max(_counts(psutil.Process.num_fds), default=None)),
        nproc_limit=_tried(lambda: _limit(resource.RLIMIT_NPROC)),
        nproc_used=_tried(lambda: sum(_counts(psutil.Process.num_threads)) or None),
        memlock_gib=_tried(
            lambda: None if (limit := _limit(resource.RLIMIT_MEMLOCK)) is None else gib(limit)
        ),
    )


def utc_offset_s() -> float:
    """Give what local time is ahead of UTC."""
    return float(time.localtime().tm_gmtoff)


def _pair(path: Path, key: str) -> int:
    rows = (row.split() for row in path.read_text(encoding="utf-8").splitlines())
    return next(int(row[1]) for row in rows if row[:1] == [key] and len(row) > 1)


def _numbers(path: Path) -> list[int]:
    return [int(word) for word in path.read_text(encoding="utf-8").split()]


def _limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _counts(count: Callable[[psutil.Process], int]) -> list[int]:
    """Count something of each process of the user; one that ends meanwhile is left out."""
    user, counts = os.getuid(), []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.uids().real == user:
                counts.append(count(process))
    return counts


def read_disks(paths: Sequence[Path]) -> tuple[Disk, ...]:
    """Read the file systems that hold these folders, each once."""
    found: dict[int, Disk] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found.setdefault(path.stat().st_dev, _disk(path))
    return tuple(found.values())


def _disk(path: Path) -> Disk:
    told = _tried(lambda: os.statvfs(path))
    if told.value is None:
        why = str(told.unavailable)
        return Disk(
            path=str(path),
            **{name: unavailable(why) for name in ("total_gib", "free_gib", "inodes_total", "inodes_free")},
        )
    size = told.value
    return Disk(
        path=str(path),
        total_gib=known(gib(size.f_blocks * size.f_frsize)),
        free_gib=known(gib(size.f_bavail * size.f_frsize)),
        inodes_total=known(int(size.f_files)),
        inodes_free=known(int(size.f_favail)),
    )


def folders() -> tuple[Path, ...]:
    """Give the folders that jobs write to: the one that is current, the user's, the temporary ones."""
    named = [
        os.environ.get(name) for name in ("TMPDIR", "HF_HOME", "RAY_TMPDIR", "SLURM_TMPDIR", "XDG_CACHE_HOME")
    ]
    own = (Path.cwd(), Path.home(), Path("/tmp"), Path("/"))  # noqa: S108 - only measured
    return (*own, *(Path(text) for text in named if text))


def read_nics(sys: Path = SYS) -> tuple[Nic, ...]:
    """Read the network interfaces with hardware behind them, and the ports of InfiniBand adapters."""
    cards = (path for path in sorted((sys / "class/net").glob("*")) if (path / "device").exists())
    ports = sorted((sys / "class/infiniband").glob("*/ports/*"))
    return (*(_card(path) for path in cards), *(_port(path) for path in ports))


def _card(path: Path) -> Nic:
    counted = path / "statistics"
    return Nic(
        name=path.name,
        up=_tried(lambda: _text(path / "operstate") == "up"),
        link_downed=_tried(lambda: int(_text(path / "carrier_down_count"))),
        errors=_tried(lambda: _sum(counted, ("rx_errors", "tx_errors"))),
        drops=_tried(lambda: _sum(counted, ("rx_dropped", "tx_dropped"))),
    )


def _port(path: Path) -> Nic:
    counted = path / "counters"
    return Nic(
        name=f"{path.parent.parent.name}:{path.name}",
        kind="infiniband",
        up=_tried(lambda: ACTIVE in _text(path / "state")),
        link_downed=_tried(lambda: int(_text(counted / "link_downed"))),
        errors=_tried(lambda: _sum(counted, ("symbol_error", "port_rcv_errors"))),
        drops=_tried(lambda: int(_text(counted / "port_xmit_discards"))),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _sum(folder: Path, names: Sequence[str]) -> int:
    return sum(int(_text(folder / name)) for name in names)
