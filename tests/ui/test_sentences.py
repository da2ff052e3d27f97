"""Errors are told in the reader's language: each kind, and each sentence that the code makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ingest.logs.inputs.encodings import MAGIC
from ingest.logs.inputs.zips import FOREIGN
from service.persistence.triages import INTERRUPTED
from service.schemas.errors import BusyError, InvalidRequestError, LateError
from service.schemas.events import TriageFailed
from service.workers.failures import UNEXPECTED
from service.workers.pool import FORSAKEN, STOPPING
from tests.tables import each_row
from ui import sentences

ROOT = Path(__file__).parents[2]
# What people are told; what is read in part only is a note of a report.
TREES = ("RequestError", "InputError", "TelemetryError", "SettingsError")
_CHINESE = re.compile("[一-鿿]")


@cache
def modules() -> Sequence[tuple[str, Sequence[ast.AST]]]:
    """Read the modules that make errors, their classes and calls.

    Importing them all would load Ray and Gradio.
    """
    paths = [path for top in ("ingest", "service", "ui") for path in sorted((ROOT / top).rglob("*.py"))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return [
        (
            str(path.relative_to(ROOT)),
            [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef | ast.Call)],
        )
        for path, text in texts.items()
        if "Error(" in text
    ]


def kinds(*roots: str) -> set[str]:
    """Give the names of errors and of all that are derived of them."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for _, nodes in modules()
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    found = set(roots)
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return found


def test_that_every_kind_of_error_has_its_chinese_sentence() -> None:
    """A new error without one would be told in English on the Chinese page."""
    names = kinds(*TREES)
    assert len(names) > 35
    assert [
        name
        for name in sorted(names)
        if not _CHINESE.search(sentences.KINDS.get(name.removesuffix("Error"), ""))
    ] == []


def made() -> Iterator[tuple[str, str]]:
    """Give every sentence that the code makes an error of, with a sign where a value goes, and where it
    does.
    """
    names = kinds(*TREES) - kinds("PartialInputError")
    for place, nodes in modules():
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in names
                and node.args
            ):
                yield from ((text, f"{place}:{node.lineno}") for text in spelled(node.args[0]))


def spelled(node: ast.expr) -> Iterator[str]:
    """Give a text as it may read; nothing where the code does not tell."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from spelled(one)
            yield from spelled(other)
        case ast.BinOp(left=left, op=ast.Add()):
            yield from spelled(left)


def test_that_every_sentence_of_an_error_is_known_in_chinese() -> None:
    """By its words, with what it names: the kind's own sentence says less."""
    # A setting's prefix and the file of settings are constants there.
    named = {
        "7LANG is 7; it takes en or zh.",
        "77 is 7; it takes a number.",
        "77 is 7; it takes 7 or more.",
        "7: there is no setting 7; there are 7.",
        "7: 7 takes a text in quotes, not 7.",
    }
    # Words of another's: a validator's, and of a field.
    foreign = {"7: 7", "7: 7.", "--7: 7."}
    found = dict(made())
    assert len(found) > 130
    assert [
        (text, place)
        for text, place in found.items()
        if text not in named | foreign and not sentences.known(text)
    ] == []


@each_row(
    "text",
    [
        STOPPING,
        FORSAKEN,
        UNEXPECTED,
        INTERRUPTED,
        "WHYCRASH_LANG is 'fr'; it takes en or zh.",
        "whycrash.toml: there is no setting modl; there are model.",
    ],
)
def test_that_sentences_of_constants_are_known_too(text: str) -> None:
    assert _CHINESE.search(sentences.known(text))


@each_row("english", sentences.SENTENCES)
def test_that_a_sentence_names_in_chinese_what_it_names_in_english(english: str) -> None:
    """No value is lost, none is put into the place of another's name."""
    values = [f"v{number}" for number in range(english.count("{}"))]
    filled = english.replace("{}", "\0")
    for value in values:
        filled = filled.replace("\0", value, 1)
    chinese = sentences.known(filled)
    assert _CHINESE.search(chinese)
    assert all(value in chinese for value in values)


def test_that_what_a_file_is_instead_of_a_log_is_told_too() -> None:
    """A Chinese sentence around an English name would be half told."""
    whats = {*MAGIC.values(), *(what for _, what in FOREIGN)}
    assert [
        what
        for what in sorted(whats)
        if not _CHINESE.search(sentences.known(f"a.bin is {what}, not a text log."))
    ] == []
    assert [what for what in sorted(whats) if what not in sentences.NAMES] == []


@each_row(
    ("error", "expected"),
    [
        (BusyError("Some new words.", 7.0), "当前请求过多，请 7 秒后重试。"),
        (LateError("Some new words."), "没有在时限内完成。"),
        (InvalidRequestError("Some new words."), "请求的内容不符合要求。（Some new words.）"),
        (
            BusyError("3 triages are under way; try again in 2 seconds.", 2.0),
            "正在处理的分析有 3 个，请 2 秒后重试。",
        ),
    ],
)
def test_that_words_that_are_not_known_are_told_by_their_kind(error: Exception, expected: str) -> None:
    assert sentences.told(error, "zh") == expected
    assert sentences.told(error, "en") == str(error)


@each_row("kind", ["Busy", "BusyError"])
def test_that_a_task_that_failed_is_told_by_the_name_of_its_error(kind: str) -> None:
    """The workers name an error without its ending, the page with it."""
    assert (
        sentences.of_failed(TriageFailed(type=kind, status=429, error="New.", retry_after=3), "zh")
        == "当前请求过多，请 3 秒后重试。"
    )
