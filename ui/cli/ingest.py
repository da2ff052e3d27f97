"""`whycrash ingest`: corpus, write-ups and past crashes into the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ingest import bulk_ingest, pipeline
from service.api.keys import checked_team
from service.pipeline.triage import Report, Triage
from ui.cli.codes import EXPLAINED
from ui.cli.console import PlainSteps, err, load_settings, out, progress

# Files that are told one by one why they were left out.
MOST_TOLD = 20


def run(notes: list[Path], logs: list[Path], team: str | None = None) -> int:
    """Ingest, say what was done, and give the exit code."""
    checked_team(team or "")
    settings = load_settings()
    with progress() as building, _reading(building) as report:
        triage = Triage(settings, building)
        outcome = pipeline.ingest(
            settings.home,
            triage.embedder,
            report,
            notes=notes,
            logs=logs,
            reader=triage.reader if logs else None,
            places=triage.index_places,
            team=team,
        )
    for reason in outcome.skipped[:MOST_TOLD]:
        err().print(f"left out: {reason}", markup=False)
    if len(outcome.skipped) > MOST_TOLD:
        err().print(f"left out: {len(outcome.skipped) - MOST_TOLD} more", markup=False)
    if outcome.index.note:
        err().print(outcome.index.note, markup=False)
    state = "" if outcome.rebuilt else " The index was up to date."
    out().print(
        f"{outcome.added} files taken in, {outcome.unchanged} unchanged, {outcome.removed} gone; "
        f"{outcome.index.manifest.documents} documents under search.{state}",
        markup=False,
    )
    return EXPLAINED


@contextmanager
def _reading(building: Report) -> Iterator[Report]:
    """Show how many logs are read in one bar, with crashes found, MB a second and the time left.

    Pass on the rest.

    Where no bar can be drawn, lines tell the same.
    """
    columns = (
        TextColumn("reading files"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=err(), transient=True)
    steps = None if err().is_terminal else PlainSteps()
    tasks: list[TaskID] = []
    counts = {"crashes": 0, "megabytes": 0}
    began: dict[str, float] = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage in counts:
            # What an earlier run had read says nothing of this one's speed.
            began.setdefault("time", monotonic())
            began.setdefault("megabytes", float(done))
            counts[stage] = done
        elif stage == "files" and total >= bulk_ingest.FROM and steps:
            steps(stage, done, total, f", {_speed(counts, began).rstrip(',')}")
        elif stage == "files" and total >= bulk_ingest.FROM:
            if not tasks:
                bars.start()
                tasks.append(bars.add_task("", total=total))
            bars.update(tasks[0], completed=done, description=_speed(counts, began))
            if done == total:
                bars.stop()  # two live displays at once there cannot be
        else:
            building(stage, done, total)

    try:
        yield report
    finally:
        if tasks and not bars.finished:
            bars.stop()


def _speed(counts: dict[str, int], began: dict[str, float]) -> str:
    spent = monotonic() - began.get("time", monotonic())
    rate = (counts["megabytes"] - began.get("megabytes", 0.0)) / spent if spent else 0.0
    return f"{counts['crashes']} crashes, {rate:.0f} MB/s,"
