"""From points of many metrics to a snapshot's parts; what no metric gave says so."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

from service.telemetry.metrics import ALL, INNER, Metric, Part, identity, is_blank
from service.telemetry.snapshot import (
    Cgroup,
    ClusterNode,
    Disk,
    EngineMetrics,
    Gpu,
    Host,
    Nic,
    Point,
    RayState,
    Reading,
    Scheduler,
    SnapshotPart,
    known,
    unavailable,
)

# Over how many of the last points a share of time is averaged.
LAST_POINTS = 8
# A gauge that only says "I am here" is 1.
SHOWN = 0.5


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One series: a metric with its labels and its points, the oldest first."""

    name: str
    labels: Mapping[str, str]
    points: tuple[Point, ...]


@dataclass
class CollectedParts:
    """The parts of a snapshot that metrics gave."""

    gpus: tuple[Gpu, ...] = ()
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()
    host: Host = field(default_factory=Host)
    cgroup: Cgroup = field(default_factory=Cgroup)
    ray: RayState = field(default_factory=RayState)
    serving: EngineMetrics = field(default_factory=EngineMetrics)
    scheduler: Scheduler = field(default_factory=Scheduler)


def collect_parts(lines: Iterable[MetricSeries], who: str, until: float = math.inf) -> CollectedParts:
    """Sort series into readings. `who` is named in the reason of what is not there.

    Means are of the last points before `until`: after a crash nothing is busy.
    """
    by_name: dict[str, list[MetricSeries]] = {}
    for line in lines:
        by_name.setdefault(line.name, []).append(line)
    found = _values(by_name, until)
    single = {
        part: _fields(part, found.get((part, ()), {}), who)
        for part in ("host", "cgroup", "ray", "serving", "scheduler")
    }
    return CollectedParts(
        gpus=tuple(_gpu(key, by_name, values, who) for key, values in _values_of_part("gpus", found)),
        disks=tuple(
            Disk(path=":".join(filter(None, key)), **_fields("disks", values, who))
            for key, values in _values_of_part("disks", found)
        ),
        nics=tuple(_nic(key, values, who) for key, values in _values_of_part("nics", found)),
        nodes=tuple(
            ClusterNode(name=key[0], **_fields("nodes", values, who))
            for key, values in _values_of_part("nodes", found)
            if key[0]
        ),
        host=Host.model_validate(single["host"]),
        cgroup=Cgroup.model_validate(single["cgroup"]),
        ray=RayState(**single["ray"]),
        serving=EngineMetrics(**single["serving"]),
        scheduler=Scheduler(
            kind="kubernetes" if "scheduler" in {part for part, _ in found} else "", **single["scheduler"]
        ),
    )


Key = tuple[Part, tuple[str, ...]]
Values = dict[str, Reading[Any]]


def _values_of_part(part: Part, found: Mapping[Key, Values]) -> list[tuple[tuple[str, ...], Values]]:
    return [(key, values) for (of, key), values in sorted(found.items()) if of == part]


def _values(by_name: Mapping[str, Sequence[MetricSeries]], until: float) -> dict[Key, Values]:
    found: dict[Key, dict[str, list[Reading[Any]]]] = {}
    pairs = []
    for metric in ALL:
        # Of several spellings the first that is there, of a sum all of them.
        per_name = [by_name[name] for name in metric.names if name in by_name]
        chosen = [line for lines in (per_name if metric.summed else per_name[:1]) for line in lines]
        label, inner = INNER.get(metric.part, ("", ""))
        pairs += [
            (metric, line) for line in chosen if not (label and re.search(inner, line.labels.get(label, "")))
        ]
    for metric, line in pairs:
        reading = _reading(metric, line, until)
        if reading is not None:
            key = (metric.part, identity(metric.part, line.labels))
            found.setdefault(key, {}).setdefault(metric.field, []).append(reading)
    rows = {(metric.part, metric.field): metric for metric in ALL}
    return {
        key: {name: _joined(rows[key[0], name], values) for name, values in fields.items()}
        for key, fields in found.items()
    }


def _reading(metric: Metric, line: MetricSeries, until: float) -> Reading[Any] | None:
    last = until if metric.over == "mean" else math.inf
    points = [value for at, value in line.points if at <= last and not is_blank(line.name, value)]
    if not points:
        return unavailable(f"{line.name} holds no value")
    if metric.shown_by:
        return (
            known(line.labels.get(metric.shown_by, ""))
            if max(points) > SHOWN and line.labels.get(metric.shown_by)
            else None
        )
    if metric.over == "seen":
        return _seen(line.name, points)
    if metric.over == "growth":
        # Add up what a counter grew; where it falls it began anew at zero.
        return (
            known(
                sum(later - earlier if later >= earlier else later for earlier, later in pairwise(points))
                * metric.scale
            )
            if len(points) > 1
            else unavailable("one value tells no growth")
        )
    return known(_OVER[metric.over](points) * metric.scale)


