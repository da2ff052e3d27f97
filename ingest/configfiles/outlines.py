"""Read `key: value` rows that indentation nests: YAML as OmegaConf, a tool or a person writes it.

Only the shapes that configurations take: mappings, lists, flow values, block and folded scalars. Row by row,
so that each setting has its line and a print that is cut still tells what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ingest.configfiles import literals
from ingest.configfiles.literals import MAX_ENTRIES, LiteralEntry, unquoted

_ROW = re.compile(
    r"(?P<indent> *)(?P<dash>(?:- +)?)(?P<key>\"[^\"]+\"|'[^']+'|[\w$@/~+-][\w.$@/~+-]*)\s*:(?: "
    r"+(?P<value>.*))?"
)
_ITEM = re.compile(r"(?P<indent> *)-(?: +(?P<value>.*))?")
# What a folded or literal scalar opens with: `|`, `>-`, `|2`.
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?")
_MARK = re.compile(r"(?:[&!][\w.:/-]+ +)+")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTED = re.compile(r"(?P<text>'(?>(?:[^']|'')*)'|\"(?>(?:[^\"\\]|\\.)*)\")\s*(?:#.*)?")
# How long a value over several rows may get.
_LONGEST = 20_000


@dataclass
class Outline:
    """The settings of an outline, and the rows' place in it."""

    entries: list[LiteralEntry] = field(default_factory=list)
    _path: list[tuple[int, str]] = field(default_factory=list)
    _lists: dict[str, tuple[list[str], int]] = field(default_factory=dict)
    _value: str = ""
    _more: list[str] = field(default_factory=list)
    _depth: int = 0
    _key: str = ""
    _line: int = 0
    _block: bool = False

    def feed(self, body: str, line: int) -> bool:
        """Read one more row; gives False where it is none of an outline's."""
        text = body.rstrip()
        plain = text.lstrip()
        indent = len(text) - len(plain)
        if (
            self._key
            and plain
            and indent > (self._path[-1][0] if self._path else -1)
            # More of the value before: that is open, or no name stands here.
            and (
                self._block
                or (self._value and (self._depth > 0 or not (_ROW.fullmatch(text) or _ITEM.fullmatch(text))))
            )
        ):
            self._more.append(plain[:_LONGEST])
            self._depth += literals.depth(plain)
            return True
        if not plain or plain[0] == "#" or plain in ("---", "..."):
            return True
        self._end()
        if match := _ROW.fullmatch(text):
            return self._named(match, line)
        if match := _ITEM.fullmatch(text):
            return self._item(len(match["indent"]), match["value"] or "", line)
        return False

    def finish(self) -> list[LiteralEntry]:
        """Take the last value and the lists, and give all."""
        self._end()
        lists = [
            LiteralEntry(path, f"[{', '.join(values)}]", line) for path, (values, line) in self._lists.items()
        ]
        self._lists = {}
        return sorted([*self.entries, *lists], key=lambda entry: entry.line)

    def _named(self, match: re.Match[str], line: int) -> bool:
        indent = len(match["indent"]) + len(match["dash"])
        if match["dash"]:
            self._leave(len(match["indent"]) + 1)
        self._leave(indent)
        self._path.append((indent, unquoted(match["key"])))
        self._key = ".".join(key for _, key in self._path)
        self._line = line
        value = _bare(match["value"] or "")
        self._block = bool(_BLOCK.fullmatch(value))
        self._value = "" if self._block else value
        self._depth = literals.depth(value) if value[:1] in ("[", "{") else 0
        return len(self.entries) < MAX_ENTRIES

    def _item(self, indent: int, value: str, line: int) -> bool:
        self._leave(indent + 1)
        path = ".".join(key for _, key in self._path)
        values, _ = self._lists.setdefault(path, ([], self._line or line))
        if len(values) < MAX_ENTRIES:
            values.append(_scalar(_bare(value)))
        return True

    def _leave(self, indent: int) -> None:
        """Close what stands as deep as `indent` or deeper."""
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()

    def _end(self) -> None:
        """Take the value that the next row ends."""
        key, value = self._key, " ".join([self._value, *self._more])[:_LONGEST].strip()
        self._key, self._value, self._more, self._block = "", "", [], False
        if not key or not value:
            return
        if value[0] == "{":
            self.entries += literals.entries([(self._line, value[1:])], is_call=False, path=f"{key}.") or [
                LiteralEntry(key, value, self._line)
            ]
        else:
            self.entries.append(LiteralEntry(key, _scalar(value), self._line))


def _bare(value: str) -> str:
    """Take a comment, an anchor and a tag off a value."""
    value = _MARK.sub("", value, count=1) if value[:1] in "&!" and value else value
    if match := _QUOTED.fullmatch(value):
        return match["text"]
    return value if value[:1] in ("'", '"') else _COMMENT.sub("", value, count=1).strip()


def _scalar(value: str) -> str:
    if value[:1] == "'" == value[-1:] and len(value) > 1:
        return value[1:-1].replace("''", "'")
    return unquoted(value)


def entries(rows: Iterable[tuple[int, str]]) -> list[LiteralEntry]:
    """Read rows to the first that is none of an outline's."""
    outline = Outline()
    for line, text in rows:
        if not outline.feed(text, line):
            break
    return outline.finish()
