"""People's own post-mortems as they are: Markdown, text or HTML, with the web page's clutter around them.

What belongs to the write-up is told by form, not by subject: a page's clutter comes as cards (a name, a
blurb, counters) at its end, as navigation in its markup, and as bylines under its title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from corpus.message import CHINESE
from ingest.documents import Document, pieces
from ingest.logs.inputs.sources import refuse_binary
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor

SUFFIXES = frozenset({".md", ".markdown", ".txt", ".html", ".htm", ".rst"})
MAX_BYTES = 4 << 20
# An article may end in a number or two of its own.
FEWEST_CARDS = 3

_CLUTTER = [
    "nav",
    "header",
    "footer",
    "aside",
    "script",
    "style",
    "form",
    "noscript",
    "iframe",
    "svg",
    "button",
]
# Captions that portals put over what does not belong to the article.
_CAPTION = re.compile(
    r"^(?:登录后(?:查看|复制)?.{0,6}(?:全文)?|(?:热门|相关|最新)?(?:项目|内容|文章|阅读|课程)?推荐|项目优选|收起|展开|"
    r"阅读全文|热门.{0,4}推荐|相关.{0,4}推荐|最新.{0,4}推荐|猜你喜欢|评论区?|"
    r"related (?:articles|posts|projects|reading)|recommended(?: for you| reading)?|you (?:may|might) "
    r"also like|"
    r"sign in to (?:read|view).*|read more|share this.*|leave a "
    r"(?:comment|reply)|comments?|subscribe.*|cookie.*)$",
    re.IGNORECASE,
)
# A card's last line: a language's name glued to counters, a bare counter, or a bare language's name.
_COUNTERS = re.compile(r"(?:[A-Za-z+#]{1,12}|[。！？.!?】）)]|[\u4e00-\u9fff])\d{2,4}$")
_BARE = re.compile(
    r"^(?:\d{1,4}(?:\.\d+)?(?: ?[KkMm万])?|C|C\+\+|C#|Dart|Go|Java|JavaScript|TypeScript|Kotlin|Less|Python|"
    r"Rust|Cangjie|Jinja|Ruby|PHP|Swift|Shell|HTML|Vue|暂无简介)$"
)
BYLINE = re.compile(
    r"^(?:\d{4}[-/]\d\d[-/]\d\d(?: \d\d:\d\d(?::\d\d)?)?\s*)?(?:作者|来源|author|by)\s*[:：].{1,60}$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(#{1,6})\s+(?P<title>.+?)\s*#*$")
_NUMBERED = re.compile(r"^(?:\d+(?:\.\d+)*[.、)]|[一二三四五六七八九十]+、)\s*(?P<title>\S.{0,60})$")
_SENTENCE_END = "。.:：,，;；!?！？、"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text under it."""

    heading: str
    text: str


def read_writeup(path: Path) -> list[Document]:
    """Read a write-up into documents marked as a user's note; empty where nothing of it is text."""
    content = path.read_bytes()[:MAX_BYTES]
    refuse_binary(str(path), content)
    raw = content.decode("utf-8", "replace")
    rows = from_html(raw) if path.suffix.lower() in (".html", ".htm") else raw.splitlines()
    rows = [
        printable(row)
        for row in Redactor().clean("\n".join(strip_recommendations(rows))).split("\n")
        if row.strip()
    ]
    if not rows:
        return []
    title, rest = rows[0].lstrip("# ").strip(), rows[1:]
    language = "zh" if len(CHINESE.findall(" ".join(rows))) > len(" ".join(rows)) // 20 else "en"
    owner = sha256(str(path).encode()).hexdigest()[:12]
    return list(_documents(title, sections(rest), language, owner, str(path)))


def _documents(
    title: str, parts: list[Section], language: str, owner: str, origin: str
) -> Iterator[Document]:
    number = 0
    for section in parts:
        for piece in pieces(section.text):
            text = f"{section.heading}\n{piece}" if section.heading else piece
            yield Document(
                f"note:{owner}:{number}",
                "note",
                f"note/{owner}",
                title,
                text,
                language,
                origin=origin,
                heading=section.heading,
            )
            number += 1


def strip_recommendations(rows: list[str]) -> list[str]:
    """Take a page's clutter off: captions and what follows them, cards at the end, bylines."""
    rows = [row.rstrip() for row in rows if row.strip()]
    end = next((place for place, row in enumerate(rows) if place and _CAPTION.match(row.strip())), len(rows))
    rows = rows[: _card_start(rows[:end])]
    return [row for place, row in enumerate(rows) if not (place < 5 and BYLINE.match(row.strip()))]


def _card_start(rows: list[str]) -> int:
    """Find where a run of cards begins that goes to the end: at least half of the rows from there are."""
    start = len(rows)
    cards = 0
    for place in range(len(rows) - 1, -1, -1):
        row = rows[place].strip()
        if not _BARE.match(row) and (len(row) <= 30 or not _COUNTERS.search(row)):
            continue
        cards += 1
        if cards >= FEWEST_CARDS and cards * 2 >= len(rows) - place:
            start = place
    return start


def from_html(text: str) -> list[str]:
    """Give the lines of a page's article, headings marked as in Markdown."""
    # Imported here: only HTML needs it.
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(text, "html.parser")
    for tag in soup(_CLUTTER):
        tag.decompose()
    body = soup.find("article") or soup.find("main") or soup.body or soup
    for level in range(1, 7):
        for tag in body.find_all(f"h{level}"):
            tag.insert_before("\n" + "#" * level + " ")
            tag.insert_after("\n")
    for tag in body.find_all("li"):
        tag.insert(0, "- ")
    for tag in body.find_all(["p", "li", "pre", "div", "tr", "br", "blockquote"]):
        tag.insert_before("\n")
        tag.insert_after("\n")
    rows = [row.strip() for row in body.get_text().splitlines()]
    joined = "\n".join(rows)
    # A heading's mark and text may have ended up on two lines.
    return re.sub(r"^(#{1,6})\n+(?=\S)", r"\1 ", joined, flags=re.MULTILINE).splitlines()


def sections(rows: list[str]) -> list[Section]:
    """Split a write-up's lines by heading: Markdown's, or short bare lines with text under them."""
    found: list[Section] = []
    heading, fenced = "", False
    held: list[str] = []
    for place, row in enumerate(rows):
        fenced ^= row.lstrip().startswith("```")
        title = "" if fenced else _heading(row, rows[place + 1] if place + 1 < len(rows) else "")
        if title:
            found += _section(heading, held)
            # A heading over headings stands in the text of the first of them.
            heading, held = title, ([] if held or not heading else [heading])
        elif row.strip() not in {"-", "*"}:
            held.append(row)
    return found + _section(heading, held)


def _section(heading: str, rows: list[str]) -> list[Section]:
    return [Section(heading, "\n".join(rows))] if rows else []


def _heading(row: str, following: str) -> str:
    if match := _HEADING.match(row) or _NUMBERED.match(row):
        title = match["title"].strip()
        return "" if title[-1] in _SENTENCE_END else title
    bare = row.strip()
    limit = 24 if CHINESE.search(bare) else 50
    looks = (
        0 < len(bare) <= limit
        and bare[-1] not in _SENTENCE_END
        and not re.match(r"[-*>|`$#\d{}()\[\]]|\w+ ?=", bare)
    )
    wordy = looks and (bool(CHINESE.match(bare)) or (bare[0].isupper() and " " in bare and "=" not in bare))
    return bare if wordy and len(following) > len(bare) else ""
