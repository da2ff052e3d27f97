"""A table's test looks at every row, and names each that fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tables import RowsFailedError, each_row


def failure_of(test: Callable[..., None], **fixtures: object) -> str:
    """Give what a test says that has to fail."""
    with pytest.raises(RowsFailedError) as caught:
        test(**fixtures)
    return str(caught.value)


def test_that_every_row_is_looked_at_and_each_that_fails_is_named_with_its_reason() -> None:
    seen = []

    @each_row("word, length", [("one", 3), ("two", 4), ("three", 5), ("four", 9)])
    def rule(word: str, length: int) -> None:
        seen.append(word)
        assert len(word) == length

    told = failure_of(rule).splitlines()
    assert seen == ["one", "two", "three", "four"]
    assert [row for row in told if row.startswith("['")] == [row for row in told if "test_tables.py:" in row]
    assert [row.split("]")[0] for row in told if row.startswith("['")] == ["['two', 4", "['four', 9"]
    assert "assert 3 == 4" in "\n".join(told)


def test_that_an_unexpected_error_and_a_missing_one_are_failures_of_their_rows_alone() -> None:
    @each_row("text", ["7", "x", "8"])
    def rule(text: str) -> None:
        if text == "8":
            with pytest.raises(ValueError, match="invalid"):
                int(text)
        int(text)

    told = failure_of(rule)
    assert "['x'] test_tables.py" in told
    assert "ValueError: invalid literal" in told
    assert "['8'] test_tables.py" in told
    assert "DID NOT RAISE" in told


def test_that_a_long_table_is_two_tests_which_share_its_rows() -> None:
    """The sample is spread over the table; the rest, which takes long, is all others."""
    seen: list[int] = []

    @each_row("number", range(10), quick=4)
    def rule(number: int) -> None:
        seen.append(number)

    (mark,) = rule.pytestmark  # type: ignore[attr-defined]  # where pytest keeps them
    name, (sample, rest) = mark.args
    rule(**{name: sample})
    assert seen == [0, 3, 6, 9]
    rule(**{name: rest.values[0]})
    assert sorted(seen) == list(range(10))
    assert [made.name for made in rest.marks] == ["long"]


def test_that_tables_multiply() -> None:
    @each_row("left", [1, 2])
    @each_row("right", [1, 2])
    def rule(left: int, right: int) -> None:
        assert left == right

    told = failure_of(rule)
    assert told.count("test_tables.py:") == 2
    assert "[1] [2] " in told
    assert "[2] [1] " in told


def test_that_each_row_has_a_folder_and_surroundings_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @each_row("name", ["a", "b"])
    def rule(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert list(tmp_path.iterdir()) == []
        assert "ROW" not in os.environ
        (tmp_path / "file").touch()
        monkeypatch.setenv("ROW", name)

    rule(tmp_path=tmp_path, monkeypatch=monkeypatch)


def test_that_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="proves nothing"):
        each_row("name", [])


def test_that_a_row_is_named_by_its_id() -> None:
    def rule(size: int) -> None:
        assert size < 0

    assert failure_of(each_row("size", [1], ids=["small"])(rule)).startswith("[small] ")
    assert failure_of(each_row("size", [2], ids=lambda size: f"of {size}")(rule)).startswith("[of 2] ")
    assert failure_of(each_row("size", [pytest.param(3, id="given")])(rule)).startswith("[given] ")


@each_row("word", ["shared", "by all"])
def test_that_fixtures_are_given_beside_the_row(word: str, table: object) -> None:
    assert word
    assert table is not None
