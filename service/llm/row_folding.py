"""What is left out of many rows: those amid a run of rows alike, then the middle; never the end."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ingest.logs.events import masked

# Rows alike may alternate with those of so many other writers.
PERIOD = 8
# The part of the room that the first rows get; the last ones have the rest.
HEAD = 0.6
# Of readings that are no numbers, so many are told.
MAX_TOLD = 8
_PLACE = re.compile(r"\[[^\]]*\]")


def folded(rows: Mapping[int, str], kept: Collection[int]) -> dict[int, str]:
    """Leave out the rows amid a run that reads alike but for its numbers; those in `kept` stay."""
    numbers = sorted(rows)
    wording = [masked(rows[number]) for number in numbers]

    def is_amid(place: int) -> bool:
        before = wording[max(0, place - PERIOD) : place]
        return wording[place] in before and wording[place] in wording[place + 1 : place + 1 + PERIOD]

    return {
        number: rows[number] for place, number in enumerate(numbers) if number in kept or not is_amid(place)
    }


def head_and_tail(costs: Sequence[int], room: int) -> set[int]:
    """Choose the places of the first and the last rows that fit the room; all where all do."""
    if sum(costs) <= room:
        return set(range(len(costs)))
    head = _fitting(costs, range(len(costs)), int(room * HEAD))
    left = room - sum(costs[place] for place in head)
    tail = _fitting(costs, range(len(costs) - 1, len(head) - 1, -1), left)
    return {*head, *tail}


def _fitting(costs: Sequence[int], places: Iterable[int], room: int) -> list[int]:
    chosen: list[int] = []
    for place in places:
        room -= costs[place]
        if room < 0:
            break
        chosen.append(place)
    return chosen


def folded_readings(readings: Mapping[str, object]) -> list[str]:
    """Tell readings that differ only in what they are of (`gpus[GPU-1].temperature_c`) in one row.

    Numbers come with the lowest and the highest, others with how many have which.
    """
    alike: dict[str, dict[str, object]] = {}
    for name, value in readings.items():
        alike.setdefault(_PLACE.sub("[*]", name), {})[name] = value
    return [_row(name, found) for name, found in alike.items()]


def _row(name: str, found: Mapping[str, object]) -> str:
    values = list(found.values())
    if len(found) == 1:
        return f"{next(iter(found))} = {values[0]}"
    if len(set(map(str, values))) == 1:
        return f"{name} = {values[0]} (all {len(found)})"
    numbers = {place: value for place, value in found.items() if isinstance(value, int | float)}
    if len(numbers) == len(found):
        low, high = (choose(numbers, key=lambda place: numbers[place]) for choose in (min, max))
        return f"{name}: {len(found)} readings, lowest {low} = {found[low]}, highest {high} = {found[high]}"
    told = [f"{place} = {value}" for place, value in found.items()]
    more = f"; and {len(told) - MAX_TOLD} more" if len(told) > MAX_TOLD else ""
    return f"{name}: {'; '.join(told[:MAX_TOLD])}{more}"


def readings_of(value: Any, name: str) -> Iterator[tuple[str, object]]:
    """Give the readings of a snapshot that are there, by their dotted names."""
    if isinstance(value, dict):
        if "unavailable" in value and "value" in value:
            if value["value"] is not None:
                yield from readings_of(value["value"], name)
            return
        for key, item in value.items():
            yield from readings_of(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from readings_of(item, f"{name}[{place}]")
    elif value not in (None, ""):
        yield name, value
