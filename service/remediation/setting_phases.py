"""Which phase of a job a setting is for, as its name says, and which one the failing calls name."""

from __future__ import annotations

from pathlib import PurePosixPath

from corpus import phases
from corpus.keys import canonical
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own

# The phase that a failure is taken for whose calls name none.
_USUAL = "update"


def failing_phase(report: CrashReport) -> str:
    """Name the phase that the innermost call of the root names: by its function, else by its own file."""
    table = phases.load()
    frames = report.root.frames if report.root is not None else ()
    functions = [frame.function for frame in reversed(frames)]
    files = [PurePosixPath(frame.file).stem for frame in reversed(frames) if is_own(frame)]
    named = (table.of_name(canonical(name)) for name in (*functions, *files))
    return next((phase.name for phase in named if phase is not None), _USUAL)


def phase_of(key: str) -> str:
    """Name the phase that a setting says it is for; the empty string where it is for all of them."""
    found = phases.load().of_name(canonical(key))
    return found.name if found is not None else ""
