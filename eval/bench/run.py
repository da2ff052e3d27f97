"""Overhead of `whycrash run`: a job that prints 100 MB against the same command alone, in pairs.

Also the processor time of the telemetry sampler beside a job.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, sleep

from rich.table import Table

PAIRS = 11
GOAL = 0.03
# Goal for the sampler's share of a core; seconds over which it is measured; seconds between two samples (the
# command's default).
SHARE, SAMPLED, EVERY = 0.01, 120.0, 15.0
# Seconds after which it has loaded and taken its first sample.
_LOADED = 12.0
# 100 MB as a trainer prints them: line by line, with some work between the lines.
JOB = """
import sys
work = 0
for number in range(1_000_000):
    work += sum(range(30))
    row = f"step {number} loss 0.123456 grad_norm 1.234567 lr 1e-06 tokens_per_second 12345.6 memory 71.2 GiB"
    sys.stdout.write(row[:99].ljust(99, ".") + "\\n")
"""


def run() -> Table:
    """Measure and give the table."""
    bare = [sys.executable, "-c", JOB]
    watched = [sys.executable, "-m", "ui.cli.main", "run", "--", *bare]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        pairs = [(_seconds(bare, out), _seconds(watched, out)) for _ in range(PAIRS)]
    table = Table(
        title=(
            f"a job that prints 100 MB, {PAIRS} pairs (goals: at most {GOAL:.0%} longer; sampling "
            f"{SHARE:.0%} of a core)"
        )
    )
    for column in ("", "median s", "least s", "most s"):
        table.add_column(column, justify="left" if not column else "right")
    for name, values in (
        ("bare", [one for one, _ in pairs]),
        ("whycrash run", [other for _, other in pairs]),
    ):
        table.add_row(name, f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{max(values):.2f}")
    ratios = [other / one - 1 for one, other in pairs]
    table.add_row("longer by", f"{statistics.median(ratios):.1%}", f"{min(ratios):.1%}", f"{max(ratios):.1%}")
    begun, after = _sampling()
    table.add_row(f"sampler, of a core, over {SAMPLED:.0f} s", f"{(begun + after) / SAMPLED:.2%}", "", "")
    table.add_row("of that, once it has begun", f"{after / (SAMPLED - _LOADED):.2%}", "", "")
    return table


def _sampling() -> tuple[float, float]:
    """Give the processor seconds of the sampler up to _LOADED, and from there to SAMPLED."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "ui.cli.main",
            "snapshot",
            "--watch",
            f"{EVERY:g}",
            "--out",
            f"{folder}/snapshot.json",
        ]
        sampler = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            sleep(_LOADED)
            begun = _spent(sampler.pid)
            sleep(SAMPLED - _LOADED)
            return begun, _spent(sampler.pid) - begun
        finally:
            sampler.terminate()
            sampler.wait()


def _spent(process: int) -> float:
    """Give the processor seconds of a process and of its descendants, ended ones included."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    # utime, stime and the two of ended children stand 14th to 17th:
    # https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    ticks = sum(
        map(int, Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:15])
    )
    return ticks / os.sysconf("SC_CLK_TCK") + sum(_spent(int(child)) for child in children)


def _seconds(command: Sequence[str], out: Path) -> float:
    started = perf_counter()
    with out.open("wb") as stream:
        subprocess.run(
            command, stdout=stream, check=True, env={**os.environ, "WHYCRASH_EMBEDDING_MODEL": "hash"}
        )
    return perf_counter() - started
