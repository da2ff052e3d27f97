"""Typed facts out of a pattern's named groups; the group's name gives the unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Value = int | float | str

# What is less is told in MiB.
SMALLEST_GIB = 1.0
_SIZE = re.compile(r"^\s*(-?\d[\d,]{0,18}(?:\.\d{0,9})?)\s*([kKMGTP]?)(i?)(B|b|Bytes|bytes)?\s*$")
_POWER = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_DURATION = re.compile(
    r"^\s*(\d{1,12}(?:\.\d{1,9})?)\s*(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)?\s*$"
)
_SECONDS = {
    "milliseconds": 1e-3,
    "millisecond": 1e-3,
    "ms": 1e-3,
    "m": 60,
    "min": 60,
    "mins": 60,
    "minute": 60,
    "minutes": 60,
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
}
_CLOCK = re.compile(r"^(?:(\d{1,6}) days?, )?(\d{1,6}):(\d\d):(\d\d(?:\.\d+)?)$")
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class Fact:
    """What one line states in numbers and names, with the line it stands in."""

    kind: str
    line: int
    fields: Mapping[str, Value]


def typed(groups: Mapping[str, str | None]) -> dict[str, Value]:
    """Turn named groups into values: `*_gib` into GiB, `*_s` into seconds, digits into numbers."""
    fields: dict[str, Value] = {}
    for name, text in groups.items():
        if text is None or not text.strip():
            continue
        fields[name] = value = _value(name, text.strip())
        if name.endswith("_ms") and isinstance(value, float):
            fields[name.removesuffix("_ms") + "_s"] = value / 1000
    return fields


def _value(name: str, text: str) -> Value:
    if name.endswith("_gib"):
        return gib(text)
    if name.endswith("_s"):
        return seconds(text)
    if name.endswith("_ms"):
        return float(text) if _NUMBER.match(text) else text
    # Versions, addresses and bus ids look like numbers and are none.
    is_text = name in {"version", "wanted", "found", "value", "pci"} or name.endswith("_version")
    if _NUMBER.match(text) and not is_text and len(text) < 16:
        return float(text) if "." in text else int(text)
    return text.rstrip(".,;")


def gib(text: str) -> Value:
    """Read a size such as `512.00 MiB` or `64 GB` as GiB; a bare number is GiB already.

    Decimal and binary prefixes count alike, as the frameworks mix them: PyTorch and Ray print 2**30 as
    GiB and as GB.
    """
    match = _SIZE.match(text)
    if not match:
        return text
    number = float(match[1].replace(",", "") or 0)
    if not match[2] and not match[4]:
        return number
    # A hundredth of a MiB, as messages print it, comes back the same.
    return round(number * 1024.0 ** (_POWER[match[2]] - 3), 6)


def size_in_words(gib: float) -> str:
    """Give a size in GiB as a sentence has it: with its unit, below one GiB in MiB."""
    return f"{gib:.4g} GiB" if abs(gib) >= SMALLEST_GIB else f"{gib * 1024:.4g} MiB"


def seconds(text: str) -> Value:
    """Read a duration such as `1800000 milliseconds`, `0:30:00` or `600` as seconds."""
    if clock := _CLOCK.match(text):
        return int(clock[1] or 0) * 86400 + int(clock[2]) * 3600 + int(clock[3]) * 60 + float(clock[4])
    match = _DURATION.match(text)
    if not match:
        return text
    return round(float(match[1]) * _SECONDS.get(match[2] or "s", 1), 3)
