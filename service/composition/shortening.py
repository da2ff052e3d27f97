"""Texts cut to a length behind a sentence, a word, or the last thing that they name; never within one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_SENTENCE = re.compile(r"[.!?](?=\s|$)|[。！？]")
# What a message is read for: numbers, quoted and dotted names, paths.
_NAMED = re.compile(r"\d[\d.,]*|'[^'\n]+'|\"[^\"\n]+\"|`[^`\n]+`|\S*[\w-][/_.=]\w\S*")
# What only tells one object from another: UUIDs, digests and addresses in memory; never a decimal number.
_IDS = re.compile(
    r"(?<![\w/.-])(?=[0-9a-f-]*[a-f])"
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,})(?![\w/.])"
    r"|(?<=\bat )0x[0-9a-f]{8,16}(?=>)"
)
_KEPT_OF_ID = 6


# What a message goes on with once it has said what happened: what one might try, where to read of it.
_ADVICE = re.compile(
    r"(?<=[.)!?\w]) +(?:If (?=[a-z])|See (?:also |the )?(?=[Dd]ocumentation|docs\b|https?:))"
)


class Measure(NamedTuple):
    """How wide a text is, and a text's beginning of a width: characters, or the cells of a terminal."""

    width: Callable[[str], int]
    cut: Callable[[str, int], str]


CHARACTERS = Measure(len, lambda text, most: text[:most])


def proof(text: str, usual: int, most: int, measure: Measure = CHARACTERS) -> str:
    """Cut a message to about `usual`, or behind the last thing that it names within `most`.

    Advice at its end is left out.
    """
    text = _ADVICE.split(text, maxsplit=1)[0]
    within = measure.cut(text, most).rstrip() if measure.width(text) > most else text
    named = max((found.end() for found in _NAMED.finditer(within)), default=0)
    if measure.width(text[:named]) <= usual:
        return shortened(text, usual, measure)
    end = next((end for end in _sentence_ends(text) if named <= end <= len(within)), named)
    return text if end == len(text) else f"{text[:end]}…" if end == named else text[:end]


def without_ids(text: str) -> str:
    """Cut ids of objects to their beginning, by which they are found again."""
    return _IDS.sub(lambda found: f"{found.group()[:_KEPT_OF_ID]}…", text)


def shortened(text: str, most: int, measure: Measure = CHARACTERS) -> str:
    """Cut a text to about `most`, behind a sentence where one ends there, else behind a word."""
    if measure.width(text) <= most:
        return text
    cut = measure.cut(text, most)
    # An item of a list ends as a sentence does.
    ends = sorted({*(end for end in _sentence_ends(text) if end <= len(cut)), cut.rfind("\n") + 1} - {0})
    if ends and ends[-1] > len(cut) // 3:
        rows = cut[: ends[-1]].rstrip().split("\n")
        # A last row that announces a list has nothing left to announce.
        return "\n".join(rows[:-1] if rows[-1].endswith((":", "：")) else rows).rstrip()
    cut = cut.rsplit(" ", 1)[0]
    # A mark that is cut open would swallow what follows, or stand there raw.
    marks = (mark for mark in ("`", "**") if cut.count(mark) % 2)
    return f"{cut}…{''.join(marks)}"


def _sentence_ends(text: str) -> Iterator[int]:
    """Give where sentences end; a full stop within code ends none."""
    return (found.end() for found in _SENTENCE.finditer(text) if text.count("`", 0, found.end()) % 2 == 0)
