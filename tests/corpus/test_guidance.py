"""Guidance in Chinese: how it is read, and that what ships is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corpus import library
from corpus.errors import InvalidCorpusError
from corpus.library import Library, chinese_guidance, dump_yaml
from corpus.schema import Language, Scalar
from tests.corpus.test_library import write_corpus
from tests.factories import whole_corpus
from tests.tables import each_row

ROW = {"en": "the node that failed", "zh": "出故障的节点"}
# Names, numbers and versions, which are the same in both languages.
NAME = re.compile(r"[A-Za-z_]*[_\d][\w.]*\w")


def write(root: Path, *rows: dict[str, str]) -> Path:
    """Write a corpus with these rows of guidance."""
    write_corpus(root)
    (root / "guidance.yaml").write_text(dump_yaml(list(rows)), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def shipped() -> Library:
    """The corpus that ships."""
    return whole_corpus()


@each_row(
    ("value", "language", "told"),
    [
        ("the node that failed", "zh", "出故障的节点"),
        ("the node that failed", "en", "the node that failed"),
        ("a text without a row", "zh", "a text without a row"),
        (128, "zh", 128),
        (True, "zh", True),
        ("auto", "zh", "auto"),
    ],
)
def test_that_guidance_is_given_in_the_language_and_values_as_they_are(
    value: Scalar, language: Language, told: Scalar, tmp_path: Path
) -> None:
    assert library.load(write(tmp_path, ROW)).settings_named(value, language) == told


def test_that_guidance_comes_back_out_of_the_cache_and_changes_the_digest(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "corpus")
    before, bare = library.digest(root), library.load(root, tmp_path / "cache")
    write(root, ROW)
    loaded = library.load(root, tmp_path / "cache")
    assert library.digest(root) != before
    assert (bare.guidance, loaded.guidance) == ({}, {ROW["en"]: ROW["zh"]})
    assert library.load(root, tmp_path / "cache").guidance == loaded.guidance


@each_row(
    ("rows", "told"),
    [
        ([ROW, ROW], "stands twice"),
        ([{"en": "the node"}], "zh: Field required"),
        ([{**ROW, "fr": "le nœud"}], "fr"),
    ],
)
def test_that_a_wrong_row_is_named_with_its_file(
    rows: list[dict[str, str]], told: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidCorpusError, match=rf"guidance.yaml: .*{told}"):
        library.load(write(tmp_path, *rows))


def test_that_all_guidance_of_cases_and_remedies_has_chinese(shipped: Library) -> None:
    changes = [change for case in shipped.cases.values() for change in case.changes]
    changes += [row for rows in shipped.remedies.values() for row in rows]
    words = {
        change.to
        for change in changes
        if isinstance(change.to, str) and re.search(r"[A-Za-z)] [a-z(]", change.to)
    }
    assert len(words) > 150
    assert words - shipped.guidance.keys() == set()


def test_that_the_chinese_keeps_the_names_and_numbers(shipped: Library) -> None:
    lost = {en: name for en, zh in shipped.guidance.items() for name in NAME.findall(en) if name not in zh}
    assert lost == {}


def test_that_no_chinese_is_left_english(shipped: Library) -> None:
    assert [zh for zh in shipped.guidance.values() if not re.search(r"[一-鿿]", zh)] == []
    assert chinese_guidance() == frozenset(shipped.guidance.values())