def _seen(name: str, points: Sequence[float]) -> Reading[Any]:
    """Give the numbers that a gauge of the last one took in a range.

    One that stood there from the start may be old.
    """
    fresh = points if len(points) == 1 else [value for before, value in pairwise(points) if value != before]
    codes = tuple(dict.fromkeys(int(value) for value in fresh if value))
    if not codes and points[0]:
        return unavailable(f"{name} held {int(points[0])} before the range already")
    return known(codes)


_OVER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "last": lambda points: points[-1],
    "max": max,
    "min": min,
    "mean": lambda points: fmean(points[-LAST_POINTS:]),
}


def _joined(metric: Metric, readings: Sequence[Reading[Any]]) -> Reading[Any]:
    """Make one reading of several: their sum, or of several machines the worst."""
    there = [reading for reading in readings if reading.known]
    if not there:
        return readings[0]
    if metric.shown_by or metric.over == "seen":
        return there[-1]
    values: list[float] = [reading.value for reading in there if reading.value is not None]
    if metric.summed:
        return known(sum(values))
    return known(min(values) if metric.over == "min" else max(values))


_PIECES: Mapping[Part, type[SnapshotPart]] = {
    "gpus": Gpu,
    "host": Host,
    "cgroup": Cgroup,
    "disks": Disk,
    "nics": Nic,
    "nodes": ClusterNode,
    "ray": RayState,
    "serving": EngineMetrics,
    "scheduler": Scheduler,
}


def _fields(part: Part, values: Values, who: str) -> Values:
    """Give every reading that metrics can give of a part, in its type."""
    rows = {metric.field: metric for metric in ALL if metric.part == part}
    return {name: _typed(part, name, values.get(name), row, who) for name, row in rows.items()}


def _typed(part: Part, name: str, reading: Reading[Any] | None, metric: Metric, who: str) -> Reading[Any]:
    if reading is None:
        return unavailable(f"{who} has no {metric.names[0]}")
    if reading.value is None:
        return reading
    shape = str(_PIECES[part].model_fields[name].annotation)
    for mark, turn in _TYPES:
        if mark in shape:
            return known(turn(reading.value))
    return known(round(reading.value, 4))


_TYPES: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("tuple[int", tuple),
    ("[int]", round),
    ("[bool]", bool),
    ("[str]", str),
)


def _gpu(
    key: tuple[str, ...], by_name: Mapping[str, Sequence[MetricSeries]], values: Values, who: str
) -> Gpu:
    names = (name for metric in ALL if metric.part == "gpus" for name in metric.names)
    line = next((found for name in names if (found := _own("gpus", key, by_name.get(name, ())))), None)
    labels = line.labels if line else {}
    uuid, node, number = key
    fields = _fields("gpus", values, who)
    fields["memory_total_gib"] = _total(fields, key, by_name)
    model, pci = labels.get("modelName", ""), labels.get("pci_bus_id", "")
    return Gpu(
        id=uuid or f"{node}:{number}",
        node=node,
        index=int(number) if number.isdecimal() and len(number) < 6 else None,
        name=known(model) if model else unavailable(f"{who} names no model"),
        pci=known(pci) if pci else unavailable(f"{who} names no bus id"),
        **fields,
    )


def _total(
    fields: Values, key: tuple[str, ...], by_name: Mapping[str, Sequence[MetricSeries]]
) -> Reading[Any]:
    """Give the card's memory; the default exporter tells only used, free and reserved."""
    if fields["memory_total_gib"].known:
        return fields["memory_total_gib"]
    parts = [
        _own("gpus", key, by_name.get(name, ())) for name in ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE")
    ]
    if any(line is None or not line.points for line in parts):
        return fields["memory_total_gib"]
    reserved = _own("gpus", key, by_name.get("DCGM_FI_DEV_FB_RESERVED", ()))
    last = [line.points[-1][1] for line in (*parts, reserved) if line is not None and line.points]
    return (
        known(round(sum(last) / 1024, 3))
        if not any(is_blank("DCGM", value) for value in last)
        else fields["memory_total_gib"]
    )


def _own(part: Part, key: tuple[str, ...], lines: Iterable[MetricSeries]) -> MetricSeries | None:
    return next((line for line in lines if identity(part, line.labels) == key), None)


def _nic(key: tuple[str, ...], values: Values, who: str) -> Nic:
    node, device, port = key
    return Nic(
        name=":".join(filter(None, (device, port))),
        node=node,
        kind="infiniband" if "link_downed" in values else "ethernet",
        **_fields("nics", values, who),
    )
