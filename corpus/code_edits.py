"""How a failing statement of the job's own code is to be edited: the rows of `code_edits.yaml`.

A pattern is Python in which `$name` stands for any expression, `...` among a call's arguments for all that
the pattern does not name, as in `{$key: $value, ...: ...}` for a dict's other items, and `@name` for a name
with or without what it is asked of (`@Linear` is `nn.Linear` and `Linear`). A number stands for any
arithmetic of numbers that gives it. `{name}` is filled by a group of the message, a value of the row's
`table` or one of `computes`; `{name!r}` as text in quotes. What
a message fills without quotes is a name, a dotted name or a number, and nothing else: others write messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpus.library import pages, parse_yaml, read_yaml, validated_table
from corpus.schema import Expression, Record, Text

CODE_EDITS = "code_edits.yaml"
_CUE = re.compile(r"^  cue: (.+)$", re.MULTILINE)
CodePattern = Annotated[str, Field(min_length=1)]
# What is looked for among names that the message does not tell.
NameSource = Literal[
    "near-name",
    "near-option",
    "near-key",
    "near-parameter",
    "near-listed",
    "import",
    "local-of-name",
    "first-local",
    "module-name",
    "first-given",
    "loop-steps",
    "loop-row",
    "saved-key",
    "own-method",
    "near-attribute",
    "asked-as-truth",
    "kept-container",
    "method-without-self",
    "enclosing-class",
]


class CodeEditExample(Record):
    """A message and the statement that it came of, with what that becomes; empty where nothing follows.

    `code` is what the traceback quotes. With `file`, the job's own file is at hand, and `code` one of its
    rows; `after` is then what the changed rows of the file are, joined by ` | `. `raised` tells that a
    package raised it below the statement.
    """

    message: str
    code: str
    file: str = ""
    after: str = ""
    raised: bool = False


class ComputedName(Record):
    """A name that fills a blank: found by a `NameSource`, for the name that the group `of` holds.

    `saved-key` is the key of a dict that the job's files save and that shares a word with the name;
    `loop-steps` is how often the loops around the statement turn, as code of the same function; `loop-row` is
    what the innermost loop around it goes over, where the statement reads it. `own-method` is the name itself
    where the class around the statement has such a method, `enclosing-class` that class's name;
    `near-attribute` is looked for among what the job's class of the group `type` has; `asked-as-truth` is the
    name itself where the statement only asks whether such an attribute is true; `kept-container` is what the
    statement indexes by the number of the loop around it, which the loop does not set anew;
    `method-without-self` is the name itself where one class of the job's has such a method, which takes no
    object.
    Of `choices`, a `first-local` is the first that the failing statement can read, and `first-given` the
    first group that the message fills; a number among them stands for itself.
    """

    by: NameSource
    of: str = "name"
    choices: tuple[str, ...] = ()


class ValueTable(Record):
    """What a message's groups, joined by a blank, come to; that fills the blank `gives`."""

    of: tuple[str, ...]
    gives: str
    rows: Mapping[str, str]


class CodeOperator(Record):
    """What is done at what was found; the fields are operators, and one row may have one of them.

    `write` puts an expression in place of it, or of the capture that `at` names. `arguments` sets keyword
    arguments of a call, `drop` takes one out, `rename` gives one another name. `before` and `after` insert
    statements around the one that holds it, `guard` puts that statement into a block under this head, which
    `rescue` ends (`try:`, `except ValueError:`).
    `unimport` takes a name out of an import and puts the import `instead` before it.
    `statement` puts a statement in place of the one that holds it. `parameter` gives a function definition
    one more: first where it is a bare name (`self`), else behind the others (`name=None`, `*more`).
    """

    at: str = ""
    write: str = ""
    arguments: Mapping[str, str] = Field(default_factory=dict)
    drop: str = ""
    rename: Mapping[str, str] = Field(default_factory=dict)
    before: str = ""
    after: str = ""
    guard: str = ""
    rescue: str = ""
    unimport: str = ""
    instead: str = ""
    statement: str = ""
    parameter: str = ""

    @model_validator(mode="after")
    def _one(self) -> CodeOperator:
        given = [
            name
            for name in (
                "write",
                "arguments",
                "drop",
                "rename",
                "before",
                "after",
                "guard",
                "unimport",
                "statement",
                "parameter",
            )
            if getattr(self, name)
        ]
        if len(given) != 1:
            raise ValueError(f"one operator is wanted, not {given or 'none'}")
        return self


class FurtherEdit(Record):
    """What is edited besides, within what was edited first: wherever one of the patterns stands in it."""

    find: Annotated[tuple[CodePattern, ...], Field(min_length=1)]
    edit: CodeOperator


