"""Where the job's own code sets a value anew, so that what is given from outside does not count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.keys import last_level, pattern
from corpus.message import joined, words
from corpus.paths import base_name
from corpus.schema import Language
from ingest.configfiles.formats import CODE
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of
from service.schemas.diagnosis import ProposedChange

# What holds a program's options in its code.
_HOLDER = r"\b(?:\w{0,20}args|cfg|config|conf|opts?|options|hparams|flags|FLAGS)(?:\.\w+)*?"
# What a row gives: an option, as it stands or as text.
_FROM_OPTION = re.compile(rf"=\s*(?:str\(\s*)?{_HOLDER}\.(?P<name>\w+)\s*\)?$")
LONGEST = 100
_PROGRAM = re.compile(r"if\s*\(?\s*(?:__name__\s*==\s*['\"]__main__|['\"]__main__['\"]\s*==\s*__name__)")
_SCRIPT = re.compile(r"[\w.-]+\.py\b")


def tell_overwritten(
    changes: Sequence[ProposedChange],
    report: CrashReport,
    language: Language,
    settings: Sequence[Setting] = (),
) -> list[ProposedChange]:
    """Say of each change of a variable or an option of a script which row of its code sets that anew.

    Where the code gives a variable what one of its own options holds, that option is the one to change.
    """
    found: list[ProposedChange] = []
    for change in changes:
        place = overwriting_row(change, report)
        if place is not None:
            why = words("changes.overwritten", language, place=place[0], row=place[1])
            change = change.model_copy(update={"why": joined(change.why, why, language)})
            option = _FROM_OPTION.search(place[1]) if change.kind == "env" else None
            if option is not None and value_of(option["name"], settings) is not None:
                own = {"framework": "python", "kind": "flag", "key": f"--{option['name']}"}
                now = value_of(option["name"], settings)
                change = change.model_copy(update={**own, "from_": now, "status": "unverified"})
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
        read = _rows_run(rows, name, report) if name.endswith(CODE) else ()
        for number, row in read:
            match = assigns.match(row)
            if match is not None and not reads.search(match["value"]):
                return f"{name.rpartition('/')[2]}:{number}", row.strip()[:LONGEST].replace("`", "'")
    return None


def _rows_run(rows: Sequence[str], name: str, report: CrashReport) -> Iterator[tuple[int, str]]:
    """Give the rows of a module with their numbers, without what only runs where it is the program itself."""
    leaf = name.rpartition("/")[2]
    frames = [frame for event in report.events for frame in event.frames if frame.function == "<module>"]
    programs = {base_name(frame.file) for frame in frames}
    programs |= set(_SCRIPT.findall(report.command[1]))
    is_module = bool(programs) and leaf not in programs
    within = False
    for number, row in enumerate(rows, 1):
        if row[:1].strip():
            within = is_module and _PROGRAM.match(row) is not None
        if not within:
            yield number, row
