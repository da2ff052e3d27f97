"""The exception classes of packages, read from their sources: which kind each has, and by what."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from corpus.errors import InvalidCorpusError
from corpus.exceptions import ExceptionMeanings
from corpus.extract.exception_classes import extended, written
from corpus.library import parse_yaml
from tests.tables import each_row

TABLE = ExceptionMeanings.model_validate(
    {
        "kinds": [
            {"id": "network", "messages": "refused", "names": "Connection"},
            {"id": "config", "names": "Config"},
            {"id": "data-format"},
            {"id": "service"},
        ],
        "classes": {"quux": {"data-format": ["ShardError"]}, "onething": {"service": ["*"]}},
    }
)
ERRORS = """
class Base(Exception): ...
class ShardError(Base): ...
class TornShard(ShardError, ValueError): ...
class LateConnection(ShardError): ...
class LinkError(ConnectionError): ...
class Plain(Base): ...
class ShardNote(UserWarning): ...
class ShardReader: ...
"""


def packed(folder: Path, name: str, **files: str) -> Path:
    """Write a package."""
    for path, text in files.items():
        place = folder / name / path.replace("__", "/")
        place = place.with_suffix(".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder / name


def test_that_a_class_has_the_kind_of_its_words_or_of_the_nearest_class_above_it(tmp_path: Path) -> None:
    """What the table tells of it by its name alone is not written down again."""
    found = extended(TABLE, [packed(tmp_path, "quux", core__errors=ERRORS)])
    assert found["quux"] == {"data-format": ["ShardError", "TornShard"], "network": ["LinkError"]}
    assert TABLE.kind("quux.core.LateConnection", "") == "network"
    assert found["onething"] == {"service": ["*"]}


def test_that_tests_broken_files_and_code_that_runs_are_no_harm(tmp_path: Path) -> None:
    place = packed(
        tmp_path,
        "quux",
        broken="class TornShard(ShardError:",
        tests__errors="class TornShard(ShardError): ...",
        loud="raise SystemExit('imported')",
    )
    assert extended(TABLE, [place])["quux"] == {"data-format": ["ShardError"]}


def test_that_a_wheel_is_read_like_its_folder(tmp_path: Path) -> None:
    wheel = tmp_path / "quux-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("quux/core/errors.py", ERRORS)
        archive.writestr("quux-1.0.dist-info/METADATA", "Name: quux")
    folder = packed(tmp_path, "quux", core__errors=ERRORS)
    assert extended(TABLE, [wheel]) == extended(TABLE, [folder])


def test_that_a_package_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidCorpusError, match="no such package"):
        extended(TABLE, [tmp_path / "none"])


def test_that_what_is_written_is_read_back(tmp_path: Path) -> None:
    many = {"quux": {"service": ["*", *(f"OddFailureNumber{number}" for number in range(40))]}}
    text = written(many, "# head")
    assert parse_yaml(text, tmp_path) == many
    assert text.startswith("# head\n")
    assert max(map(len, text.splitlines())) <= 110


@each_row(
    ("type_name", "message", "expected"),
    [
        ("quux.a.b.ShardError", "", "data-format"),
        ("quux.ShardError", "connection refused", "network"),
        ("other.ShardError", "", None),
        ("other.RunConfigError", "", "config"),
        ("onething.Odd", "", "service"),
        ("onething.ConnectionLost", "", "network"),
        ("", "it was refused", "network"),
        ("", "nothing", None),
    ],
)
def test_that_message_class_words_and_package_tell_the_kind_in_this_order(
    type_name: str, message: str, expected: str | None
) -> None:
    assert TABLE.kind(type_name, message) == expected


def test_that_a_kind_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no kind 'odd'"):
        ExceptionMeanings.model_validate({"classes": {"quux": {"odd": ["X"]}}})
