"""Safe HTML: text of others goes in as text only."""

from __future__ import annotations

import html
import re

from ingest.logs.lines import printable

# A terminal's sequences: with parameters (CSI), strings such as titles and links (OSC and its like), and
# two-byte ones.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\x9b[0-?]*[ -/]*[@-~]"
)
# Names that a browser may be sent to.
_WEB = re.compile(r"https?://[^\s<>\"']+")


class Html(str):
    """Text that is HTML already; made of escaped parts only."""

    __slots__ = ()


def shown(text: str, limit: int = 0) -> str:
    """Give log text without what a terminal or page would act on.

    Longer than `limit` it is cut, and says so.
    """
    plain = printable(_ESCAPES.sub("", text), "\t\n")
    return f"{plain[:limit]}…" if limit and len(plain) > limit else plain


def escaped(content: object) -> Html:
    """Give text as HTML that shows it; what is HTML already stays."""
    return content if isinstance(content, Html) else Html(html.escape(shown(str(content)), quote=True))


def element(tag: str, /, *content: object, **attributes: object) -> Html:
    """Make an element; `None` and `False` attributes are left out, `class_` and `data_x` lose their underscore."""
    told = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            name = key.rstrip("_").replace("_", "-")
            told += f" {name}" if value is True else f' {name}="{escaped(value)}"'
    return Html(f"<{tag}{told}>{joined(*content)}</{tag}>")


def joined(*content: object) -> Html:
    """Put parts together, text escaped; None is nothing."""
    return Html("".join(escaped(part) for part in content if part is not None))


def link(url: str, *content: object) -> Html:
    """Make a link to another site, or its bare text where the address is none of the web."""
    if not _WEB.fullmatch(url):
        return joined(*content)
    return element("a", *content, href=url, target="_blank", rel="noopener noreferrer nofollow")


def folded(
    key: str, summary: Html, *content: object, is_open: bool = False, class_: str | None = None
) -> Html:
    """Make a part that opens and closes; the page keeps it open under its key."""
    return element(
        "details", element("summary", summary), *content, data_key=key, open=is_open, class_=class_
    )
