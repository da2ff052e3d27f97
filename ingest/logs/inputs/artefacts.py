"""Files that tools write beside a log, told as lines of the job.

Dumps, stacks, the word of a scheduler, reports on cards and ports. What a file is tells its content alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from ingest.artefacts.core_files import MOST_BYTES as MOST_CORE_BYTES
from ingest.artefacts.core_files import core_record, read_core
from ingest.artefacts.file_heads import HEAD, ArtefactKind, artefact_kind
from ingest.artefacts.flight_recorder import MOST_BYTES, RankDump, read_dump
from ingest.artefacts.hardware_readings import read_hardware
from ingest.artefacts.memory_snapshot import MOST_BYTES as MOST_SNAPSHOT_BYTES
from ingest.artefacts.memory_snapshot import CardMemory, read_snapshot
from ingest.artefacts.metric_series import Points, curve_of, read_series
from ingest.artefacts.rank_table import rank_table
from ingest.artefacts.ras_status import RasStatus, gone_records, ras_table, read_ras
from ingest.artefacts.records import (
    course_records,
    curve_records,
    memory_records,
    rank_records,
    stack_records,
)
from ingest.artefacts.stack_dumps import ProcessStacks, read_stacks
from ingest.artefacts.stack_table import process_positions, stack_verdict
from ingest.artefacts.status_documents import read_status
from ingest.errors import ArtefactError, InputError
from ingest.logs.curves import CurveLog
from ingest.logs.inputs.compression import codec_of
from ingest.logs.inputs.files import PeekedStream
from ingest.logs.inputs.members import ARTEFACT, LIMITS, Member, Skipped, kind_of
from ingest.logs.inputs.sources import LogSource
from ingest.logs.inputs.streams import Decompressed, Readable

# Of all dumps of a job together; a thousand ranks at the default size of the buffer.
MOST_OF_JOB = 1 << 30
MOST_DUMPS = 2048
# A snapshot's memory over its trace, as corpus/curves.yaml names it.
_SNAPSHOT = "memory_snapshot/allocated_gib"


@dataclass
class _Found:
    """What was read, by the kind of file."""

    dumps: list[RankDump] = field(default_factory=list)
    processes: list[ProcessStacks] = field(default_factory=list)
    memory: list[tuple[str, list[CardMemory]]] = field(default_factory=list)
    ras: list[tuple[str, RasStatus]] = field(default_factory=list)
    series: Points = field(default_factory=dict)
    told_rows: list[tuple[str, list[str]]] = field(default_factory=list)

    def add(self, kind: ArtefactKind, data: bytes, member: Member) -> None:
        """Read a file; raises ArtefactError where it is damaged."""
        match kind:
            case "stacks":
                self.processes += read_stacks(data, member.name)
            case "ras":
                self.ras.append((member.label, read_ras(data)))
            case "series":
                for name, points in read_series(data, member.name).items():
                    self.series.setdefault(name, {}).update(points)
            case "memory":
                self.memory.append((member.label, read_snapshot(data)))
            case "status":
                self.told_rows.append((member.label, read_status(data)))
            case "core":
                self.told_rows.append((f"{member.label} (core)", [core_record(read_core(data))]))
            case "hardware":
                self.told_rows.append((f"{member.label} (readings)", read_hardware(data)))
            case _:
                self.dumps.append(read_dump(data, member.name))

    def told(self) -> Iterator[LogSource]:
        """Give what each kind tells as a log."""
        for name, rows in self.told_rows:
            yield from _source(name, rows)
        # Of the ranks' snapshots the one tells whose request failed.
        memory = min(self.memory, key=lambda told: told[1][0].asked == 0) if self.memory else None
        if memory is not None and memory[1][0].course:
            self.series[_SNAPSHOT] = dict(memory[1][0].course)
        curves = (curve_of(name, points) for name, points in self.series.items())
        courses = CurveLog().curves(self.series)
        yield from _source(f"curves ({len(self.series)})", [*curve_records(curves), *course_records(courses)])
        for name, status in self.ras:
            verdicts = rank_records(ras_table(status), "nccl_ras")
            yield from _source(f"{name} (RAS)", [*gone_records(status), *verdicts])
        if memory is not None:
            name, cards = memory
            yield from _source(f"{name} (memory)", memory_records(cards))
        if self.dumps:
            yield from _source(f"flight recorder ({len(self.dumps)})", rank_records(rank_table(self.dumps)))
        if verdict := stack_verdict(process_positions(self.processes)):
            yield from _source(f"stacks ({len(self.processes)})", stack_records(verdict))


def read_artefacts(members: Sequence[Member], skipped: Skipped, series: Points) -> Iterator[LogSource]:
    """Read what tools wrote beside the logs, and give what each kind of it tells as a log.

    What is damaged or no dump at all is noted as left out. Numbers over steps are put into `series`, too.
    """
    found = _Found(series=series)
    left = MOST_OF_JOB
    files = 0
    for member in members:
        if left <= 0 or files >= MOST_DUMPS:
            skipped.add("beyond_limit", member.label)
            continue
        try:
            data = _content(member)
            kind = artefact_kind(data[:HEAD])
            if kind is None:
                skipped.add("not_a_log" if kind_of(member.name) == ARTEFACT else "binary", member.label)
                continue
            left -= len(data)
            files += 1
            found.add(kind, data, member)
        except ArtefactError as error:
            skipped.add("damaged_dump", f"{member.label} ({error})")
        except (InputError, OSError):
            skipped.add("not_readable", member.label)
    yield from found.told()


def stacks_of(members: Sequence[Member]) -> list[ProcessStacks]:
    """Give the stacks among the files; what is damaged is left out."""
    found: list[ProcessStacks] = []
    for member in members[:MOST_DUMPS]:
        with suppress(ArtefactError, InputError, OSError):
            data = _content(member)
            if artefact_kind(data[:HEAD]) == "stacks":
                found += read_stacks(data, member.name)
    return found


def _source(name: str, records: Iterable[str]) -> Iterator[LogSource]:
    if rows := list(records):
        yield LogSource(name, io.BytesIO(("\n".join(rows) + "\n").encode("utf-8", "replace")))


def _content(member: Member) -> bytes:
    """Read a file that is no dump as far as tells that, a dump whole."""
    with closing(member.open()) as raw:
        stream: Readable = PeekedStream(raw)
        codec = codec_of(stream.head) if isinstance(stream, PeekedStream) else None
        stream = Decompressed(stream, codec, LIMITS.ratio) if codec else stream
        data = _piece(stream, HEAD)
        kind = artefact_kind(data)
        if kind == "core":
            # What follows the notes is the process's memory.
            return data + _piece(stream, MOST_CORE_BYTES - HEAD)
        most = MOST_SNAPSHOT_BYTES if kind in ("memory", "hardware", "ras", "series") else MOST_BYTES
        return data + _piece(stream, most + 1 - HEAD) if kind else data


def _piece(stream: Readable, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := stream.read(min(1 << 20, size - len(data)))):
        data += piece
    return data
