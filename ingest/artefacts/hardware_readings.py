"""Read what tools report of cards and ports, and tell the readings that are bad as records.

`nvidia-smi -q`, nvidia-bug-report.log, `dcgmi diag` and `dcgmi health`, `ibstat`, `ibdiagnet`, `perfquery`,
counters of RDMA and Ethernet, `npu-smi info`: indented text, tables, rows of counters, or JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from corpus import hardware_readings
from corpus.hardware_readings import ReportKind
from corpus.message import Message
from ingest.errors import ArtefactError
from ingest.logs.lines import printable

MOST_BYTES = 64 << 20
MOST_RECORDS = 64
# Readings of a JSON document and levels of it that are looked at.
_MOST_READINGS, _MOST_DEEP = 200_000, 24
_LONGEST = 200

_READING = re.compile(r"^(?P<indent>\s*)(?P<name>\S(?:.{0,120}?\S)?)\s*:(?:\s+(?P<value>.*?))?\s*$")
_HEADING = re.compile(r"^(?P<indent>\s*)(?P<name>\S.{0,120}?)\s*$")
_SECTION = re.compile(r"^\|[-\s]+(?P<name>[A-Za-z][\w ]{0,60}?)\s+-+[-+|]*$")
_RULE = re.compile(r"^[\s+|=_-]*$")
# What names an item of a list of JSON.
_ITEM_NAMES = ("name", "ifname", "category", "gpu_ids", "gpu_id", "entity_id")


def read_hardware(data: bytes) -> list[str]:
    """Give a record for each bad reading; raises ArtefactError where a document is damaged or too large."""
    if len(data) > MOST_BYTES:
        raise ArtefactError(Message("artefacts.too-large", megabytes=MOST_BYTES >> 20))
    text = data.decode("utf-8", "replace")
    kind = hardware_readings.load().of(text[:4096])
    if kind is None:
        return []
    if text.lstrip()[:1] in ("{", "["):
        found = _of_json(text)
    else:
        found = _of_text(text, kind) if kind.reading is None else _of_counters(text, kind, kind.reading)
    records = (record for device, path, value in found for record in _records(kind, device, path, value))
    return list(islice(dict.fromkeys(records), MOST_RECORDS))


def _records(kind: ReportKind, device: str, path: str, value: str) -> Iterator[str]:
    for row in kind.bad:
        named = row.found(path, value)
        if named is None:
            continue
        devices = named.get("devices", named.get("device", device))
        told = {
            "tool": kind.tool,
            "device": devices,
            "finding": row.finding,
            "where": named.get("test", "/".join(path.split("/")[-2:])),
            "value": value[:_LONGEST],
        }
        yield "hardware " + " ".join(
            f"{name}={printable('_'.join(word.split()))}" for name, word in told.items() if word.strip()
        )
        return


@dataclass
class _Table:
    """A table with rules: a section's name, then rows of a name and its value."""

    section: str = ""
    last: str = ""

    def read(self, row: str) -> Iterator[tuple[str, str]]:
        """Give the path and the value that a row of it tells."""
        if named := _SECTION.match(row):
            self.section = named["name"]
            return
        if _RULE.match(row):
            return
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        # A row without a name goes on with the one above it.
        self.last = cells[0] or self.last
        if len(cells) > 1 and cells[1]:
            yield f"{self.section}/{self.last}" if self.section else self.last, cells[1]


def _of_text(text: str, kind: ReportKind) -> Iterator[tuple[str, str, str]]:
    """Give device, path and value of each reading: headings are those that stand further left above it."""
    headings: list[tuple[int, str]] = []
    device = ""
    table = _Table()
    for row in text.splitlines():
        if row.startswith(("|", "+")):
            yield from ((device, path, value) for path, value in table.read(row))
            continue
        row = row.expandtabs(8)
        reading = _READING.match(row)
        found = reading or _HEADING.match(row)
        if found is None:
            continue
        indent = len(found["indent"])
        while headings and headings[-1][0] >= indent:
            headings.pop()
        if not indent:
            device = _heading(kind, found["name"]) or device
        if reading is not None and reading["value"]:
            yield device, "/".join((*(name for _, name in headings), reading["name"])), reading["value"]
        else:
            headings.append((indent, found["name"]))


def _of_counters(text: str, kind: ReportKind, reading: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Give device, name and value of each reading that has the tool's own form."""
    device = ""
    for row in text.splitlines():
        device = _heading(kind, row) or device
        for found in reading.finditer(row):
            yield found.groupdict().get("device") or device, found["name"], found["value"]


def _heading(kind: ReportKind, row: str) -> str:
    """Give the device that a row begins to tell of, else nothing."""
    heading = kind.device.match(row) if kind.device is not None else None
    return heading["device"] if heading is not None else ""


def _of_json(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtefactError(Message("artefacts.json-damaged")) from error
    for path, told in islice(_leaves(value, (), _MOST_DEEP), _MOST_READINGS):
        yield "", "/".join(path), told


def _leaves(value: object, path: tuple[str, ...], deep: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give a document's words and numbers with the names above them; an item goes by its own name."""
    if isinstance(value, Mapping) and deep:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)), deep - 1)
    elif isinstance(value, list) and deep:
        for number, inner in enumerate(value):
            named = inner if isinstance(inner, Mapping) else {}
            name = next((str(named[key]) for key in _ITEM_NAMES if key in named), str(number))
            yield from _leaves(inner, (*path, name), deep - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield path, str(value)
