"""What is changed first, for failures as people paste them; a row of `pasted_changes.yaml` is one failure."""

from __future__ import annotations

from pathlib import Path

from corpus.library import read_yaml
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import diagnosed

ROWS: list[list[str]] = read_yaml(Path(__file__).with_name("pasted_changes.yaml"))


@each_row("row", ROWS, ids=lambda row: row[0])
def test_that_a_pasted_failure_names_its_first_change(row: list[str], triage: Triage) -> None:
    """An empty first change: nothing that a person could set would cure it, as far as the paste tells."""
    log, cause, first, *others = row
    found = diagnosed(triage, sources.from_text(f"{log}\n"), "en")
    cures = [f"{change.framework} {change.key}" for change in found.changes if change.purpose == "cure"]
    assert (found.cause, (cures or [""])[0]) == (cause, first)
    assert not [other for other in others if other not in cures]


@each_row(("present", "wanted"), [(9000, 18000), (512, 1024)])
def test_that_the_length_to_which_an_image_was_cut_grows(present: int, wanted: int, triage: Triage) -> None:
    """A remedy's own number may lie below what the job has."""
    log = (
        f"python3 -m verl.trainer.main config=c.yaml data.max_prompt_length={present}\n"
        "ValueError: Image features and image tokens do not match: tokens: 8100, features 9861\n"
    )
    found = diagnosed(triage, sources.from_text(log), "en").changes[0]
    assert (found.key, found.to) == ("data.max_prompt_length", wanted)
