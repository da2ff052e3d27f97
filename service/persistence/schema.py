"""The tables as the newest migration leaves them."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    text,
)

# Versions of the schema in their order; the last is what this code reads and writes.
VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")

# Identifiers are compared byte by byte everywhere: a server's own order of letters would turn pages around.
Id = Text().with_variant(Text(collation="C"), "postgresql")
# SQLite numbers rows by themselves only where the key's type is exactly INTEGER.
Serial = BigInteger().with_variant(Integer(), "sqlite")


class UtcDateTime(TypeDecorator[datetime]):
    """A time, in UTC on both sides; one without a zone is taken as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give UTC, without a zone where the database keeps none."""
        if value is None:
            return None
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002 - the base class names it
    ) -> datetime | None:
        """Give UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


METADATA = MetaData()

TRIAGES = Table(
    "triages",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("state", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("deadline", UtcDateTime, nullable=False),
    Column("finished", UtcDateTime),
    Column("language", Text, nullable=False),
    Column("verdict", Text),
    Column("cause", Text),
    Column("headline", Text),
    # Source, headline and cause in folded case, one a row: neither database folds all letters in its own
    # search.
    Column("words", Text, nullable=False, server_default=""),
    Column("error", Text, nullable=False),
    Column("configs", Text, nullable=False),
    Column("telemetry", Text, nullable=False),
    Column("diagnosis", LargeBinary),
    # Of the crash that the answer is of, empty where nothing failed.
    Column("fingerprint", Text, nullable=False, server_default=""),
    # Where it was asked, such as a channel of Slack; empty elsewhere.
    Column("channel", Text, nullable=False, server_default=""),
    Index("triages_by_caller", "caller", "id"),
    Index("triages_by_channel", "channel", "id"),
    Index("triages_by_age", "created"),
    # Crashes are counted in it, and not in the rows, each of which holds an answer.
    Index("triages_by_crash", "fingerprint", "id", "caller", "channel", "created"),
    # A search goes through these and not through the rows, each of which holds an answer.
    Index("triages_by_words", "id", "words").ddl_if(dialect="sqlite"),
    Index("triages_by_caller_words", "caller", "id", "words").ddl_if(dialect="sqlite"),
)

EXCERPTS = Table(
    "excerpts",
    METADATA,
    Column("triage", Id, ForeignKey("triages.id", ondelete="CASCADE"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

MESSAGES = Table(
    "messages",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("triage", Id, ForeignKey("triages.id", ondelete="CASCADE"), nullable=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Index("messages_by_triage", "triage", "id"),
)

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("triage", Id, ForeignKey("triages.id", ondelete="CASCADE"), nullable=False),
    Column("caller", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("right", Integer, nullable=False),
    Column("cause", Text),
    Column("fix", Text, nullable=False),
    Column("comment", Text, nullable=False),
    # Its triage's.
    Column("fingerprint", Text, nullable=False, server_default=""),
    Index("feedback_by_triage", "triage", "id"),
    Index("feedback_by_crash", "fingerprint", "id"),
)

BATCHES = Table(
    "batches",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("source", Text, nullable=False),
    # The words of BatchState, and `arriving` or `leaving` while its jobs are written or deleted: such a batch
    # is not there.
    Column("state", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("finished", UtcDateTime),
    Column("options", Text, nullable=False),
    Column("left_out", Text, nullable=False),
    # The counts of a batch that is over, so that a page of batches need not count millions of jobs.
    Column("counts", Text),
    Index("batches_by_state", "state", "id"),
    Index("batches_by_caller", "caller", "id"),
)

JOBS = Table(
    "jobs",
    METADATA,
    Column("batch", Id, ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("nodes", Integer),
    Column("gpus", Integer),
    Column("gpu_hours", Float),
    Column("started", UtcDateTime),
    Column("ended", UtcDateTime),
    Column("node_names", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("not_before", UtcDateTime),
    Column("owner", Text, nullable=False),
    Column("leased_until", UtcDateTime),
    Column("fingerprint", Text, nullable=False),
    Column("same_as", Integer),
    Column("root_line", BigInteger),
    Column("root_file", Text),
    Column("root_text", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("finished", UtcDateTime),
    Column("diagnosis", LargeBinary),
    # A digest of the job's own files, empty where it has none; and of its answer what a summary needs, so
    # that ten thousand need not be unpacked.
    Column("config", Text, nullable=False, server_default=""),
    Column("gist", Text),
    # How the job ended, as JSON, where that was handed in with it.
    Column("outcome", Text),
    Index("jobs_by_state", "batch", "state", "number"),
    # The few that are worked on, whose leases every claim looks through.
    Index(
        "jobs_held",
        "owner",
        "batch",
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
    Index(
        "jobs_same",
        "batch",
        "same_as",
        sqlite_where=text("same_as IS NOT NULL"),
        postgresql_where=text("same_as IS NOT NULL"),
    ),
)

REPRESENTATIVES = Table(
    "representatives",
    METADATA,
    Column("batch", Id, primary_key=True),
    Column("fingerprint", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    # How many jobs of this crash failed one after another.
    Column("failures", Integer, nullable=False),
    ForeignKeyConstraint(["batch", "number"], ["jobs.batch", "jobs.number"], ondelete="CASCADE"),
    Index("representatives_by_job", "batch", "number"),
)

# What persons said of crashes; of several rows on one crash the last holds.
CRASH_NOTES = Table(
    "crash_notes",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("fixed_by", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Index("crash_notes_by_fingerprint", "fingerprint", "id"),
)

KEYS = Table(
    "keys",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("revoked", UtcDateTime),
    Column("last_used", UtcDateTime),
    # Whose keys see each other's work; empty is nobody's but its own.
    Column("team", Text, nullable=False, server_default=""),
)

REQUESTS = Table(
    "requests",
    METADATA,
    Column("key", Id, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("status", Integer),
    Column("body", LargeBinary),
    Index("requests_by_age", "created"),
)

SEEN = Table(
    "seen",
    METADATA,
    Column("kind", Id, primary_key=True),
    Column("event", Id, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Index("seen_by_age", "at"),
)

# Jobs that a caller handed in, by spans of time; two requests of one caller wait on its row of no time.
USAGE = Table(
    "usage",
    METADATA,
    Column("caller", Id, primary_key=True),
    Column("begun", UtcDateTime, primary_key=True),
    Column("jobs", Integer, nullable=False),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", Serial, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Index("audit_by_age", "at"),
)
