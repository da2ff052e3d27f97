"""Lines above a failure that give a value to what its statement or its message names, or tell of it."""

from __future__ import annotations

import re

from ingest.logs.report import CrashReport
from service.llm.deadline import Deadline
from service.llm.log_view import LogView, Reopen

# Names that are looked for, lines that are kept, and how long a large log is read for them.
MOST_NAMES, MOST, SECONDS = 4, 6, 2.0
# Of what a message quotes, lines that are kept of each and in all.
OF_QUOTED, MOST_QUOTED = 2, 3
# What a message quotes that is a name: of a file, a key, a module, and no word of the sentence.
_QUOTED = re.compile(r"['\"`](?=[^'\"`\s]*[._/:\d-])([\w./:@+-]{4,120})['\"`]")
# A name of code that prose does not hold: of several words.
_NAME = re.compile(r"(?<![\w.])[A-Za-z]\w*_\w+(?![\w(])")


def _names(report: CrashReport) -> list[str]:
    root = report.root
    if root is None:
        return []
    code = root.frames[-1].code if root.frames else ""
    return list(dict.fromkeys(_NAME.findall(f"{code} {root.body}")))[:MOST_NAMES]


def named_values(report: CrashReport) -> re.Pattern[str] | None:
    """Give what finds a line with a value of a variable or option that the root names; None without one."""
    names = _names(report)
    spelled = "|".join(map(re.escape, names))
    return re.compile(rf"(?<![\w.])(?:{spelled})['\"]?\s*[:=](?!=)\s*\S") if names else None


def deciding_lines(report: CrashReport, reopen: Reopen | None) -> dict[int, str]:
    """Give the last such lines above the failure by their numbers, from the log where it is at hand."""
    needle, root = named_values(report), report.root
    if needle is None or root is None:
        return {}
    view = LogView(report, reopen, Deadline(SECONDS))
    found = view.search(
        [[name] for name in _names(report)], (1, max(1, (root.traceback or root.line) - 1))
    ).rows
    fitting = {number: text for number, text in found.items() if needle.search(text)}
    return dict(sorted(fitting.items())[-MOST:])


def quoting_lines(report: CrashReport, reopen: Reopen | None) -> dict[int, str]:
    """Give the last lines above the failure that hold what its message quotes, by their numbers."""
    root = report.root
    if root is None:
        return {}
    view = LogView(report, reopen, Deadline(SECONDS))
    span = (1, max(1, (root.traceback or root.line) - 1))
    found: dict[int, str] = {}
    for name in list(dict.fromkeys(_QUOTED.findall(root.body)))[:MOST_NAMES]:
        rows = view.search([[name]], span).rows
        found |= {number: rows[number] for number in sorted(rows)[-OF_QUOTED:]}
    return dict(sorted(found.items())[-MOST_QUOTED:])
