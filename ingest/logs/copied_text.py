"""Undo what pages, chats and editors do to the characters of a text that is copied through them.

HTML writes signs as entities, editors of prose curl quotes and join dots, browsers put spaces that do not
break or have no width. Rows keep their numbers: nothing here adds or takes away a line's end.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|apos|nbsp|#\d{2,5}|#[xX][0-9a-fA-F]{2,4});")
# Elements that a page's source has around a message; `<module>` and `<lambda>` are Python's own.
_ELEMENT = re.compile(
    r'</?(?:br|pre|code|p|div|span|samp|blockquote)(?: (?:class|style|id)="[^"\n]{0,200}")* ?/?>'
)
# A colour whose escape character was lost, where one is switched off again.
_COLOUR = re.compile(r"\[(?:[0-4]|22|39|49|[39][0-7]|38;[25])(?:;\d{1,3}){0,4}m")
# Python shows a text that has both kinds of quotation marks with a backslash before the single ones.
_ESCAPED = re.compile(rb"(?<=[a-z])\\'(?=[a-z])")
_BEHIND = re.compile(rb"[ \t]{2,}$", re.MULTILINE)
# A notebook's page links the file of each call; a copy of it has the link behind the name.
_LINKED = re.compile(
    r"\[(?P<file>(?:[~/]|<ipython)[^\]\n]{1,300})\]\((?:https?|vscode\S{0,20})://[^\s()]{1,400}\)"
)
_MARGIN = re.compile(r"[ \t]*")
# A quotation of Markdown: each row of the paragraph begins with its sign, and so does a blank one.
_QUOTED = re.compile(rb"(?:^>(?:[ \t][^\n]*)?(?:\n|\Z)){2,}", re.MULTILINE)
_QUOTE_SIGN = re.compile(rb"^>[ \t]?", re.MULTILINE)
# What stands before the name of the process that prints a row is a list's or a quotation's margin: no
# launcher or collector indents its rows, and what is indented of a stack stands behind the name.
_LABELLED = re.compile(
    rb"^(?:[ \t]|> ){1,40}(?=\[(?:rank|default)\d{1,5}\]:|\((?:[^()\n]{1,120} )?pid=\d{1,9}[^()\n]{0,80}\) )",
    re.MULTILINE,
)
# An editor makes one dash of the two before an option's name.
_DASH = re.compile(r"(?<=\s)[—–](?=[A-Za-z][\w-]*)")
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
        "…": "...",
    }
)
_ODD = re.compile(f"[—–{''.join(map(chr, _CHARACTERS))}]")


def restored(data: bytes) -> bytes:
    """Give a text as it was before it was copied, with the same lines."""
    data = _without_frames(data)
    is_plain, is_coloured = data.isascii(), b"[0m" in data or b"[39m" in data
    if is_plain and b"&" not in data and b"<" not in data and not is_coloured:
        return data
    text = data.decode("utf-8", "surrogateescape")
    if "&" in text:
        text = _ENTITY.sub(_sign, text)
    if "<" in text:
        text = _ELEMENT.sub("", text)
    if is_coloured:
        text = _COLOUR.sub("", text)
    if _ODD.search(text):
        text = _DASH.sub("--", text.translate(_CHARACTERS))
    return text.encode("utf-8", "surrogateescape")


def _without_frames(data: bytes) -> bytes:
    """Give a text without what a page or a list put around its rows: margins, signs of quotation, links."""
    if b"  \n" in data or data.endswith(b"  "):
        data = _BEHIND.sub(b" ", data)
    if b"\\'" in data:
        data = _ESCAPED.sub(b"'", data)
    if data.startswith(b"> ") or b"\n> " in data:
        data = _QUOTED.sub(lambda rows: _QUOTE_SIGN.sub(b"", rows[0]), data)
    if b" [rank" in data or b" [default" in data or b" (" in data:
        data = _LABELLED.sub(b"", data)
    if b"](http" in data or b"](vscode" in data:
        data = _LINKED.sub(r"\g<file>", data.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
    return data


def _sign(entity: re.Match[str]) -> str:
    sign = html.unescape(entity[0])
    return sign if sign.isprintable() or sign == "\u00a0" else " "


def dedented(rows: Sequence[str]) -> list[str] | None:
    """Give rows without the margin that all of them have in common; None where there is none."""
    margins = [match[0] for row in rows if row.strip() and (match := _MARGIN.match(row))]
    shared = min(margins, default="", key=len)
    while not all(margin.startswith(shared) for margin in margins):
        shared = shared[:-1]
    return [row.removeprefix(shared) for row in rows] if shared else None
