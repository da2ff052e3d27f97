"""Word search over the index with BM25. Identifiers stay whole, Chinese is split into words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus.message import CHINESE
from ingest import chinese_words
from ingest.chinese_words import Cut

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z_][A-Za-z0-9_]*)*|\d+(?:\.\d+)+|[\u4e00-\u9fff]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "have",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "were",
        "will",
        "with",
        "not",
        "no",
        "的",
        "了",
        "和",
        "是",
        "在",
        "与",
        "或",
        "及",
        "对",
        "中",
        "为",
        "等",
        "时",
        "可",
        "会",
        "将",
        "个",
    ]
)


# The frequencies of Chinese words, in an index's folder.
FREQUENCIES = "chinese.words"


def words(text: str, cut: Cut | None = None) -> list[str]:
    """Split text into search words; `cut` splits runs of Chinese, jieba's own dictionary if None.

    An identifier gives itself and its parts: `free_cache_engine` is found by its name, and a little by
    `cache`; `ActorDiedError` likewise.
    """
    found: list[str] = []
    for run in _WORD.findall(text):
        if CHINESE.match(run):
            found.extend(word for word in (cut or _default_cut())(run) if word not in _STOP)
            continue
        whole = run.lower()
        if whole not in _STOP and len(whole) > 1:
            found.append(whole)
        parts = [part.lower() for part in _PART.findall(run)]
        if len(parts) > 1:
            found.extend(part for part in parts if len(part) > 2 and part not in _STOP)
    return found


@cache
def _default_cut() -> Cut:
    return chinese_words.cutter()


def build(texts: Sequence[str], folder: Path) -> None:
    """Write the word index of `texts`, in their order, to `folder`."""
    import bm25s

    folder.mkdir(parents=True, exist_ok=True)
    chinese_words.write(folder / FREQUENCIES)
    cut = chinese_words.cutter(folder / FREQUENCIES)
    tokens = [words(text, cut) or ["<empty>"] for text in texts]
    vocabulary = {
        word: number for number, word in enumerate(sorted({word for row in tokens for word in row}))
    }
    ids = [[vocabulary[word] for word in row] for row in tokens]
    retriever = bm25s.BM25(method="lucene")
    retriever.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    retriever.save(str(folder))


class WordIndex:
    """A word index read back from its folder.

    bm25s has done the weighing when the index was built; a query only sums the stored columns of its
    words. That is done on the stored arrays here, because importing bm25s again would bring scipy and
    cost more than all the rest of a query.
    """

    def __init__(self, folder: Path) -> None:
        self._vocabulary: dict[str, int] = json.loads(
            (folder / "vocab.index.json").read_text(encoding="utf-8")
        )
        self._total: int = json.loads((folder / "params.index.json").read_text(encoding="utf-8"))["num_docs"]
        parts = ("data", "indices", "indptr")
        self._weights, self._rows, self._starts = (
            np.load(folder / f"{part}.csc.index.npy") for part in parts
        )
        self._folder = folder

    @cached_property
    def _cut(self) -> Cut:
        """What cuts Chinese: by the table beside the index, which those of before have not."""
        table = self._folder / FREQUENCIES
        return chinese_words.cutter(table if table.exists() else None)

    def _cut_when_asked(self, run: str) -> Iterator[str]:
        return self._cut(run)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Give each document's BM25 score for the query; shape (documents,)."""
        total = np.zeros(self._total, dtype=np.float32)
        for word in dict.fromkeys(words(query, self._cut_when_asked)):
            number = self._vocabulary.get(word)
            if number is not None:
                column = slice(self._starts[number], self._starts[number + 1])
                # A document stands once in a word's column.
                total[self._rows[column]] += self._weights[column]
        return total
