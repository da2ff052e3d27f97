"""The log around what matters: its lines with their numbers, marked by role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from corpus.schema import Language
from ingest.logs.lines import parse_line
from service.html.markup import EMPTY, Html, element, join, visible
from service.schemas.diagnosis import Diagnosis
from service.schemas.records import Excerpt, LineRange
from ui.chat.view import TriageView
from ui.chat.words import say

# What is looked at first; a line that has several roles is shown by the first of them.
ROLES = ("root", "collateral", "context", "recovered", "teardown")
# Lines of one page, and characters of one of them; a browser stays quick with so many.
MAX_LINES = 4000
MAX_TEXT = 2000
# Ranks, processes and files to choose from, and characters of a line that tell its prefix.
MAX_PRINTERS = 300
_HEAD = 400


class LogPosition(NamedTuple):
    """A place in the job's output."""

    file: str | None
    line: int


def render(view: TriageView) -> Html:
    """Render the log panel."""
    diagnosis, language = view.diagnosis, view.language
    if diagnosis is None:
        return EMPTY
    marks = _marks(diagnosis)
    stretches, words = _stretches(diagnosis, view.excerpt)
    if not stretches:
        body = element("p", say("no-evidence", language), class_="hint")
        return _panel(language, body)
    reasons = {LogPosition(item.file, item.line): item.why for item in diagnosis.evidence}
    if sum(len(stretch.lines) for stretch in stretches) > MAX_LINES:
        # More than a page shows: lines that are far from every marked one are left out.
        around = max(10, MAX_LINES // (2 * max(1, len(marks))))
        stretches = [piece for stretch in stretches for piece in _near(stretch, marks, around)]
    printers = _printers(stretches)
    # Text that is long is scrolled by keys too, so the box takes the focus.
    log = element(
        "div",
        *_rows(stretches, marks, reasons, printers, view),
        class_="log",
        role="region",
        tabindex="0",
        aria_label=say("log-lines", language),
    )
    told = element("p", say(words, language), class_="hint")
    return _panel(language, told, _jumps(marks, language), _search(printers, language), log)


def _panel(language: Language, *content: Html) -> Html:
    title = say("evidence", language)
    return element(
        "section", element("h2", title), *content, id="wc-evidence", class_="card", aria_label=title
    )


def _marks(diagnosis: Diagnosis) -> dict[LogPosition, str]:
    """Give each line that has a role its most telling one."""
    found: dict[LogPosition, str] = {}
    named = [
        *((LogPosition(item.file, item.line), item.role) for item in diagnosis.evidence),
        *((LogPosition(entry.file, entry.line), entry.role) for entry in diagnosis.cascade),
    ]
    for spot, role in named:
        if spot not in found or ROLES.index(role) < ROLES.index(found[spot]):
            found[spot] = role
    return found


def _stretches(diagnosis: Diagnosis, excerpt: Excerpt) -> tuple[Sequence[LineRange], str]:
    """Give what is kept of the log, or else the lines that the answer quotes."""
    if excerpt.stretches:
        return excerpt.stretches, "evidence-whole" if excerpt.whole else "evidence-part"
    texts = {LogPosition(item.file, item.line): item.text for item in diagnosis.evidence}
    texts |= {
        LogPosition(entry.file, entry.line): entry.event
        for entry in diagnosis.cascade
        if LogPosition(entry.file, entry.line) not in texts
    }
    ordered = sorted(texts, key=lambda spot: (spot.file or "", spot.line))
    return [
        LineRange(file=spot.file, begin=spot.line, lines=(texts[spot],)) for spot in ordered
    ], "evidence-few"


def _near(stretch: LineRange, marks: Mapping[LogPosition, str], around: int) -> Iterator[LineRange]:
    last = stretch.begin + len(stretch.lines)
    centres = sorted(
        spot.line for spot in marks if spot.file == stretch.file and stretch.begin <= spot.line < last
    )
    begin = end = 0
    for centre in centres or [last]:
        low, high = max(stretch.begin, centre - around), min(last, centre + around)
        if end and low <= end:
            end = high
            continue
        if end:
            yield _cut(stretch, begin, end)
        begin, end = low, high
    yield _cut(stretch, begin, end)


def _cut(stretch: LineRange, begin: int, end: int) -> LineRange:
    return LineRange(
        file=stretch.file, begin=begin, lines=stretch.lines[begin - stretch.begin : end - stretch.begin]
    )


def _jumps(marks: Mapping[LogPosition, str], language: Language) -> Html:
    """Render a button for each role: pressed again, it goes on to its next line; nothing without any."""
    counts = {role: sum(found == role for found in marks.values()) for role in ROLES}
    buttons = [
        element(
            "button",
            say(f"role-{role}", language),
            " ",
            element("span", f"{count}", class_="count"),
            type="button",
            class_=f"jump r-{role}",
            data_do="jump",
            data_role=role,
        )
        for role, count in counts.items()
        if count
    ]
    if not buttons:
        return EMPTY
    return element(
        "div",
        element("span", say("jump", language), class_="label"),
        *buttons,
        class_="row jumps",
        role="group",
        aria_label=say("jump", language),
    )


def _printers(stretches: Sequence[LineRange]) -> dict[LogPosition, str]:
    """Say who printed each line: the rank or process that its prefix names, else the file that it is of.

    Lines without a prefix are nobody's where all are in one file.
    """
    found: dict[LogPosition, str] = {}
    for stretch in stretches:
        for number, text in enumerate(stretch.lines, stretch.begin):
            line = parse_line(text[:_HEAD].encode(), number)
            rank = line.rank or (line.told if line.told.isdecimal() else "")
            who = f"rank {rank}" if rank else line.source or stretch.file or ""
            if who:
                found[LogPosition(stretch.file, number)] = who
    return found


def _search(printers: Mapping[LogPosition, str], language: Language) -> Html:
    """Render what finds lines: by their words, and by who printed them where that are several."""
    names = sorted(set(printers.values()), key=_by_number)
    options = [element("option", say("log-all", language), value="")]
    options += [element("option", name, value=name) for name in names[:MAX_PRINTERS]]
    return element(
        "div",
        element(
            "input",
            type="search",
            id="wc-log-search",
            placeholder=say("log-search", language),
            aria_label=say("log-search", language),
            autocomplete="off",
        ),
        element("select", *options, id="wc-log-who", aria_label=say("log-who", language))
        if len(names) > 1
        else None,
        element("span", id="wc-log-count", class_="hint", role="status"),
        class_="row find",
        role="search",
    )


def _by_number(name: str) -> tuple[object, ...]:
    """Order names as a person does: rank 2 before rank 10."""
    return tuple(
        (part.isdecimal(), int(part) if part.isdecimal() else part) for part in re.split(r"(\d+)", name)
    )


def _rows(
    stretches: Sequence[LineRange],
    marks: Mapping[LogPosition, str],
    reasons: Mapping[LogPosition, str],
    printers: Mapping[LogPosition, str],
    view: TriageView,
) -> Iterator[Html]:
    file: str | None = None
    end = 1
    for stretch in stretches:
        if stretch.file != file:
            file, end = stretch.file, 1
            yield element("div", file or "", class_="file")
        if stretch.begin > end:
            yield element(
                "div", "⋯ ", say("gap", view.language, count=f"{stretch.begin - end:,}"), class_="gap"
            )
        for number, text in enumerate(stretch.lines, stretch.begin):
            spot = LogPosition(stretch.file, number)
            role, why, who = marks.get(spot, ""), reasons.get(spot, ""), printers.get(spot)
            yield _row(spot, text, role, why, who, view)
        end = stretch.begin + len(stretch.lines)


def _row(spot: LogPosition, text: str, role: str, why: str, who: str | None, view: TriageView) -> Html:
    # The number leads to the line: its address is the page's with the line behind it.
    way = f"{view.address}#{anchor(spot)}"
    number = element("a", str(spot.line), class_="n", href=way, tabindex="-1")
    content = [number, element("code", visible(text, MAX_TEXT) or " ")]
    of = {"data_line": spot.line, "data_file": spot.file or None, "data_who": who}
    if not role:
        return element("div", *content, class_="l", tabindex="-1", **of)
    told = join(say(f"role-{role}", view.language), f": {why}" if why else None)
    return element(
        "div",
        *content,
        element("span", told, class_="role"),
        class_=f"l r-{role}",
        tabindex="-1",
        data_role=role,
        **of,
    )


def anchor(spot: LogPosition) -> str:
    """Give what stands behind a page's address for a line: `L12`, or `rank0.log:L12`."""
    return quote(f"{spot.file}:L{spot.line}" if spot.file else f"L{spot.line}")
