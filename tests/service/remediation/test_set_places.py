"""Where a setting stands whose change is told in words."""

from __future__ import annotations

from ingest.configfiles.settings import Setting
from service.remediation.set_places import tell_set_places
from tests.service.factories import proposal
from tests.tables import each_row

ROW = Setting("data.folder", "/data/rows", 0, "yaml", file="conf/job.yaml", row=7)
OTHER = Setting("data.folder", "/data/rows", 0, "hydra", file="run.sh", row=3)
THIRD = Setting("data.folder", "/data/rows", 0, "env", file="env.sh", row=1)
OLD = Setting("data.folder", "/old", 0, "yaml", file="old.yaml", row=2)
PRINTED = Setting("data.folder", "/data/rows", 12, "dump")


@each_row(
    ("to", "settings", "told"),
    [
        ("a folder that is there", [ROW, PRINTED], "`data.folder` is set at job.yaml:7."),
        ("a folder that is there", [ROW, OTHER], "job.yaml:7, run.sh:3"),
        # A value that is known stands in the patch.
        (4, [ROW], ""),
        # Too many rows, another value, or none in a file.
        ("a folder that is there", [ROW, OTHER, THIRD], ""),
        ("a folder that is there", [OLD, PRINTED], ""),
    ],
)
def test_a_change_in_words_tells_the_row(to: str | int, settings: list[Setting], told: str) -> None:
    """The row by which a person finds what is to be changed."""
    change = proposal("data.folder", to, from_="/data/rows", why="It is missed.")
    (found,) = tell_set_places([change], settings, "en")
    assert told in found.why
    assert told or found.why == "It is missed."
