"""A kept answer in another language: the words of a new reading, in the answer that was given."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from corpus.library import Library
from corpus.message import is_chinese
from corpus.schema import Language
from service.schemas.diagnosis import Diagnosis, ProposedChange
from service.schemas.parts import Part

P = TypeVar("P", bound=Part)


def retell(old: Diagnosis, new: Diagnosis, library: Library, language: Language) -> Diagnosis | None:
    """Give `old` with the words of `new`, which answers what was kept of the same log in `language`.

    Whatever is no words stays: counts, odds, values, what a model wrote. None where the two do not come to
    the same, so that the words of one would not be true of the other.
    """
    if _concluded(old) != _concluded(new):
        return None
    try:
        return old.model_copy(
            update={
                "headline": new.headline,
                "explanation": new.explanation,
                "checks": new.checks,
                "alternatives": _worded(old.alternatives, new.alternatives, _cause, "tell_apart"),
                "evidence": _worded(old.evidence, new.evidence, lambda item: item.place, "why"),
                "cascade": _worded(old.cascade, new.cascade, lambda item: (item.place, item.role), "event"),
                "steps": _worded(old.steps, new.steps, lambda item: item.run, "why", "costs"),
                "changes": tuple(map(_change, old.changes, new.changes)),
                "cases": tuple(
                    hit.model_copy(update={"title": library.cases[hit.id].title.to(language)})
                    if hit.id in library.cases
                    else hit
                    for hit in old.cases
                ),
                "telemetry": old.telemetry.model_copy(
                    update={
                        "why": new.telemetry.why,
                        "causes": _worded(old.telemetry.causes, new.telemetry.causes, _cause, "why"),
                    }
                ),
            }
        )
    except LookupError:
        return None


def _concluded(diagnosis: Diagnosis) -> tuple[object, ...]:
    """Give what an answer comes to, without its words."""
    root = diagnosis.root
    changes = tuple(
        (item.framework, item.kind, item.status, item.removes, _plain(item.key), _plain(item.to))
        for item in diagnosis.changes
    )
    machine = diagnosis.telemetry.says
    return diagnosis.verdict, diagnosis.cause, diagnosis.action, root and root.place, machine, changes


def _plain(value: object) -> object:
    """Give a value as it is compared; what is told in words of a language, by a person's guidance, is any."""
    return None if isinstance(value, str) and (" " in value.strip() or is_chinese(value)) else value


def _cause(item: Part) -> Hashable:
    return getattr(item, "cause", None)


def _worded(old: Iterable[P], new: Iterable[P], key: Callable[[P], Hashable], *fields: str) -> tuple[P, ...]:
    """Give the old items with these fields of the new ones; raises LookupError where one has no counterpart.

    Of several with one key, the first is that of the first.
    """
    told: defaultdict[Hashable, deque[P]] = defaultdict(deque)
    for item in new:
        told[key(item)].append(item)
    pairs = [(item, told[key(item)].popleft()) for item in old]
    return tuple(
        item.model_copy(update={field: getattr(other, field) for field in fields}) for item, other in pairs
    )


def _change(old: ProposedChange, new: ProposedChange) -> ProposedChange:
    """Reword a change; its key and value are words only where they are told in a language."""
    fields = ["why", "costs", "proof"]
    fields += [name for name in ("key", "to") if _plain(getattr(old, name)) is None]
    return old.model_copy(update={name: getattr(new, name) for name in fields})
