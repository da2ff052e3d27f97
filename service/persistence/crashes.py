"""Crashes of a kind among the triages: how often each came, and what persons said of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, case, func, insert, or_, select, true

from service.persistence import sanitizer
from service.persistence.database import Database
from service.persistence.schema import CRASH_NOTES, FEEDBACK, TRIAGES
from service.schemas.confirmations import ConfirmedCause
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.schemas.records import Crash, CrashNoteRecord, Recurrence

_COLUMNS = TRIAGES.c
# Of one crash so many of its jobs are named; of what persons confirmed, so much is held against a new log.
JOBS, CONFIRMED = 5, 500
_IS_RIGHT = FEEDBACK.c.right == 1
_JUDGED = case((_IS_RIGHT, _COLUMNS.cause), else_=FEEDBACK.c.cause)


@dataclass(frozen=True)
class TriageScope:
    """Whose triages are looked through: those of one channel, else of one caller, else everybody's."""

    caller: str | None = None
    channel: str = ""

    def holds(self, table: Table) -> ColumnElement[bool]:
        """Give the condition that a row of a table is of it."""
        return self._is_met(table.c.channel, table.c.caller)

    def holds_once_found(self, table: Table) -> ColumnElement[bool]:
        """Give the same condition where a row is found by another one, in a form that no index answers.

        SQLite's planner, which does not know that few triages are judged, or of one crash, would take the
        index of the caller, and read all of them.
        """
        return self._is_met(func.coalesce(table.c.channel, ""), func.coalesce(table.c.caller, ""))

    def _is_met(self, channel: ColumnElement[str], caller: ColumnElement[str]) -> ColumnElement[bool]:
        if self.channel:
            return channel == self.channel
        return true() if self.caller is None else caller == self.caller


# Whose triages an administrator sees.
EVERYBODY = TriageScope()


