"""Where a setting stands whose change is told in words: no patch shows its row."""

from __future__ import annotations

from collections.abc import Sequence

from corpus.keys import canonical
from corpus.message import joined, words
from corpus.schema import Language
from ingest.configfiles.notebook import ENDING
from ingest.configfiles.settings import Setting
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

# A setting that more rows give is each one's own.
MOST_ROWS = 2


def tell_set_places(
    changes: Sequence[ProposedChange], settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of each change in words at which row of the job's files the value stands that it changes."""
    return [_told(change, settings, language) for change in changes]


def _told(change: ProposedChange, settings: Sequence[Setting], language: Language) -> ProposedChange:
    is_set = change.kind in ("setting", "flag", "env") and change.from_ is not None
    if not is_set or not is_guidance(change.to):
        return change
    wanted, now = canonical(change.key), str(change.from_).strip("'\"")
    rows = {
        f"{setting.file.replace(chr(92), '/').rpartition('/')[2]}:{setting.row}": None
        for setting in settings
        if setting.row and not setting.file.endswith(ENDING)
        if canonical(setting.key) == wanted and setting.value.strip("'\"") == now
    }
    if not 0 < len(rows) <= MOST_ROWS or any(place in change.why for place in rows):
        return change
    told = words("changes.set-at", language, key=change.key, places=", ".join(rows))
    return change.model_copy(update={"why": joined(change.why, told, language)})
