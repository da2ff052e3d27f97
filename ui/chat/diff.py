"""A patch as coloured rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from corpus.schema import Language
from service.html.markup import EMPTY, Html, element
from service.patching.commands import LOGGED
from ui.chat.words import say

_KINDS = (("+++", "file"), ("---", "file"), ("@@", "hunk"), ("+", "add"), ("-", "del"))
# A command is one row of many words.
_WORD = re.compile(r"\s+|[^\s=:]+|[=:]")
_FILE = re.compile(r"^\+\+\+ (?:b/)?(?P<name>[^\t\n]+)", re.MULTILINE)


def files(patch: str) -> list[str]:
    """Name the files that a patch changes."""
    return [match["name"].strip() for match in _FILE.finditer(patch)]


def render_suggestion(patch: str | None, title: str) -> Html:
    """Render a diff that is a hypothesis, if there is one: it is read, not downloaded to be applied."""
    return _framed(patch, title, EMPTY) if patch else EMPTY


def render(patch: str, language: Language) -> Html:
    """Render a patch with its buttons; the browser holds the exact text that they copy and save."""
    named = files(patch)
    if len(named) == 1 and (match := LOGGED.fullmatch(named[0])):
        # The job's command as its log shows it: there is no such file on the user's disk.
        title = say("patch-of-command", language, line=match["line"])
    else:
        title = say("patch-of", language, files=", ".join(named)) if named else say("patch", language)
    buttons = element(
        "div",
        element("button", say("copy", language), type="button", class_="small", data_do="copy-patch"),
        element("button", say("download", language), type="button", class_="small", data_do="save-patch"),
        class_="row",
    )
    return _framed(patch, title, buttons, is_named=len(named) == 1)


def _framed(patch: str, title: str, buttons: Html, *, is_named: bool = False) -> Html:
    """Render the rows below a title; where that names the only file, its two rows say nothing more."""
    lines = patch.rstrip("\n").split("\n")
    partners = _partners(lines)
    rows = []
    for place, row in enumerate(lines):
        if is_named and _kind(row) == "file":
            continue
        other = partners.get(place)
        # Where a row takes the place of another, what differs is marked.
        parts = [row or " "] if other is None else [row[:1], *_marked(row[1:], lines[other][1:])]
        rows.append(element("span", *parts, class_=f"d {_kind(row)}"))
    return element(
        "div",
        element("div", element("h3", title), buttons, class_="patch-head"),
        element("pre", *rows, tabindex="0", role="region", aria_label=title, class_="diff"),
        class_="patch",
    )


def render_command(command: str | None, title: str, language: Language) -> Html:
    """Render a command, if there is one, with its buttons; the browser holds the exact text of it."""
    if command is None:
        return EMPTY
    deeds = (("copy", "copy-command"), ("download", "save-command"))
    buttons = (
        element("button", say(name, language), type="button", class_="small", data_do=deed)
        for name, deed in deeds
    )
    return element(
        "div",
        element("div", element("h3", title), element("div", *buttons, class_="row"), class_="patch-head"),
        element("pre", command, tabindex="0", role="region", aria_label=title, class_="diff command"),
        class_="patch",
    )


def _partners(rows: Sequence[str]) -> dict[int, int]:
    """Pair the rows of a block with those of the block that takes its place, where they are as many."""
    kinds = [_kind(row) for row in rows]
    found: dict[int, int] = {}
    place = 0
    while place < len(rows):
        gone = _run(kinds, place, "del")
        come = _run(kinds, place + gone, "add")
        if gone and gone == come:
            found |= {place + step: place + gone + step for step in range(gone)} | {
                place + gone + step: place + step for step in range(gone)
            }
        place += gone + come or 1
    return found


def _run(kinds: Sequence[str], begin: int, kind: str) -> int:
    end = begin
    while end < len(kinds) and kinds[end] == kind:
        end += 1
    return end - begin


def _marked(row: str, other: str) -> Iterator[Html | str]:
    words, others = _WORD.findall(row), _WORD.findall(other)
    for kind, begin, end, _, _ in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        text = "".join(words[begin:end])
        if text:
            yield text if kind == "equal" else element("mark", text)


def _kind(row: str) -> str:
    return next((kind for begin, kind in _KINDS if row.startswith(begin)), "same")
