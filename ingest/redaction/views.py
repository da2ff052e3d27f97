"""Texts as a reader puts them together: without colours, with escapes written out, with cut rows joined.

A view knows for each of its characters which bytes of the text as given it stands for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_ESCAPES = rb"\x1b(?:[ -/]+[0-~]|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])"
# What is left of a colour where somebody took the control character away, or wrote it as two.
BARE = r"\[[0-9;]{1,11}m"
# Signs without width: they are taken out when a text is shown, and what they parted is whole then.
UNSEEN = r"\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\xc2\xad"
_COLOURS = rb"(?:" + _ESCAPES + rb"|" + UNSEEN.encode() + rb"|(?:\^\[|\xe2\x90\x9b)?" + BARE.encode() + rb")"
ESCAPES, COLOURS = re.compile(_ESCAPES), re.compile(_COLOURS)
# A row's end, as a terminal or an author breaks a text: quotes or a backslash before it, and what each row begins with.
BEFORE_ROW = rb"(?:[ \t]*(?:\([^()\n]{1,80}\)|\[(?!redacted:)[^\[\]\n]{1,60}\]:?|\d{4}-\d\d-\d\d[T ][\d:.,]+Z?(?= )|\d{1,4}:(?= )) ?)?(?P<blank>[ \t]*)[+>|]?[ \t]*[\"']?"
_SEAM = rb"(?:[\"'](?:[ \t]*[\\+])?|\\)?\r?\n" + BEFORE_ROW
_JOINED = re.compile(rb"(?P<none>" + _COLOURS + rb")|(?P<seam>" + _SEAM + rb")")
# Written by JSON, Python, URLs and pages; several backslashes or `25`s where one writer wrote what another one had written.
_CODED = re.compile(
    rb"(?P<none>" + _COLOURS + rb"|\\+(?:u001[bB]|x1[bB]|033|e)\[[0-9;]*m)|"
    rb"\\+u(?P<code>[0-9a-fA-F]{4})|\\+x(?P<hex>[0-9a-fA-F]{2})|\\+(?P<letter>[nrt])|\\+(?P<plain>[\"'/])|%(?:25){0,8}(?P<percent>[2-9a-fA-F][0-9a-fA-F]|0[aAdD9])|"
    rb"&(?P<name>quot|amp|lt|gt|apos);|&#(?P<number>\d{2,3});"
)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_NAMES = {b"quot": b'"', b"amp": b"&", b"lt": b"<", b"gt": b">", b"apos": b"'"}


@dataclass(slots=True)
class View:
    """A text and where its pieces come from: `begins` in the view, and `spans` in the text as given.

    `seams` are the places in the view where two rows were joined.
    """

    text: bytes
    begins: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    seams: list[int] = field(default_factory=list)

    def origin(self, begin: int, end: int) -> tuple[int, int]:
        """Give the part of the text as given that a part of the view stands for."""
        if not self.begins:
            return begin, end
        return self._first(begin), self._last(end)

    def _first(self, place: int) -> int:
        number = bisect_right(self.begins, place) - 1
        begin, end = self.spans[number]
        return min(begin + place - self.begins[number], end) if self._verbatim(number) else begin

    def _last(self, place: int) -> int:
        number = bisect_right(self.begins, place - 1) - 1
        begin, end = self.spans[number]
        return begin + place - self.begins[number] if self._verbatim(number) else end

    def _verbatim(self, number: int) -> bool:
        following = self.begins[number + 1] if number + 1 < len(self.begins) else len(self.text)
        begin, end = self.spans[number]
        return following - self.begins[number] == end - begin

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts between seams of a part of the view."""
        inner = [place for place in self.seams if begin < place < end]
        yield from zip([begin, *inner], [*inner, end], strict=True)


def of(text: bytes) -> list[View]:
    """Give the text as it is, without colours, and with its escapes written out, as far as these differ."""
    views = [_rewritten(text, COLOURS, lambda _: b"") if COLOURS.search(text) else View(text)]
    if b"\x1b]" in text:  # a terminal's title is text too
        views.append(View(text))
    if (b"\\" in text or b"%" in text or b"&" in text) and _CODED.search(text):
        views.append(_rewritten(text, _CODED, _plain))
    return views


def joined(text: bytes) -> View:
    """Give several rows as one, without colours."""
    return _rewritten(text, _JOINED, lambda _: b"")


def _rewritten(text: bytes, expression: re.Pattern[bytes], write: Callable[[re.Match[bytes]], bytes]) -> View:
    view = View(b"")
    parts: list[bytes] = []
    size = done = 0
    for match in expression.finditer(text):
        for piece, begin, end in ((text[done : match.start()], done, match.start()), (write(match), *match.span())):
            if piece:
                view.begins.append(size)
                view.spans.append((begin, end))
                parts.append(piece)
                size += len(piece)
        done = match.end()
        if b"\n" in match[0]:
            view.seams.append(size)
    view.begins.append(size)
    view.spans.append((done, len(text)))
    view.text = b"".join((*parts, text[done:]))
    return view


def _plain(match: re.Match[bytes]) -> bytes:
    """Write what an escape stands for."""
    kind, value = match.lastgroup, match[match.lastgroup or 0]
    if kind == "code":
        return chr(int(value, 16)).encode("utf-8", "surrogatepass")
    if kind in ("hex", "percent"):
        return bytes([int(value, 16)])
    if kind == "number":
        return bytes([int(value)]) if 32 <= int(value) < 127 else match[0]
    return {"letter": _LETTERS, "name": _NAMES}.get(kind or "", {}).get(value, b"" if kind == "none" else value)
