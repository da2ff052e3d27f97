"""What went wrong, in the reader's language.

An error is raised with a message of the catalogue, which has both languages. Where only English is left, as
of another server's answer, the kind of the error has a sentence of its own.
"""

from __future__ import annotations

from corpus.message import Message, is_message, words
from corpus.schema import Language
from service.schemas.errors import RequestError, kind_name, sentence_id
from service.schemas.events import TriageFailed

# Kinds whose own sentence says too little without the particulars.
_VAGUE = frozenset(
    {
        "Request",
        "InvalidRequest",
        "Forbidden",
        "Settings",
        "Patch",
        "Service",
        "Telemetry",
        "InvalidSnapshot",
        "Ingest",
        "Input",
        "SearchIndex",
        "ChromaServer",
        "Corpus",
        "InvalidCorpus",
        "Model",
        "Notification",
        "ExecutorLost",
        "MediaType",
    }
)


def error_sentence(error: Exception, language: Language) -> str:
    """Give the sentence of an error."""
    return worded(
        type(error).__name__, str(error), language, error.wait if isinstance(error, RequestError) else None
    )


def of_failed(failed: TriageFailed, language: Language) -> str:
    """Give the sentence of a task that failed."""
    return worded(failed.type, failed.error, language, failed.retry_after)


def worded(kind: str, text: str, language: Language, wait: float | None = None) -> str:
    """Give a sentence in a language: a message's own words, else those of the error's kind.

    A text of a kind that has none stays as it is rather than be lost.
    """
    if isinstance(text, Message):
        return text.in_language(language)
    if language == "en":
        return text
    kind = kind_name(kind)
    if not is_message(sentence_id(kind)):
        return text
    own = words(sentence_id(kind), language, wait=f"{max(1.0, wait or 5.0):.0f}")
    return f"{own}（{text}）" if text and kind in _VAGUE else own
