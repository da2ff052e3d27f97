"""What a cause is, and what tells it apart: for a model that asks before it names one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corpus.library import Library
from corpus.message import words
from corpus.schema import Language
from service.llm.prompts.instructions import INSTRUCTIONS

# The name under which the ids of all causes are listed.
ALL = "all"


def describe_cause(
    name: str, library: Library, language: Language, holds: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Define a cause, or what is named in the place of one; `holds` tells which conditions the job meets.

    The name ALL gives the ids of all by their area. Empty where there is no such cause.
    """
    if name == ALL:
        areas = dict.fromkeys(cause.category for cause in library.causes.values())
        return tuple(
            f"{area}: {', '.join(each.id for each in library.causes.values() if each.category == area)}"
            for area in areas
        )
    cause = library.causes.get(name)
    if cause is None:
        no_causes = INSTRUCTIONS[language].no_causes
        return (no_causes[name],) if name in no_causes else ()
    rows = [f"{cause.id}: {cause.title.to(language)}. {cause.means.to(language)}"]
    rows.append(cause.advice.to(language, holds))
    rows += [
        words("tools.two-causes", language, one=cause.id, other=other.cause, apart=other.to(language))
        for other in cause.confused_with
    ]
    rows += [
        words("tools.to-confirm", language, check=check.to(language))
        for check in cause.checks
        if holds(check.when)
    ]
    return tuple(rows)
