"""What is offered first for one line of a failure, where a setting, a variable or a command cures it."""

from __future__ import annotations

from pathlib import Path

from corpus.library import read_yaml
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import diagnosed

ROWS = read_yaml(Path(__file__).with_name("first_remedies.yaml"))


@each_row(("line", "first"), [(row["line"], row["first"]) for row in ROWS])
def test_that_one_line_leads_to_what_one_tries_first(
    line: str, first: list[str] | None, triage: Triage
) -> None:
    changes = diagnosed(triage, sources.from_text(line), "en").changes
    assert [[change.framework, change.key] for change in changes][:1] == ([first] if first else [])
