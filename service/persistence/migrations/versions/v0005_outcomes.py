"""Give jobs a column for how they ended, as far as who handed them in knows: exit code, signal, state."""

from __future__ import annotations

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    import sqlalchemy as sa
    from alembic import op

    op.add_column("jobs", sa.Column("outcome", sa.Text))


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
