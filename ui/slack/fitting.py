"""Fit an answer into one message: its parts are ranked, and the lowest are left out and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ui.slack.mrkdwn import BULLET, SECTION, Block, clip, escape, preformatted, section

# Slack takes 12,000 characters of text and 50 blocks in a message; what frames the parts needs some of both.
TEXT, BLOCKS = 10_500, 40
_LONGEST = 1500


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A part of an answer: its heading, its weight, and its text, as markup or as lines of a log."""

    heading: str
    score: float
    text: str
    is_log: bool = False

    @property
    def cut(self) -> str:
        """The text, cut where it is longer than any part should be."""
        return clip(self.text, _LONGEST)


def fit(pieces: Sequence[AnswerPiece], most: int = TEXT, blocks: int = BLOCKS) -> tuple[list[Block], int]:
    """Give the blocks of the best parts in the order of reading, and how many parts are left out.

    Parts of one heading must stand together in `pieces`.
    """
    kept = set[int]()
    used = 0
    for place in sorted(range(len(pieces)), key=lambda place: -pieces[place].score):
        # A heading is counted with each of its parts, for it may stand over one alone.
        cost = len(pieces[place].cut) + len(pieces[place].heading) + 6
        if used + cost > most:
            break
        used += cost
        kept.add(place)
    while len(made := _blocks([pieces[place] for place in sorted(kept)])) > blocks:
        kept.remove(min(kept, key=lambda place: pieces[place].score))
    return made, len(pieces) - len(kept)


def _blocks(pieces: Sequence[AnswerPiece]) -> list[Block]:
    made: list[Block] = []
    for (heading, is_log), group in groupby(pieces, key=lambda piece: (piece.heading, piece.is_log)):
        texts = [piece.cut for piece in group]
        if is_log:
            made += [section(f"*{escape(heading)}*"), *map(preformatted, _joined(texts, True))]
        else:
            first, *others = texts
            made += map(
                section, _joined([f"*{escape(heading)}*\n{first}" if heading else first, *others], False)
            )
    return made


def _joined(texts: Sequence[str], are_lines: bool) -> list[str]:
    """Join texts that fit into one block: lines and list items below each other, paragraphs apart."""
    made: list[str] = []
    for text in texts:
        between = "\n" if are_lines or text.startswith(BULLET) else "\n\n"
        if made and len(made[-1]) + len(between) + len(text) < SECTION:
            made[-1] += between + text
        else:
            made.append(text)
    return made
