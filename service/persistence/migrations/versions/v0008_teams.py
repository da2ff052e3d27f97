"""Keep which team a key is of, and find a caller's batches by an index."""

from __future__ import annotations

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column and the index."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    import sqlalchemy as sa
    from alembic import op

    op.add_column("keys", sa.Column("team", sa.Text, nullable=False, server_default=""))
    op.create_index("batches_by_caller", "batches", ["caller", "id"])


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
