"""Bytes a second of the reader on noisy logs, against the share of their lines that are notable.

Peers in the same run: ripgrep counting seven error words, a loop of Python that searches each line for them,
and `gzip` unpacking alone. With WHYCRASH_BENCH_BEFORE, the folder of another checkout, its reader reads each
log by turns with this one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from rich.table import Table

from eval.bench import noisy, read_child
from eval.bench.scan import WORDS

SIZE = int(os.environ.get("WHYCRASH_BENCH_BYTES", 64 << 20))
BEFORE = os.environ.get("WHYCRASH_BENCH_BEFORE", "")
# Shares of notable lines.
SHARES = (0.0001, 0.001, 0.01, noisy.SHARE, 0.1)
RUNS = 3
_LOOP = (
    "import re, sys; found = re.compile(sys.argv[2], re.I).search;"
    "sum(found(line) is not None for line in open(sys.argv[1], errors='replace'))"
)


class NoisyRate(NamedTuple):
    """One row of the table: the share of notable lines, who read, seconds (the best run), peak MiB."""

    share: float
    name: str
    size: int
    seconds: float
    peak_mib: float | None = None


def run() -> Table:
    """Measure and give the table."""
    table = Table(title=f"noisy logs of {SIZE / 1e6:.0f} MB, by the share of their lines that are notable")
    for column in ("notable", "what", "MB/s", "reader is ... times as fast", "peak MiB"):
        table.add_column(column, justify="left" if column == "what" else "right")
    with tempfile.TemporaryDirectory(prefix="whycrash-noisy-") as folder:
        for share in SHARES:
            rows = list(_rows(Path(folder) / "log.txt", share))
            for row in rows:
                times = row.seconds / row.size / (rows[0].seconds / rows[0].size)
                peak = "" if row.peak_mib is None else f"{row.peak_mib:.0f}"
                speed = f"{row.size / row.seconds / 1e6:.1f}"
                table.add_row(f"{row.share:.2%}", row.name, speed, f"{times:.2f}", peak)
    return table


def _rows(log: Path, share: float) -> Iterator[NoisyRate]:
    noisy.write(log, SIZE, share)
    size = log.stat().st_size
    readers: dict[str, Callable[[], tuple[float, float]]] = {"reader": lambda: _read(log, Path.cwd())}
    if BEFORE:
        readers["reader of the other checkout"] = lambda: _read(log, Path(BEFORE))
    if shutil.which("rg"):
        command = ["rg", "--text", "--count", "--no-unicode", "--no-config", "--ignore-case", WORDS, str(log)]
        readers["rg -c, seven error words"] = lambda: (_timed(command), 0.0)
    loop = [sys.executable, "-c", _LOOP, str(log), WORDS]
    readers["a loop of Python, the same words"] = lambda: (_timed(loop), 0.0)
    if share == noisy.SHARE:
        packed = log.with_suffix(".gz")
        with packed.open("wb") as stream:
            subprocess.run(["gzip", "-3", "-c", str(log)], stdout=stream, check=True)
        readers["reader, .gz"] = lambda: _read(packed, Path.cwd())
        readers["gzip -dc alone"] = lambda: (_timed(["gzip", "-dc", str(packed)]), 0.0)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in readers}
    for turn in range(RUNS + 1):
        for name, measure in readers.items():
            # The first turn compiles patterns and fills caches.
            if measured := measure() if turn or "reader" in name else None:
                taken[name] += [measured] if turn else []
    for name, runs in taken.items():
        seconds, peak = min(runs)
        yield NoisyRate(share, name, size, seconds, peak or None)


def _read(path: Path, checkout: Path) -> tuple[float, float]:
    told = subprocess.run(
        [sys.executable, "-m", read_child.__name__, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=checkout,
    )
    _, seconds, peak, _ = told.stdout.split()
    return float(seconds), float(peak)


def _timed(command: list[str]) -> float:
    started = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return perf_counter() - started
