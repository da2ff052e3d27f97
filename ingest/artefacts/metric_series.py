"""Read the numbers that a job logged beside its text.

TensorBoard's events, a trainer's state, W&B's summary, MLflow's files of metrics, rows of JSON over steps.

TensorBoard writes records of a length, a checksum, an Event of protobuf and a checksum (tensorflow's
core/lib/io/record_writer.cc and core/util/event.proto); only the fields that hold a number are read.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from corpus.message import Message
from ingest.artefacts.file_heads import is_metric
from ingest.errors import ArtefactError
from ingest.logs.lines import printable

MOST_BYTES = 16 << 20
_MOST_POINTS, _MOST_NAMES, _LONGEST = 300_000, 2000, 120

Points = dict[str, dict[int, float]]
# Where rows keep their step.
_STEPS = ("step", "_step", "global_step", "iteration")


@dataclass(frozen=True, slots=True)
class Curve:
    """How one number went: from the step `broken_from` on it stayed no finite number, -1 where it did not.

    `before` is its last finite value, None without any; `broken` counts the points since.
    """

    name: str
    points: int
    last_step: int
    broken_from: int
    broken: int
    before: float | None


def read_series(data: bytes, name: str = "") -> Points:
    """Give step and value of each number; raises ArtefactError where there is none or the file damaged.

    `name` is the file's, which tells what MLflow's rows are values of.
    """
    if len(data) > MOST_BYTES:
        raise ArtefactError(Message("artefacts.too-large", megabytes=MOST_BYTES >> 20))
    points: Points = {}
    if is_metric(data):
        found = _of_metric(data, name)
    else:
        found = _of_json(data) if data.lstrip()[:1] == b"{" else _of_events(data)
    for count, (key, step, value) in enumerate(found):
        if count >= _MOST_POINTS or (key not in points and len(points) >= _MOST_NAMES):
            break
        points.setdefault(key, {})[step] = value
    if not points:
        raise ArtefactError(Message("artefacts.no-series"))
    return points


def curve_of(name: str, points: Mapping[int, float]) -> Curve:
    """Tell how a number went until its last step."""
    steps = sorted(points)
    last = next((step for step in reversed(steps) if math.isfinite(points[step])), None)
    broken = [step for step in steps if last is None or step > last]
    return Curve(
        name,
        len(steps),
        steps[-1],
        broken[0] if broken else -1,
        len(broken),
        points[last] if last is not None else None,
    )


def _of_json(data: bytes) -> Iterator[tuple[str, int, float]]:
    for row in _json_rows(data):
        step = next((row[key] for key in _STEPS if key in row), None)
        if isinstance(step, int):
            for name, number in row.items():
                # W&B writes what JSON has no number for as a word.
                number = float(number) if number in ("NaN", "Infinity", "-Infinity") else number
                if isinstance(number, float):
                    yield printable(name[:_LONGEST]), step, number


def _json_rows(data: bytes) -> Iterator[dict[str, object]]:
    """Give the rows of a trainer's history, a summary as its only one, or whole lines of JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        lines = [row for line in data.split(b"\n", _MOST_POINTS)[:_MOST_POINTS] for row in _json_row(line)]
        if not lines:
            raise ArtefactError(Message("artefacts.json-damaged")) from error
        yield from lines
        return
    history = value.get("log_history")
    yield from (row for row in (history if isinstance(history, list) else [value]) if isinstance(row, dict))


def _json_row(line: bytes) -> Iterator[dict[str, object]]:
    with suppress(ValueError, RecursionError):
        row = json.loads(line)
        if isinstance(row, dict):
            yield row


def _of_metric(data: bytes, name: str) -> Iterator[tuple[str, int, float]]:
    """Give the rows of one metric; below a run's folder `metrics` its path is its name."""
    metric = printable(name.rpartition("metrics/")[2][-_LONGEST:])
    for line in data.split(b"\n", _MOST_POINTS)[:_MOST_POINTS]:
        with suppress(ValueError):
            _, value, step = line.split(b" ")
            yield metric, int(step[:12]), float(value)


def _of_events(data: bytes) -> Iterator[tuple[str, int, float]]:
    """Give the numbers of each whole record; a file of a job that died ends within one."""
    place = 0
    while place + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, place)
        event = data[place + 12 : place + 12 + size]
        if len(event) < size:
            return
        place += size + 16
        fields = list(_fields(event))
        step = next((value for number, value in fields if number == 2 and isinstance(value, int)), 0)
        for summary in (value for number, value in fields if number == 5 and isinstance(value, bytes)):
            for _, value in (
                pair for pair in _fields(summary) if pair[0] == 1 and isinstance(pair[1], bytes)
            ):
                yield from _of_value(value, step)


def _of_value(data: object, step: int) -> Iterator[tuple[str, int, float]]:
    """Give a value's name and number, which stands in a field of its own or in a tensor of one."""
    fields = dict(_fields(data)) if isinstance(data, bytes) else {}
    tensor = fields.get(8)
    inner = dict(_fields(tensor)) if isinstance(tensor, bytes) else {}
    raw = fields.get(2, inner.get(5, inner.get(4)))
    name = fields.get(1)
    if isinstance(raw, bytes) and len(raw) == 4 and isinstance(name, bytes):
        yield printable(name[:_LONGEST].decode("utf-8", "replace")), step, struct.unpack("<f", raw)[0]


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Give number and value of each field of a message of protobuf, as far as it is whole."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        size, place = (8, place) if kind == 1 else (4, place) if kind == 5 else _varint(data, place)
        if kind not in (1, 2, 5) or place + size > len(data):
            return
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            return 0, len(data)
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, place
