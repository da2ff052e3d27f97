"""Give triages a column for the fingerprint of their crash: crashes of a kind are found among them."""

from __future__ import annotations

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; what was answered before has none, as its answer tells none."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    import sqlalchemy as sa
    from alembic import op

    op.add_column("triages", sa.Column("fingerprint", sa.Text, nullable=False, server_default=""))
    op.create_index("triages_by_fingerprint", "triages", ["fingerprint", "id"])


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
