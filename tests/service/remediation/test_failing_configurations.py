"""Small jobs whose configuration, command or environment is at fault get a patch that mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from corpus.library import read_yaml
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

TABLE = read_yaml(Path(__file__).with_name("failing_configurations.yaml"))


@each_row(
    ("log", "files", "gone", "new"),
    [(row["log"], row["files"], row.get("gone"), row["new"]) for row in TABLE],
    ids=[row["id"] for row in TABLE],
)
def test_that_the_patch_mends_the_job(
    triage: Triage,
    log: str,
    files: Mapping[str, str],
    gone: str | Sequence[str] | None,
    new: str | Sequence[str],
) -> None:
    """The rows that are wrong go, and what takes their place makes the job run."""
    answer = explained(triage, log, *(ConfigFile(name, text) for name, text in files.items()))
    changed = (answer.patch or "").split("\n")
    assert [row[1:] for row in changed if row[:1] == "-" and row[:3] != "---"] == rows(gone)
    assert [row[1:] for row in changed if row[:1] == "+" and row[:3] != "+++"] == rows(new)


def rows(told: str | Sequence[str] | None) -> list[str]:
    """Give the rows of a table's field, which has one, several or none."""
    return [told] if isinstance(told, str) else list(told or ())
