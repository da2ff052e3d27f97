"""The settings that a change writes besides the one that it is named by: in a row of code, or in a command.

`tokenizer.pad_token = tokenizer.eos_token` sets what a label calls `pad_token`, and `torchrun
--nproc_per_node=2 train.py` what it calls `nproc_per_node`, though the change is called by its place, or is a
whole command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from corpus.message import words
from corpus.schema import Language

LANGUAGES: tuple[Language, ...] = get_args(Language)

# How an edit is told: what a row is and what it becomes, or what is put beside it.
_BECOMES = " -> "
_INSERTED = ("answer.code-edit-insert-before", "answer.code-edit-insert-after")
# Words on code put what is to be written into signs of code.
_QUOTED = re.compile(r"`([^`\n]{1,400})`")
# A name with a plain value: a number, a text, a name or a variable of the shell, and no outcome of a call.
_ASSIGNED = re.compile(
    r"(?:(?<![\w.=-])(?:--)?|(?P<quote>['\"]))(?P<name>[A-Za-z_][\w.-]{0,80})(?(quote)(?P=quote) ?: ?| ?= ?)"
    r"(?P<value>(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|-?[\w.]{1,80})(?![\w.(\[]))"
)
_OPTION = re.compile(r"(?<!\S)(?P<sign>--?)(?P<name>[A-Za-z][\w.-]{0,80})(?=[ =]|$)")


def written_keys(framework: str, key: str, value: str) -> frozenset[str]:
    """Give the names that a change of code or a command sets; none for others, whose key is the name."""
    if framework == "code":
        return frozenset(_of_code(value))
    return frozenset(match["name"] for match in _OPTION.finditer(key)) if " " in key else frozenset()


def _of_code(told: str) -> Iterator[str]:
    before, becomes, after = told.partition(_BECOMES)
    heads = [words(name, language, after="") for name in _INSERTED for language in LANGUAGES]
    inserted = [told.removeprefix(head) for head in heads if told.startswith(head)]
    rows = [after] if becomes else inserted or _QUOTED.findall(told)
    before = before if becomes else ""
    there = set(_pairs(before))
    for row in rows:
        yield from (name for name, given in _pairs(row) if (name, given) not in there)
        if not becomes:  # of words on code, a command to start the job by
            yield from (match["name"] for match in _OPTION.finditer(row))


def _pairs(row: str) -> Iterator[tuple[str, str]]:
    return ((match["name"], match["value"]) for match in _ASSIGNED.finditer(row))
