"""A loaded Triage, which is reopened when its index was replaced."""

from __future__ import annotations

from time import monotonic

from corpus.errors import CorpusError
from ingest import embedder, pipeline
from ingest.errors import IngestError
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.schemas.errors import ServiceError
from service.settings import Settings

# Seconds between two looks at a Chroma server.
ASK = 60.0


class WarmTriage:
    """Holds one Triage; not to be shared between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._triage = Triage(settings)
        self._generation = ""
        self._asked = monotonic()

    def load(self) -> str:
        """Load everything that a triage needs; gives what is wrong, or the empty text."""
        try:
            log = sources.from_text("RuntimeError: CUDA error: out of memory")
            self._triage.diagnose(self._triage.read(log))
        except (CorpusError, IngestError, ServiceError) as error:
            return str(error)
        self._generation = self._current()
        return ""

    def fresh(self) -> Triage:
        """Give the triage over the current index."""
        now = self._current()
        if now != self._generation or self._is_elsewhere():
            old, self._triage = self._triage, Triage(self._settings)
            # Patterns and model are the same; only the index is another.
            self._triage.__dict__.update(
                {
                    name: old.__dict__[name]
                    for name in ("library", "reader", "embedder")
                    if name in old.__dict__
                }
            )
            self._generation = now
        return self._triage

    def _is_elsewhere(self) -> bool:
        """Tell, now and then, whether another machine has put a newer index on the Chroma server."""
        if not self._settings.chroma_url or monotonic() - self._asked < ASK:
            return False
        self._asked = monotonic()
        name = self._settings.embedding_model or embedder.DEFAULT_NAME
        return pipeline.opened(self._settings.home, name, self._triage.index_places) is None

    def _current(self) -> str:
        try:
            return (self._settings.home / "index" / "CURRENT").read_text(encoding="utf-8")
        except OSError:
            return ""
