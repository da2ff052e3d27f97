"""Watch a machine: a snapshot every so often, each with its growth since the first and the course so far."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from service.telemetry import collectors, nvml
from service.telemetry.collectors import SnapshotSources
from service.telemetry.snapshot import Point, Reading, Series, Snapshot

# Points that a course keeps; when it has twice as many, every second one goes.
KEPT = 1000
HOST_FIELDS = ("memory_available_gib", "shm_used_gib")
CGROUP_FIELDS = ("memory_current_gib",)
GPU_FIELDS = ("memory_used_gib", "utilisation")


def watch_machine(
    sources: SnapshotSources, every_s: float, before: Snapshot | None = None
) -> Iterator[Snapshot]:
    """Yield a snapshot at once, and one each `every_s` seconds; NVML's Xid events are listened to between."""
    base, last = before, None
    with nvml.PersistentSampler() as cards:
        listening = replace(sources, cards=cards.read)
        while True:
            made = collectors.take_snapshot(listening, base)
            made = collectors.with_earlier_xids(made, last)
            made = made.model_copy(update={"history": _grown(last.history if last else (), made)})
            yield made
            base, last = base or made, made
            listening = replace(listening, listen_s=every_s)


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot so that a crash at any moment leaves the one before or this one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.part")
    fresh.write_text(snapshot.to_json() + "\n", encoding="utf-8")
    fresh.replace(path)


def _grown(history: tuple[Series, ...], now: Snapshot) -> tuple[Series, ...]:
    """Add the moment's values to the courses; a long course gets coarser, it loses no end."""
    at = now.taken_at.timestamp()
    courses: dict[tuple[str, str], Series] = {(row.name, row.labels.get("id", "")): row for row in history}
    for (name, label), value in _values(now).items():
        row = courses.get((name, label), Series(name=name, labels={"id": label} if label else {}))
        courses[name, label] = row.model_copy(
            update={"points": thin_points((*row.points, (round(at, 1), value)))}
        )
    return tuple(courses.values())


def thin_points(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Leave every other point out where there are too many."""
    return points if len(points) <= 2 * KEPT else (*points[:-1:2], points[-1])


def _values(now: Snapshot) -> Mapping[tuple[str, str], float]:
    rows: dict[tuple[str, str], Reading[float]] = {
        ("host." + name, ""): getattr(now.host, name) for name in HOST_FIELDS
    }
    rows |= {("cgroup." + name, ""): getattr(now.cgroup, name) for name in CGROUP_FIELDS}
    rows |= {("gpus." + name, gpu.id): getattr(gpu, name) for gpu in now.gpus for name in GPU_FIELDS}
    return {key: reading.value for key, reading in rows.items() if reading.value is not None}
