"""What to do step by step where the right change is none of a file: look, then act."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.library import Library
from corpus.schema import Language, Procedure
from ingest.logs.conditions import all_hold
from ingest.logs.report import CrashReport
from service.composition.blanks import LogValues, with_notes
from service.composition.message_forms import formed_message
from service.schemas.diagnosis import Diagnosis, ProcedureStep

_VALUE = re.compile(r"\{(?P<fields>(?:\w+\.\w+\|)+)(?P<word>[A-Z_]+)\}")


def procedure_of(answer: Diagnosis, report: CrashReport, library: Library) -> Procedure | None:
    """Give the procedure that fits a diagnosed cause and this log, if any.

    Where a change can be written or pasted, only one that comes before any change.
    """
    if answer.verdict != "diagnosed":
        return None
    view, is_written = report.view(), answer.patch is not None or answer.command is not None
    found = (
        row
        for row in library.procedures
        if row.cause == answer.cause
        and all_hold(row.when, view)
        and all(view.can_run(step.run) for step in (*row.look, row.act))
    )
    return next((row for row in found if row.always or not is_written), None)


def with_steps(answer: Diagnosis, report: CrashReport, library: Library, language: Language) -> Diagnosis:
    """Give the answer with the steps of its procedure, the log's values filled in."""
    row = procedure_of(answer, report, library)
    cause = library.causes.get(answer.cause or "")
    message = formed_message(report, cause, library) if row and cause else None
    steps = tuple(_steps(row, LogValues(report, library, message), language)) if row else ()
    return answer.model_copy(update={"steps": steps})


def _steps(row: Procedure, known: LogValues, language: Language) -> Iterator[ProcedureStep]:
    told: set[str] = set()
    for look in row.look:
        run, notes = known.filled(_filled(look.run, known), language)
        why = with_notes(look.why.to(language), "" if notes in told else notes, language)
        told.add(notes)
        yield ProcedureStep(run=run, why=why)
    # What acts takes no value but those that its row names.
    act = row.act
    run = _filled(act.run, known)
    yield ProcedureStep(run=run, why=act.why.to(language), costs=act.costs.to(language), acts=True)


def _filled(command: str, known: LogValues) -> str:
    """Fill in the values that a command names; where there is none that is plain, the word for the reader."""

    def fill(found: re.Match[str]) -> str:
        told = (known.value(name) for name in found["fields"].rstrip("|").split("|"))
        return next((value for value in told if value), found["word"])

    return _VALUE.sub(fill, command)
