"""Give SQLite indices that hold the words of triages: a search need not go through their answers any more.

PostgreSQL keeps long values beside its rows, so that to go through all of them is as quick; and it takes no
text of any length into an index.
"""

from __future__ import annotations

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the indices."""
    # Alembic loads this module itself; who only reads the package should not wait for it.
    from alembic import op

    if op.get_bind().dialect.name == "sqlite":
        op.create_index("triages_by_words", "triages", ["id", "words"])
        op.create_index("triages_by_caller_words", "triages", ["caller", "id", "words"])


def downgrade() -> None:
    """Refuse: an older whycrash cannot read what a newer one wrote."""
    raise NotImplementedError
