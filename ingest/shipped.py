"""What the wheel of whycrash brings along, which a checkout takes from elsewhere or makes itself.

`python -m eval.release` fills the folder: weights and tokenizer of the default embedding model, the vectors
of the corpus, and the compiled patterns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).with_name("shipped_files")
# What is stored of expressions: compiled, and as they were made of others.
COMPILED = ("patterns-*.hsdb", "expressions-*.json")
_VECTORS = "vectors.npz"


def save_vectors(folder: Path, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """Write vectors by the digests of their documents."""
    np.savez(folder / _VECTORS, digests=np.array(list(vectors)), vectors=np.stack(list(vectors.values())))


def vectors(folder: Path | None = None) -> dict[str, NDArray[np.float32]]:
    """Give the vectors of the corpus by their documents' digests; none in a checkout, which computes them."""
    try:
        with np.load((folder or FOLDER) / _VECTORS) as held:
            return dict(zip(held["digests"].tolist(), held["vectors"], strict=True))
    except (OSError, ValueError, KeyError):
        return {}
