"""Speed and memory of the reader on adversarial logs, and what their reports say was omitted.

Each log is generated while it is read, in a process of its own (`python -m eval.bench.hostile CASE`), so that
the peak memory is its own; the time of generating is subtracted. WHYCRASH_BENCH_SCALE scales all sizes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep
from typing import NamedTuple

from rich.table import Table

from corpus import log_patterns
from eval.bench.read_child import CACHE
from ingest.logs.inputs import jobs
from ingest.logs.inputs.sources import CHUNK, LogSource
from ingest.logs.reader import Reader

SCALE = float(os.environ.get("WHYCRASH_BENCH_SCALE", "1"))
GIB = 1 << 30
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 79.15 GiB of which 1.25 GiB is free."
)
WELL = "(TaskRunner pid=4242) step:{0} - actor/pg_loss:0.0{0} - perf/throughput:812.4"
STACK = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 30, in main\n'
    "    trainer.fit()\n"
    '  File "/job/trainer.py", line 55, in step\n'
    "    loss = self.model(batch)\n"
)
ASSERT = (
    "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:93: operator(): block: [{block},0,0], thread: "
    "[{thread},0,0] "
    'Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.'
)
# Bytes that are appended to the growing log at once, and the seconds between two times.
APPENDED = 1 << 20
EVERY_S = 0.02

Pieces = Iterator[bytes]


class HostileResult(NamedTuple):
    """Bytes, lines, seconds, peak MiB, number of events, root line (0: none), what was omitted."""

    size: int
    lines: int
    seconds: float
    peak_mib: float
    events: int
    root: int
    omitted: dict[str, int | str]


class MadeStream:
    """A stream that is generated while it is read; `spent` is the seconds of generating."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._held = memoryview(b"")
        self.spent = 0.0

    def read(self, size: int, /) -> bytes:
        """Give at most `size` of the next bytes."""
        if not self._held:
            started = perf_counter()
            self._held = memoryview(next(self._pieces, b""))
            self.spent += perf_counter() - started
        data, self._held = bytes(self._held[:size]), self._held[size:]
        return data

    def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class HostileKind:
    """A kind of log: its description, its number of units at full scale, and the generator for a number."""

    what: str
    units: int
    pieces: Callable[[int], Pieces]


