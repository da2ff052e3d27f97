"""Summaries as they are asked for, kept beside a batch's journal once it is over.

And the causes over earlier batches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from time import monotonic

from pydantic import ValidationError

from corpus import library
from corpus.schema import Language
from service.batches.journal import journal_of
from service.batches.summary import Summary
from service.batches.tally import summarize
from service.persistence.store import Store
from service.schemas.parts import Part
from service.schemas.records import BatchRecord
from service.settings import Settings

# Earlier batches that a trend shows.
POINTS = 12
# Batches that are looked through for as many.
LOOKED = 200
# Running batches whose last summary is at hand.
RECENT = 64
# Another form of Summary gets another number, so that an older one is made anew.
_NAME = "summary-2-{language}.json"


class TrendPoint(Part):
    """One batch among earlier ones: the jobs that died by cause, and what they cost."""

    batch: str
    name: str
    created: datetime
    jobs: int
    died: int
    gpu_hours: float | None
    causes: dict[str, int]


class BatchSummaries:
    """Sums up the batches of a store."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._titles: dict[Language, dict[str, str]] = {}
        # Until when a running batch's summary is good enough, and that summary.
        self._recent: dict[tuple[str, Language], tuple[float, Summary]] = {}

    def of(self, batch: str, language: Language = "en") -> Summary:
        """Sum up a batch, as far as it has come; raises NotFoundError."""
        record = self._store.batches.get(batch)
        if record.state == "running":
            return self._so_far(record, language)
        path = journal_of(self._settings.home, batch).folder / _NAME.format(language=language)
        with suppress(OSError, ValidationError):
            return Summary.model_validate_json(path.read_bytes())
        made = self._made(record, language)
        _keep_summary(path, made)
        return made

    def _made(self, record: BatchRecord, language: Language) -> Summary:
        if language not in self._titles:
            causes = library.load(cache=self._settings.home / "cache").causes
            self._titles[language] = {name: cause.title.to(language) for name, cause in causes.items()}
        titles_in = self._titles[language]
        return summarize(record, self._store.batches.lines(record.id), titles_in, language)

    def _so_far(self, record: BatchRecord, language: Language) -> Summary:
        """Sum up a running batch.

        Whoever asks again at once gets the same, so that watching costs a tenth of a core at most.
        """
        key = (record.id, language)
        kept = self._recent.get(key)
        if kept and monotonic() < kept[0]:
            return kept[1]
        began = monotonic()
        made = self._made(record, language)
        if len(self._recent) >= RECENT:
            self._recent.clear()
        self._recent[key] = (monotonic() + 10 * (monotonic() - began), made)
        return made

    def trend(
        self, batch: str, language: Language = "en", points: int = POINTS, caller: str | None = None
    ) -> tuple[TrendPoint, ...]:
        """Give this batch and earlier ones of the same source that are over, oldest first.

        Raises NotFoundError.

        With `caller`, only that one's earlier batches.
        """
        record = self._store.batches.get(batch)
        earlier = (
            one
            for one in self._earlier(record, caller)
            if one.source == record.source and one.state == "done"
        )
        found = [record, *islice(earlier, points - 1)]
        return tuple(_point(self.of(one.id, language)) for one in reversed(found))

    def _earlier(self, record: BatchRecord, caller: str | None) -> Iterator[BatchRecord]:
        after: str | None = record.id
        looked = 0
        while after is not None and looked < LOOKED:
            items, after = self._store.batches.page(after=after, limit=50, caller=caller)
            looked += len(items)
            yield from items


def _point(summary: Summary) -> TrendPoint:
    return TrendPoint(
        batch=summary.batch,
        name=summary.name,
        created=summary.created,
        jobs=summary.jobs,
        died=summary.died.jobs,
        gpu_hours=summary.died.gpu_hours,
        causes={group.cause: group.jobs for group in summary.causes},
    )


def _keep_summary(path: Path, summary: Summary) -> None:
    """Keep a summary for the next time; where that is not possible, it is made again."""
    if not path.parent.is_dir():
        return
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_text(summary.model_dump_json(), encoding="utf-8")
        part.chmod(0o600)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
