"""Changes for which nothing speaks but the cause: of some kinds so few were right that they are guesses.

How many were right was counted over labelled incidents and public logs answered at first sight, and stands in
a file that `python -m eval.guess_odds` writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from corpus.library import Library
from corpus.schema import ChangeKind, Record
from service.remediation.ranking import LAST_RESORTS
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange, Standing

FILE = Path(__file__).parent / "guess_odds.json"
# Below this a change is more often wrong than a reader who follows it should bear.
LEAST_ODDS = 0.4
# More time for what does not come: it cures only where somebody is slow, and hides what ails the others.
_WAITS = re.compile(r"(?i)time_?-?out|health_check|heartbeat|retry|retries|_wait(?![a-z])|grace_?period")

# A call of a library, written out as what is to be done.
_CALL = re.compile(r"^[\w.]+\(")


class GuessCount(Record):
    """How many changes of a kind were right, of so many that the cause alone called for.

    `kind` is a change's own, `wait` for a limit of time, `argument` for what a library's class takes in code,
    or `behind` for one that stands behind another cure, `behind-words` where it says no value; `stated` tells
    that the log states the cause.
    """

    kind: str
    stated: bool
    right: int
    of: int


class GuessOdds(Record):
    """The counts of all kinds."""

    rows: tuple[GuessCount, ...]

    def odds(self, kind: str, *, stated: bool) -> float:
        """Give the chance that such a change is right; even where none was counted (Laplace's rule)."""
        found = [row for row in self.rows if (row.kind, row.stated) == (kind, stated)]
        return (sum(row.right for row in found) + 1) / (sum(row.of for row in found) + 2)


@cache
def shipped() -> GuessOdds:
    """Load the counts, once a process."""
    return GuessOdds.model_validate_json(FILE.read_bytes())


def kind_of_guess(
    framework: str, key: str, kind: ChangeKind, library: Library, to: object = "", *, is_behind: bool = False
) -> str:
    """Name the kind by which a change is counted; `is_behind` tells that another cure stands before it."""
    if _WAITS.search(key):
        return "wait"
    if is_behind:
        return "behind-words" if is_guidance(to) else "behind"
    spec = library.setting(framework, key) if kind in ("setting", "flag") else None
    is_in_code = spec.spelled == "python" if spec is not None else kind == "command" and _CALL.search(key)
    return "argument" if is_in_code else kind


def is_advised(change: ProposedChange) -> bool:
    """Tell whether a change is to mend the job and more than a guess."""
    return change.purpose == "cure" and not change.guess


def with_guesses(
    changes: Sequence[ProposedChange], standing: Standing, library: Library, odds: GuessOdds | None = None
) -> tuple[ProposedChange, ...]:
    """Mark what only the cause calls for where the like was seldom right, and put it behind the other cures.

    So are last resorts, and what must follow a guess.
    """
    table, stated = odds or shipped(), standing == "established"
    marked: list[ProposedChange] = []
    has_cure = follows = False
    for change in changes:
        if change.goes_with is None:
            kind = kind_of_guess(
                change.framework, change.key, change.kind, library, change.to, is_behind=has_cure
            )
            is_seldom = change.tier >= LAST_RESORTS or table.odds(kind, stated=stated) < LEAST_ODDS
            follows = change.is_bare and change.purpose == "cure" and is_seldom
            has_cure = has_cure or (change.purpose == "cure" and not follows)
        marked.append(change.model_copy(update={"guess": True}) if follows else change)
    return tuple(sorted(marked, key=lambda change: (change.purpose == "find-out", change.guess)))
