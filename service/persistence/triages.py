"""Triages with what belongs to them: the excerpt of the log, the conversation, the feedback."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from corpus.message import Message
from service.persistence import sanitizer
from service.persistence.database import Database
from service.persistence.schema import EXCERPTS, FEEDBACK, MESSAGES, TRIAGES
from service.persistence.upsert import insert_or_update
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import NotFoundError
from service.schemas.records import Excerpt, FeedbackRecord, MessageRecord, TriageRecord

INTERRUPTED = "errors.server-stopped-before-answer"
_COLUMNS = TRIAGES.c
# A search looks for so many words of so many letters; SQLite refuses a condition of a thousand, or a long
# one.
MOST_WORDS, LONGEST_WORD = 20, 200


class TriageRepository:
    """The triages that are kept. Ids are ULIDs, so that their order is that of time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, record: TriageRecord) -> None:
        """Keep a new triage."""
        values = _values(record)
        with self._database.write() as connection:
            connection.execute(insert(TRIAGES).values(**values))

    def answer(
        self,
        triage: str,
        diagnosis: Diagnosis | None,
        *,
        final: bool,
        now: datetime,
        excerpt: Excerpt | None = None,
        configs: Sequence[tuple[str, str]] = (),
        telemetry: str = "",
        error: str = "",
    ) -> None:
        """Keep an answer, the first one or the final.

        Raises NotFoundError where the triage was deleted meanwhile.

        `excerpt`, `configs` and `telemetry` are what further answers to the triage are made of; what is empty
        leaves what stands. A final None leaves the answer that stands; where none does, the triage failed,
        and `error` says why.
        """
        # Cleaned and packed before the transaction, which keeps other writers waiting.
        values = {"error": sanitizer.pack_message(error)} | (_answer(diagnosis) if diagnosis else {})
        values |= {
            name: value
            for name, value in (
                ("configs", _configs(configs)),
                ("telemetry", sanitizer.clean_text(telemetry)),
            )
            if value not in ("[]", "")
        }
        body = None if excerpt is None else sanitizer.pack_excerpt(excerpt)
        with self._database.write() as connection:
            source, answered = _standing(connection, triage)
            if diagnosis is not None:
                values["words"] = folded(source, values["headline"], diagnosis.cause)
            if final:
                values |= {"state": "done" if answered or diagnosis else "failed", "finished": now}
            connection.execute(update(TRIAGES).where(_COLUMNS.id == triage).values(**values))
            if answered and diagnosis is not None:
                judged = update(FEEDBACK).where(FEEDBACK.c.triage == triage)
                connection.execute(judged.values(fingerprint=diagnosis.fingerprint))
            if body is not None:
                insert_or_update(connection, EXCERPTS, {"triage": triage, "body": body}, ["triage"])

    def get(self, triage: str, now: datetime | None = None) -> TriageRecord:
        """Give a triage; raises NotFoundError."""
        with self._database.read() as connection:
            row = connection.execute(select(TRIAGES).where(_COLUMNS.id == triage)).first()
        if row is None:
            raise missing(triage)
        return _record(row, now or datetime.now(UTC))

    def page(
        self,
        words: str = "",
        after: str | None = None,
        limit: int = 20,
        caller: str | None = None,
        now: datetime | None = None,
    ) -> tuple[tuple[TriageRecord, ...], str | None]:
        """Give triages, newest first, whose source, headline or cause holds each word.

        And what to pass as `after` for more.
        """
        # By their ids first, which indices that hold the words give: a search would read every answer
        # otherwise.
        ids = (
            _narrowed(select(_COLUMNS.id), words, after, caller).order_by(_COLUMNS.id.desc()).limit(limit + 1)
        )
        with self._database.read() as connection:
            found = connection.execute(
                select(TRIAGES).where(_COLUMNS.id.in_(ids)).order_by(_COLUMNS.id.desc())
            ).all()
        moment = now or datetime.now(UTC)
        items = tuple(_record(row, moment) for row in found[:limit])
        return items, items[-1].id if len(found) > limit and items else None

    def excerpt(self, triage: str) -> Excerpt:
        """Give what is kept of the log, empty while it is read; raises NotFoundError."""
        with self._database.read() as connection:
            _standing(connection, triage)
            body = connection.execute(select(EXCERPTS.c.body).where(EXCERPTS.c.triage == triage)).scalar()
        return Excerpt() if body is None else sanitizer.unpack_excerpt(body)

    def delete(self, triage: str) -> None:
        """Delete a triage with all that belongs to it; raises NotFoundError."""
        with self._database.write() as connection:
            if not connection.execute(delete(TRIAGES).where(_COLUMNS.id == triage)).rowcount:
                raise missing(triage)

    def add_messages(self, triage: str, *messages: MessageRecord) -> None:
        """Keep what was said, all or nothing and next to each other; raises NotFoundError."""
        values = [
            message.model_dump() | {"text": sanitizer.clean_text(message.text), "triage": triage}
            for message in messages
        ]
        with self._database.write() as connection:
            _standing(connection, triage)
            connection.execute(insert(MESSAGES), values)

    def messages(self, triage: str) -> tuple[MessageRecord, ...]:
        """Give the conversation, oldest first; raises NotFoundError."""
        columns = MESSAGES.c
        query = (
            select(columns.role, columns.text, columns.created)
            .where(columns.triage == triage)
            .order_by(columns.id)
        )
        with self._database.read() as connection:
            _standing(connection, triage)
            found = connection.execute(query).mappings().all()
        return tuple(MessageRecord(**row) for row in found)

    def add_feedback(self, feedback: FeedbackRecord) -> None:
        """Keep feedback; raises NotFoundError."""
        texts = {
            name: sanitizer.clean_text(value)
            for name in ("cause", "fix", "comment", "caller")
            if (value := getattr(feedback, name))
        }
        values = feedback.model_dump() | texts | {"right": int(feedback.right)}
        with self._database.write() as connection:
            _standing(connection, feedback.triage)
            crash = select(_COLUMNS.fingerprint).where(_COLUMNS.id == feedback.triage).scalar_subquery()
            connection.execute(insert(FEEDBACK).values(**values, fingerprint=crash))

    def feedback(self, triage: str) -> tuple[FeedbackRecord, ...]:
        """Give the feedback on a triage, oldest first; raises NotFoundError."""
        names = [FEEDBACK.c[name] for name in FeedbackRecord.model_fields]
        with self._database.read() as connection:
            _standing(connection, triage)
            found = (
                connection.execute(select(*names).where(FEEDBACK.c.triage == triage).order_by(FEEDBACK.c.id))
                .mappings()
                .all()
            )
        return tuple(FeedbackRecord(**{**row, "right": bool(row["right"])}) for row in found)


