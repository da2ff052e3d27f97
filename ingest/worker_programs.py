"""What the workers of ingestion run: the reading of logs, and the making of vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.workers.process import Tell

if TYPE_CHECKING:
    from ingest.embedder import Vectors
    from ingest.ingest_tasks import IngestedContent, IngestTask


class LogHandler:
    """Takes in files, one after the other, with patterns that are compiled once."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def load(self) -> str:
        """Load the patterns."""
        # Imported here: numpy and others look at the threads that they may use when they are imported.
        from corpus import log_patterns
        from ingest.logs.reader import Reader

        # What a library prints of a broken file is not for the terminal of whoever ingests.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        self._reader = Reader(log_patterns.load(cache=self._cache), self._cache)
        return ""

    def handle(self, task: IngestTask, tell: Tell) -> IngestedContent:
        """Take in one file."""
        from ingest import ingest_tasks

        del tell
        return ingest_tasks.ingest_file(task, self._reader)


class EmbeddingHandler:
    """Makes vectors with one thread."""

    def __init__(self, model: str, home: Path) -> None:
        self._model = model
        self._home = home

    def load(self) -> str:
        """Load the model; gives what is wrong with it, or the empty text."""
        from ingest import embedder
        from ingest.errors import ModelError

        try:
            self._embedder = embedder.open_embedder(self._model, self._home, threads=1)
        except ModelError as error:
            return str(error)
        return ""

    def handle(self, task: Sequence[str], tell: Tell) -> Vectors:
        """Give the vectors of texts, a row each."""
        del tell
        return self._embedder.embed(task)
