"""The table of patterns and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from corpus import log_patterns, phases
from corpus.errors import InvalidCorpusError
from corpus.library import KNOWLEDGE, ROOT, read_yaml
from corpus.log_patterns import PatternTable
from ingest.logs.scanner import Scanner
from tests.ingest.logs.test_scanner import whole
from tests.tables import each_row

ROW = (
    "- {id: a.boom, kind: error, role: origin, expression: 'boom (?P<rank>\\d+)', examples: ['boom 1'], "
    "near: ['bloom 1']}\n"
)


def write_table(root: Path, name: str, text: str) -> None:
    (root / "patterns").mkdir(exist_ok=True)
    (root / "patterns" / name).write_text(text, encoding="utf-8")


@each_row(
    ("text", "message"),
    [
        (ROW.replace("kind: error", "kind: disaster"), r"a\.yaml: a\.boom: kind"),
        (ROW.replace("role: origin", "role: hero"), r"a\.yaml: a\.boom: role"),
        (ROW.replace("near:", "nearly:"), r"a\.yaml: a\.boom: nearly: Extra"),
        (ROW.replace("id: a.boom, ", ""), r"a\.yaml: None: id: Field required"),
        (
            ROW.replace("role: origin", "refine: [{when: ['what'], cause: x}]"),
            r"a\.boom: refine\.0\.when\.0: .*there is no what",
        ),
        (ROW + ROW, r"two patterns are called 'a\.boom'"),
        ("- {id: [unclosed\n", r"a\.yaml"),
        ("a.boom: {}\n", r"a\.yaml"),
        ("defaults: {kind: error}\n", r"a\.yaml"),
        ("- {id: a.bare, kind: error}\n", r"a\.bare: .*needs an expression"),
    ],
)
def test_a_broken_table_names_file_row_and_field(tmp_path: Path, text: str, message: str) -> None:
    """Whoever adds a pattern learns where it is wrong."""
    write_table(tmp_path, "a.yaml", text)
    with pytest.raises(InvalidCorpusError, match=message):
        log_patterns.load(tmp_path)


def test_tables_of_a_folder_are_one(tmp_path: Path) -> None:
    """Files are taken by name, rows by place."""
    write_table(tmp_path, "b.yaml", ROW.replace("a.boom", "b.boom"))
    write_table(tmp_path, "a.yaml", ROW + ROW.replace("a.boom", "a.second"))
    loaded = log_patterns.load(tmp_path)
    assert [row.id for row in loaded.rows] == ["a.boom", "a.second", "b.boom"]
    assert loaded.by_id["b.boom"] is loaded.rows[2]


def test_a_cached_table_is_the_same_until_a_file_changes(tmp_path: Path) -> None:
    """The cache follows the files' content."""
    cache = tmp_path / "cache"
    write_table(tmp_path, "a.yaml", ROW)
    first = log_patterns.load(tmp_path, cache)
    assert first == log_patterns.load(tmp_path, cache) == log_patterns.load(tmp_path)
    write_table(tmp_path, "a.yaml", ROW.replace("a.boom", "a.other"))
    assert [row.id for row in log_patterns.load(tmp_path, cache).rows] == ["a.other"]


def test_patterns_of_failures_name_their_frameworks_and_examples(table: PatternTable) -> None:
    """Every failure's row shows at least one line that it was seen in."""
    assert len(table.rows) > 800
    assert [row.id for row in table.rows if row.fails and not row.examples] == []


def test_that_each_handler_has_a_row(table: PatternTable) -> None:
    """Else the reader would leave out what it is there for."""
    assert set(table.by_handler) == set(get_args(log_patterns.Handler))
    assert {row.handler for row in table.made} == log_patterns.MADE


def test_that_a_files_defaults_hold_for_its_rows_unless_one_says_otherwise(tmp_path: Path) -> None:
    rows = ROW + ROW.replace("a.boom", "a.second").replace("kind: error", "kind: error, shows: [b]")
    write_table(tmp_path, "a.yaml", f"defaults: {{shows: [a], survivable: true}}\nrows:\n{rows}")
    loaded = log_patterns.load(tmp_path)
    assert [(row.shows, row.survivable) for row in loaded.rows] == [(("a",), True), (("b",), True)]


