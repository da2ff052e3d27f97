"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa

from service.persistence.schema import Id, Serial, UtcDateTime

revision = "0001"
down_revision = None

# As they were then: `service.persistence.schema` has them as they are now.
_FIRST = sa.MetaData()

sa.Table(
    "triages",
    _FIRST,
    sa.Column("id", Id, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("deadline", UtcDateTime, nullable=False),
    sa.Column("finished", UtcDateTime),
    sa.Column("language", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text),
    sa.Column("cause", sa.Text),
    sa.Column("headline", sa.Text),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("configs", sa.Text, nullable=False),
    sa.Column("telemetry", sa.Text, nullable=False),
    sa.Column("diagnosis", sa.LargeBinary),
    sa.Index("triages_by_age", "created"),
)
sa.Table(
    "excerpts",
    _FIRST,
    sa.Column("triage", Id, sa.ForeignKey("triages.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
sa.Table(
    "messages",
    _FIRST,
    sa.Column("id", Serial, primary_key=True),
    sa.Column("triage", Id, sa.ForeignKey("triages.id", ondelete="CASCADE"), nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Index("messages_by_triage", "triage", "id"),
)
sa.Table(
    "feedback",
    _FIRST,
    sa.Column("id", Serial, primary_key=True),
    sa.Column("triage", Id, sa.ForeignKey("triages.id", ondelete="CASCADE"), nullable=False),
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("right", sa.Integer, nullable=False),
    sa.Column("cause", sa.Text),
    sa.Column("fix", sa.Text, nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Index("feedback_by_triage", "triage", "id"),
)
sa.Table(
    "batches",
    _FIRST,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("finished", UtcDateTime),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("left_out", sa.Text, nullable=False),
    sa.Column("counts", sa.Text),
    sa.Index("batches_by_state", "state", "id"),
)
sa.Table(
    "jobs",
    _FIRST,
    sa.Column("batch", Id, sa.ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("nodes", sa.Integer),
    sa.Column("gpus", sa.Integer),
    sa.Column("gpu_hours", sa.Float),
    sa.Column("started", UtcDateTime),
    sa.Column("ended", UtcDateTime),
    sa.Column("node_names", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("not_before", UtcDateTime),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("leased_until", UtcDateTime),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("same_as", sa.Integer),
    sa.Column("root_line", sa.BigInteger),
    sa.Column("root_file", sa.Text),
    sa.Column("root_text", sa.Text, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("finished", UtcDateTime),
    sa.Column("diagnosis", sa.LargeBinary),
    sa.Index("jobs_by_state", "batch", "state", "number"),
    sa.Index(
        "jobs_held",
        "owner",
        "batch",
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    ),
    sa.Index(
        "jobs_same",
        "batch",
        "same_as",
        sqlite_where=sa.text("same_as IS NOT NULL"),
        postgresql_where=sa.text("same_as IS NOT NULL"),
    ),
)
sa.Table(
    "representatives",
    _FIRST,
    sa.Column("batch", Id, primary_key=True),
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.ForeignKeyConstraint(["batch", "number"], ["jobs.batch", "jobs.number"], ondelete="CASCADE"),
    sa.Index("representatives_by_job", "batch", "number"),
)
sa.Table(
    "keys",
    _FIRST,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("revoked", UtcDateTime),
    sa.Column("last_used", UtcDateTime),
)
sa.Table(
    "requests",
    _FIRST,
    sa.Column("key", Id, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("body", sa.LargeBinary),
    sa.Index("requests_by_age", "created"),
)
sa.Table(
    "seen",
    _FIRST,
    sa.Column("kind", Id, primary_key=True),
    sa.Column("event", Id, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Index("seen_by_age", "at"),
)
sa.Table(
    "audit",
    _FIRST,
    sa.Column("id", Serial, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index("audit_by_age", "at"),
)


def upgrade() -> None:
    """Create all tables."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    from alembic import op

    _FIRST.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
