"""What a long run has finished so far, on disk as it finishes, so that a killed run goes on where it stopped.

Parts lie under `index/parts` of the home and go when the index that they are for stands.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np

from corpus.message import Message
from ingest.embedder import Vectors
from ingest.errors import SearchIndexError

# Rows of a part, and seconds after which a smaller one is written all the same.
ROWS = 1000
SECONDS = 10.0


def folder_of(home: Path) -> Path:
    """Name the folder of all parts."""
    return home / "index" / "parts"


@contextmanager
def _whole(folder: Path, suffix: str) -> Iterator[Path]:
    """Give where to write a part, which has its own name once it is written.

    Raises SearchIndexError where it cannot be.
    """
    part = folder / f"{uuid4().hex}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(part.with_suffix(suffix))
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SearchIndexError(
            Message("errors.cannot-written-make-room", folder=folder, reason=error.strerror or error)
        ) from error


class VectorParts:
    """Vectors by the digests of their texts, a pair of files a part."""

    def __init__(self, home: Path) -> None:
        self._base = folder_of(home) / "vectors"

    def load(self, model: str) -> dict[str, Vectors]:
        """Give what was made with a model; a part that cannot be read counts for nothing."""
        held: dict[str, Vectors] = {}
        for path in sorted(self._folder(model).glob("*.npz")):
            try:
                with np.load(path) as part:
                    held |= dict(zip(part["digests"].tolist(), part["vectors"], strict=True))
            except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                path.unlink(missing_ok=True)
        return held

    def add(self, model: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Write a part, whole or not at all."""
        folder = self._folder(model)
        with _whole(folder, ".npz") as part, part.open("wb") as stream:
            np.savez(stream, digests=np.array(digests), vectors=vectors)

    def clear(self) -> None:
        """Remove all parts."""
        shutil.rmtree(self._base, ignore_errors=True)

    def _folder(self, model: str) -> Path:
        return self._base / hashlib.sha256(model.encode()).hexdigest()[:12]


class RowParts:
    """Rows of results, a file a part. `key` tells what they were made with; other parts are not read."""

    def __init__(self, home: Path, key: str) -> None:
        self._base = folder_of(home) / "rows"
        self._folder = self._base / key
        self._rows: list[dict[str, Any]] = []
        self._written = monotonic()

    def load(self) -> Iterator[dict[str, Any]]:
        """Give the rows that were finished; a part that cannot be read counts for nothing."""
        for path in sorted(self._folder.glob("*.jsonl")):
            try:
                rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
            except (OSError, ValueError):
                continue
            yield from rows

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row; it is on disk with the next part."""
        self._rows.append(row)
        if len(self._rows) >= ROWS or monotonic() - self._written > SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is kept as a part, whole or not at all."""
        self._written = monotonic()
        if not self._rows:
            return
        with _whole(self._folder, ".jsonl") as part, part.open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in self._rows)
            stream.flush()
            os.fsync(stream.fileno())
        self._rows.clear()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs off while this one works; raises SearchIndexError where one is at work already."""
        try:
            self._base.parent.mkdir(parents=True, exist_ok=True)
            with (self._base.parent / "LOCK").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
        except BlockingIOError as error:
            raise SearchIndexError(
                Message("errors.another-run-takes-logs", parent=self._base.parent.parent.parent)
            ) from error

    def clear(self) -> None:
        """Remove all parts, unless another run has begun to write some."""
        with suppress(SearchIndexError), self.alone():
            shutil.rmtree(self._base, ignore_errors=True)
