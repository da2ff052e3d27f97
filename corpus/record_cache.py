"""Keep records that were loaded and checked in a file, from which the next start reads them without YAML."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

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
