"""Texts as a reader puts them together: without colours, with escapes written out, with cut rows joined.

A view knows for each of its characters which bytes of the text as given it stands for.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

_ESCAPES = rb"\x1b(?:[ -/]+[0-~]|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])"
# What is left of a colour where somebody took the control character away, or wrote it as two.
BARE = r"\[[0-9;]{1,11}m"
# Signs without width: they are taken out when a text is shown, and what they parted is whole then.
UNSEEN = (
    r"\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xc2\xad|\xd8\x9c|\xe1\xa0\x8e|"
    r"\xf3\xa0[\x80\x81][\x80-\xbf]|\xef\xbf[\xb9-\xbb]"
)
# What a terminal acts on, or leaves out: a backspace takes the character before it away.
CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\xc2[\x80-\x9f]"
# What each of these begins with is asked for first: `re` tries all alternatives at each place of a text
# otherwise.
_FIRST = rb"\x1b\xc2\xd8\xe1\xe2\xef\xf3^\["
_COLOURS = (
    rb"(?=["
    + _FIRST
    + rb"])(?:"
    + _ESCAPES
    + rb"|"
    + UNSEEN.encode()
    + rb"|(?:\^\[|\xe2\x90\x9b)?"
    + BARE.encode()
    + rb")"
)
ESCAPES, COLOURS = re.compile(_ESCAPES), re.compile(_COLOURS)
# The same to search with: `re` skips to a set of bytes at once, and tries alternatives at each place.
_CONTROLLED = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\xc2](?:(?<!\xc2)|[\x80-\x9f])")
_UNCONTROLLED = re.compile(_COLOURS + rb"|" + CONTROL.encode())
_STRUCK = re.compile(
    _COLOURS + rb"|(?:[^\x00-\x1f\x7f-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3})\x08|" + CONTROL.encode()
)
# Quotes and backslashes within a word, which a shell takes out.
_HELD = rb"[A-Za-z0-9_@#%^&*+./~!$-]"
_QUOTED = re.compile(
    rb"(?=["
    + _FIRST
    + rb"$\"'\\])(?:"
    + _COLOURS
    + rb"|(?<="
    + _HELD
    + rb")(?<!\$)(?:\$?[\"']|\\[\"'](?=[\"'])){1,8}(?="
    + _HELD
    + rb")|\\(?=[^A-Za-z0-9\s\\]))"
)
# A row's end, as a terminal or an author breaks a text: quotes or a backslash before it, and what each row
# begins with.
_BOX = rb"(?:\||\xe2\x94[\x82\x83]|\xe2\x95\x91)"
BEFORE_ROW = (
    rb"(?:[ \t]*(?:\([^()\n]{1,80}\)|(?:\[(?!redacted:)[^\[\]\n]{1,60}\]:?(?: (?=\[))?){1,3}+|"
    rb"\d{4}-\d\d-\d\d[T ][\d:.,]+Z?(?= "
    rb")|\d{1,4}:(?= )) ?)?(?P<blank>[ \t]*)(?:(?:[+>]|" + _BOX + rb")[ \t]*){0,4}+"
)
# A box closes its rows, too.
_ROW_END = rb"(?:[ \t]*" + _BOX + rb"[ \t]*)?\r?\n"
_SEAM = rb"(?:[\"'](?:[ \t]*[\\+])?|\\)?" + _ROW_END + BEFORE_ROW + rb"[\"']?"
_BOXES = rb" \t|\xe2"
_JOINED = re.compile(
    rb"(?=["
    + _FIRST
    + rb"\"'\\\r\n"
    + _BOXES
    + rb"])(?:(?P<none>"
    + _COLOURS
    + rb")|(?P<seam>"
    + _SEAM
    + rb"))"
)
_BARE_SEAM = rb"(?P<seam>\\?" + _ROW_END + BEFORE_ROW + rb")"
_JOINED_BARE = re.compile(
    rb"(?=[" + _FIRST + rb"\\\r\n" + _BOXES + rb"])(?:(?P<none>" + _COLOURS + rb")|" + _BARE_SEAM + rb")"
)
# The same where there are no colours, which takes a third of the time.
_HINT = re.compile(rb"[\x1b\xc2\xd8\xe1\xe2\xef\xf3\[](?:(?<!\[)|[0-9;])")
_PLAIN_SEAM = re.compile(rb"(?=[\\\r\n])(?P<seam>\\?\r?\n" + BEFORE_ROW + rb")")
_BOXED_SEAM = re.compile(rb"(?=[\\\r\n" + _BOXES + rb"])" + _BARE_SEAM)
_BOXED = re.compile(_BOX + rb"[ \t]*\r?\n")
_INDENT = re.compile(rb"\n" + BEFORE_ROW)
_OPEN_END = re.compile(rb"(?=[\"'\\+\n])(?:[\"'\\+]\r?\n|\n" + BEFORE_ROW + rb"[\"'])")
# Written by JSON, Python, URLs and pages; several backslashes or `25`s where one writer wrote what another
# one had written.
_CODED = re.compile(
    rb"(?=[" + _FIRST + rb"\\%&])(?:(?P<none>" + _COLOURS + rb"|\\+(?:u001[bB]|x1[bB]|033|e)\[[0-9;]*m)|"
    rb"\\+u(?P<code>[0-9a-fA-F]{4})|\\+x(?P<hex>[0-9a-fA-F]{2})|\\+(?P<letter>[nrtb])|\\+(?P<plain>[\"'/])|"
    rb"%(?:25){0,8}(?P<percent>[0-9a-fA-F]{2})|"
    rb"&(?P<entity>#\d{2,7}|#[xX][0-9a-fA-F]{2,6}|[A-Za-z]{2,8});)"
)
# What only a second reader takes out.
_CODED_AGAIN = re.compile(rb"\\[\"'/]|%[2-7][0-9A-Fa-f]|&#?[A-Za-z0-9]{2,8};")
AGAIN = 2
# Written so in another place than a value's own, as any of the rules asks for it already.
CODED = r"&(?:#[0-9xX]|[A-Za-z]{2,8};)|%(?:25)*(?:3[AaDdFf]|2[26])|\\[\\]+[\"'u]|\\u00[2-7]|\\x[2-7]"
# All that is written out where anything is.
WRITTEN_OUT = (
    r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtb\"'/]|(?:033|e)\[)|%[0-9a-fA-F]{2}|"
    r"&(?:#[0-9xX]|[A-Za-z]{2,8};)"
)
# Blanks, bars, arrows and quotes beside those of ASCII, and its letters in the width of Chinese ones.
_SIGNS = {
    char.encode(): sign
    for sign, chars in (
        (b" ", "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"),
        (b"|", "\u00a6\u2502\u2503\u2506\u2507\u250a\u250b\u254e\u254f\u2551\uff5c"),
        (b"->", "\u2192\u21a6\u21d2\u2794\u279c\u27f6"),
        (b"'", "\u2018\u2019\u201a\u201b"),
        (b'"', "\u201c\u201d\u201e\u201f\u300c\u300d\u300e\u300f"),
    )
    for char in chars
}
# The marks of Chinese sentences keep their own sign.
_SIGNS |= {
    chr(code).encode(): bytes([code - 0xFEE0])
    for code in range(0xFF0D, 0xFF5B)
    if code not in (0xFF1B, 0xFF1F)
}


def _any_of(signs: Iterable[bytes]) -> str:
    """Write the expression of some signs by their first bytes, which is how `re` finds them quickly."""
    lasts: dict[bytes, list[int]] = {}
    for sign in sorted(signs):
        lasts.setdefault(sign[:-1], []).append(sign[-1])

    def written(codes: Iterable[int]) -> str:
        return "".join(f"\\x{code:02x}" for code in codes)

    return "|".join(f"{written(first)}[{written(last)}]" for first, last in lasts.items())


FOREIGN = _any_of(_SIGNS)
_FOREIGN = re.compile(FOREIGN.encode())
# What a shell takes for a quote within quotes.
NESTED = r"'\"'\"'|'\\''"
_NESTED = re.compile(_COLOURS + rb"|(?P<quote>" + NESTED.encode() + rb")")
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b""}


@dataclass(slots=True)
class TextView:
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
        number = bisect_right(self.begins, begin) - 1
        start, stop = self.spans[number]
        first = min(start + begin - self.begins[number], stop) if self.is_verbatim(number) else start
        number = bisect_right(self.begins, end - 1) - 1
        start, stop = self.spans[number]
        last = start + end - self.begins[number] if self.is_verbatim(number) else stop
        return first, last

    def is_verbatim(self, number: int) -> bool:
        """Tell whether a piece stands in the text as given as it does here."""
        following = self.begins[number + 1] if number + 1 < len(self.begins) else len(self.text)
        begin, end = self.spans[number]
        return following - self.begins[number] == end - begin

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts between seams of a part of the view."""
        inner = [place for place in self.seams if begin < place < end]
        yield from zip([begin, *inner], [*inner, end], strict=True)


