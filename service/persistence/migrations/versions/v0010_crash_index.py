"""Let an index alone tell how often a crash came, and feedback be found by the crash that it is of."""

from __future__ import annotations

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Widen the index, add the column, and fill it from the triages."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    import sqlalchemy as sa
    from alembic import op

    op.drop_index("triages_by_fingerprint", "triages")
    op.create_index("triages_by_crash", "triages", ["fingerprint", "id", "caller", "channel", "created"])
    op.add_column("feedback", sa.Column("fingerprint", sa.Text, nullable=False, server_default=""))
    op.execute(
        "UPDATE feedback SET fingerprint ="
        " COALESCE((SELECT fingerprint FROM triages WHERE triages.id = feedback.triage), '')"
    )
    op.create_index("feedback_by_crash", "feedback", ["fingerprint", "id"])


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
