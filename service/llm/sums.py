"""Questions whether a value is enough: "would 0.95 be enough?", answered by the log's own arithmetic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.keys import last_level
from corpus.message import words
from service.llm.prompt_context import PromptContext
from service.schemas.diagnosis import ProposedChange

_ENOUGH = re.compile(
    r"\b(?:enough|suffices?|sufficient)\b|\bwould\b[^?]{1,60}\b(?:do|fit|cure|work)\b|够|行吗|可以吗|管用吗",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)"
    r"\s?(?P<unit>%|[kK]\b|[gG](?:i?[bB])?\b)?(?![\w.]*\w)"
)
_SCALES = {"%": 0.01, "k": 1024.0, "": 1.0}
_NO_UNIT = re.compile(r"[\d.,\s]+")


def answer_sum(text: str, prompt_context: PromptContext, changes: Sequence[ProposedChange]) -> str:
    """Say whether a value that a question names reaches what the log's numbers ask for.

    Empty where it asks no such thing. Of the changes the one counts whose setting is named, else the first
    whose value was worked out from the log.
    """
    asked = _NUMBER.search(_without_lines(text)) if _ENOUGH.search(text) else None
    if asked is None:
        return ""
    language = prompt_context.language
    change = _meant(text, [change for change in changes if _value(change.to) is not None])
    if change is None or change.proof is None:
        return words("replies.sum-unknown", language, asked=asked[0].strip())
    values = {
        "asked": asked[0].strip(),
        "key": change.key,
        "to": f"{change.to}",
        "proof": change.proof.rstrip("."),
    }
    return words(f"replies.sum-{_verdict(asked, change)}", language, **values)


def _without_lines(text: str) -> str:
    """Take out what names a line of the log or a rank: its number is no value."""
    return re.sub(r"\b(?:L\d+|(?:line|rank|step)s? \d+)", " ", text)


def _meant(text: str, changes: Sequence[ProposedChange]) -> ProposedChange | None:
    lowered = text.lower().replace("-", "_")
    named = (change for change in changes if last_level(change.key).replace("-", "_") in lowered)
    proven = (change for change in changes if change.proof is not None)
    return next(named, None) or next(proven, None) or next(iter(changes), None)


def _verdict(asked: re.Match[str], change: ProposedChange) -> str:
    """Tell whether the value lies on the safe side of the proposed one, where the job's own does not."""
    unit = (asked["unit"] or "").lower()
    to, here = _value(change.to), _value(change.from_)
    scale = _SCALES.get(unit)
    if to is None or scale is None or (here is None or here == to):
        return "compare"
    wanted = float(asked["number"].replace(",", "")) * scale
    reaches = wanted <= to if to < here else wanted >= to
    return "enough" if reaches else "short"


def _value(value: object) -> float | None:
    """Read a plain number; a switch, words and sizes with units are none."""
    if isinstance(value, bool) or value is None:
        return None
    plain = str(value).replace(",", "").strip()
    return float(plain) if _NO_UNIT.fullmatch(plain) and plain.count(".") <= 1 and plain != "." else None
