"""What the knowledge covers, counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus import library
from corpus.log_patterns import PatternTable
from corpus.schema import SettingSpec, Text
from tests.factories import whole_corpus
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, whycrash
from ui import coverage


def test_that_each_table_adds_up(table: PatternTable) -> None:
    """No cause, setting or pattern is left out of its table."""
    counts = coverage.stats(whole_corpus(), table)
    total = counts["total"]
    assert sum(counts["causes_by_category"].values()) == total["causes"]
    assert (
        sum(counts["cases_by_framework"].values())
        == sum(counts["cases_by_action"].values())
        == total["cases"]
    )
    assert sum(counts["patterns_by_dialect"].values()) == total["patterns"]
    assert (
        sum(row["explained"] + row["extracted"] for row in counts["settings_by_framework"].values())
        == total["settings"]
    )


def test_that_settings_are_told_apart_by_who_described_them(table: PatternTable) -> None:
    """A setting with words counts as explained, one from the source alone as extracted."""
    specs = [
        SettingSpec(framework="ray", key="--a", type="int", spelled="flag", effect=Text(en="e", zh="z")),
        SettingSpec(framework="ray", key="--b", type="int", spelled="flag"),
        SettingSpec(framework="verl", key="c", type="any", spelled="hydra"),
    ]
    counts = coverage.stats(
        library.Library({}, {}, {(spec.framework, spec.key): spec for spec in specs}), table
    )
    assert counts["settings_by_framework"] == {
        "ray": {"explained": 1, "extracted": 1},
        "verl": {"explained": 0, "extracted": 1},
    }
    assert "ray 1+1, verl 0+1" in coverage.text(counts)
    assert "| settings by framework | ray 1+1, verl 0+1 |" in coverage.markdown(counts)


@pytest.mark.long
@each_row("words", [(), ("--json",)])
def test_that_the_command_prints_text_or_json(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Both say the same numbers."""
    ended = whycrash(tmp_path, "corpus", "stats", *words)
    assert (ended.code, ended.err) == (EXPLAINED, "")
    cases = len(whole_corpus().cases)
    assert (json.loads(ended.out)["total"]["cases"] == cases) if words else (f"cases {cases}," in ended.out)
