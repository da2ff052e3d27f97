"""Commands that a failing message itself gives as its remedy, where they are of a form that does no harm."""

from __future__ import annotations

import re
from functools import cache

from corpus import advice_words
from ingest.logs.report import CrashReport
from service.llm.claims import Proposal

KIND = "command"
# The longest command that is passed on.
LONGEST = 80


@cache
def _harmless() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{form})" for form in advice_words.load().commands))


def printed_command(pick: Proposal, report: CrashReport) -> str:
    """Give the command that a proposal means, where a line that failed prints it; else the empty string.

    A log's author may print any: only forms that our knowledge lists are passed on.
    """
    if pick.kind.strip().lower() != KIND:
        return ""
    printed = [" ".join(f"{event.text} {' '.join(event.rest)}".split()) for event in report.standing]
    said = (" ".join(text.split()).strip("`$ ") for text in (f"{pick.key} {pick.to}", pick.key, pick.to))
    for command in said:
        is_short = 0 < len(command) <= LONGEST and _harmless().fullmatch(command) is not None
        stands = re.compile(rf"(?<![\w./-]){re.escape(command)}(?![\w/-])")
        if is_short and any(map(stands.search, printed)):
            return command
    return ""
