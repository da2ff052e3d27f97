"""Secrets whose name stands over them: the cells of a table, the values of an SQL statement.

A row that names columns, one of them a secret's, and the cells at that column's place in the rows below it:
parted by a sign (CSV, TSV, Markdown, boxes, psql), or standing below the name (kubectl).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.redaction import entropy
from ingest.redaction.kinds import FoundValue, SecretKind

# So many bytes below the names are read, in so many rows.
AHEAD = 12_000
_ROWS = 200
_WIDEST = 2000
_PASSWORDS = r"(?:pass(?:word|wd|phrase|code)?s?|pwd|pw|psk|密码|口令|パスワード|비밀번호)"
_KEY = (
    r"(?:secrets?|token|credentials?|creds|(?:secret|api|access|auth|private|license|encryption|signing|"
    r"session|client|master|shared)[ _-]?(?:key|token|secret|access[ _-]?key)|密钥|令牌)"
)
_NAME = re.compile(
    rf"(?i)(?:[\w.-]{{0,40}}[ _.-])?(?:{_PASSWORDS}|{_KEY})(?:[ _-]?(?:value|plain))?".encode()
)
_KEYS = re.compile(rf"(?i){_KEY}".encode())
_COUNTED = re.compile(
    rb"(?i)(?:max|min|num|total|input|output|prompt|completion|new|pad|bos|eos|unk|special|stop|n)[ _-]"
)
# A column's name: a few words, which begin with a letter.
_TITLE = re.compile(rb"(?:[A-Za-z_#@\xc3-\xe9][\w .#/@\x80-\xff-]{0,40})?")
# What a row's cells are parted by.
_BARS = re.compile(rb"\||\xe2\x94[\x82\x83\x86\x87\x8a\x8b]|\xe2\x95\x91")
_RULE = re.compile(rb"(?:[\s|+=:-]|\xe2[\x94\x95][\x80-\xbf])*")
_GAP = re.compile(rb"[ ]{2,}|\t")
_FRAME = b" \t\"'`\r"
_HEADER_NAMES = (
    r"(?:pass(?:word|wd|phrase|code)?s?|pwd|pw|psk|secrets?|token|credentials?|creds|key|密码|口令|"
    r"パスワード|비밀번호|密钥|令牌)"
)
# A secret's name at the end of a cell, in small letters; the lookahead is what `re` is quick at.
_TITLED = re.compile(
    rf"(?=[pstck\x80-\xff])(?<![a-z]){_HEADER_NAMES}(?:[ _-]?(?:value|plain))?[ \"'`]{{0,2}}"
    rf"(?:[ ]{{0,60}}(?:[,;|\t]|│|┃|║)|[ ]{{2}}|[ \t]*\r?\n)".encode()
)
_NO_TITLES = re.compile(rb"[=(){}]")


def find_cells(text: bytes) -> Iterator[FoundValue]:
    """Yield the cells below a secret's name, of tables with and without signs between the cells."""
    done = 0
    for titled in _TITLED.finditer(text.lower()):
        begin, end = text.rfind(b"\n", 0, titled.start()) + 1, text.find(b"\n", titled.start())
        if begin < done or end < 0 or end - begin > _WIDEST or _NO_TITLES.search(text, begin, end):
            continue
        done = end
        names, split = _cells(text, begin, end)
        wanted = [number for number, (first, last) in enumerate(names) if _is_name(text[first:last])]
        if (
            not wanted
            or len(names) < 2
            or not all(_TITLE.fullmatch(text[first:last]) for first, last in names)
        ):
            continue
        for first, last in _below(text, end, names, wanted, split):
            done = last
            yield FoundValue(begin, first, last)


def _is_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None and _COUNTED.match(name) is None


def _is_cell(name: bytes, cell: bytes) -> bool:
    """Tell whether a cell holds a secret: a key's what chance has drawn, a password's what is no word."""
    if any(char in b" \t" for char in cell) or len(cell) < 6:
        return False
    is_key = _KEYS.search(name) is not None
    return (entropy.is_chance(cell, 12) or entropy.is_uuid(cell)) if is_key else entropy.is_cell(cell)


