"""From where a dead job can go on: its last whole checkpoint, and how its framework takes it up."""

from __future__ import annotations

from corpus.frameworks import known_frameworks
from ingest.logs.checkpoints import Checkpoint
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import Resumption


def resumption_of(report: CrashReport) -> Resumption | None:
    """Give the last whole checkpoint that a job's log tells of; None where it tells of none."""
    made = report.checkpoint
    if made is None:
        return None
    place, reached = report.place(made.line), report.last_step
    is_counted = made.step is not None and reached is not None and reached >= made.step
    framework = _framework(report, made)
    how = known_frameworks().row(framework).resume
    if not made.path and "{" in how:
        how = ""
    return Resumption(
        checkpoint=made.path,
        line=place.line,
        file=place.file or None,
        step=made.step,
        lost=int(reached) - made.step
        if is_counted and reached is not None and made.step is not None
        else None,
        framework=framework,
        how=how.format(path=made.path, name=made.path.rstrip("/").rpartition("/")[2]),
    )


def _framework(report: CrashReport, made: Checkpoint) -> str:
    """Name the job's framework that goes on from such a checkpoint, the more special one first."""
    table, seen = known_frameworks(), {found.name for found in report.frameworks}
    writers = [
        row.id
        for row in table.rows.values()
        if row.resume and not {row.id, *row.drives, *row.extends}.isdisjoint(made.frameworks)
    ]
    # A line that one framework alone writes shows it by itself.
    alone = made.frameworks[0] if len(made.frameworks) == 1 else ""
    return next((name for name in writers if name in seen), alone if alone in writers else "")
