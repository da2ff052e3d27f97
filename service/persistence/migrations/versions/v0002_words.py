"""Give triages the words that a search looks through, and an index for one caller's own."""

from __future__ import annotations

import sqlalchemy as sa

from service.persistence.schema import Id

revision = "0002"
down_revision = "0001"

# Enough for few round trips, few enough to be held at once.
_STEP = 1000
_TRIAGES = sa.table(
    "triages",
    sa.column("id", Id),
    sa.column("source", sa.Text),
    sa.column("headline", sa.Text),
    sa.column("cause", sa.Text),
    sa.column("words", sa.Text),
)


def upgrade() -> None:
    """Add the column and fill it from the rows that are there."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    from alembic import op

    op.add_column("triages", sa.Column("words", sa.Text, nullable=False, server_default=""))
    op.create_index("triages_by_caller", "triages", ["caller", "id"])
    connection = op.get_bind()
    after = ""
    while found := connection.execute(_after(after)).all():
        filled = (
            sa.update(_TRIAGES)
            .where(_TRIAGES.c.id == sa.bindparam("key"))
            .values(words=sa.bindparam("folded"))
        )
        # As service.persistence.triages folds them today; a migration keeps its own copy, since it may not
        # change with it.
        folded = [
            {
                "key": row.id,
                "folded": "\n".join(part or "" for part in (row.source, row.headline, row.cause)).casefold(),
            }
            for row in found
        ]
        connection.execute(filled, folded)
        after = found[-1].id


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError


def _after(key: str) -> sa.Select[str, str, str, str]:
    columns = _TRIAGES.c
    return (
        sa.select(columns.id, columns.source, columns.headline, columns.cause)
        .where(columns.id > key)
        .order_by(columns.id)
        .limit(_STEP)
    )