def _below(
    text: bytes, end: int, names: list[tuple[int, int]], wanted: list[int], split: re.Pattern[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield the cells of the rows below that stand in the wanted columns and look like secrets."""
    begin, until = end + 1, end + AHEAD
    for _ in range(_ROWS):
        stop = text.find(b"\n", begin, begin + _WIDEST)
        stop = len(text) if stop < 0 else stop
        if begin >= len(text) or stop - begin > _WIDEST or stop > until:
            return
        if not _RULE.fullmatch(text, begin, stop):
            cells = _split(text, begin, stop, split)
            # A table without signs may number its rows.
            shift = len(cells) - len(names)
            if shift not in ((0, 1) if split is _GAP else (0,)):
                return
            for number in wanted:
                if _is_cell(text[slice(*names[number])], text[slice(*cells[number + shift])]):
                    yield cells[number + shift]
        elif begin == stop and split is not _BARS:
            return
        begin = stop + 1


def _cells(text: bytes, begin: int, end: int) -> tuple[list[tuple[int, int]], re.Pattern[bytes]]:
    """Give the places of a row's cells, and what parts them."""
    row = text[begin:end]
    if _BARS.search(row):
        split = _BARS
    elif b"\t" in row:
        split = re.compile(rb"\t")
    elif sign := next((each for each in (b",", b";") if each in row), b""):
        split = re.compile(sign)
    else:
        split = _GAP
    return _split(text, begin, end, split), split


def _split(text: bytes, begin: int, end: int, split: re.Pattern[bytes]) -> list[tuple[int, int]]:
    """Give the places of cells, without the blanks and quotes around them."""
    places, first = [], begin
    for last, following in [*(match.span() for match in split.finditer(text, begin, end)), (end, end)]:
        cell = text[first:last]
        left = len(cell) - len(cell.lstrip(_FRAME))
        places.append((first + left, max(first + left, first + len(cell.rstrip(_FRAME)))))
        first = following
    # A bar before the first cell and behind the last one makes no cells.
    ends = (0, len(places) - 1)
    return [place for number, place in enumerate(places) if number not in ends or place[0] < place[1]]


_INSERT = re.compile(
    rb"(?i)\b(?:insert|replace)\s(?:or\s\w{1,10}\s)?into\s[^(\n]{1,120}\((?P<names>[^()\n]{1,2000})\)\s*"
    rb"values\s*(?=\()"
)
_VALUE = re.compile(
    rb"\s*(?:[NEBnebx]?'(?P<text>(?:[^'\\\n]|''|\\.){0,4000})'|(?P<bare>[^,()'\n]{1,200}))\s*"
)
_PLACES = re.compile(rb"(?:%s|\?|:\w+|\$\d+|%\(\w+\)s)\Z")
_PARAMETERS = re.compile(
    rb"(?i)\n[^\n]{0,40}?(?:parameters|params|args)[ '\"]{0,2}[:=][ ]?(?=[\[(])[\[(]{1,2}"
)


def find_inserted(text: bytes) -> Iterator[FoundValue]:
    """Yield the values of an INSERT that stand in a column with a secret's name, as text or as parameters."""
    for insert in _INSERT.finditer(text):
        names = [name.strip(b" \t\"'`[]") for name in insert["names"].split(b",")]
        wanted = {number for number, name in enumerate(names) if _is_name(name)}
        place = insert.end()
        while wanted and text[place : place + 1] == b"(":
            values, place = _values(text, place + 1)
            yield from _wanted(insert.start(), text, values, wanted, names)
            if values and _PLACES.match(text[slice(*values[0])].strip()):
                given = _PARAMETERS.search(text, place, place + 400)
                if given is not None:
                    values, _ = _values(text, given.end())
                    yield from _wanted(insert.start(), text, values, wanted, names)
            following = re.compile(rb"\)\s*,\s*(?=\()").match(text, place)
            place = following.end() if following else len(text)


def _wanted(
    begin: int, text: bytes, values: list[tuple[int, int]], wanted: set[int], names: list[bytes]
) -> Iterator[FoundValue]:
    if len(values) == len(names):
        for number, (first, last) in enumerate(values):
            if number in wanted and entropy.is_secret(text[first:last]):
                yield FoundValue(begin, first, last)


def _values(text: bytes, place: int) -> tuple[list[tuple[int, int]], int]:
    """Give the places of values in parentheses, and where they end."""
    values: list[tuple[int, int]] = []
    while match := _VALUE.match(text, place):
        values.append(match.span("text") if match["text"] is not None else match.span("bare"))
        place = match.end()
        if text[place : place + 1] != b",":
            break
        place += 1
    return values, place


COLUMNS = (
    SecretKind(
        "secret",
        rf"(?i)(?:^|[,;|\t]|[ ]{{2}}|│|┃|║)[ \"'`]{{0,4}}(?:[a-z0-9]{{1,16}}[ _.-]){{0,3}}{_HEADER_NAMES}"
        r"(?:[ _-]?(?:value|plain))?"
        rf"[ \"'`]{{0,2}}(?:[ ]{{0,60}}(?:[,;|\t]|│|┃|║)|[ ]{{2}}|[ \t]*\r?\n)",
        "",
        ahead=AHEAD,
        wraps=False,
        shaped=False,
        finder=find_cells,
    ),
    SecretKind(
        "secret",
        r"(?i)(?:insert|replace)\s(?:or\s\w{1,10}\s)?into\s[^\n]*(?:pass|pwd|pw|psk|secret|token|key|cred)",
        "",
        ahead=2000,
        wraps=False,
        shaped=False,
        finder=find_inserted,
    ),
)