class CrashRepository:
    """What is known of crashes that came more than once, by their fingerprints."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def earlier(self, triage: str, fingerprint: str, scope: TriageScope = EVERYBODY) -> Recurrence | None:
        """Give what is known of the triages of the same crash before this one."""
        if not fingerprint:
            return None
        before = (_COLUMNS.id < triage, scope.holds_once_found(TRIAGES))
        counted = select(
            func.count(), func.min(_COLUMNS.created), func.max(_COLUMNS.created), func.max(_COLUMNS.id)
        ).where(_COLUMNS.fingerprint == fingerprint, *before)
        said = (
            select(FEEDBACK.c.fix)
            .join(TRIAGES, FEEDBACK.c.triage == _COLUMNS.id)
            .where(FEEDBACK.c.fingerprint == fingerprint, *before)
        )
        told = said.where(FEEDBACK.c.fix != "").order_by(FEEDBACK.c.id.desc()).limit(1)
        judged = (
            said.with_only_columns(_JUDGED)
            .where(or_(_IS_RIGHT, FEEDBACK.c.cause.is_not(None)))
            .order_by(FEEDBACK.c.id.desc())
            .limit(1)
        )
        with self._database.read() as connection:
            times, first, last, newest = connection.execute(counted).one()
            if not times:
                return None
            fix, cause = (connection.execute(query).scalar() or "" for query in (told, judged))
            job = connection.execute(select(_COLUMNS.source).where(_COLUMNS.id == newest)).scalar()
            created = connection.execute(select(_COLUMNS.created).where(_COLUMNS.id == triage)).scalar()
            note = _note(connection, fingerprint, scope)
        return Recurrence(
            times=times,
            first=first,
            last=last,
            triage=newest,
            job=job or "",
            fix=fix,
            judged=cause,
            note=note,
            is_back=_is_back(note, created or last),
        )

    def confirmed(self, scope: TriageScope) -> tuple[ConfirmedCause, ...]:
        """Give what persons confirmed of crashes, the latest first, each crash once."""
        query = (
            select(_COLUMNS.fingerprint, _JUDGED.label("cause"), FEEDBACK.c.created)
            .join(TRIAGES, FEEDBACK.c.triage == _COLUMNS.id)
            .where(scope.holds_once_found(TRIAGES), _COLUMNS.fingerprint != "")
            .where(or_(_IS_RIGHT, FEEDBACK.c.cause.is_not(None)))
            .order_by(FEEDBACK.c.id.desc())
            .limit(CONFIRMED)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        latest: dict[str, ConfirmedCause] = {}
        for crash, cause, on in rows:
            if cause and cause != UNKNOWN_CAUSE:
                latest.setdefault(crash, ConfirmedCause(fingerprint=crash, cause=cause, on=on))
        return tuple(latest.values())

    def note(self, note: CrashNoteRecord, channel: str = "") -> None:
        """Keep what a person says of a crash."""
        texts = {name: sanitizer.clean_text(getattr(note, name)) for name in ("owner", "fixed_by", "caller")}
        with self._database.write() as connection:
            connection.execute(insert(CRASH_NOTES), note.model_dump() | texts | {"channel": channel})

    def get(self, fingerprint: str, scope: TriageScope = EVERYBODY) -> Crash | None:
        """Give one crash; None where no triage is of it."""
        found, _ = self._page(scope, 1, crashes=[fingerprint])
        return found[0] if found else None

    def page(
        self, after: str | None = None, limit: int = 20, scope: TriageScope = TriageScope()
    ) -> tuple[tuple[Crash, ...], str | None]:
        """Give crashes, that which came last first, and what to pass as `after` for more."""
        newest = func.max(_COLUMNS.id)
        return self._page(scope, limit, having=None if after is None else newest < after)

    def among(self, fingerprints: Collection[str], scope: TriageScope = EVERYBODY) -> Mapping[str, Crash]:
        """Give the crashes with these fingerprints."""
        wanted = {crash for crash in fingerprints if crash}
        if not wanted:
            return {}
        found, _ = self._page(scope, len(wanted), crashes=wanted)
        return {crash.fingerprint: crash for crash in found}

    def since(self, moment: datetime, scope: TriageScope, limit: int = 20) -> tuple[Crash, ...]:
        """Give the crashes that came since a moment, counted from then on."""
        return self._page(scope, limit, _COLUMNS.created >= moment)[0]

    def channels(self, moment: datetime) -> tuple[str, ...]:
        """Name the channels in which triages of crashes were asked for since a moment."""
        query = select(_COLUMNS.channel).where(_COLUMNS.created >= moment, _COLUMNS.channel != "").distinct()
        with self._database.read() as connection:
            return tuple(connection.execute(query.order_by(_COLUMNS.channel)).scalars())

    def _page(
        self,
        scope: TriageScope,
        limit: int,
        *narrower: ColumnElement[bool],
        crashes: Collection[str] = (),
        having: ColumnElement[bool] | None = None,
    ) -> tuple[tuple[Crash, ...], str | None]:
        newest = func.max(_COLUMNS.id)
        within = scope.holds(TRIAGES)
        if crashes:
            within = and_(_COLUMNS.fingerprint.in_(crashes), scope.holds_once_found(TRIAGES))
        query = (
            select(
                _COLUMNS.fingerprint,
                func.count().label("times"),
                func.min(_COLUMNS.created).label("first"),
                func.max(_COLUMNS.created).label("last"),
                newest.label("triage"),
            )
            .where(_COLUMNS.fingerprint != "", within, *narrower)
            .group_by(_COLUMNS.fingerprint)
            .order_by(newest.desc())
            .limit(limit + 1)
        )
        with self._database.read() as connection:
            rows = connection.execute(query if having is None else query.having(having)).all()
            found = tuple(_crash(connection, row, scope, narrower) for row in rows[:limit])
        return found, found[-1].triage if len(rows) > limit else None


def _crash(
    connection: Connection, row: Row[Any], scope: TriageScope, narrower: Sequence[ColumnElement[bool]]
) -> Crash:
    same = (_COLUMNS.fingerprint == row.fingerprint, scope.holds_once_found(TRIAGES), *narrower)
    # By their ids first, which the index holds with all that is asked of them.
    newest = select(_COLUMNS.id).where(*same).order_by(_COLUMNS.id.desc()).limit(4 * JOBS)
    sources = connection.execute(
        select(_COLUMNS.source).where(_COLUMNS.id.in_(newest)).order_by(_COLUMNS.id.desc())
    ).scalars()
    cause, headline = connection.execute(
        select(_COLUMNS.cause, _COLUMNS.headline).where(_COLUMNS.id == row.triage)
    ).one()
    note = _note(connection, row.fingerprint, scope)
    return Crash(
        **row._mapping,
        cause=cause,
        headline=headline or "",
        jobs=tuple(dict.fromkeys(sources))[:JOBS],
        note=note,
        is_back=_is_back(note, row.last),
    )


def _note(connection: Connection, fingerprint: str, scope: TriageScope) -> CrashNoteRecord | None:
    names = [CRASH_NOTES.c[name] for name in CrashNoteRecord.model_fields]
    query = select(*names).where(CRASH_NOTES.c.fingerprint == fingerprint, scope.holds(CRASH_NOTES))
    found = connection.execute(query.order_by(CRASH_NOTES.c.id.desc()).limit(1)).mappings().first()
    return None if found is None else CrashNoteRecord(**found)


def _is_back(note: CrashNoteRecord | None, last: datetime) -> bool:
    return note is not None and note.state == "fixed" and last > note.created
