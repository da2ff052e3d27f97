"""The parts of a job, and which calls belong to each: rows of `phases.yaml`."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus import library
from corpus.expressions import compiled
from corpus.schema import Expression, Record, Text

FILE = "phases.yaml"


class Phase(Record):
    """A part of a job. `calls` is searched in a call and its source line.

    `turn` is matched against the functions that are a turn of the job's loop, whatever objects are made
    within it. `names` finds the word by which anybody's settings, functions and files say that they are for
    this phase (`val_batch_size`, `evaluate`). A phase that `passes` is over when the next step is counted;
    those within a step come again. The `first` one comes before any step is counted. One that `sets_up` is as
    a rule what a program does that was just started.
    """

    name: str
    title: Text
    calls: Expression
    turn: Expression = ""
    names: Expression = ""
    passes: bool = False
    first: bool = False
    sets_up: bool = False


class PhaseTable(Record):
    """All phases; of the calls of a traceback, the first row that tells one counts."""

    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]

    @cached_property
    def by_name(self) -> dict[str, Phase]:
        """Each phase under its name."""
        return {phase.name: phase for phase in self.phases}

    def of_call(self, text: str) -> Phase | None:
        """Give the phase that a call belongs to."""
        return next((phase for phase in self.phases if compiled(phase.calls).search(text)), None)

    def of_name(self, name: str) -> Phase | None:
        """Give the phase that a name says it is for, by the last of its words that is one's."""
        found = [
            (match.start(), phase)
            for phase in self.phases
            if phase.names
            for match in compiled(phase.names).finditer(name)
        ]
        return max(found, key=lambda item: item[0])[1] if found else None

    def of_turn(self, function: str) -> Phase | None:
        """Give the phase that a function is a turn of."""
        turning = (phase for phase in self.phases if phase.turn)
        return next((phase for phase in turning if compiled(phase.turn).match(function)), None)


def load(*folders: Path) -> PhaseTable:
    """Load the phases of each folder of knowledge; raises InvalidCorpusError naming the field that is wrong.

    What a later folder adds counts before the phases of the earlier ones.
    """
    return _loaded(folders or library.roots())


@cache
def _loaded(folders: tuple[Path, ...]) -> PhaseTable:
    rows: tuple[Phase, ...] = ()
    for folder in folders:
        if (path := folder / FILE).exists():
            table = library.validated_table(PhaseTable, {"phases": library.read_yaml(path)}, path)
            rows = (*table.phases, *rows)
    return PhaseTable(phases=rows)