def view_of(text: bytes) -> list[TextView]:
    """Give the text as it is, without colours, and as each reader takes it, as far as these differ."""
    views = [_rewritten(text, COLOURS, _nothing) if COLOURS.search(text) else TextView(text)]
    if b"\x1b]" in text:  # a terminal's title is text too
        views.append(TextView(text))
    if _CONTROLLED.search(text):
        views += [_rewritten(text, expression, _nothing) for expression in (_UNCONTROLLED, _STRUCK)]
    if is_nested(text):
        inner = _rewritten(text, _NESTED, _one_quote)
        views += [inner, _over(inner, _rewritten(inner.text, _QUOTED, _nothing))]
    elif (b"'" in text or b'"' in text or b"\\" in text) and _QUOTED.search(text):
        views.append(_rewritten(text, _QUOTED, _nothing))
    if (b"\\" in text or b"%" in text or b"&" in text) and _CODED.search(text):
        views.append(_rewritten(text, _CODED, _plain))
        for _ in range(AGAIN):  # what was escaped before it was put into a URL, a page, a string
            if not _CODED_AGAIN.search(views[-1].text):
                break
            views.append(_over(views[-1], _rewritten(views[-1].text, _CODED, _plain)))
    if not views[-1].text.isascii() and _FOREIGN.search(views[-1].text):
        views.append(_over(views[-1], _rewritten(views[-1].text, _FOREIGN, lambda found: _SIGNS[found[0]])))
    return views


