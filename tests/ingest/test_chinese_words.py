"""Chinese is cut as jieba cuts it, without its dictionary in memory."""

from __future__ import annotations

import re
from pathlib import Path

import jieba
import pytest

from ingest import chinese_words
from ingest.chinese_words import WordFrequencies

CATALOGUES = Path(__file__).parent.parent.parent / "corpus" / "messages"


def test_that_runs_are_cut_as_by_the_dictionary_itself(tmp_path: Path) -> None:
    """Each run of the catalogues' own Chinese, words that no dictionary has among them."""
    chinese_words.write(tmp_path / "words")
    cut = chinese_words.cutter(tmp_path / "words")
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(CATALOGUES.glob("*.yaml")))
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    assert len(runs) > 1000
    assert [list(cut(run)) for run in runs] == [list(jieba.cut_for_search(run)) for run in runs]


def test_that_a_second_table_does_not_read_the_dictionary_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that takes files in again and again writes one with each index."""
    chinese_words.write(tmp_path / "first")
    monkeypatch.setattr(jieba.Tokenizer, "gen_pfdict", None)
    chinese_words.write(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_that_a_beginning_is_known_and_counts_nothing(tmp_path: Path) -> None:
    """What a word begins with goes on, what none begins with ends the search."""
    WordFrequencies.of({"ab": 3, "a": 0, "abc": 7}).write(tmp_path / "words")
    read = WordFrequencies.read(tmp_path / "words")
    assert [read.get(word) for word in ("a", "ab", "abc", "b")] == [0, 3, 7, None]
    assert ("a" in read, "b" in read, read.total) == (True, False, 10)
    with pytest.raises(KeyError):
        read["b"]
