"""The words of the page, in English and Chinese."""

from __future__ import annotations

from corpus.message import is_message, rows, words
from corpus.schema import Language

# How what was handed in is called where it is no file; the store keeps these names, a page tells them in its
# language.
PASTED, EXAMPLE = "pasted text", "example: "


def say(name: str, language: Language, /, **values: object) -> str:
    """Give the words for `name`, filled in."""
    return words(f"chat.{name}", language, **values) if values else rows("chat")[name][language]


def named(source: str, language: Language) -> str:
    """Give what a triage's log is called in a page's language; a file's name is its own."""
    if source.partition(" (+")[0] == PASTED:
        return source.replace(PASTED, say("pasted", language), 1)
    example = f"example-{source.removeprefix(EXAMPLE)}"
    return say(example, language) if source.startswith(EXAMPLE) and is_message(f"chat.{example}") else source


def counted(name: str, one: str, count: int, language: Language) -> str:
    """Give the words for a number of things: `one` where it is a single one."""
    return say(one, language) if count == 1 else say(name, language, count=f"{count:,}")


def table() -> dict[str, list[str]]:
    """Give all words for the browser: name to [English, Chinese]."""
    return {name: [texts["en"], texts["zh"]] for name, texts in rows("chat").items()}
