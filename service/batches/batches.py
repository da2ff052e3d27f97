"""Batches as the API and the commands see them: accepted as a whole, cancelled, deleted, restored."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ulid import ULID

from corpus.message import Message
from ingest.redaction.redactor import Redactor
from service.batches import restore
from service.batches.journal import BatchAccepted, Journal, journal_of, journals
from service.persistence.store import Store
from service.schemas.errors import InvalidRequestError, NotFoundError, RequestError, StoreError, TooLargeError
from service.schemas.records import BatchOptions, BatchRecord, JobSpec, SourceKind
from service.settings import Settings
from service.signals import tracing

LONGEST_NAME = 200
# The longest that a batch is handed in.
BEGINNING = timedelta(days=1)
_LOG = logging.getLogger("whycrash.batch")


def nobody() -> None:
    """Do nothing: no engine waits to be told of new jobs."""


class BatchService:
    """Accepts batches and looks after what is on the disk of them. Safe to use from many threads."""

    def __init__(self, settings: Settings, store: Store, wake: Callable[[], None] = nobody) -> None:
        """`wake` is called when there is something to do, so that an engine need not find out by itself."""
        self._settings = settings
        self._store = store
        self._wake = wake

    def begin(self) -> str:
        """Give an id for a new batch, under which its redacted copies may be spooled beforehand."""
        return str(ULID())

    def spool(self, batch: str) -> Path:
        """Give the folder of a batch's redacted copies; it goes when the batch is over."""
        return journal_of(self._settings.home, batch).spool

    def accept(
        self,
        name: str,
        source: SourceKind,
        specs: Iterable[JobSpec],
        options: BatchOptions | None = None,
        caller: str = "local",
        *,
        batch: str | None = None,
        left_out: Mapping[str, int | str] | None = None,
    ) -> BatchRecord:
        """Keep a batch; when this returns, it is on the disk and survives a crash of any process.

        `left_out` is read once the last job was. Raises InvalidRequestError where there is no job,
        TooLargeError, StoreError, DiskFullError, or what reading `specs` raises; nothing of the batch remains
        then.
        """
        batch = batch or self.begin()
        journal = journal_of(self._settings.home, batch)
        shown = Redactor().clean(name)[:LONGEST_NAME]
        record = BatchRecord(
            id=batch,
            name=shown,
            caller=caller,
            source=source,
            state="running",
            created=datetime.now(UTC),
            options=options or BatchOptions(),
        )
        try:
            self._store_batch(journal, record, specs, {} if left_out is None else left_out)
        except BaseException:
            self.discard(batch)
            raise
        self._wake()
        kept = self._store.batches.get(batch)
        tracing.begin_batch(batch, kept.total)
        return kept

    def discard(self, batch: str) -> None:
        """Remove what was written of a batch that was not accepted."""
        with suppress(RequestError):
            self._store.batches.delete(batch)
        journal_of(self._settings.home, batch).remove()

    def get(self, batch: str) -> BatchRecord:
        """Give a batch; raises NotFoundError."""
        return self._store.batches.get(batch)

    def cancel(self, batch: str) -> BatchRecord:
        """End a batch; what is done stays. Raises NotFoundError."""
        was = self._store.batches.get(batch)
        record = self._store.batches.cancel(batch, datetime.now(UTC))
        # Written once: repeated requests would make the journal grow.
        if record.state == "cancelled" != was.state:
            journal_of(self._settings.home, batch).close("cancelled")
        self._wake()
        return record

    def delete(self, batch: str) -> None:
        """Delete a batch with its results; raises NotFoundError."""
        self._store.batches.get(batch)
        journal = journal_of(self._settings.home, batch)
        # The journal first: a batch that is only in the database is whole, one that is only in a journal
        # would come again.
        journal.retire()
        self._store.batches.delete(batch)
        journal.remove()
        self._wake()

    def resume(self) -> int:
        """Make database and journals agree after a crash.

        Gives how many batches were put together from their journals.

        To be called once at the start, before an engine runs.
        """
        with _alone(self._settings.home):
            lost = self._has_lost()
            return sum(self._restore_if_lost(journal, lost) for journal in journals(self._settings.home))

    def sweep(self, before: datetime, now: datetime | None = None) -> int:
        """Remove the journals of batches that began before a time and that the database has forgotten.

        Gives how many.

        Removes none while the clock is not trusted: a batch that is being submitted would look old.
        """
        count = 0
        if self._store.clock.is_resting(now or datetime.now(UTC)):
            return count
        for journal in journals(self._settings.home):
            if _began(journal) < before and self._known(journal) is None:
                journal.remove()
                count += 1
        return count

    def _store_batch(
        self,
        journal: Journal,
        record: BatchRecord,
        specs: Iterable[JobSpec],
        left_out: Mapping[str, int | str],
    ) -> None:
        most = self._settings.max_jobs
        count = journal.begin(record, specs, most)
        if count > most:
            raise TooLargeError(Message("errors.batch-most-jobs-whycrash", most=most))
        if not count:
            told = "; ".join(f"{word} {what}" for word, what in left_out.items())
            raise InvalidRequestError(
                Message("errors.no-job-batch-left", told=told) if told else Message("errors.no-job-batch")
            )
        record = record.model_copy(update={"left_out": dict(left_out)})
        journal.settle()
        self._store.batches.add(record, journal.specs())
        journal.append([BatchAccepted(jobs=count, left_out=dict(left_out))], durable=True)

    def _known(self, journal: Journal) -> BatchRecord | None:
        try:
            return self._store.batches.get(journal.folder.name)
        except NotFoundError:
            return None

    def _has_lost(self) -> bool:
        """Tell whether a batch that is in a journal alone was lost.

        A database on a server is shared: there, another machine may have deleted it, unless all batches are
        gone.
        """
        return not self._settings.database.get_secret_value() or not self._store.batches.page(limit=1)[0]

    def _restore_if_lost(self, journal: Journal, lost: bool) -> bool:
        record = self._known(journal)
        if record is not None:
            if record.state != "running":
                journal.remove_spool()
            return False
        now = datetime.now(UTC)
        days = self._settings.retention_days
        # Where the clock is not trusted, recent records may look old; a new database in the place of a
        # damaged one cannot tell.
        if journal.is_retired or (
            days
            and _began(journal) < now - timedelta(days=days)
            and self._store.replaced is None
            and self._store.clock.is_resting(now) is None
        ):
            journal.remove()
        elif lost and restore.restore(self._store, journal):
            return True
        elif lost and _began(journal) < now - BEGINNING:
            # Its client was never told that it was accepted; a younger one may still be arriving.
            journal.remove()
        return False


def open_store(settings: Settings) -> Store:
    """Open the store; a damaged database is moved aside, and its batches are restored from the journals.

    Raises StoreError where it cannot be opened.
    """
    store = Store.open(settings, replace_damaged=True)
    if store.replaced:
        _LOG.error(
            "the database was damaged; it is kept as %s, and a new one takes its place", store.replaced
        )
    try:
        if count := BatchService(settings, store).resume():
            _LOG.warning("%d batches were put together from their journals", count)
    except BaseException:
        store.close()
        raise
    return store


def _began(journal: Journal) -> datetime:
    try:
        return ULID.from_str(journal.folder.name).datetime
    except ValueError:
        return datetime.fromtimestamp(journal.folder.stat().st_mtime, UTC)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let one process at a time compare database and disk."""
    base = home / "batches"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (base / "LOCK").open("w")
    except OSError as error:
        raise StoreError(
            Message("errors.cannot-written-set-whycrash", parent=base, reason=error.strerror)
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
