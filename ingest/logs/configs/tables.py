"""Read the rows of a print: nested by indentation, `key=value,`, `key: value`, or joined by dots.

Each reader stops where the rows are of its kind no more; some rows of other writers may stand between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.configfiles import literals, outlines
from ingest.configfiles.literals import LiteralEntry
from ingest.logs.configs.settings import ConfigLine

# Rows of other writers that may stand in a print without ending it.
STRANGERS = 40

Rows = Iterator[ConfigLine]

_NESTED_ROW = re.compile(r"\s|[\])}]+,?\s*$")
_CALL_ROW = re.compile(r"(?P<key>[A-Za-z_]\w*)=(?P<value>.*)$")
_DOTTED_ROW = re.compile(r"\s*(?P<key>[A-Za-z_][\w.-]*) (?:\.+ | )(?P<value>.*)$")
_COLON_ROW = re.compile(r"(?:[^\]]{0,120}\])?\s+(?P<key>[a-z_]\w*)\s*: (?P<value>.*)$")
_BLOCK_ROW = re.compile(r"\s*(?:[-*] )?(?P<key>[A-Za-z_][\w.-]*)\s*[:=]\s+(?P<value>\S.*)$")
_REMARK = re.compile(r"\s*(?:#.*)?")
_ASSIGNED_ROW = re.compile(
    r"(?P<key>[A-Za-z_]\w*) ?= ?(?P<value>'[^'\n]*'|\"[^\"\n]*\"|[^\s#'\"][^#\n]*?)\s*(?:#.*)?"
)
_RULE = re.compile(r"[-=*#_ ]*$")
_ENDS = re.compile(r"-{3,} end of ")


def nested(rows: Rows) -> Iterator[ConfigLine]:
    """Give the rows that go on with an indented print, and leave out what others wrote between."""
    strangers = 0
    for row in rows:
        if _NESTED_ROW.match(row.body):
            strangers = 0
            yield row
        elif (strangers := strangers + 1) > STRANGERS:
            return


def call_rows(rows: Rows) -> Iterator[LiteralEntry]:
    """Read transformers' print of its arguments, whose values are not quoted."""
    strangers = 0
    for row in rows:
        if row.body.strip() == ")":
            return
        if match := _CALL_ROW.match(row.body):
            strangers = 0
            yield from valued(match["key"], match["value"].strip().removesuffix(","), row.number)
        elif (strangers := strangers + 1) > STRANGERS:
            return


def valued(key: str, value: str, line: int) -> list[LiteralEntry]:
    """Give a setting, or those below it where its value is a mapping."""
    if value[:1] == "{" and value[1:].strip() not in ("", "}"):
        return literals.entries([(line, value[1:])], is_call=False, path=f"{key}." if key else "") or [
            LiteralEntry(key, value, line)
        ]
    return [LiteralEntry(key, literals.unquoted(value.strip()), line)]


def block(rows: Rows) -> Iterator[LiteralEntry]:
    """Read a block of `key: value` or `key = value` rows, nested by indentation or not."""
    taken = list(_while_block(rows))
    if all(re.match(r"\s*(?:[-*] )?[\w.-]+\s*=", row.body) for row in taken):
        matches = ((row.number, match) for row in taken if (match := _BLOCK_ROW.match(row.body)))
        yield from (
            LiteralEntry(match["key"], literals.unquoted(match["value"].strip()), number)
            for number, match in matches
        )
        return
    yield from outlines.entries((row.number, re.sub(r"^(\s*[\w.-]+)\s+:", r"\1:", row.body)) for row in taken)


def assigned(rows: Rows) -> Iterator[LiteralEntry]:
    """Read a file of Python that is printed as it is: plain names with plain values, and remarks."""
    for row in rows:
        if _REMARK.fullmatch(row.body):
            continue
        match = _ASSIGNED_ROW.fullmatch(row.body)
        if match is None:
            return
        yield LiteralEntry(match["key"], literals.unquoted(match["value"]), row.number)


def _while_block(rows: Rows) -> Iterator[ConfigLine]:
    begun = False
    for row in rows:
        if not begun and _RULE.match(row.body):
            continue
        if not (_BLOCK_ROW.match(row.body) or re.match(r"\s*(?:- .*|[\w.-]+:\s*)$|\s{2,}\S", row.body)):
            return
        begun = True
        yield row


def until_blank(rows: Rows) -> Iterator[ConfigLine]:
    """Give the rows up to a blank one."""
    for row in rows:
        if not row.body.strip():
            return
        yield row


def dotted_rows(rows: Rows) -> Iterator[LiteralEntry]:
    """Read Megatron's `name ..... value` rows to the last line of the table."""
    strangers = 0
    for row in rows:
        if _ENDS.match(row.body):
            return
        if match := _DOTTED_ROW.match(row.body):
            strangers = 0
            yield LiteralEntry(match["key"], match["value"].strip(), row.number)
        elif (strangers := strangers + 1) > STRANGERS:
            return


def elastic_rows(rows: Rows) -> Iterator[LiteralEntry]:
    """Read torch elastic's `name : value` rows."""
    for row in rows:
        found = _COLON_ROW.match(row.body)
        if found is None:
            return
        yield from valued(found["key"], found["value"].strip(), row.number)