def _letters(number: int) -> str:
    """Spell a number in letters: the reader replaces digits, so that messages with numbers are the same."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _gathered(rows: Iterator[str]) -> Pieces:
    held: list[str] = []
    for number, row in enumerate(rows, 1):
        held.append(row)
        if number % 4096 == 0:
            yield "".join(held).encode()
            held = []
    yield "".join(held).encode()


def _filled(row: bytes, size: int) -> Pieces:
    """Repeat a row up to `size` bytes, in pieces of about CHUNK bytes."""
    piece = row * (CHUNK // len(row))
    return (piece for _ in range(max(1, size // len(piece))))


def one_line(size: int) -> Pieces:
    """Give one line of `size` bytes, with a failure in its middle and one at its end."""
    yield from _filled(b"and the next word of one sentence, ", size // 2)
    yield OOM.encode()
    yield from _filled(b"and the next word of one sentence, ", size // 2)
    yield b" " + OOM.encode()


def same_tracebacks(number: int) -> Pieces:
    """Give the same traceback `number` times, a step between."""
    return _gathered(f"{STACK}KeyError: 'sample {place}'\nstep {place}\n" for place in range(number))


def other_tracebacks(number: int) -> Pieces:
    """Give `number` tracebacks with different messages."""
    return _gathered(f"{STACK}ValueError: the word {_letters(place)} is none\n" for place in range(number))


def other_errors(number: int) -> Pieces:
    """Give failures of known patterns, each with a different message."""
    return _gathered(
        f"RuntimeError: the tensor {_letters(place)} is on another device\n{OOM[:-1]} on {_letters(place)}\n"
        for place in range(number)
    )


def nul_bytes(size: int) -> Pieces:
    """Give lines with single NUL bytes and with 300 in a row."""
    return _filled(
        (WELL.format(1) + "\n").encode() * 50 + b"a\0b\n" + b"\0" * 300 + b"\n" + OOM.encode() + b"\n", size
    )


def encodings(size: int) -> Pieces:
    """Give lines in four encodings by turns."""
    message = "显存不足 at größe: "
    forms = [
        f"{message}{OOM}\n".encode(form, "replace") for form in ("utf-8", "gb18030", "latin-1", "utf-16-le")
    ]
    return _filled((WELL.format(2) + "\n").encode() * 20 + b"".join(forms), size)


def asserts(number: int) -> Pieces:
    """Give a device-side assertion for each CUDA thread."""
    return _gathered(
        ASSERT.format(block=place // 1024, thread=place % 1024) + "\n" for place in range(number)
    )


def colours(size: int) -> Pieces:
    """Give lines with colour escapes, and a failure every 400 lines."""
    row = f"\x1b[36m(W pid=3)\x1b[0m \x1b[1;31m{WELL.format(3)}\x1b[0m\x1b[K\n".encode()
    return _filled(row * 400 + f"\x1b[31m{OOM}\x1b[0m\n".encode(), size)


CASES = {
    "one-line": HostileKind("1 GiB on one line", GIB, one_line),
    "same-tracebacks": HostileKind("10 million times one traceback", 10_000_000, same_tracebacks),
    "other-tracebacks": HostileKind("10 million different tracebacks", 10_000_000, other_tracebacks),
    "other-errors": HostileKind("100,000 different errors, twice", 100_000, other_errors),
    "nul": HostileKind("1 GiB with NUL bytes", GIB, nul_bytes),
    "encodings": HostileKind("1 GiB in four encodings", GIB, encodings),
    "asserts": HostileKind("1 million CUDA assertions", 1_000_000, asserts),
    "colours": HostileKind("1 GiB with escapes on each line", GIB, colours),
}


def growing(path: Path) -> None:
    """Write a log to which a thread appends while it is read."""
    piece = (WELL.format(4) + "\n").encode() * (APPENDED // 80)
    path.write_bytes(piece * max(1, int(256 * SCALE)))

    def append() -> None:
        with path.open("ab", buffering=0) as stream:
            while True:
                stream.write(piece)
                sleep(EVERY_S)

    Thread(target=append, daemon=True).start()


def sparse(path: Path) -> None:
    """Write a sparse file as truncating an open log leaves it: a hole of 10 GiB, then the last lines."""
    with path.open("wb") as stream:
        stream.seek(int(10 * GIB * SCALE))
        stream.write(f"{WELL.format(5)}\n{OOM}\n".encode())


FILES = {
    "growing": ("256 MiB, written to while it is read", growing),
    "sparse": ("10 GiB sparse file", sparse),
}


def run() -> Table:
    """Read each log in a process of its own and give the table."""
    table = Table(title=f"logs made to break a reader, at {SCALE:g} of their size")
    for column in ("what", "MB", "lines", "MB/s", "peak MiB", "events", "root", "omitted"):
        table.add_column(column, justify="left" if column in ("what", "omitted") else "right")
    descriptions = {name: case.what for name, case in CASES.items()} | {
        name: what for name, (what, _) in FILES.items()
    }
    for name, what in descriptions.items():
        measured = subprocess.run(
            [sys.executable, "-m", "eval.bench.hostile", name], capture_output=True, text=True, check=True
        )
        table.add_row(what, *_shown(HostileResult(*json.loads(measured.stdout))))
    return table


def _shown(reading: HostileResult) -> tuple[str, ...]:
    omitted = "; ".join(f"{key}: {value}" for key, value in reading.omitted.items())
    speed = reading.size / 1e6 / max(reading.seconds, 1e-6)
    return (
        f"{reading.size / 1e6:.0f}",
        f"{reading.lines}",
        f"{speed:.1f}",
        f"{reading.peak_mib:.0f}",
        f"{reading.events}",
        f"L{reading.root}" if reading.root else "",
        omitted,
    )


def read(name: str, reader: Reader, path: Path) -> HostileResult:
    """Generate and read one case; `path` is the file of those cases that need one."""
    made = MadeStream(CASES[name].pieces(max(1, int(CASES[name].units * SCALE)))) if name in CASES else None
    if made is None:
        FILES[name][1](path)
    started = perf_counter()
    report = reader.read(LogSource(name, made) if made else jobs.open_job(path))
    seconds = perf_counter() - started - (made.spent if made else 0.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    root = report.root.line if report.root else 0
    # A hole is read too, but is not counted in the report's bytes.
    size = (
        report.limits.bytes
        if made
        else max(report.limits.bytes, path.stat().st_size if name == "sparse" else 0)
    )
    return HostileResult(
        size, report.limits.lines, seconds, peak, len(report.events), root, dict(report.limits.omitted)
    )


def main(name: str) -> int:
    """Read one case and print its HostileResult as JSON."""
    with tempfile.TemporaryDirectory(prefix="whycrash-hostile-") as folder:
        sys.stdout.write(
            json.dumps(read(name, Reader(log_patterns.load(cache=CACHE), CACHE), Path(folder) / "log.txt"))
            + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
