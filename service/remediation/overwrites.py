"""Where the job's own code sets a value anew, so that what is given from outside does not count."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.keys import last_level, pattern
from corpus.message import words
from corpus.schema import Language
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import ProposedChange

# What holds a program's options in its code.
_HOLDER = r"\b(?:\w{0,20}args|cfg|config|conf|opts?|options|hparams|flags|FLAGS)(?:\.\w+)*"
LONGEST = 100


def tell_overwritten(
    changes: Sequence[ProposedChange], report: CrashReport, language: Language
) -> list[ProposedChange]:
    """Say of each change of a variable or an option of a script which row of its code sets that anew."""
    found = []
    for change in changes:
        place = overwriting_row(change, report)
        if place is not None:
            why = words("changes.overwritten", language, place=place[0], row=place[1])
            change = change.model_copy(update={"why": f"{change.why} {why}".strip()})
        found.append(change)
    return found


def overwriting_row(change: ProposedChange, report: CrashReport) -> tuple[str, str] | None:
    """Give file and line, and the row, that assigns a change's variable or option; None where none does.

    A row that reads what was given, such as one that takes the greater of two, only works on it.
    """
    if change.kind == "env":
        target = rf"environ\[['\"]{re.escape(change.key)}['\"]\]"
    elif change.framework == "python" and change.kind in ("flag", "setting"):
        leaf = pattern(last_level(change.key))
        target = rf"{_HOLDER}(?:\.{leaf}|\[['\"]{leaf}['\"]\])"
    else:
        return None
    assigns = re.compile(rf"^\s*(?:\w+\.)*{target}\s*=(?!=)\s*(?P<value>.+)$")
    reads = re.compile(rf"(?<![\w]){pattern(last_level(change.key))}(?![\w])")
    for text in report.launches:
        *rows, name = text.split("\n")
        for number, row in enumerate(rows if name.endswith(".py") else (), 1):
            match = assigns.match(row)
            if match is not None and not reads.search(match["value"]):
                return f"{name.rpartition('/')[2]}:{number}", row.strip()[:LONGEST].replace("`", "'")
    return None
