"""The settings of TOML and INI files: sections in brackets, and `key = value`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from corpus.schema import Scalar
from ingest.configfiles import literals
from ingest.configfiles.settings import Setting, TextEdit, named_as_printed, place_at

_SECTION = re.compile(r"\s*\[{1,2}(?P<name>[\w.\"' -]+)\]{1,2}\s*(?:#.*)?$")
_PAIR = re.compile(r"\s*(?P<key>[\w.\"-]+)\s*=\s*(?P<value>.*)$")
_QUOTED = re.compile(r"'([^']*)'|\"((?>(?:[^\"\\]|\\.)*))\"")
_SINGLE = re.compile(r"[\w.+-]+")


def is_section(row: str) -> bool:
    """Tell whether a row names a section."""
    return _SECTION.match(row) is not None


def read(text: str) -> list[Setting]:
    """Read the pairs of all sections; a value over several rows has no place."""
    found: list[Setting] = []
    section, offset = "", 0
    for row in text.split("\n"):
        if match := _SECTION.match(row):
            section = re.sub(r"[\"' ]", "", match["name"]) + "."
        elif match := _PAIR.match(row):
            found += _setting(text, section, offset, match)
        offset += len(row) + 1
    return found


def _setting(text: str, section: str, offset: int, pair: re.Match[str]) -> Iterator[Setting]:
    """Make the setting of a pair in the row at `offset`; none where its key is no setting's name."""
    raw = written_value(pair["value"])
    start = offset + pair.start("value")

    def edit(to: Scalar) -> TextEdit:
        # A string keeps its quotes, and stays without them where it had none and needs none.
        new = str(to).lower() if isinstance(to, bool) else str(to)
        is_quoted = text[start : start + 1] in "'\""
        written = json.dumps(new, ensure_ascii=False) if is_quoted else new
        return TextEdit(start, start + len(raw), written)

    is_whole = _SINGLE.fullmatch(raw) or _QUOTED.fullmatch(raw)
    place = place_at(text, start, section[:-1], edit) if is_whole else None
    line = text.count("\n", 0, offset) + 1
    if setting := named_as_printed(section + pair["key"].strip('"'), unquoted(raw), line, "dump"):
        yield replace(setting, place=place)


def written_value(rest: str) -> str:
    """Give a value as it is written, without the comment behind it."""
    rest = rest.strip()
    if quoted := _QUOTED.match(rest):
        return quoted[0]
    return re.sub(r"(?:^|\s)#.*", "", rest).strip()


def unquoted(value: str) -> str:
    """Take the quotes off a value."""
    quoted = _QUOTED.fullmatch(value)
    if quoted is None:
        return value
    return quoted[1] if quoted[1] is not None else literals.unquoted(quoted[0])
