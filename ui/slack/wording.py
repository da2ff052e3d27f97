"""What the bot says of itself, in both languages, and the words for what an answer's fields mean."""

from __future__ import annotations

from corpus.message import is_chinese, words
from corpus.schema import Language


def say(name: str, language: Language, **values: object) -> str:
    """Give a sentence in `language` with its values filled in."""
    return words(f"slack.{name}", language, **values)


def spoken(text: str) -> Language:
    """Tell the language that a person writes in."""
    return "zh" if is_chinese(text) else "en"
