"""All settings that still hold an example's path are named, not the one alone at which the run stopped."""

from __future__ import annotations

from dataclasses import replace

from corpus.stand_ins import StandIn, is_stand_in, known_stand_ins
from service.remediation.example_paths import with_example_paths
from tests.service.factories import failed, proposal, report, setting
from tests.tables import each_row

GUIDE = "a path that exists on every node"


@each_row("row", known_stand_ins(), ids=lambda row: row.id)
def test_that_a_row_knows_its_examples(row: StandIn) -> None:
    assert all(map(is_stand_in, row.examples))


@each_row("value", ["/data/train.csv", "/home/yours/x", "auto", "", "/srv/pathology/to_do.json", "a < b"])
def test_that_a_real_value_is_none_of_an_example(value: str) -> None:
    assert not is_stand_in(value)


def test_that_every_setting_with_an_example_path_is_told() -> None:
    given = [setting("train_csv", "/path/to/a.csv"), setting("val_csv", "/path/to/b.csv"), setting("lr", "1")]
    change = proposal("--train_csv", GUIDE, from_="/path/to/a.csv", kind="flag")
    told = with_example_paths([change], report(failed()), given, "en")
    assert [each.key for each in told] == ["--train_csv", "--val_csv"]
    assert "`/path/to/a.csv` is what an example writes" in told[0].why
    assert told[1].from_ == "/path/to/b.csv"


def test_that_a_path_of_the_job_s_own_is_left_alone() -> None:
    change = proposal("--train_csv", GUIDE, from_="/data/a.csv", kind="flag")
    given = [setting("train_csv", "/data/a.csv"), replace(setting("val_csv", "/path/to/b.csv"))]
    assert with_example_paths([change], report(failed()), given, "en") == [change]
