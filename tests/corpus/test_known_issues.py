"""Known bugs of frameworks: rows that become cases, found by what the failing line says."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from corpus.errors import InvalidCorpusError
from corpus.known_issues import KnownIssue
from corpus.library import load
from corpus.schema import Case
from tests.tables import each_row


def row(**fields: Any) -> KnownIssue:
    """Make a known bug."""
    return KnownIssue.model_validate(
        {
            "id": "made-up",
            "framework": "vllm",
            "affected": "<0.9",
            "fixed": "0.9.0",
            "cause": "package-incompatible",
            "message": r"wheel 'a' fell off",
            "examples": ["ValueError: wheel 'a' fell off"],
            "says": {"en": "The wheel falls off.", "zh": "轮子掉了。"},
            "source": "https://example.org/thread/1",
            **fields,
        }
    )


@each_row(
    "fields, changes, title",
    [
        ({}, [("vllm", ">=0.9.0")], "Known bug of vllm <0.9, fixed in 0.9.0"),
        ({"fixed": "", "moves": {"torch": "<2"}}, [("torch", "<2")], "Known incompatibility of vllm <0.9"),
        (
            {"affected": "<0.9.0,>=0.8.1"},
            [("vllm", ">=0.9.0")],
            "Known bug of vllm >=0.8.1,<0.9.0, fixed in 0.9.0",
        ),
        (
            {"fixed": "", "affected": "", "moves": {"torch": "<2"}},
            [("torch", "<2")],
            "Known incompatibility of vllm",
        ),
    ],
)
def test_that_a_known_bug_says_which_versions_have_it(
    fields: dict[str, Any], changes: list[tuple[str, str]], title: str
) -> None:
    """The version without it is the change, unless other packages mend it."""
    case = Case.model_validate(row(**fields).fields("vllm"))
    assert [(change.key, change.to) for change in case.changes] == changes
    assert case.title.en == title
    assert case.body.en == f"{title}. The wheel falls off."
    assert case.frameworks == {"vllm": fields.get("affected", "<0.9")}


def test_that_a_message_which_misses_its_example_is_refused() -> None:
    """A row is read with the lines that it is for."""
    with pytest.raises(ValueError, match="does not find"):
        row(examples=["ValueError: something else"])


def test_that_a_day_of_checking_is_a_day() -> None:
    """Whether somebody has held a row against its source is told by a date, or not at all."""
    assert row().checked is None
    assert row(checked="2026-11-23").checked == date(2026, 11, 23)
    with pytest.raises(ValueError, match="checked"):
        row(checked="lately")


def test_that_a_site_adds_bugs_of_its_own(tmp_path: Path) -> None:
    """A folder of knowledge may hold known bugs; a row that is wrong is named with its file."""
    (tmp_path / "known_issues").mkdir()
    page = tmp_path / "known_issues" / "mine.yaml"
    page.write_text(
        "framework: vllm\nissues:\n- id: own\n  cause: package-incompatible\n  message: fell off\n"
        "  examples: [it fell off]\n  says: {en: It falls off., zh: 掉了。}\n  fixed: 1.0.0\n"
        "  source: https://example.org/1\n",
        encoding="utf-8",
    )
    assert load(tmp_path).cases["vllm/own"].signatures.all == ("message:'fell off'",)
    page.write_text("framework: vllm\nissues:\n- id: own\n", encoding="utf-8")
    with pytest.raises(InvalidCorpusError, match=r"mine\.yaml: own"):
        load(tmp_path)
