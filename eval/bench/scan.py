"""Bytes a second from a log to a CrashReport, and peak memory.

Peers in the same run: ripgrep counting lines that match the same patterns, or seven error words; Drain3;
NVIDIA's restart agent where it is installed; the decompressors alone. Slow peers read the first part of the
log, as the table says.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import BinaryIO

import zstandard
from rich.table import Table

from corpus import log_patterns
from eval.bench import mixed, read_child
from eval.other_tools import RESTART_AGENT
from ingest.logs.scanner import relaxed

GIB = 1 << 30
SIZE = int(os.environ.get("WHYCRASH_BENCH_BYTES", GIB))
TIMES_LARGER = 10
# Bytes for peers that would need minutes for a gibibyte.
FOR_RIPGREP = 16 << 20
FOR_TEMPLATES = 8 << 20
RUNS = 3
# Bytes a second of NVIDIA's deterministic analysis, measured on a machine like this one.
RESTART_AGENT_SPEED = 2_000_000
WORDS = "error|exception|traceback|killed|timeout|out of memory|failed"

_DRAIN = (
    "import sys; from drain3 import TemplateMiner; from drain3.template_miner_config import "
    "TemplateMinerConfig;"
    "miner = TemplateMiner(config=TemplateMinerConfig());"
    "[miner.add_log_message(line.rstrip()) for line in open(sys.argv[1], errors='replace')]"
)
_AGENT = (
    "import sys; from importlib import import_module; "
    f"import_module({RESTART_AGENT!r}).build_l0_bundle(sys.argv[1])"
)
_GROUP = re.compile(r"\(\?P<\w+>")
_QUOTE = re.compile(r"""\\(["'<>])""")


@dataclass(frozen=True)
class ScanRate:
    """One line of the table: a name, bytes read, seconds (the best run) and peak memory in MiB."""

    name: str
    size: int
    seconds: float
    peak_mib: float | None = None

    @property
    def speed(self) -> float:
        """Give bytes a second."""
        return self.size / self.seconds


def run() -> Table:
    """Measure and give the table."""
    with tempfile.TemporaryDirectory(prefix="whycrash-scan-") as folder:
        rows = list(_rows(Path(folder)))
    ours = rows[0].speed
    table = Table(
        title=f"log to CrashReport, {SIZE / GIB:.1f} GiB of mixed dialects, {mixed.NOTABLE} notable lines"
    )
    for column in ("what", "MB read", "MB/s", "reader is ... times as fast", "peak MiB"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        peak = "" if row.peak_mib is None else f"{row.peak_mib:.0f}"
        table.add_row(
            row.name, f"{row.size / 1e6:.0f}", f"{row.speed / 1e6:.1f}", f"{ours / row.speed:.1f}", peak
        )
    return table


def _rows(folder: Path) -> Iterator[ScanRate]:
    log, small, tiny = folder / "log.txt", folder / "small.txt", folder / "tiny.txt"
    mixed.write(log, SIZE)
    _head(log, small, FOR_RIPGREP)
    _head(log, tiny, FOR_TEMPLATES)
    _read(tiny)  # compiles the patterns, once for all runs
    yield _best("reader", lambda: _read(log))
    yield from _ripgrep(log, small, folder)
    yield _timed(f"Drain3 (first {FOR_TEMPLATES >> 20} MiB)", tiny, [sys.executable, "-c", _DRAIN, str(tiny)])
    if find_spec(RESTART_AGENT.partition(".")[0]):
        yield _timed("NVIDIA restart agent, L0 (first part)", tiny, [sys.executable, "-c", _AGENT, str(tiny)])
    else:
        yield ScanRate(
            "NVIDIA restart agent, L0 (not installed: as measured elsewhere)", RESTART_AGENT_SPEED, 1.0
        )
    yield from _packed(log, folder)
    yield _piped(log, TIMES_LARGER)


def _best(name: str, measure: Callable[[], ScanRate]) -> ScanRate:
    """Give the fastest of RUNS runs: other load on the machine can only slow one down."""
    found = min((measure() for _ in range(RUNS)), key=lambda row: row.seconds)
    return ScanRate(name, found.size, found.seconds, found.peak_mib)


def _read(path: Path) -> ScanRate:
    completed = subprocess.run(
        [sys.executable, "-m", read_child.__name__, str(path)], capture_output=True, text=True, check=True
    )
    size, seconds, peak, _ = completed.stdout.split()
    return ScanRate("reader", int(size), float(seconds), float(peak))


def _piped(log: Path, times: int) -> ScanRate:
    """Read the log `times` times through a pipe, to show that memory does not grow with the length."""
    with subprocess.Popen(
        [sys.executable, "-m", read_child.__name__, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None  # noqa: S101 - asked for above
        assert process.stdout is not None  # noqa: S101 - asked for above
        for _ in range(times):
            with log.open("rb") as stream:
                shutil.copyfileobj(stream, process.stdin, 1 << 20)
        process.stdin.close()
        size, seconds, peak, _ = process.stdout.read().split()
    return ScanRate(f"reader, {times} times the log through a pipe", int(size), float(seconds), float(peak))


def _timed(name: str, path: Path, command: Sequence[str]) -> ScanRate:
    started = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return ScanRate(name, path.stat().st_size, perf_counter() - started)


def _ripgrep(log: Path, small: Path, folder: Path) -> Iterator[ScanRate]:
    program = shutil.which("rg")
    if program is None:
        return
    base = [program, "--text", "--count", "--no-unicode", "--no-config"]
    yield _best(
        "rg -c, seven error words, no table",
        lambda: _timed("", log, [*base, "--ignore-case", WORDS, str(log)]),
    )
    # Translate the patterns to Rust's regex syntax; those that it rejects are left out and counted.
    written = []
    for row in log_patterns.load().rows:
        text = _QUOTE.sub(r"\1", _GROUP.sub("(?:", relaxed(row.expression))).replace(r"[^\n]", ".")
        written.append(f"(?i:{text})" if row.caseless else text)
    kept = [
        text
        for text in written
        if subprocess.run([*base, "-e", text], input=b"", capture_output=True).returncode != 2
    ]
    known, refused = kept, len(written) - len(kept)
    table = folder / "patterns.txt"
    table.write_text("\n".join(known))
    limits = ["--dfa-size-limit", "1G", "--regex-size-limit", "1G"]
    name = f"rg -c, the same {len(known)} patterns ({refused} it refuses; first {FOR_RIPGREP >> 20} MiB)"
    yield _timed(name, small, [*base, *limits, "--file", str(table), str(small)])


def _packed(log: Path, folder: Path) -> Iterator[ScanRate]:
    """Measure reading a compressed log, and decompressing it alone."""
    packed = folder / "log.gz"
    with log.open("rb") as stream, gzip.open(packed, "wb", compresslevel=3) as target:
        shutil.copyfileobj(stream, target, 1 << 20)
    size = log.stat().st_size
    with gzip.open(packed, "rb") as unpacked:
        yield ScanRate("gzip, unpacking alone", size, _drained(unpacked))
    yield _best("reader, .gz", lambda: _read(packed))
    packed = folder / "log.zst"
    with log.open("rb") as stream, packed.open("wb") as target:
        zstandard.ZstdCompressor(3).copy_stream(stream, target)
    with zstandard.open(packed, "rb") as unpacked:
        yield ScanRate("zstd, unpacking alone", size, _drained(unpacked))
    yield _best("reader, .zst", lambda: _read(packed))


def _drained(stream: BinaryIO | gzip.GzipFile) -> float:
    started = perf_counter()
    while stream.read(1 << 20):
        pass
    return perf_counter() - started


def _head(source: Path, target: Path, size: int) -> None:
    with source.open("rb") as stream:
        target.write_bytes(stream.read(size))
