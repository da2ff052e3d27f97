"""Which phase of a job a setting is for, as its name says, and which one the failing calls name."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from corpus import phases
from corpus.keys import canonical
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own

# What a program's own handler says before the message of what it caught.
_SAID = re.compile(
    r"(?:[^\n]{0,80} - )?(?:ERROR|CRITICAL|WARNING)?[ :-]{0,4}"
    r"(?P<what>[A-Za-z][A-Za-z -]{2,40}?) (?:failed|error|crashed)(?: with[ \w]{0,20})?:"
)
# The phase that a failure is taken for whose calls name none.
_USUAL = "update"


def failing_phase(report: CrashReport) -> str:
    """Name the phase that the innermost call of the root names: by its function, else by its own file."""
    table = phases.load()
    frames = report.root.frames if report.root is not None else ()
    functions = [frame.function for frame in reversed(frames)]
    files = [PurePosixPath(frame.file).stem for frame in reversed(frames) if is_own(frame)]
    # Without calls the words that a program puts before the message tell what it did.
    said = _SAID.match(report.root.body) if report.root is not None and not frames else None
    words = [said["what"].lower().replace(" ", "_")] if said else []
    # A loop that does both (`train_and_evaluate`) is mostly in its first part.
    names = (canonical(name).partition("_and_")[0] for name in (*functions, *files, *words))
    named = map(table.of_name, names)
    return next((phase.name for phase in named if phase is not None), _USUAL)


def phase_of(key: str) -> str:
    """Name the phase that a setting says it is for; the empty string where it is for all of them."""
    found = phases.load().of_name(canonical(key))
    return found.name if found is not None else ""
