"""What a file's last rows leave open: calls of an unnamed exception, announced work, a count."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ingest.logs.lines import parse_line

# A frame and its statement, its marks below, another frame's beginning: so few rows are looked at.
_LOOKED_AT = 4
_HEADER = re.compile(r"\W{0,8}Traceback \(most recent call last\)\W{0,8}$")
_FRAME = re.compile(r'\s*File "[^"\n]{1,400}", line \d{1,9}, in \S')
# Work that its program says it begins, by a form of a verb; a row that goes on where it ends.
_BEGINS = re.compile(
    r"(?i)(?:^|[\]|:>—–-]\s{1,3})\W{0,8}(?:(?:now|then|next|step \d{1,4}\S?|\[?\d{1,6}/\d{1,6}\S?)\W{1,3})?"
    r"(?P<verb>[a-z]{2,20}ing)\b[^\n]{0,200}?(?:\.{3}|…)\W{0,4}$|"
    r"(?:^|[\]|:：>—–-]\s{0,3})\W{0,8}(?:正在|开始)[^\n]{0,100}(?:\.{3}|…)\W{0,4}$"
)
# What a program says that it does as it leaves.
_LEAVES = re.compile(
    r"(?i)exit|clos|shut|stop|finish|clean|quit|terminat|end|leav|tear|kill|remov|delet|destroy|releas|free|"
    r"disconnect|unload|sync|wait|sleep|return|complet"
)
# A count of some that is not at its last, in a row that goes on.
_COUNTED = re.compile(r"(?<![\d./:-])(?P<step>\d{1,6}) ?(?:/|of) ?(?P<total>\d{1,6})(?![\d./:-])")
_DIGITS = re.compile(r"\d+")
_GOES_ON = re.compile(r"(?:\.{3}|…)\W{0,4}$")


def leave_open(rows: Iterable[tuple[int, bytes]]) -> bool:
    """Tell whether a file's numbered last rows break off what they tell.

    Such a file ends amid something, whatever its program had done before.
    """
    bodies = _bodies(rows)
    return bool(bodies) and (_is_amid_calls(bodies) or _is_announced(bodies[-1]))


def leave_uncounted(rows: Iterable[tuple[int, bytes]]) -> bool:
    """Tell whether a file's numbered last rows count something in like words that is far from its last.

    Whoever writes its results amid such a count wrote those of a part.
    """
    last: dict[str, tuple[int, int]] = {}
    is_short = False
    for body in _bodies(rows):
        if (counted := _COUNTED.search(body)) is None:
            continue
        words, now = _DIGITS.sub("", body[: counted.start()]), (int(counted["step"]), int(counted["total"]))
        before = last.get(words)
        if before is not None and before[1] == now[1]:
            # By as much as it went on here the next one would come.
            is_short = before[0] < now[0] and 2 * now[0] - before[0] < now[1]
        last[words] = now
    return is_short


def _bodies(rows: Iterable[tuple[int, bytes]]) -> list[str]:
    """Give the last rows that say something, as they were drawn last."""
    return [
        body for number, raw in rows if (body := parse_line(raw.rsplit(b"\r", 1)[-1], number).body).strip()
    ][-_LOOKED_AT:]


def _is_amid_calls(bodies: list[str]) -> bool:
    """Tell whether the last row is a header of calls, a frame, or the indented statement and marks of one."""
    for body in reversed(bodies):
        if _FRAME.match(body) or _HEADER.match(body):
            return True
        if not body[:1].isspace():
            return False
    return False


def _is_announced(body: str) -> bool:
    """Tell whether a row says that something begins, or counts on, and that it is not done."""
    begun = _BEGINS.search(body)
    if begun is not None and not _LEAVES.match(begun["verb"] or ""):
        return True
    counted = _COUNTED.search(body) if _GOES_ON.search(body) else None
    return counted is not None and int(counted["step"]) < int(counted["total"])
