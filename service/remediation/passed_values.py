"""Values that a job's own program passes to the one that failed, where its code has a default: a sweep.

`for batch in (16, 64): run(f"train.py --batch_size {batch}")` decides what ran. What the script's code falls
back to was never in force, so that a change of it would change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.keys import canonical, last_level, pattern
from corpus.message import words
from corpus.schema import Language
from ingest.configfiles.formats import CODE
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.remediation.setting_values import number_of
from service.schemas.diagnosis import ProposedChange

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
# A shorter variable begins many names that are not of its list.
LEAST_NAME = 3
_VALUES = rf"[\[(]\s*(?P<values>{_NUMBER}(?:\s*,\s*{_NUMBER})*)\s*,?\s*[\])]"


@dataclass(frozen=True)
class PassedValue:
    """Where a program passes an option: its file and row, the values that it goes through, and the run's.

    `ran` is empty where nothing tells which of several it was.
    """

    file: str
    line: int
    values: tuple[str, ...]
    ran: str = ""


def tell_passed(
    changes: Sequence[ProposedChange], report: CrashReport, settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of each change of a default in code which program of the job's passes another value."""
    made = []
    for change in changes:
        found = next(_passing(change, report), None) if _is_default(change, settings) else None
        if found is None:
            made.append(change)
            continue
        told = {"file": found.file, "line": found.line, "values": ", ".join(found.values)}
        now, new = number_of(str(change.from_), "float"), number_of(str(change.to), "float")
        is_lower = now is None or new is None or new < now
        # Of several values, the farthest that is asked for is the one that fails.
        numbers = sorted(found.values, key=float)
        bound = found.ran or (numbers[-1] if is_lower else numbers[0])
        to = words("changes.below" if is_lower else "changes.above", language, now=bound)
        why = words("changes.passed", language, **told)
        made.append(
            change.model_copy(
                update={
                    "from_": found.ran or None,
                    "to": to,
                    "why": why,
                    "proof": None,
                    "status": "unverified",
                }
            )
        )
    return made


def _is_default(change: ProposedChange, settings: Sequence[Setting]) -> bool:
    """Tell whether all that the job's files say of a setting of its own is what code falls back to."""
    alike = [item for item in settings if last_level(item.key) == last_level(canonical(change.key))]
    is_own = change.framework == "python" and change.kind in ("setting", "flag") and change.from_ is not None
    return is_own and bool(alike) and all(item.spelled == "dump" and item.file for item in alike)


def _passing(change: ProposedChange, report: CrashReport) -> Iterator[PassedValue]:
    leaf = pattern(last_level(canonical(change.key)))
    passes = re.compile(
        rf"--{leaf}(?:[ =]\{{(?P<field>\w+)[^}}]*\}}"
        rf"|['\"],\s*(?:f?['\"]\{{|str\(|repr\()?(?P<argument>\w+)(?!\w|\s*=))"
    )
    for text in report.launches:
        body, _, name = text.rpartition("\n")
        match = passes.search(body) if name.endswith(CODE) else None
        if match is None:
            continue
        variable = match["field"] or match["argument"]
        # The loop's own list, or one that is named after its variable: `batch_sizes` for `batch_size`.
        named = (
            rf"|{variable}(?:s|es|_?(?:sizes|values|list|grid))\s*=" if len(variable) >= LEAST_NAME else ""
        )
        lists = re.compile(rf"(?m)^[^#\n]{{0,200}}?\b(?:for {variable} in{named})\s*{_VALUES}")
        if listed := lists.search(body):
            values = tuple(part.strip() for part in listed["values"].split(","))
            line = body.count("\n", 0, listed.start("values")) + 1
            yield PassedValue(name.rpartition("/")[2], line, values, _that_ran(variable, values, report))


def _that_ran(variable: str, values: Sequence[str], report: CrashReport) -> str:
    """Give the one value that the log's own name or a printed setting tells."""
    if len(values) == 1:
        return values[0]
    name = re.sub(r"[\s_-]", "", report.source.lower())
    number = re.search(rf"{re.escape(variable.lower().replace('_', ''))}=?(\d+)", name)
    printed = [item.value for item in report.settings if last_level(item.key) == last_level(variable)]
    told = {value for value in (number[1] if number else "", *printed) if value in values}
    return told.pop() if len(told) == 1 else ""