def is_nested(text: bytes) -> bool:
    """Tell whether there are quotes within a shell's quotes."""
    return b"'\"'\"'" in text or b"'\\''" in text


def unnested(text: bytes) -> bytes:
    """Give the text without colours, and with a shell's quotes within quotes as they are read."""
    return _NESTED.sub(_one_quote, text)


def with_signs_of_ascii(text: bytes, ends: Iterable[int]) -> bytes:
    """Give the text with the signs of ASCII for those that are read alike and end at these places.

    It has as many rows. To look for the signs again would take longer than to find secrets.
    """
    parts, done = list[bytes](), 0
    for end in ends:
        sign = text[end - 3 : end] if text[end - 3 : end] in _SIGNS else text[end - 2 : end]
        parts += (text[done : end - len(sign)], _SIGNS[sign])
        done = end
    return b"".join((*parts, text[done:]))


def decoded(text: bytes) -> bytes:
    """Give the text with its escapes written out, in as many rows."""
    for _ in range(1 + AGAIN):
        text = _CODED.sub(lambda match: b" " if (plain := _plain(match)) == b"\n" else plain, text)
        if not _CODED_AGAIN.search(text):
            break
    return text


def without_backspaces(text: bytes) -> bytes:
    """Give the text as a terminal leaves it.

    Without colours, other controls, and what a backspace takes away.
    """
    return _STRUCK.sub(b"", text)


