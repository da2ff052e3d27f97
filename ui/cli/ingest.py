"""`whycrash ingest`: corpus, write-ups and past crashes into the index."""

from __future__ import annotations

from pathlib import Path

from ingest import pipeline
from service.settings import load
from service.triage import Triage
from ui.cli.codes import EXPLAINED
from ui.cli.console import err, out, progress


def run(notes: list[Path], logs: list[Path]) -> int:
    """Ingest, say what was done, and give the exit code."""
    settings = load()
    with progress() as report:
        triage = Triage(settings, report)
        outcome = pipeline.ingest(
            settings.home, triage.embedder, report, notes=notes, logs=logs, reader=triage.reader if logs else None
        )
    for reason in outcome.skipped:
        err().print(f"left out: {reason}", markup=False)
    state = "" if outcome.rebuilt else " The index was up to date."
    out().print(
        f"{outcome.added} files taken in, {outcome.unchanged} unchanged, {outcome.removed} gone; "
        f"{outcome.index.manifest.documents} documents under search.{state}",
        markup=False,
    )
    return EXPLAINED
