"""The job's own files as a model may look into them: rows by their numbers, or by words that they hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from corpus.message import Message
from service.llm.log_view import finder, units

# Rows of one answer, those around a row that holds the words, and the longest row.
MOST, AROUND, LONGEST = 100, 4, 400
# A call that a row is of is shown whole where it has at most so many rows above or below.
MOST_OF_CALL = 40
# Texts and remarks: a bracket in one opens nothing.
_QUOTED = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|#.*")
_OPENS, _CLOSES = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")


def read_file(
    launches: Sequence[str], name: str, first: str, words: str, told_of: Callable[[str], str] = lambda _: ""
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give rows of a file with their numbers, and what is to be said of those that are not given.

    `launches` are texts of files, each with its name behind the last row; they are redacted. What `told_of`
    says of a file, such as that it is not as it ran, is said once. Raises ValueError, in words for a model,
    where there is no such file.
    """
    files = {title: body.split("\n") for body, _, title in (text.rpartition("\n") for text in launches)}
    wanted = name.strip().replace("\\", "/")
    found = [title for title in files if title == wanted] or [
        title for title in files if title.rpartition("/")[2] == wanted.rpartition("/")[2]
    ]
    if len(found) != 1:
        there = ", ".join(files) or Message("tools.no-file-at-all")
        raise ValueError(Message("tools.no-one-file", files=there))
    rows, remark = files[found[0]], told_of(found[0])
    if first and not first.isdecimal():
        raise ValueError(Message("tools.no-row-number"))
    places: Sequence[int]
    begin = max(0, int(first or 1) - 1)
    places = range(begin, len(rows))
    loose = ""
    if words:
        held, loose = _holding(rows, words)
        # With both, what holds the words is read on from the row.
        places = [place for place in held if place >= begin]
    shown = [place for place in places if rows[place].strip()]
    told = tuple(f"{place + 1}: {rows[place][:LONGEST]}" for place in shown[:MOST])
    said = Message("tools.file-remark", file=found[0], remark=remark) if remark else ""
    more = tuple(filter(None, [said, loose]))
    if len(shown) > MOST:
        left, at = len(shown) - MOST, shown[MOST] + 1
        return told, (*more, Message("tools.more-rows", count=left, all=len(rows), first=at))
    return told, more if told else (*more, Message("tools.no-row"))


def _holding(rows: Sequence[str], words: str) -> tuple[list[int], str]:
    """Give the places of rows that hold some words, with the whole call of each and what is around.

    `|` stands between alternatives. Of each, rows that hold it as it is written count; else those with all of
    its words; else those with any, of which the second value tells.
    """
    open_above = _open_brackets(rows)
    near: set[int] = set()
    loose: list[str] = []
    for said in filter(str.strip, words.split("|")):
        hits, is_loose = _hits(rows, said.strip())
        loose += [said.strip()] if is_loose else []
        for at in hits:
            first, last = _bracketed(open_above, at)
            near.update(range(max(0, first - AROUND), min(len(rows), last + AROUND + 1)))
    return sorted(near), Message("tools.rows-with-any", words=", ".join(loose)) if loose else ""


def _hits(rows: Sequence[str], said: str) -> tuple[list[int], bool]:
    """Give the places of the rows that hold what is said, and whether they hold only some of its words.

    The beginning of a word counts before a piece of one.
    """
    parts = units(said)
    several: tuple[tuple[Sequence[str], Callable[[Iterable[object]], bool]], ...] = (
        ([said.strip('"')], all),
        (parts, all),
        (parts, any),
    )
    for wanted, enough in several:
        for as_words in (True, False):
            forms = [finder(part, as_words=as_words) for part in wanted]
            hits = [at for at, row in enumerate(rows) if enough(form.search(row) for form in forms)]
            if hits:
                return hits, enough is any and len(parts) > 1
    return [], False


def _open_brackets(rows: Sequence[str]) -> list[int]:
    """Count the brackets that are open where each row begins, and behind the last."""
    counts = [0]
    for row in rows:
        bare = _QUOTED.sub("", row)
        counts.append(max(0, counts[-1] + len(_OPENS.findall(bare)) - len(_CLOSES.findall(bare))))
    return counts


def _bracketed(open_above: Sequence[int], at: int) -> tuple[int, int]:
    """Give the first and the last row of the outermost brackets around a row; the row where they are long."""
    first = last = at
    while open_above[first] and at - first < MOST_OF_CALL:
        first -= 1
    while open_above[last + 1] and last - at < MOST_OF_CALL and last + 2 < len(open_above):
        last += 1
    # The brackets of a whole file of data are no call.
    return (at if open_above[first] else first), (at if open_above[last + 1] else last)
