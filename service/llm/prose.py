"""Prose as a model writes it: paragraphs, sentences, citations, and the language that it is in."""

from __future__ import annotations

import re
import unicodedata

from corpus.message import CHINESE
from corpus.schema import Language
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor

CITED = re.compile(r"\[(?!redacted:)(?P<kind>case:)?(?P<what>[^\[\]\n]{1,300})\]")
CODE = re.compile(r"`([^`\n]+)`")
# A sentence ends at its sign; citations that stand behind the sign belong to it.
_END = re.compile(
    r"(?<=[.!?])((?:\s*\[[^\[\]\n]{1,300}\][.,;]?)*)\s+(?=[\"'(*`A-Z]|[^\x00-\x7f])"
    r"|(?<=[。！？])((?:\s*\[[^\[\]\n]{1,300}\][。，；]?)*)\s*"
)
_FENCED = re.compile(r"(```.*?(?:```|\Z))", re.DOTALL)

_LETTER = re.compile(r"[^\W\d_]")
_ENGLISH = frozenset(
    (
        "the",
        "a",
        "an",
        "of",
        "to",
        "in",
        "is",
        "was",
        "and",
        "by",
        "that",
        "it",
        "as",
        "on",
        "with",
        "for",
        "from",
        "this",
        "at",
        "after",
        "before",
        "not",
        "be",
        "are",
        "were",
        "its",
        "which",
        "job",
        "line",
        "rank",
        "memory",
    )
)
# With fewer letters, or words, a text is too short to tell its language.
_LETTERS, _WORDS = 4, 8


def blocks(text: str) -> list[str]:
    """Cut a text into paragraphs; code that is fenced stays in one piece, so that it is judged as one."""
    parts: list[str] = []
    for place, piece in enumerate(_FENCED.split(text)):
        parts += [piece.replace("\n", " ")] if place % 2 else re.split(r"\n\s*\n", piece)
    return [part.strip() for part in parts if part.strip()]


def sentences(row: str) -> list[str]:
    """Cut a row into sentences, each with the citations that follow it."""
    parts: list[str] = []
    begin = 0
    for match in _END.finditer(row):
        parts.append(row[begin : match.end(1) if match[1] is not None else match.end(2)])
        begin = match.end()
    parts.append(row[begin:])
    return [part.rstrip() for part in parts if part.strip()]


def is_safe(text: str) -> str:
    """Give a text without secrets and without what a terminal or page would act on."""
    return printable(Redactor().clean(unicodedata.normalize("NFC", text)), "\t\n")


def is_in(language: Language, text: str) -> bool:
    """Tell whether prose is in a language; code and citations count for none."""
    plain = CODE.sub("", CITED.sub("", text))
    letters = _LETTER.findall(plain)
    if len(letters) < _LETTERS:
        return True
    if language == "zh":
        return 8 * len(CHINESE.findall(plain)) >= len(letters)
    latin = sum(letter.isascii() for letter in letters)
    # English is told from other languages of the same letters by its smallest words.
    words = re.findall(r"[a-z]+", plain.lower())
    is_english = len(words) < _WORDS or 9 * sum(word in _ENGLISH for word in words) >= len(words)
    return 10 * latin >= 9 * len(letters) and is_english
