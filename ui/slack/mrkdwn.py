"""Text for Slack: markup is escaped, and nothing of a log becomes a link, a mention or a format.

The rules are those of https://docs.slack.dev/messaging/formatting-message-text: `&`, `<` and `>` are written
as entities, and nothing else can begin a mention or a link once `verbatim` is set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ingest.logs.lines import printable

Block = dict[str, Any]

# Of a section's text, and of a header's.
SECTION, HEADER = 3000, 150
BULLET = "• "
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ESCAPED = re.compile(r"[&<>]")
_ENTITY = re.compile(r"&(?:amp|lt|gt);")
_CHARACTERS = {entity: char for char, entity in _ENTITIES.items()}
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*)$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")
_ITEM = re.compile(r"^(\s*)[-*][ \t]+", re.MULTILINE)
_CUT_ENTITY = re.compile(r"&[a-z]{0,3}\Z")


def escape(text: str) -> str:
    """Give text in which nothing is Slack's markup, without control characters and marks of direction."""
    return _ESCAPED.sub(lambda match: _ENTITIES[match[0]], printable(text, "\t\n"))


def unescape(text: str) -> str:
    """Give what a user typed for what Slack sends of it."""
    return _ENTITY.sub(lambda match: _CHARACTERS[match[0]], text)


def code(text: str) -> str:
    """Give one line of code; a backtick in it would end it."""
    return f"`{escape(' '.join(text.split())).replace('`', chr(39)) or ' '}`"


def from_markdown(text: str) -> str:
    """Turn an answer's Markdown into Slack's markup: bold, headings, lists and code; all else is text."""
    parts = [escape(part) for part in _CODE.split(text)]
    # Every other part is code, which stays as it is.
    for place in range(0, len(parts), 2):
        bold = _BOLD.sub(r"*\1*", _HEADING.sub(r"**\1**", parts[place]))
        parts[place] = _ITEM.sub(rf"\1{BULLET}", bold)
    return "".join(parts)


def link(url: str, text: str) -> str:
    """Give a link, or the text alone where the address is none of the web's."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return escape(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s<>|]", url):
        return escape(text)
    return f"<{url.replace('&', '&amp;')}|{escape(text).replace('|', '¦')}>"


def clip(text: str, most: int) -> str:
    """Cut a text to `most` characters, visibly and never inside an entity."""
    if len(text) <= most:
        return text
    return _CUT_ENTITY.sub("", text[: most - 1]) + "…"


def mrkdwn(text: str) -> Block:
    """Give a text object; Slack turns no word of it into a link or a mention by itself."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def plain(text: str) -> Block:
    """Give a text object in which nothing is markup."""
    return {"type": "plain_text", "text": text, "emoji": False}


def section(text: str) -> Block:
    """Give a paragraph of markup."""
    return {"type": "section", "text": mrkdwn(clip(text, SECTION - 1))}


def context(text: str) -> Block:
    """Give a line in small letters."""
    return {"type": "context", "elements": [mrkdwn(clip(text, SECTION - 1))]}


def header(text: str) -> Block:
    """Give a headline; one that is too long for Slack's header, which knows no code, stands in bold."""
    shown = " ".join(printable(text, "\t\n").split()) or "?"
    return (
        {"type": "header", "text": plain(shown.replace("`", "").strip() or "?")}
        if len(shown) <= HEADER
        else section(f"*{clip(escape(shown), 1000)}*")
    )


def preformatted(text: str) -> Block:
    """Give lines of a log as they are: in rich text, nothing is markup and nothing is turned into a link."""
    shown = printable(text, "\t\n") or " "
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": shown}]}],
    }


def length(part: object) -> int:
    """Count the characters of all texts in a block or in several."""
    if isinstance(part, Mapping):
        return sum(
            len(value) if key == "text" and isinstance(value, str) else length(value)
            for key, value in part.items()
        )
    return sum(length(item) for item in part) if isinstance(part, list) else 0
