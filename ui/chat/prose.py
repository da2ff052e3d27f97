"""Markdown of answers to HTML: paragraphs, lists, bold, code and citations.

Nothing else, so nothing of a log can act.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.html.markup import Html, element, escape, join

_FENCED = re.compile(r"^```[^\n]*\n(.*?)(?:^```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^*\n]+?)\*\*|\[(?P<cited>(?:case:)?[^\[\]\n]{1,300})\]"
)
_LINE = re.compile(r"(?:(?P<file>[^\[\]]+):)?L(?P<first>\d+)(?:[-–]L?\d+)?")
_ITEM = re.compile(r"\s*(?:[-*]|(?P<number>\d+)[.)])\s+(?P<text>.*)")
_HEADING = re.compile(r"#{1,6}\s+(?P<text>.*)")


def render(text: str) -> Html:
    """Render an answer's Markdown; what is not known is shown as written."""
    parts: list[Html] = []
    for place, piece in enumerate(_FENCED.split(text)):
        if place % 2:
            parts.append(element("pre", element("code", piece), tabindex="0"))
        else:
            parts += [_block(block) for block in re.split(r"\n\s*\n", piece) if block.strip()]
    return join(*parts)


def _block(block: str) -> Html:
    rows = block.strip("\n").split("\n")
    if match := _HEADING.fullmatch(rows[0]):
        rest = "\n".join(rows[1:])
        return join(
            element("p", element("strong", *inline(match["text"]))), _block(rest) if rest.strip() else None
        )
    return join(*_runs(rows))


def _runs(rows: Sequence[str]) -> Iterator[Html]:
    """Yield paragraphs and lists in the order of their rows."""
    held: list[str] = []
    items: list[str] = []
    ordered = False
    for row in rows:
        match = _ITEM.fullmatch(row)
        if match:
            if held:
                yield element("p", *inline(" ".join(held)))
                held = []
            ordered = match["number"] is not None if not items else ordered
            items.append(match["text"])
        elif items and row.startswith(" "):
            items[-1] += " " + row.strip()
        else:
            if items:
                yield _list(items, ordered)
                items = []
            held.append(row)
    if items:
        yield _list(items, ordered)
    if held:
        yield element("p", *inline(" ".join(held)))


def _list(items: Sequence[str], ordered: bool) -> Html:
    return element("ol" if ordered else "ul", *(element("li", *inline(item)) for item in items))


def inline(text: str) -> Iterator[Html]:
    """Yield a row's parts: code, bold, citations, and the text between."""
    begin = 0
    for match in _INLINE.finditer(text):
        yield escape(text[begin : match.start()])
        if match["code"] is not None:
            yield element("code", match["code"])
        elif match["bold"] is not None:
            yield element("strong", *inline(match["bold"]))
        else:
            yield citation(match["cited"]) or escape(match[0])
        begin = match.end()
    yield escape(text[begin:])


def citation(cited: str) -> Html | None:
    """Give the button that leads to a cited line or case, or None where it is neither."""
    if cited.startswith("case:"):
        return element(
            "button",
            cited.removeprefix("case:"),
            type="button",
            class_="cite",
            data_case=cited.removeprefix("case:"),
        )
    match = _LINE.fullmatch(cited)
    if match is None:
        return None
    return element(
        "button", cited, type="button", class_="cite", data_file=match["file"], data_line=match["first"]
    )
