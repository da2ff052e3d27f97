"""What to do step by step where the right change is none of a file: look, then act."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.library import Library
from corpus.schema import Language, Procedure
from ingest.logs.conditions import all_hold
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import Diagnosis, ProcedureStep

_VALUE = re.compile(r"\{(?P<fields>(?:\w+\.\w+\|)+)(?P<word>[A-Z_]+)\}")
# What a log says goes into a command only where a shell can make nothing else of it.
_PLAIN = re.compile(r"(?!-)[\w./:@%+,-]{1,200}", re.ASCII)


def procedure_of(answer: Diagnosis, report: CrashReport, library: Library) -> Procedure | None:
    """Give the procedure that fits a diagnosed cause and this log, if any.

    Where a change can be written or pasted, only one that comes before any change.
    """
    if answer.verdict != "diagnosed":
        return None
    view, is_written = report.view(), answer.patch is not None or answer.command is not None
    found = (row for row in library.procedures if row.cause == answer.cause and all_hold(row.when, view))
    return next((row for row in found if row.always or not is_written), None)


def with_steps(answer: Diagnosis, report: CrashReport, library: Library, language: Language) -> Diagnosis:
    """Give the answer with the steps of its procedure, the log's values filled in."""
    row = procedure_of(answer, report, library)
    steps = tuple(_steps(row, report, language)) if row else ()
    return answer.model_copy(update={"steps": steps})


def _steps(row: Procedure, report: CrashReport, language: Language) -> Iterator[ProcedureStep]:
    for look in row.look:
        yield ProcedureStep(run=_filled(look.run, report), why=look.why.to(language))
    act = row.act
    yield ProcedureStep(
        run=_filled(act.run, report), why=act.why.to(language), costs=act.costs.to(language), acts=True
    )


def _filled(command: str, report: CrashReport) -> str:
    return _VALUE.sub(lambda found: _value(report, found["fields"], found["word"]), command)


def _value(report: CrashReport, names: str, word: str) -> str:
    """Give the latest value of the fields; the word for the reader where there is none that is plain."""
    wanted = [tuple(name.split(".")) for name in names.rstrip("|").split("|")]
    told = (
        str(each.fields[field])
        for kind, field in wanted
        for each in reversed(report.facts)
        if each.kind == kind and field in each.fields
    )
    return next((value for value in told if _PLAIN.fullmatch(value)), word)
