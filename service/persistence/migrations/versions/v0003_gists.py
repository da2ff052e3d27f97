"""Give jobs the gist of their answer, from which a batch is summed up, and the digest of their own files."""

from __future__ import annotations

import json
import zlib
from typing import Any

import sqlalchemy as sa

from service.persistence.schema import Id

revision = "0003"
down_revision = "0002"

# Enough for few round trips, few enough to be held at once.
_STEP = 500
_JOBS = sa.table(
    "jobs",
    sa.column("batch", Id),
    sa.column("number", sa.Integer),
    sa.column("diagnosis", sa.LargeBinary),
    sa.column("gist", sa.Text),
)


def upgrade() -> None:
    """Add the columns and fill the gists from the answers that are there."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    from alembic import op

    op.add_column("jobs", sa.Column("config", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("gist", sa.Text))
    connection = op.get_bind()
    after: tuple[str, int] = ("", 0)
    while found := connection.execute(_after(after)).all():
        here = sa.and_(_JOBS.c.batch == sa.bindparam("key"), _JOBS.c.number == sa.bindparam("place"))
        filled = sa.update(_JOBS).where(here).values(gist=sa.bindparam("text"))
        connection.execute(
            filled, [{"key": row.batch, "place": row.number, "text": _gist(row.diagnosis)} for row in found]
        )
        after = (found[-1].batch, found[-1].number)


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError


def _after(key: tuple[str, int]) -> sa.Select[Any]:
    columns = _JOBS.c
    later = sa.or_(columns.batch > key[0], sa.and_(columns.batch == key[0], columns.number > key[1]))
    query = sa.select(columns.batch, columns.number, columns.diagnosis).where(
        later, columns.diagnosis.is_not(None)
    )
    return query.order_by(columns.batch, columns.number).limit(_STEP)


def _gist(packed: bytes) -> str:
    # As service.persistence.outcome_summaries makes it today; a migration keeps its own copy, since it may
    # not change with it.
    answer = json.loads(zlib.decompress(packed))
    told = {name: answer[name] for name in ("verdict", "cause", "category", "standing", "action", "headline")}
    time = next(
        (entry["time"] for entry in answer.get("cascade", ()) if entry["role"] == "root" and entry["time"]),
        None,
    )
    change = answer["changes"][0] if answer.get("changes") else None
    engine = answer.get("engine", {})
    tokens = engine.get("tokens") and [engine["tokens"].get(name) for name in ("sent", "received", "counted")]
    told |= {"engine": engine.get("name", "composer"), "time": time, "change": change, "tokens": tokens}
    return json.dumps(told, ensure_ascii=False)
