"""Compare onnxruntime with sentence-transformers: largest difference of a component, documents a second."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from corpus import library
from ingest import default_model, documents
from ingest.embedder import Embedder, SentenceEmbedder, Vectors, open_embedder


def run() -> Table:
    """Measure and give the table."""
    texts = [
        document.embedded for case in library.load().cases.values() for document in documents.of_case(case)
    ]
    with tempfile.TemporaryDirectory() as home:
        ours = open_embedder("", Path(home))
        plain = SentenceEmbedder(str(default_model.folder()), "plain")
        rows = [("onnxruntime", *_timed(ours, texts)), ("sentence-transformers", *_timed(plain, texts))]
    difference = float(np.abs(rows[0][2] - rows[1][2]).max())
    table = Table(
        title=(
            f"{len(texts)} documents of the corpus; largest difference of a component {difference:.1e} "
            "(goal 1e-3)"
        )
    )
    for column in ("embedder", "documents/s", "ratio"):
        table.add_column(column, justify="left" if column == "embedder" else "right")
    for name, seconds, _ in rows:
        table.add_row(name, f"{len(texts) / seconds:.1f}", f"{rows[1][1] / seconds:.2f}")
    return table


def _timed(embedder: Embedder, texts: Sequence[str]) -> tuple[float, Vectors]:
    embedder.embed(texts[:8])
    started = time.perf_counter()
    vectors = embedder.embed(texts)
    return time.perf_counter() - started, vectors
