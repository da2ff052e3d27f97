"""HTML and SVG elements in which text is inert unless it was made here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

from ingest.logs.lines import printable

_VOID = frozenset({"input", "meta"})
# A terminal's sequences: with parameters (CSI), strings such as titles and links (OSC and its like), and
# two-byte ones.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\x9b[0-?]*[ -/]*[@-~]"
)
# Names that a browser may be sent to.
_WEB = re.compile(r"https?://[^\s<>\"']+")


class Html(str):
    """Markup that the functions of this module made; any other text is escaped on its way into an element.

    No other module calls this class, so none has to take care: adding to markup gives plain text again.
    """

    __slots__ = ()


EMPTY = Html("")
# What an element holds: text, markup, or nothing.
Content: TypeAlias = str | None


def visible(text: str, limit: int = 0) -> str:
    """Give text without what a terminal or a page would act on.

    Escape sequences, control characters and marks of direction go; tabs and line feeds stay. Longer than
    `limit` it is cut, and says so.
    """
    plain = text if text.isprintable() else printable(_ESCAPES.sub("", text), "\t\n")
    return f"{plain[:limit]}…" if limit and len(plain) > limit else plain


def escape(text: str) -> Html:
    """Give markup that shows a text; what is markup already stays."""
    return text if isinstance(text, Html) else Html(html.escape(visible(text)))


def join(*parts: Content, between: str = "") -> Html:
    """Join parts, each escaped unless it is markup; None is nothing."""
    return Html(escape(between).join(escape(part) for part in parts if part is not None))


def element(name: str, /, *children: Content, **attributes: str | float | bool | None) -> Html:
    """Give an element; `class_` and `stroke_width` stand for class and stroke-width.

    None and False leave an attribute out, True gives it without a value.
    """
    opened = f"<{name}"
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        opened += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            plain = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
            opened += f'="{escape(plain)}"'
    return Html(f"{opened}>" if name in _VOID else f"{opened}>{join(*children)}</{name}>")


def link(url: str, *children: Content) -> Html:
    """Give a link to another site, or its bare text where the address is none of the web."""
    if not _WEB.fullmatch(url):
        return join(*children)
    return element("a", *children, href=url, target="_blank", rel="noopener noreferrer nofollow")


def folded(
    summary: Content,
    *children: Content,
    key: str | None = None,
    is_open: bool = False,
    class_: str | None = None,
) -> Html:
    """Give a part that opens and closes; a page that is rendered anew keeps it open under its key."""
    return element(
        "details", element("summary", summary), *children, data_key=key, open=is_open, class_=class_
    )


def style_sheet(rules: str) -> Html:
    """Give a style element of rules of ours; raises ValueError for rules that would end it."""
    if "</" in rules:
        raise ValueError("a style sheet cannot hold a closing tag")
    # A browser reads a style sheet as it stands, without entities.
    return Html(f"<style>{rules}</style>")


def coded(text: str) -> Html:
    """Give text in which what stands between backticks is code; a backtick without its other stays."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    return join(*(element("code", piece) if place % 2 else piece for place, piece in enumerate(pieces)))


def paragraph(*children: Content, class_: str | None = None) -> Html:
    """Give a paragraph."""
    return element("p", *children, class_=class_)


def section(name: str, title: str, *children: Content) -> Html:
    """Give a section that its heading names and that `#name` leads to."""
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        *children,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Html:
    """Give a table whose first cells name the rows; it scrolls by itself where the screen is narrow."""
    head = element("thead", element("tr", *(element("th", column, scope="col") for column in columns)))
    lines = (
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, *cells in rows
    )
    body = element("tbody", *lines)
    made = element("table", element("caption", caption), head, body)
    return element("div", made, class_="scroll", role="region", tabindex="0", aria_label=caption)