def uncontrolled(text: bytes) -> bytes:
    """Give the text without colours and other controls, which is how it is shown."""
    return _UNCONTROLLED.sub(b"", text)


def joined_rows(text: bytes, *, at_blanks: bool = False) -> list[TextView]:
    """Give several rows as one, without colours.

    Cut anywhere, at a blank, between strings, and with its escapes written out; or cut at blanks alone.
    """
    expression = _PLAIN_SEAM
    if _HINT.search(text):
        expression = _JOINED_BARE
    elif _BOXED.search(text):
        expression = _BOXED_SEAM
    # Both views are made at the same places.
    places = list(expression.finditer(text))
    cut_at_blank = _rewritten_at(text, places, lambda match: b" " if match["seam"] else b"")
    if at_blanks:
        return [cut_at_blank]
    indent = min((len(match["blank"]) for match in _INDENT.finditer(text)), default=0)
    # A row that begins with a single blank more than others is not indented; the text was cut before it.
    whole = _rewritten_at(
        text, places, lambda match: b" " if match["seam"] and len(match["blank"]) - indent == 1 else b""
    )
    views = [whole, cut_at_blank]
    if _OPEN_END.search(text):  # strings that an author has put together
        views.append(_rewritten(text, _JOINED, _nothing))
    if (b"\\" in text or b"%" in text or b"&" in text) and _CODED.search(whole.text):
        views.append(_over(whole, _rewritten(whole.text, _CODED, _plain)))
    return views


def _over(base: TextView, top: TextView) -> TextView:
    """Give a view of a view, which knows the places of the text as given."""
    view = TextView(top.text)
    for number, (begin, (first, last)) in enumerate(zip(top.begins, top.spans, strict=True)):
        inner = (
            base.begins[bisect_right(base.begins, first) : bisect_left(base.begins, last)]
            if top.is_verbatim(number)
            else []
        )
        for one, other in pairwise([first, *inner, last]):
            view.begins.append(begin + one - first)
            view.spans.append(base.origin(one, max(one + 1, other)))
    starts = [first for first, _ in top.spans]
    for seam in base.seams:
        number = bisect_right(starts, seam) - 1
        view.seams.append(top.begins[number] + (seam - starts[number]) * top.is_verbatim(number))
    return view


def _nothing(_: re.Match[bytes]) -> bytes:
    return b""


def _one_quote(match: re.Match[bytes]) -> bytes:
    return b"'" if match["quote"] else b""


def _rewritten(
    text: bytes, expression: re.Pattern[bytes], write: Callable[[re.Match[bytes]], bytes]
) -> TextView:
    return _rewritten_at(text, expression.finditer(text), write)


def _rewritten_at(
    text: bytes, places: Iterable[re.Match[bytes]], write: Callable[[re.Match[bytes]], bytes]
) -> TextView:
    view = TextView(b"")
    parts: list[bytes] = []
    size = done = 0
    for match in places:
        for piece, begin, end in (
            (text[done : match.start()], done, match.start()),
            (write(match), *match.span()),
        ):
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
        return _visible(chr(int(value, 16)).encode("utf-8", "surrogatepass"))
    if kind in ("hex", "percent"):
        return _visible(bytes([int(value, 16)]))
    if kind == "entity":
        plain = html.unescape(match[0].decode()).encode("utf-8", "surrogatepass")
        return match[0] if plain == match[0] else _visible(plain)
    if kind == "letter":
        return _LETTERS[value]
    return b"" if kind == "none" else value


def _visible(char: bytes) -> bytes:
    return char if char >= b" " or char in _LETTERS.values() else b""