def test_that_a_folder_of_knowledge_adds_patterns_meanings_and_phases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it adds counts before what ships, which stays."""
    shipped, phase = log_patterns.load(), phases.load().of_call("job.py:dream_step")
    write_table(tmp_path, "a.yaml", ROW)
    (tmp_path / "exceptions.yaml").write_text(
        "meanings: [{cause: nan-or-inf, types: Toy, messages: [misuse]}]\n"
    )
    (tmp_path / "phases.yaml").write_text(
        "- {name: dream, title: {en: while dreaming, zh: 做梦时}, calls: dream_step}\n", encoding="utf-8"
    )
    monkeypatch.setenv(KNOWLEDGE, str(tmp_path))
    own = log_patterns.load()
    assert (phase, own.by_id.keys() - shipped.by_id.keys()) == (None, {"a.boom"})
    assert (shipped.own, own.own, own.rows[-1].id) == (0, 1, "a.boom")
    assert [row.cause for row in own.exceptions.meanings][:1] == ["nan-or-inf"]
    assert own.exceptions.meanings[1:] == shipped.exceptions.meanings
    assert [found and found.name for found in map(phases.load().of_call, ("job.py:dream_step", "save"))] == [
        "dream",
        "save",
    ]
    assert log_patterns.digest() != log_patterns.digest(ROOT)


def test_that_the_rows_of_a_folder_of_knowledge_are_told_from_what_ships_when_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of checked rows says which those are."""
    write_table(tmp_path, "a.yaml", ROW)
    monkeypatch.setenv(KNOWLEDGE, str(tmp_path))
    monkeypatch.setattr(log_patterns, "loaded_once", lambda _kind, _digest, _stored, load: load()[1])
    assert [log_patterns.load(cache=tmp_path / "cache").own for _ in range(2)] == [1, 1]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_case_is_ignored_only_where_the_row_says_so() -> None:
    """`re` follows the same flag as Hyperscan."""
    row = log_patterns.Pattern(id="a", kind="error", expression="boom", examples=())
    assert row.compiled.search("BOOM") is None
    assert row.model_copy(update={"caseless": True}).compiled.search("boom") is not None
    assert log_patterns.Pattern(
        id="a", kind="error", expression="boom", examples=(), caseless=True
    ).compiled.search("BOOM")


def test_that_rows_with_the_systems_words_read_them_in_its_other_languages(
    table: PatternTable, pattern_cache: Path
) -> None:
    """As written in `system_words.yaml`, which no row repeats; the scanner and the row agree."""
    words: dict[str, list[str]] = read_yaml(ROOT / log_patterns.SYSTEM_WORDS)
    lines = [
        (row.id, example.replace(english, other))
        for row in table.rows
        for example in row.examples
        for english, others in words.items()
        if english in example and english in row.expression
        for other in others
    ]
    assert {words[0] for words in lines} >= {"linux.enospc", "python.file-not-found", "linux.bus-error"}
    compiled = Scanner(table.rows, pattern_cache)
    unread = [(name, line) for name, line in lines if not _reads(compiled, table, name, line)]
    assert unread == []


def _reads(compiled: Scanner, table: PatternTable, name: str, line: str) -> bool:
    compiled.fresh()
    found = {table.rows[match.row].id for match in compiled.matches(whole(line.encode()))}
    return name in found and table.by_id[name].compiled.search(line) is not None


def test_that_a_pattern_finds_what_its_expression_does() -> None:
    """One that begins with an anchor is tried at the beginning alone, which gives the same match."""
    rows = log_patterns.load().rows
    assert 0 < sum(row.finds == row.compiled.match for row in rows) < len(rows)
    for row in rows:
        for line in (*row.examples, *row.near):
            for text in (line, f"[rank3]: {line}", f"x\n{line}", f"{line}\n{line}"):
                found, searched = row.finds(text), row.compiled.search(text)
                assert (found and found.span()) == (searched and searched.span()), row.id