def folded(*parts: str | None) -> str:
    """Fold what a search looks through: one part a row, so that no word spans two."""
    return "\n".join(part or "" for part in parts).casefold()


def missing(triage: str) -> NotFoundError:
    """Make the error for a triage that is not there."""
    return NotFoundError(Message("errors.no-triage-deleted", triage=sanitizer.clean_text(triage)[:64]))


def _standing(connection: Connection, triage: str) -> tuple[str, bool]:
    """Give a triage's source, and whether it has an answer."""
    row = connection.execute(select(_COLUMNS.source, _COLUMNS.verdict).where(_COLUMNS.id == triage)).first()
    if row is None:
        raise missing(triage)
    return row.source, row.verdict is not None


def _narrowed(query: Select[Any], words: str, after: str | None, caller: str | None) -> Select[Any]:
    if after is not None:
        query = query.where(_COLUMNS.id < after)
    if caller is not None:
        query = query.where(_COLUMNS.caller == caller)
    for word in [*dict.fromkeys(sanitizer.clean_text(words).casefold().split())][:MOST_WORDS]:
        query = query.where(_COLUMNS.words.contains(word[:LONGEST_WORD], autoescape=True))
    return query


def _values(record: TriageRecord) -> dict[str, Any]:
    values = record.model_dump(exclude={"diagnosis", "configs", "messages"})
    values |= {name: sanitizer.clean_text(values[name]) for name in ("caller", "source", "telemetry")}
    values["error"] = sanitizer.pack_message(record.error)
    values["configs"] = _configs(record.configs)
    values |= _answer(record.diagnosis) if record.diagnosis else {}
    return values | {"words": folded(values["source"], values.get("headline"), values.get("cause"))}


def _configs(configs: Sequence[tuple[str, str]]) -> str:
    return json.dumps(
        [[sanitizer.clean_text(name), sanitizer.clean_text(text)] for name, text in configs],
        ensure_ascii=False,
    )


def _answer(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "diagnosis": sanitizer.pack(diagnosis),
        "verdict": diagnosis.verdict,
        "cause": diagnosis.cause,
        "headline": sanitizer.clean_text(diagnosis.headline),
        "fingerprint": diagnosis.fingerprint,
    }


def _record(row: Row[Any], now: datetime) -> TriageRecord:
    values = {name: value for name, value in row._mapping.items() if name in TriageRecord.model_fields}
    values["configs"] = json.loads(values["configs"])
    values["error"] = sanitizer.unpack_message(row.error)
    values["diagnosis"] = sanitizer.unpack(row.diagnosis) if row.diagnosis is not None else None
    if row.state == "running" and row.deadline < now:
        values |= {
            "state": "done" if row.diagnosis is not None else "failed",
            "finished": row.deadline,
            "error": values["error"] or Message(INTERRUPTED),
        }
    return TriageRecord(**values)
