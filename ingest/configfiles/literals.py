"""Read a printed Python or JSON value row by row: nested dicts, `Namespace(...)`, `Config(a=1)`, `a=1, b=2`.

The reader is told rows as they come, keeps no more than a path, and takes what a cut or damaged print still
shows; nothing is evaluated. Values stay as printed, without their quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MAX_ENTRIES = 5000
# Deeper brackets than any configuration has stay text.
DEEPEST = 40

Kind = Literal["string", "open", "close", "comma", "colon", "equals", "text"]

_REST = r"(?P<open>[\[({])|(?P<close>[\])}])|(?P<comma>,)|(?P<colon>:)|(?P<equals>=)"
_TOKEN = re.compile(
    r"(?P<string>[bBuUrR]?(?:'(?>(?:[^'\\]|\\.)*)'|\"(?>(?:[^\"\\]|\\.)*)\"))|(?P<angle><[^<>]{1,400}+>)|"
    + _REST
    + r"|(?P<text>[^'\"\[\](){},:=<]++|<)"
)
# Behind a quote that nothing closes, quotes are text: so a row is read once, whatever it holds.
_PLAIN = re.compile(_REST + r"|(?P<text>[^\[\](){},:=]++)")
_NAMESPACE = re.compile(r"(?:\w+\.){0,3}(?:[Nn]amespace|dict|DeepSpeed\w{1,60}Config)")
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>['\"\\/])|u(?P<high>[dD][89abAB][\da-fA-F]{2})\\u(?P<low>[dD][c-fC-F][\da-fA-F]{2})|"
    r"u(?P<code>[\da-fA-F]{4}))"
)


class LiteralEntry(NamedTuple):
    """A dotted path, the value as printed, and the line of its key."""

    path: str
    value: str
    line: int


def unquoted(token: str) -> str:
    """Take the quotes off a printed string; escapes that stand for no visible character stay as printed."""
    if len(token) < 2 or token[-1] not in "'\"" or token.lstrip("bBuUrR")[:1] != token[-1]:
        return token
    inner = token[token.index(token[-1]) + 1 : -1]
    return _ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner


def _unescaped(match: re.Match[str]) -> str:
    if match["plain"]:
        return match["plain"]
    if match["high"]:
        return chr(0x10000 + ((int(match["high"], 16) & 0x3FF) << 10) + (int(match["low"], 16) & 0x3FF))
    char = chr(int(match["code"], 16))
    return char if char.isprintable() else match[0]


def depth(text: str) -> int:
    """Tell how many more brackets a row opens than it closes, those in quotes left out."""
    return sum((kind == "open") - (kind == "close") for kind, _ in _tokens(text))


def list_members(text: str) -> list[str]:
    """Give the members of a printed list of strings and numbers, quotes off."""
    found: list[str] = []
    for kind, token in _tokens(text):
        if kind == "close":
            break
        if kind in ("string", "text") and token.strip():
            found.append(unquoted(token.strip()))
    return found


def _tokens(text: str) -> Iterator[tuple[Kind, str]]:
    place, expression = 0, _TOKEN
    while place < len(text):
        match = expression.match(text, place)
        if match is None:
            expression = _PLAIN
            continue
        place = match.end()
        kind = str(match.lastgroup)
        yield ("text" if kind == "angle" else kind), match[0]  # type: ignore[misc]


@dataclass
class _OpenBracket:
    """An open bracket: what stands before its names, and whether names are written `name=`."""

    path: str
    is_call: bool
    filled: bool = False


@dataclass
class LiteralReader:
    """What is read so far; `begun(...)` starts one behind an opening bracket."""

    entries: list[LiteralEntry] = field(default_factory=list)
    closed: bool = False
    _frames: list[_OpenBracket] = field(default_factory=list)
    _pieces: list[tuple[Kind, str]] = field(default_factory=list)
    _key: str | None = None
    _line: int = 0
    _depth: int = 0

    @classmethod
    def begun(cls, *, is_call: bool, path: str = "") -> LiteralReader:
        """Start inside a bracket; `is_call` where names are written `name=value`."""
        reading = cls()
        reading._frames.append(_OpenBracket(path, is_call))
        return reading

    def feed(self, text: str, line: int) -> bool:
        """Read one more row; gives False once the outermost bracket is closed or the bound is met."""
        if self._pieces:
            self._pieces.append(("text", "\n"))
        for kind, token in _tokens(text.strip()):
            self._line = self._line if self._key is not None else line
            self._read_token(kind, token)
            if self.closed or len(self.entries) >= MAX_ENTRIES:
                return False
        return True

    def finish(self) -> list[LiteralEntry]:
        """Take the last value of a print without closing bracket, and give all."""
        self._end()
        return self.entries

    def _read_token(self, kind: Kind, text: str) -> None:
        if self._depth:
            self._depth += (kind == "open") - (kind == "close")
            self._pieces.append((kind, text))
            return
        match kind:
            case "open":
                self._open(text)
            case "close":
                self._end()
                frame = self._frames.pop()
                if not frame.filled and self._frames:
                    self.entries.append(LiteralEntry(frame.path[:-1], "{}", self._line))
                self.closed = not self._frames
            case "comma":
                self._end()
            case _ if not self._take_name(kind):
                self._pieces.append((kind, text))

    def _take_name(self, kind: Kind) -> bool:
        """Take a `:` or `=` that ends a name."""
        frame = self._frames[-1]
        if self._key is None and kind == ("equals" if frame.is_call else "colon"):
            self._key, self._pieces = _value(self._pieces), []
            return True
        return kind == "equals" and frame.is_call and self._take_next_setting()

    def _take_next_setting(self) -> bool:
        """Take a `=` of the next setting where a print joins them without a comma: `a=False b=True`."""
        kind, text = self._pieces.pop() if self._pieces else ("text", "")
        value, _, name = text.rstrip().rpartition(" ")
        if kind != "text" or not name.isidentifier() or not (value.strip() or self._pieces):
            self._pieces.append((kind, text))
            return False
        self._pieces.append(("text", value))
        self._end()
        self._key = name
        return True

    def _open(self, bracket: str) -> None:
        before = "".join(text for _, text in self._pieces).strip()
        is_call = bracket == "(" and _NAMESPACE.fullmatch(before) is not None
        if (
            self._key is None
            or len(self._frames) >= DEEPEST
            or not (is_call or (bracket == "{" and not before))
        ):
            self._depth = 1
            self._pieces.append(("open", bracket))
            return
        self._frames[-1].filled = True
        self._frames.append(_OpenBracket(f"{self._frames[-1].path}{self._key}.", is_call))
        self._key, self._pieces = None, []

    def _end(self) -> None:
        """Take the value that a comma or bracket ends."""
        if self._key is not None and self._frames:
            self._frames[-1].filled = True
            self.entries.append(
                LiteralEntry(self._frames[-1].path + self._key, _value(self._pieces), self._line)
            )
        self._key, self._pieces, self._depth = None, [], 0


def _value(pieces: list[tuple[Kind, str]]) -> str:
    """Write the pieces of a value in one line; the quotes of a lone string, in one part or more, go."""
    shown = [(kind, text) for kind, text in pieces if text.strip()]
    if shown and all(kind == "string" for kind, _ in shown):
        return "".join(unquoted(text) for _, text in shown)
    written = "".join(text for _, text in pieces).strip()
    for bracket in "[({":
        written = written.replace(f"{bracket}\n", bracket)
    for bracket in "])}":
        written = written.replace(f"\n{bracket}", bracket)
    return written.replace("\n", " ")


def entries(rows: Iterable[tuple[int, str]], *, is_call: bool, path: str = "") -> list[LiteralEntry]:
    """Read rows that begin behind an opening bracket, to its end or theirs."""
    reading = LiteralReader.begun(is_call=is_call, path=path)
    for line, text in rows:
        if not reading.feed(text, line):
            break
    return reading.finish()
