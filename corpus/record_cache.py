"""Keep records that were loaded and checked: in memory, and in a file that is read without YAML."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from corpus.schema import (
    CHECKED,
    Blank,
    Case,
    Cause,
    FactHeadline,
    MessageForm,
    Procedure,
    Record,
    Remedy,
    SettingSpec,
    Text,
)

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class CachedCorpus(Record):
    """All records of a corpus, as one cache file holds them."""

    causes: tuple[Cause, ...]
    cases: tuple[Case, ...]
    specs: tuple[SettingSpec, ...]
    remedies: tuple[Remedy, ...]
    guidance: tuple[Text, ...] = ()
    procedures: tuple[Procedure, ...] = ()
    message_forms: tuple[MessageForm, ...] = ()
    blanks: tuple[Blank, ...] = ()
    fact_headlines: tuple[FactHeadline, ...] = ()


def read_cache(kind: type[R], stored: Path | None) -> R | None:
    """Read records written by `write_cache`; None where there are none or an older program wrote them."""
    if stored is None or not stored.exists():
        return None
    try:
        return kind.model_validate_json(stored.read_bytes(), context=CHECKED)
    except ValidationError:
        return None


def write_cache(record: Record, stored: Path | None) -> None:
    """Keep checked records; a folder that cannot be written only costs time at the next start."""
    if stored is None:
        return
    with suppress(OSError):
        stored.parent.mkdir(parents=True, exist_ok=True)
        part = stored.with_suffix(".part")
        part.write_text(record.model_dump_json(exclude_defaults=True), encoding="utf-8")
        part.replace(stored)


def loaded_once(kind: type[T], digest: str, stored: Path | None, load: Callable[[], tuple[Record, T]]) -> T:
    """Give what is made of the files of a digest; a process loads them once, whatever cache it names.

    `load` gives the records as well, which a cache that has none yet is given.
    """
    place = _place(kind.__name__, digest)
    if not place:
        place.append(load())
    records, made = place[0]
    if stored is not None and not stored.exists():
        write_cache(records, stored)
    return made  # type: ignore[no-any-return]  # what `load` gave for this kind


@lru_cache(maxsize=4)
def _place(_kind: str, _digest: str) -> list[tuple[Record, Any]]:
    return []