def document(title: str, *children: Content, lang: str = "en", style: str = "") -> str:
    """Give a whole page that loads nothing and, by its own policy, could not.

    `style` adds rules to the common ones.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        element("title", title),
        style_sheet(STYLE + style),
    )
    return f"<!doctype html>\n{element('html', head, element('body', *children), lang=lang)}\n"


STYLE = """
:root {
  --page: #fbfbfa; --card: #fff; --ink: #1b1d21; --soft: #5a6069; --line: #dcdfe4; --wash: #f1f3f5;
  --one: #1d5fbf; --two: #b35a00; --grey: #8a919c; --good: #12692f; --bad: #b3261e; --hit: #fff3d6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161a; --card: #1b1e24; --ink: #e8eaed; --soft: #a6adb8; --line: #343a44; --wash: #23272f;
    --one: #7db1ff; --two: #f2a65a; --grey: #7b8492; --good: #6fd08c; --bad: #ff9a92; --hit: #3b3216;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif;
}
h1 { font-size: 1.6rem; margin: 0; line-height: 1.25; }
h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .3rem 0; max-width: 48rem; }
a { color: var(--one); }
.soft, caption, figcaption, dt { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .8rem 0 0; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(9.2rem, 1fr)); gap: .75rem; margin: .8rem 0;
  padding: 0; list-style: none;
}
.cards li {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .8rem .9rem;
}
.cards span, .cards strong { display: block; }
.cards strong { font-size: 2rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.cards span { font-size: .85rem; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .2rem 0 .4rem; white-space: nowrap; }
th, td {
  text-align: left; padding: .35rem 1.1rem .35rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: top;
}
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 500; }
td span { display: inline-block; margin-left: .5rem; }
.plots {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 1.2rem 2rem;
  align-items: start;
}
figure { margin: 0; min-width: 0; }
figcaption { font-size: .9rem; margin-bottom: .3rem; }
svg { display: block; width: 100%; height: auto; max-width: 28rem; }
.matrices { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }
.matrices > div { min-width: 0; max-width: 100%; flex: 0 1 35rem; }
.matrices p { font-size: .9rem; }
.matrix { overflow-x: auto; }
.matrix svg { width: auto; max-width: none; }
svg text {
  font: 12px system-ui, "Noto Sans", sans-serif; fill: var(--ink); font-variant-numeric: tabular-nums;
}
svg .small { font-size: 11px; fill: var(--soft); }
svg .title { font-weight: 600; }
svg .rule { stroke: var(--line); }
svg .ideal { stroke: var(--grey); stroke-dasharray: 4 4; }
svg .track { fill: var(--wash); }
svg .one { fill: var(--one); } svg .two { fill: var(--two); } svg .other { fill: var(--grey); }
svg .bar { fill-opacity: .72; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .line.one, svg .gap.one { stroke: var(--one); fill: none; }
svg .line.two, svg .gap.two { stroke: var(--two); fill: none; }
svg .whisker { stroke: var(--ink); stroke-width: 1.5; }
svg .goal { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 2 2; }
details {
  border: 1px solid var(--line); border-radius: .5rem; background: var(--card); margin: .6rem 0;
  padding: 0 .9rem;
}
summary { cursor: pointer; padding: .6rem 0; font-weight: 600; }
summary span { font-weight: 400; color: var(--soft); margin-left: .5rem; }
article { border-top: 1px solid var(--line); padding: .9rem 0 1.2rem; }
article h3 { margin: 0 0 .5rem; overflow-wrap: anywhere; }
article h3 span { font-weight: 400; color: var(--soft); font-size: .9rem; margin-left: .5rem; }
dl {
  display: grid; grid-template-columns: 10rem minmax(0, 1fr); gap: .2rem 1rem; margin: 0; font-size: .92rem;
}
dd { margin: 0; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, "SF Mono", "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace; }
.log {
  width: 100%; margin-top: .7rem; background: var(--wash); border-radius: .3rem;
  font: 12.5px/1.45 ui-monospace, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace;
}
.log td, .log th { border: 0; padding: .05rem .6rem; }
.log caption { font: .85rem/1.4 system-ui, sans-serif; white-space: normal; }
.log th, .log .why { color: var(--soft); text-align: right; font-weight: 400; width: 1%; }
.log .row { white-space: pre-wrap; overflow-wrap: anywhere; width: 98%; }
.log .hit { background: var(--hit); }
.log .hit .why { color: var(--ink); font-weight: 600; text-align: left; }
footer { margin-top: 3rem; font-size: .85rem; }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .4rem; }
  th, td { padding-right: .8rem; }
  td span { display: block; margin: 0; }
  .scroll tbody th { white-space: normal; min-width: 7rem; }
  .log td, .log th { padding: .05rem .3rem; }
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .cards strong { font-size: 1.6rem; }
}
"""
