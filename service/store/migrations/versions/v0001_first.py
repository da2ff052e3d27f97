"""Create the first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.store.schema import Id, Moment, Serial

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    _triages()
    _batches()
    _access()
    _trail()


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError


def _triages() -> None:
    op.create_table(
        "triages",
        sa.Column("id", Id, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("deadline", Moment, nullable=False),
        sa.Column("finished", Moment),
        sa.Column("language", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("headline", sa.Text),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("configs", sa.Text, nullable=False),
        sa.Column("telemetry", sa.Text, nullable=False),
        sa.Column("diagnosis", sa.LargeBinary),
    )
    op.create_index("triages_by_age", "triages", ["created"])
    op.create_table("excerpts", _of_triage(primary_key=True), sa.Column("body", sa.LargeBinary, nullable=False))
    op.create_table(
        "messages",
        sa.Column("id", Serial, primary_key=True),
        _of_triage(nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
    )
    op.create_index("messages_by_triage", "messages", ["triage", "id"])
    op.create_table(
        "feedback",
        sa.Column("id", Serial, primary_key=True),
        _of_triage(nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("right", sa.Integer, nullable=False),
        sa.Column("cause", sa.Text),
        sa.Column("fix", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
    )
    op.create_index("feedback_by_triage", "feedback", ["triage", "id"])


def _of_triage(primary_key: bool = False, nullable: bool = False) -> sa.Column[str]:
    return sa.Column("triage", Id, sa.ForeignKey("triages.id", ondelete="CASCADE"), primary_key=primary_key, nullable=nullable)


def _batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("finished", Moment),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("left_out", sa.Text, nullable=False),
        sa.Column("counts", sa.Text),
    )
    op.create_index("batches_by_state", "batches", ["state", "id"])
    _jobs()
    op.create_table(
        "representatives",
        sa.Column("batch", Id, primary_key=True),
        sa.Column("fingerprint", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["batch", "number"], ["jobs.batch", "jobs.number"], ondelete="CASCADE"),
    )
    op.create_index("representatives_by_job", "representatives", ["batch", "number"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("batch", Id, sa.ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("nodes", sa.Integer),
        sa.Column("gpus", sa.Integer),
        sa.Column("gpu_hours", sa.Float),
        sa.Column("started", Moment),
        sa.Column("ended", Moment),
        sa.Column("node_names", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("not_before", Moment),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("leased_until", Moment),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("same_as", sa.Integer),
        sa.Column("root_line", sa.BigInteger),
        sa.Column("root_file", sa.Text),
        sa.Column("root_text", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("finished", Moment),
        sa.Column("diagnosis", sa.LargeBinary),
    )
    op.create_index("jobs_by_state", "jobs", ["batch", "state", "number"])
    held, same = sa.text("state = 'running'"), sa.text("same_as IS NOT NULL")
    op.create_index("jobs_held", "jobs", ["owner", "batch"], sqlite_where=held, postgresql_where=held)
    op.create_index("jobs_same", "jobs", ["batch", "same_as"], sqlite_where=same, postgresql_where=same)


def _access() -> None:
    op.create_table(
        "keys",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("revoked", Moment),
        sa.Column("last_used", Moment),
    )
    op.create_table(
        "requests",
        sa.Column("key", Id, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("requests_by_age", "requests", ["created"])


def _trail() -> None:
    op.create_table(
        "seen",
        sa.Column("kind", Id, primary_key=True),
        sa.Column("event", Id, primary_key=True),
        sa.Column("at", Moment, nullable=False),
    )
    op.create_index("seen_by_age", "seen", ["at"])
    op.create_table(
        "audit",
        sa.Column("id", Serial, primary_key=True),
        sa.Column("at", Moment, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("audit_by_age", "audit", ["at"])
