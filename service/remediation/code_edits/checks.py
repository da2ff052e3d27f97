"""Check the rows of `corpus/code_edits.yaml` by their own examples and by what their patterns can be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import ndiff
from string import Formatter

from corpus.code_edits import CODE_EDITS, CodeEditExample, CodeEditRow, known_code_edits
from corpus.message import is_chinese
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.edits import CodeEdit, edit_of, statement_of
from service.remediation.code_edits.failing_code import JobFile, failing_code
from service.remediation.code_edits.matching import is_pattern
from service.remediation.code_edits.rewriting import blanks_of
from service.remediation.code_edits.source_text import parsed

_FILE, _PACKAGE = "/job/train.py", "/env/lib/python3.11/site-packages/torch/nn/modules/module.py"


def code_edit_findings() -> list[str]:
    """Give what is wrong in the rows, a sentence each."""
    page = known_code_edits()
    found = [text for row in page.rows for text in (*_row(row), *example_findings(row))]
    found += [
        f"{CODE_EDITS}: import {row.name}: {row.statement!r} is no statement, or {row.used!r} no pattern"
        for row in page.imports
        if parsed(row.statement) is None or (row.used and not is_pattern(row.used))
    ]
    ids = [row.id for row in page.rows]
    return [*found, *(f"{CODE_EDITS}: {name} stands twice" for name in sorted({*ids}) if ids.count(name) > 1)]


def _row(row: CodeEditRow) -> Iterator[str]:
    where = f"{CODE_EDITS}: {row.id}"
    further = [text for also in row.also for text in also.find]
    beside = [text for group in row.beside for text in group]
    for text in (*row.find, *row.then, *row.lacks, *beside, *further):
        if not is_pattern(text):
            yield f"{where}: {text!r} is no pattern"
    if row.edit is None and not row.imports:
        yield f"{where}: nothing is edited"
    groups = {*re.compile(row.expression).groupindex, *row.computes}
    groups |= {"called"} if "callee" in groups else set()
    groups |= {row.table.gives} if row.table else set()
    captures = set(re.findall(r"\$(\w+)", " ".join((*row.find, *row.then, *beside, *further))))
    operators = [*filter(None, [row.edit]), *(also.edit for also in row.also)]
    templates = [*row.find, *row.then, *row.imports, *further]
    templates += [text for operator in operators for text in blanks_of(operator).values()]
    asked = {name for text in templates for name in re.findall(r"\{(\w+)(?:!r)?\}", text)}
    yield from (f"{where}: nothing fills {{{name}}}" for name in sorted(asked - groups - captures))
    unknown = {*row.where, *row.unless, *row.equals} - captures
    yield from (f"{where}: no pattern has ${name}" for name in sorted(unknown))
    for sentence in filter(None, (row.says, row.unproved)):
        told = [
            {name for _, name, _, _ in Formatter().parse(words) if name}
            for words in (sentence.en, sentence.zh)
        ]
        if not is_chinese(sentence.zh) or told[0] != told[1]:
            yield f"{where}: English and Chinese differ: {sentence.en!r}"
        yield from (f"{where}: nothing fills {{{name}}}" for name in sorted(told[0] - groups - captures))


def example_findings(row: CodeEditRow) -> Iterator[str]:
    """Hold a row's examples against what it makes of them."""
    for example in row.examples:
        edit = edit_of_example(row, example)
        made = "" if edit is None else edit.after
        if edit is not None and edit.file is not None:
            rows = ndiff(example.file.split("\n"), edit.text.split("\n"))
            made = " | ".join(row[2:].strip() for row in rows if row.startswith("+ "))
        if made != example.after:
            yield f"{CODE_EDITS}: {row.id}: {example.code!r} becomes {made!r}, not {example.after!r}"


def edit_of_example(row: CodeEditRow, example: CodeEditExample) -> CodeEdit | None:
    """Give the edit of a row for one of its examples."""
    found = re.search(row.expression, example.message) if row.cue in example.message else None
    files = [JobFile("train.py", example.file)] if example.file else []
    rows = [line.strip() for line in example.file.split("\n")]
    line = rows.index(example.code) + 1 if example.code in rows else 3
    function = "<module>" if row.level == "module" else "main"
    frames = [Frame(_FILE, line, function, example.code)]
    if example.raised:
        frames.append(Frame(_PACKAGE, 12, "__call__", "return self._call(args)"))
    code = statement_of(row, list(failing_code(frames, files)))
    return edit_of(row, found, code, files) if found is not None and code is not None else None
