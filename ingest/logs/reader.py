"""Read one job's output into a CrashReport, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpus.log_patterns import PatternTable
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.log_reading import NOTHING, LogReading
from ingest.logs.pastes import Pastes
from ingest.logs.report import CrashReport
from ingest.logs.scanner import Block, Scanner, Tally, blocks
from ingest.logs.templates import MOST, Templates, checksums
from ingest.redaction import prefilter


class Reader:
    """Reads logs with one table of patterns; not to be shared between threads."""

    def __init__(self, table: PatternTable, cache: Path | None = None) -> None:
        self.table = table
        self.scanner = Scanner(table.rows, cache, table.own)
        self._pastes = Pastes(self.scanner, table)
        if cache:
            prefilter.save_prefilter(cache)

    def read(
        self, source: LogSource | JobSource, good: Templates | None = None, *, failed: bool = False
    ) -> CrashReport:
        """Read a job's output to its end; raises InputError where it cannot be read at all.

        What also stands in `good`, a healthy run of the same job, is no failure here. `failed` tells that the
        job is known to have failed, whatever it says of itself.
        """
        reading = LogReading(self.table, good or NOTHING, failed=failed)
        for block in self._blocks(source, reading):
            del block
        return reading.report(source)

    def templates(self, source: LogSource | JobSource) -> Templates:
        """Read a healthy run for what its lines look like; raises InputError as `read` does."""
        reading = LogReading(self.table, NOTHING)
        found: set[int] = set()
        for block in self._blocks(source, reading):
            if len(found) < MOST:
                found.update(checksums(block.data[block.start : block.stop]))
        groups, root = reading.groups, reading.report(source).root
        failed = root is not None and root.pattern_role == "origin" and root.strength != "hints"
        return Templates(frozenset(found), groups, root.line if root and failed else 0)

    def _blocks(self, source: LogSource | JobSource, reading: LogReading) -> Iterator[Block]:
        """Give each block after it was read."""
        self.scanner.fresh()
        for part in source.parts() if isinstance(source, JobSource) else [source]:
            tally = Tally()
            first = reading.begin(part.name)
            read = map(self._pastes.restored, blocks(part.chunks(), tally, first=first))
            for block, found in self.scanner.scan(read):
                reading.feed(block, found)
                yield block
            reading.end(tally)