class CodeEditRow(Record):
    """What a message says of the statement that it came of, and the edit that follows.

    `cue` stands in every such message; `expression` is searched in the failing line, the exception's type
    before its message, and, where it `reads` `below`, in the rows under it. `raised` tells where the
    exception came from: the statement of the job's own code itself (`here`), a package that it called
    (`below`), or either; of `level` `module` the statement is not the innermost one of the job's own code,
    but that on the top level of its file which led there.

    `find` are patterns of what the statement holds, `...` of any statement; the first that occurs counts, and
    only where it occurs once, or is written alike everywhere, unless `every` takes all. `where` and `unless`
    are expressions over the source of captures: each of the former must be found, none of the latter;
    `equals` says to which group's number a capture comes, also by a name that is set to one number alone.
    `then` are patterns of another place, which is edited in its stead: in the same function, the same file or
    any of the job's files (`within`), found there once; `above` is the last one before the statement in its
    function. Of each group of `beside` one pattern stands in the edited file too, with the same
    captures, and none of `without` does. `lacks` are patterns that stand nowhere in the file. An edit
    that `spreads` is made wherever its pattern stands in the function or in the file; within a function
    only of the same `$x`, within a file of the same `$m`. `$x.$name` also captures the name of an
    attribute, which then fills `{name}`; `equals` is asked of the failing statement alone. `also` is
    edited with it, and nothing is where one of its patterns does not stand there. Without an `edit` only
    `imports` are added at
    the top of the file, where it does not have them.

    `sure` is `named` where the message names the very thing that the edit changes, so that it goes before
    remedies that are general; `usual` where others are possible too. `unproved` is what the edit does not
    prove.
    """

    id: str
    cue: Annotated[str, Field(min_length=2)]
    expression: Expression
    reads: Literal["line", "below"] = "line"
    raised: Literal["here", "below", "any"] = "here"
    level: Literal["call", "module"] = "call"
    find: Annotated[tuple[CodePattern, ...], Field(min_length=1)]
    where: Mapping[str, Expression] = Field(default_factory=dict)
    unless: Mapping[str, Expression] = Field(default_factory=dict)
    equals: Mapping[str, str] = Field(default_factory=dict)
    every: bool = False
    then: tuple[CodePattern, ...] = ()
    within: Literal["above", "function", "file", "files"] = "file"
    beside: tuple[tuple[CodePattern, ...], ...] = ()
    without: tuple[CodePattern, ...] = ()
    spreads: Literal["", "function", "file"] = ""
    lacks: tuple[CodePattern, ...] = ()
    table: ValueTable | None = None
    computes: Mapping[str, ComputedName] = Field(default_factory=dict)
    edit: CodeOperator | None = None
    also: tuple[FurtherEdit, ...] = ()
    imports: tuple[str, ...] = ()
    sure: Literal["named", "usual"] = "usual"
    says: Text
    unproved: Text | None = None
    examples: Annotated[tuple[CodeEditExample, ...], Field(min_length=1)]


class ImportedName(Record):
    """A name that code uses without a definition, and the statement that brings it.

    Where `used` is given, only a statement that holds that pattern means it.
    """

    name: str
    used: str = ""
    statement: str


class CodeEditPage(Record):
    """One file of such rows."""

    imports: tuple[ImportedName, ...] = ()
    # Calls that do the same as another one, by their names.
    alike: Mapping[str, str] = Field(default_factory=dict)
    rows: tuple[CodeEditRow, ...]


@cache
def _cues() -> tuple[str, ...]:
    """Give the cues of the rows that ship, read without the rest; none where another folder adds rows."""
    files = pages(CODE_EDITS)
    told = _CUE.findall(files[0].read_text(encoding="utf-8")) if len(files) == 1 else []
    return tuple(map(str, parse_yaml("\n".join(f"- {text}" for text in told), files[0]))) if told else ()


def may_follow(text: str) -> bool:
    """Tell whether a row may speak of a message: most logs need none of the table, which takes a while."""
    return not _cues() or any(cue in text for cue in _cues())


@cache
def known_code_edits() -> CodeEditPage:
    """Give the rows of every folder of knowledge; raises InvalidCorpusError naming the field."""
    found = [validated_table(CodeEditPage, read_yaml(path), path) for path in pages(CODE_EDITS)]
    return CodeEditPage(
        imports=tuple(row for page in found for row in page.imports),
        alike={name: other for page in found for name, other in page.alike.items()},
        rows=tuple(row for page in reversed(found) for row in page.rows),
    )
