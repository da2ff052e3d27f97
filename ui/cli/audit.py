"""`whycrash audit` and `whycrash forget`: who did what, and the deletion of all that is kept of a caller."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from service.app import personal_data
from service.batches.batches import BatchService, open_store
from ui.cli.batch_sources import since_of
from ui.cli.codes import EXPLAINED
from ui.cli.console import load_settings, out


def export(since: str) -> int:
    """Write the audit as lines of JSON, oldest first."""
    moment = since_of(since, datetime.now(UTC))
    with open_store(load_settings()) as store:
        for record in store.audit.entries(moment):
            sys.stdout.write(f"{record.model_dump_json()}\n")
    return EXPLAINED


def forget(caller: str) -> int:
    """Delete all that is kept of a caller, and say how much it was."""
    settings = load_settings()
    with open_store(settings) as store:
        deleted = personal_data.delete(settings, store, BatchService(settings, store), caller, "cli:local")
    out().print(f"Of {caller} was deleted: {deleted.told}.", markup=False)
    return EXPLAINED
