"""The audit: who did what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import insert, select

from service.persistence import sanitizer
from service.persistence.database import Database
from service.persistence.schema import AUDIT
from service.schemas.records import AuditRecord

# Rows that are read at a time.
CHUNK = 500


class AuditLog:
    """What was done, by whom; rows are only added, and go with their age."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, record: AuditRecord) -> None:
        """Keep a new row."""
        values = record.model_dump()
        texts = {name: sanitizer.clean_text(values[name]) for name in ("actor", "action", "target", "detail")}
        with self._database.write() as connection:
            connection.execute(insert(AUDIT).values(**values | texts))

    def entries(self, since: datetime | None = None) -> Iterator[AuditRecord]:
        """Give all rows since a moment, oldest first; a few at a time are held."""
        fields = [column for column in AUDIT.c if column.name in AuditRecord.model_fields]
        last = 0
        while True:
            query = select(AUDIT.c.id, *fields).where(AUDIT.c.id > last).order_by(AUDIT.c.id).limit(CHUNK)
            with self._database.read() as connection:
                found = connection.execute(
                    query if since is None else query.where(AUDIT.c.at >= since)
                ).mappings()
                rows = [dict(row) for row in found]
            if not rows:
                return
            last = rows[-1]["id"]
            yield from (
                AuditRecord(**{name: value for name, value in row.items() if name != "id"}) for row in rows
            )

    def page(self, after: int | None = None, limit: int = 100) -> tuple[tuple[AuditRecord, ...], int | None]:
        """Give rows, newest first, and what to pass as `after` for more."""
        query = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            found = connection.execute(query if after is None else query.where(AUDIT.c.id < after)).all()
        fields = AuditRecord.model_fields
        items = tuple(
            AuditRecord(**{name: value for name, value in row._mapping.items() if name in fields})
            for row in found[:limit]
        )
        return items, found[limit - 1].id if len(found) > limit else None
