"""Keep what persons say of crashes of a kind, and in which channel a triage was asked."""

from __future__ import annotations

from service.persistence.schema import Serial, UtcDateTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column and the table."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    import sqlalchemy as sa
    from alembic import op

    op.add_column("triages", sa.Column("channel", sa.Text, nullable=False, server_default=""))
    op.create_index("triages_by_channel", "triages", ["channel", "id"])
    op.create_table(
        "crash_notes",
        sa.Column("id", Serial, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("fixed_by", sa.Text, nullable=False),
        sa.Column("created", UtcDateTime, nullable=False),
    )
    op.create_index("crash_notes_by_fingerprint", "crash_notes", ["fingerprint", "id"])


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
