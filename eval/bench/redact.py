"""Bytes a second of redaction over usual training logs: as a stream, as a whole, and line by line.

The logs are the labelled incidents, concatenated, and made logs of one long job each, of which the noisy one
warns and fails between its progress lines. The peer applies every expression to every line, without the
prefilter, to the first FOR_PEER bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.table import Table

from eval.bench import mixed, noisy
from eval.bench.read_child import CACHE
from ingest.redaction import prefilter, search
from ingest.redaction.redactor import Redactor

INCIDENTS = Path(__file__).parents[1] / "incidents"
SIZE = int(os.environ.get("WHYCRASH_BENCH_REDACT_BYTES", 64 << 20))
FOR_PEER = 256 << 10
CHUNK = 1 << 16
RUNS = 3


@dataclass(frozen=True)
class RedactionRate:
    """One line of the table: a name, bytes read, and seconds (the best run)."""

    name: str
    size: int
    seconds: float

    @property
    def speed(self) -> float:
        """Give bytes a second."""
        return self.size / self.seconds


def run() -> Table:
    """Measure and give the table."""
    rows = list(_rows(b"".join(path.read_bytes() for path in sorted(INCIDENTS.glob("*/log.txt")))))
    peer = rows[-1].speed
    table = Table(title="secrets out of usual training logs")
    for column in ("what", "MB read", "MB/s", "times the table without its prefilter"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        table.add_row(row.name, f"{row.size / 1e6:.1f}", f"{row.speed / 1e6:.2f}", f"{row.speed / peer:.1f}")
    return table


def _rows(logs: bytes) -> Iterator[RedactionRate]:
    prefilter.save_prefilter(CACHE)
    Redactor().clean("compiles the prefilter\n")
    large = logs * max(1, SIZE // len(logs))
    text = logs.decode("utf-8", "replace")
    lines, start = text.split("\n"), logs[:FOR_PEER]
    yield _streamed("stream, the incidents", large)
    yield _streamed("stream, a noisy log", b"".join(noisy.pieces(SIZE)))
    yield _streamed("stream, a quiet log", b"".join(mixed.pieces(SIZE)))
    yield _best("clean, the whole text", len(logs), lambda: Redactor().clean(text))
    yield _best("clean, line by line", len(logs), lambda: [Redactor().clean(line) for line in lines])
    yield _best(
        "every expression at every line (first part)", len(start), lambda: search.search_all(start), 1
    )


def _streamed(name: str, log: bytes) -> RedactionRate:
    starts = range(0, len(log), CHUNK)
    return _best(
        name,
        len(log),
        lambda: sum(map(len, Redactor().stream(log[place : place + CHUNK] for place in starts))),
    )


def _best(name: str, size: int, work: Callable[[], object], runs: int = RUNS) -> RedactionRate:
    """Give the fastest of some runs: other load on the machine can only slow one down."""
    seconds = []
    for _ in range(runs):
        started = perf_counter()
        work()
        seconds.append(perf_counter() - started)
    return RedactionRate(name, size, min(seconds))
