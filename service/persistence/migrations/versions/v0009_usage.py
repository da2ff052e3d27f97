"""Keep how much each caller handed in and when, so that what they delete does not open their quota anew."""

from __future__ import annotations

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the table."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    import sqlalchemy as sa
    from alembic import op

    from service.persistence.schema import Id, UtcDateTime

    op.create_table(
        "usage",
        sa.Column("caller", Id, primary_key=True),
        sa.Column("begun", UtcDateTime, primary_key=True),
        sa.Column("jobs", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
