"""Words and BM25."""

from __future__ import annotations

from pathlib import Path

import bm25s
import numpy as np

from ingest import word_index
from ingest.word_index import WordIndex, words
from tests.tables import each_row

TEXTS = (
    "CUDA out of memory in the rollout, lower gpu_memory_utilization",
    "Ray killed a worker: host memory of the node is exhausted",
    "the free_cache_engine setting leaks host memory with vLLM 0.6.3",
    "显存不足：降低 gpu_memory_utilization，或减小批大小",
    "NCCL watchdog timeout in ALLREDUCE",
    "",
    "memory memory memory",
)


@each_row(
    ("text", "expected"),
    [
        ("free_cache_engine", ["free_cache_engine", "free", "cache", "engine"]),
        ("ActorDiedError", ["actordiederror", "actor", "died", "error"]),
        (
            "actor_rollout_ref.rollout.n",
            ["actor_rollout_ref.rollout.n", "actor", "rollout", "ref", "rollout"],
        ),
        ("vllm==0.8.3", ["vllm", "0.8.3"]),
        ("out of the memory", ["out", "memory"]),
        ("NCCL", ["nccl"]),
        ("显存不足", ["显存", "不足"]),
        ("的", []),
        ("a 7 --- ", []),
        ("", []),
    ],
)
def test_text_becomes_search_words(text: str, expected: list[str]) -> None:
    """Identifiers stay whole and give their parts, versions stay whole, Chinese is split, filler goes."""
    assert words(text) == expected


@each_row(
    "query",
    [
        "out of memory",
        "free_cache_engine",
        "显存 memory",
        "host host host",
        "nothing known",
        "",
        "NCCL timeout 0.6.3",
    ],
)
def test_scores_are_those_of_bm25s(tmp_path: Path, query: str) -> None:
    """Summing the stored columns gives what the library itself computes."""
    word_index.build(TEXTS, tmp_path)
    tokens = [word for word in dict.fromkeys(words(query)) if any(word in words(text) for text in TEXTS)]
    reference = bm25s.BM25.load(str(tmp_path)).get_scores(tokens) if tokens else np.zeros(len(TEXTS))
    scores = WordIndex(tmp_path).scores(query)
    np.testing.assert_allclose(scores, reference, rtol=1e-6)
    assert scores.shape == (len(TEXTS),)
    assert bool(scores.any()) is bool(tokens)


@each_row(
    ("query", "best"),
    [
        ("free cache engine", 2),
        ("free_cache_engine", 2),
        ("显存不足", 3),
        ("node exhausted", 1),
        ("ALLREDUCE", 4),
    ],
)
def test_the_rarest_shared_words_decide(tmp_path: Path, query: str, best: int) -> None:
    """Each query finds its text."""
    word_index.build(TEXTS, tmp_path)
    assert int(np.argmax(WordIndex(tmp_path).scores(query))) == best
