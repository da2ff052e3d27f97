"""What `whycrash run` costs a job that prints 100 MB, against the bare command, in pairs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from rich.table import Table

PAIRS = 11
GOAL = 0.03
# 100 MB as a trainer prints them: line by line, with some work between the lines.
JOB = """
import sys
work = 0
for number in range(1_000_000):
    work += sum(range(30))
    sys.stdout.write(f"step {number} loss 0.123456 grad_norm 1.234567 lr 1e-06 tokens_per_second 12345.6 memory 71.2 GiB elapsed {number:08d} s\\n"[:100].ljust(99, ".")[:99] + "\\n")
"""


def run() -> Table:
    """Measure and give the table."""
    bare = [sys.executable, "-c", JOB]
    watched = [sys.executable, "-m", "ui.cli.main", "run", "--", *bare]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        pairs = [(_seconds(bare, out), _seconds(watched, out)) for _ in range(PAIRS)]
    table = Table(title=f"a job that prints 100 MB, {PAIRS} pairs (goal: at most {GOAL:.0%} longer)")
    for column in ("", "median s", "least s", "most s"):
        table.add_column(column, justify="left" if not column else "right")
    for name, values in (("bare", [one for one, _ in pairs]), ("whycrash run", [other for _, other in pairs])):
        table.add_row(name, f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{max(values):.2f}")
    ratios = [other / one - 1 for one, other in pairs]
    table.add_row("longer by", f"{statistics.median(ratios):.1%}", f"{min(ratios):.1%}", f"{max(ratios):.1%}")
    return table


def _seconds(command: Sequence[str], out: Path) -> float:
    started = perf_counter()
    with out.open("wb") as stream:
        subprocess.run(command, stdout=stream, check=True, env={**os.environ, "WHYCRASH_EMBEDDING_MODEL": "hash"})
    return perf_counter() - started
