"""Deletion of all that is kept of one caller: a team, a key, a Slack user."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from ingest import pipeline
from ingest.pipeline import IndexPlaces
from service.batches.batches import BatchService
from service.persistence.store import Store
from service.schemas.errors import NotFoundError
from service.schemas.records import AuditRecord, team_of
from service.settings import Settings

_PAGE = 100
# Whose work this machine's own user hands in without a key; each command of a batch has a name of its own.
LOCAL, COMMANDS = "local", "cli:"


@dataclass(frozen=True)
class DeletedData:
    """How much was deleted."""

    triages: int = 0
    batches: int = 0
    feedback: int = 0
    notes: int = 0
    files: int = 0

    @property
    def told(self) -> str:
        """The counts as words."""
        return ", ".join(f"{count} {what}" for what, count in asdict(self).items())


def delete(settings: Settings, store: Store, batches: BatchService, owner: str, actor: str) -> DeletedData:
    """Delete what a caller handed in, with answers, logs and conversations, and what they said of others'.

    With a team's go the write-ups and past crashes that were taken into the index for it.

    Batches that run are ended first. What is being triaged just now stays until its deadline; asked again, it
    goes as well. `local` has the batches of this machine's commands, too. The audit keeps that, when and by
    whom this was done, and what was done before: it names callers and ids, and holds nothing of a log. It has
    a row before anything is gone, so that a deletion which is broken off is told as well, and one at the end.
    """

    def note(action: str, detail: str) -> None:
        row = AuditRecord(at=datetime.now(UTC), actor=actor, action=action, target=owner, detail=detail)
        store.audit.add(row)

    note("delete data: begun", "")
    names = [owner, *(store.batches.callers(COMMANDS) if owner == LOCAL else ())]
    count = sum(_delete_batches(store, batches, name) for name in names)
    triages, feedback, notes = store.retention.forget_caller(owner, datetime.now(UTC))
    team = team_of(owner)
    files = pipeline.forget_team(settings.home, team, IndexPlaces(settings.chroma_url)) if team else 0
    deleted = DeletedData(triages, count, feedback, notes, files)
    note("delete data", deleted.told)
    return deleted


def _delete_batches(store: Store, batches: BatchService, owner: str) -> int:
    count = 0
    while found := store.batches.page(limit=_PAGE, caller=owner)[0]:
        for record in found:
            # Another may delete it at the same time.
            with suppress(NotFoundError):
                if record.state == "running":
                    batches.cancel(record.id)
                batches.delete(record.id)
                count += 1
    return count
