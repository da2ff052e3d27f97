"""The sanitizer before the disk: removes secrets and what a database refuses, and packs answers."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

from corpus.message import Message, edited
from ingest.redaction.redactor import Redactor
from service.persistence.outcome_summaries import pack_summary
from service.schemas.diagnosis import Diagnosis
from service.schemas.records import Excerpt

# PostgreSQL takes no NUL, and no database half of a surrogate pair.
_REFUSED = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """Give the text as it may be stored; most is clean already, since it was redacted where it came in."""
    return Redactor().clean(_REFUSED.sub(_REPLACEMENT, text)) if text else text


def pack_message(text: str) -> str:
    """Give a sentence as its column holds it.

    A message becomes JSON of its id and values, to be told in any language.
    """
    clean = edited(text, clean_text)
    if not isinstance(clean, Message):
        return clean
    return json.dumps(clean.reference(), ensure_ascii=False)


def unpack_message(text: str) -> str:
    """Read what `pack_message` wrote; a text that is none, as of an older version, stays as it is."""
    return Message.from_reference(json.loads(text)) or text if text.startswith('{"message": ') else text


def rows(texts: Sequence[str]) -> tuple[str, ...]:
    """Clean rows that stand below each other, since a secret may go on over several."""
    return tuple(Redactor().rows([_REFUSED.sub(_REPLACEMENT, text) for text in texts]))


def texts(values: Sequence[str]) -> str:
    """Give clean texts as a JSON list."""
    return json.dumps([clean_text(value) for value in values], ensure_ascii=False)


def names(values: str) -> tuple[str, ...]:
    """Read what `texts` wrote."""
    return () if values == "[]" else tuple(json.loads(values))


def pack(diagnosis: Diagnosis) -> bytes:
    """Clean each text of an answer and compress the whole.

    zlib at its fastest makes a third of the JSON in 40 us, which keeps a batch of 100,000 answers in 300 MB;
    what is searched or grouped by stands in columns beside it.
    """
    return pack_both(diagnosis)[0]


def pack_both(diagnosis: Diagnosis) -> tuple[bytes, str]:
    """Pack an answer as `pack` does, and its outcome summary."""
    # Not in JSON's mode: pydantic would refuse half a surrogate pair before it could be replaced here.
    plain = diagnosis.model_dump(by_alias=True)
    together = "\n".join(_gather(plain, []))
    # One check of the whole text suffices for nearly every answer, in a tenth of the time that its hundred
    # texts take.
    if clean_text(together) == together:
        return _compressed(diagnosis.to_json()), pack_summary(plain)
    cleaned = _each(plain)
    return _compressed(json.dumps(cleaned, ensure_ascii=False)), pack_summary(cleaned)


def unpack(body: bytes) -> Diagnosis:
    """Read what `pack` wrote."""
    return Diagnosis.model_validate_json(zlib.decompress(body))


def pack_excerpt(excerpt: Excerpt) -> bytes:
    """Clean and compress an excerpt."""
    stretches = tuple(
        stretch.model_copy(
            update={"lines": rows(stretch.lines), "file": stretch.file and clean_text(stretch.file)}
        )
        for stretch in excerpt.stretches
    )
    return _compressed(excerpt.model_copy(update={"stretches": stretches}).model_dump_json())


def unpack_excerpt(body: bytes) -> Excerpt:
    """Read what `pack_excerpt` wrote."""
    return Excerpt.model_validate_json(zlib.decompress(body))


def _compressed(text: str) -> bytes:
    return zlib.compress(text.encode(), 1)


def _gather(value: Any, texts: list[str]) -> list[str]:
    """Put all texts of nested lists and objects into a list.

    A list and no call for a leaf, since each answer of a batch goes through here.
    """
    if isinstance(value, dict):
        texts += value
        value = value.values()
    for item in value:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict | list | tuple):
            _gather(item, texts)
    return texts


def _each(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): _each(item) for key, item in value.items()}
    return [_each(item) for item in value] if isinstance(value, list | tuple) else value
