"""Milliseconds of one triage in a warm process: reading, retrieval and composition, without loading.

The peer embeds the last lines of the log and searches the same vectors.
"""

from __future__ import annotations

import statistics
from time import perf_counter

from rich.table import Table

from eval import incidents
from eval.baselines import LAST
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.settings import load_settings

# Characters; the logs nearest to this usual size are used.
SIZE = 100_000
LOGS = 40
RUNS = 3
GOAL_MS = 50


def run() -> Table:
    """Measure and give the table."""
    triage = Triage(load_settings())
    chosen = sorted(incidents.load(), key=lambda incident: abs(len(incident.text) - SIZE))[:LOGS]
    triage.diagnose(triage.read(sources.from_text("warm up")))
    each = [incident for incident in chosen for _ in range(RUNS)]
    spent = []
    for incident in each:
        started = perf_counter()
        diagnosis = triage.diagnose(triage.read(incident.source())).first
        spent.append({**diagnosis.timings_ms, "all": 1000 * (perf_counter() - started)})
    plain = []
    for incident in each:
        started = perf_counter()
        triage.retriever.dense("\n".join(incident.lines[-LAST:]))
        plain.append(1000 * (perf_counter() - started))
    sizes = [len(incident.text) / 1000 for incident in chosen]
    table = Table(
        title=(
            f"one triage in a warm process, {LOGS} logs of {min(sizes):.0f} to {max(sizes):.0f} kB (goal "
            f"{GOAL_MS} ms)"
        )
    )
    for column in ("stage", "median ms", "95 of 100 ms"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for stage in ("all", "scan", "retrieve", "compose"):
        _row(table, stage, [item[stage] for item in spent])
    _row(table, "plain: last lines embedded, vectors searched", plain)
    return table


def _row(table: Table, name: str, values: list[float]) -> None:
    table.add_row(name, f"{statistics.median(values):.1f}", f"{statistics.quantiles(values, n=20)[-1]:.1f}")
