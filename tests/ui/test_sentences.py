"""Errors are told in the reader's language: each is raised with a message, and each kind has a sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache

from corpus.message import Message, is_chinese, is_message, words
from service.schemas.errors import BusyError, InvalidRequestError, LateError
from service.schemas.events import TriageFailed
from tests import syntax
from tests.tables import each_row
from ui import sentences

# What people are told; what is read in part only is a note of a report.
TREES = ("RequestError", "InputError", "TelemetryError", "SettingsError")


@cache
def modules() -> Sequence[tuple[str, Sequence[ast.AST]]]:
    """Read the modules that make errors, their classes and calls.

    Importing them all would load Ray and Gradio.
    """
    return [
        (module.name, [node for node in module.nodes if isinstance(node, ast.ClassDef | ast.Call)])
        for module in syntax.modules("ingest", "service", "ui")
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
    rows = {name: f"kinds.{name.removesuffix('Error')}" for name in names}
    assert [
        name
        for name, row in sorted(rows.items())
        if not (is_message(row) and is_chinese(words(row, "zh", wait=1)))
    ] == []


def unworded() -> Iterator[str]:
    """Name the places where an error is made of a plain text, and that text."""
    names = kinds(*TREES) - kinds("PartialInputError")
    for place, nodes in modules():
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in names
                and node.args
            ):
                yield from (f"{place}: {text}" for text in plain(node.args[0]))


def plain(node: ast.expr) -> Iterator[str]:
    """Give the texts that stand for themselves in an expression; those within a call are its own matter."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield ast.unparse(node)
        case ast.IfExp(body=one, orelse=other):
            yield from plain(one)
            yield from plain(other)
        case ast.BinOp(left=left, op=ast.Add()):
            yield from plain(left)


def test_that_every_error_is_raised_with_a_message() -> None:
    """Of a plain text a Chinese reader would be told the error's kind alone."""
    # Words of another's: a validator's, with the name of a field.
    foreign = {"ui/chat/page.py", "ui/job_outcomes.py"}
    found = sorted(unworded())
    assert [text for text in found if text.split(":")[0] not in foreign] == []
    assert len(found) == len(foreign)


@each_row(
    ("error", "expected"),
    [
        (BusyError("Some new words.", 7.0), "当前请求过多，请 7 秒后重试。"),
        (LateError("Some new words."), "没有在时限内完成。"),
        (InvalidRequestError("Some new words."), "请求的内容不符合要求。（Some new words.）"),
        (
            BusyError(Message("errors.triages-way-try-again", open=3, wait="2"), 2.0),
            "正在处理的分析有 3 个，请 2 秒后重试。",
        ),
    ],
)
def test_that_words_of_others_are_told_by_the_kind_of_their_error(error: Exception, expected: str) -> None:
    assert sentences.error_sentence(error, "zh") == expected
    assert sentences.error_sentence(error, "en") == str(error)


@each_row("kind", ["Busy", "BusyError"])
def test_that_a_task_that_failed_is_told_by_the_name_of_its_error(kind: str) -> None:
    """The workers name an error without its ending, the page with it."""
    assert (
        sentences.of_failed(TriageFailed(type=kind, status=429, error="New.", retry_after=3), "zh")
        == "当前请求过多，请 3 秒后重试。"
    )
