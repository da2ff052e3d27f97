"""What a cause is, and what tells it apart: for a model that asks before it names one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corpus.library import Library
from corpus.schema import Language
from service.llm.prompts.instructions import NO_CAUSES


def describe_cause(
    name: str, library: Library, language: Language, holds: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Define a cause, or what is named in the place of one; `holds` tells which conditions the job meets.

    Empty where there is no such cause.
    """
    cause = library.causes.get(name)
    if cause is None:
        return (NO_CAUSES[name],) if name in NO_CAUSES else ()
    rows = [f"{cause.id}: {cause.title.to(language)}. {cause.means.to(language)}"]
    rows.append(cause.advice.to(language, holds))
    rows += [f"{cause.id} or {other.cause}: {other.to(language)}" for other in cause.confused_with]
    rows += [f"To confirm: {check.to(language)}" for check in cause.checks if holds(check.when)]
    return tuple(rows)
