"""Settings that still hold a path of an example, `/path/to/train.csv`: all of them are the user's to give.

The run stops at the first; the next start would stop at the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

from corpus.keys import canonical, flag, last_level
from corpus.message import joined, words
from corpus.schema import Language
from corpus.stand_ins import is_stand_in
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

# So many settings are named in one sentence, those that are changes of their own included.
MOST_NAMED = 5


def with_example_paths(
    changes: Sequence[ProposedChange], report: CrashReport, settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of a setting that it holds an example's path, and add the others that hold one behind it."""
    held = [item for item in (*settings, *report.settings) if is_stand_in(item.value)]
    at = next(
        (
            number
            for number, change in enumerate(changes)
            if is_guidance(change.to) and is_stand_in(str(change.from_ or ""))
        ),
        None,
    )
    if at is None:
        return list(changes)
    first = changes[at]
    why = words("changes.example-path", language, value=str(first.from_))
    offered = {canonical(last_level(change.key)) for change in changes}
    others: dict[str, ProposedChange] = {}
    for item in held:
        key = canonical(last_level(item.key))
        if key in offered or key in others or item.spelled == "env":
            continue
        spelled = flag(item.key) if first.key.startswith("--") else item.key
        told = words("changes.example-path-too", language, value=item.value)
        others[key] = first.model_copy(update={"key": spelled, "from_": item.value, "why": told})
    told_first = first.model_copy(update={"why": joined(first.why, why, language)})
    return [*changes[:at], told_first, *list(others.values())[:MOST_NAMED], *changes[at + 1 :]]
