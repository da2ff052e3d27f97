"""A file of the job's own code that Python cannot read: the smallest edit after which the whole file parses.

The parser that stops at the file tells the row and what it misses. An edit counts where the file parses with
it, so that nothing else is wrong with its form; what the row was meant to do is not proved by that. The file
at hand is asked, not the log: it may have been edited since.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

from corpus.message import in_both
from corpus.schema import Text
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.code_edits.failing_code import JobFile, file_of
from service.remediation.code_edits.source_text import fault
from service.remediation.own_edits import EditKind, OwnEdit

UNPARSED = frozenset({"SyntaxError", "IndentationError", "TabError"})
# So many rows may have the same slip.
_MOST = 40
# Rows that an open bracket may go on for.
_FAR = 40
# How wide a tab is to terminals and to editors.
_WIDTHS = (8, 4, 2)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_HEAD = re.compile(
    r"\s*(?:async\s|def\s|class\s|if\b|elif\b|else\b|for\s|while\b|with\b|try\b|except\b|finally\b)"
)
_TAIL = re.compile(r"(?P<code>.*?)(?P<tail>\s*(?:#[^'\"]*)?)$", re.DOTALL)
_QUOTES = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": "-",
    "\u2212": "-",
}
_PRINTED = re.compile(
    r"^(?P<lead>\s*(?:[^#'\"\n]*:\s)?\s*)print"
    r"(?:\s+(?P<told>[^\s=(+\-.\[][^\n]*|\([^\n]*\)\s*[%,][^\n]*))?\s*$"
)
_PRINTED_TO = re.compile(r"^(?P<lead>\s*)print\s*>>\s*(?P<file>[\w.]+)\s*,\s*(?P<told>[^\n]*?)\s*$")
_CAUGHT = re.compile(r"^(?P<lead>\s*except\s+[\w.]+|\s*except\s*\([\w., ]+\))\s*,\s*(?P<name>\w+)\s*:")
_RAISED = re.compile(r"^(?P<lead>\s*raise\s+[\w.]+)\s*,\s*(?P<said>[^\n]+?)\s*$")
_OPENED = re.compile(r"'(?P<open>[(\[{])' (?:was never closed|on line (?P<line>\d+))")
_BETWEEN = re.compile(r"(?<=[\w\])}'\"])[ \t]+(?=[\w\[({'\"])")

# What a merge leaves where both sides changed the same rows.
_MARK = re.compile(r"(?:<{7}|>{7})(?: |$)")

Rows = list[str]


def broken_file(report: CrashReport, files: Sequence[JobFile]) -> tuple[JobFile, int] | None:
    """Give the file at hand that the failing message says does not parse, and the row that it tells."""
    root = report.root
    if root is None or root.exception.partition("(")[0] not in UNPARSED or not root.frames:
        return None
    frame = root.frames[-1]
    file = file_of(frame, files) if is_own(frame) and frame.line else None
    return (file, frame.line) if file is not None else None


def unparsed_words(report: CrashReport, files: Sequence[JobFile]) -> Text | None:
    """Say of the file at hand that it parses by now, or that it holds both sides of a merge."""
    found = broken_file(report, files)
    if found is None:
        return None
    file, line = found
    name = file.name.replace(chr(92), "/").rpartition("/")[2]
    if fault(file.text) is None:
        return in_both("changes.parses-by-now", file=name, line=line)
    marks = [at for at, row in enumerate(file.text.split("\n"), 1) if _MARK.match(row)]
    return in_both("changes.merge-left-open", file=name, line=marks[0], end=marks[-1]) if marks else None


def unparsed_edit(report: CrashReport, files: Sequence[JobFile]) -> OwnEdit | None:
    """Give the edit after which the file that does not parse does; None where no usual slip is it."""
    found = broken_file(report, files)
    stops = fault(found[0].text) if found is not None else None
    if (
        found is None
        or stops is None
        or "[redacted:" in "".join(found[0].text.split("\n")[stops.line - 1 : stops.line])
    ):
        return None
    file, before = found[0], found[0].text.split("\n")
    for slip, (told, tried) in _SLIPS.items():
        if not re.search(told, stops.message):
            continue
        after = _mended(before, told, tried)
        changed = _changed(before, after) if after is not None else None
        if after is not None and changed is not None:
            at, was, now = changed
            place = f"{file.name.replace(chr(92), '/').rpartition('/')[2]}:{at + 1}"
            kind: EditKind = "replace" if was else "insert-before"
            why = in_both(f"changes.unparsed-{slip}")
            return OwnEdit(kind, place, was, now, why, file, "\n".join(after))
    return None


def _changed(before: Rows, after: Rows) -> tuple[int, str, str] | None:
    """Give the first row that differs, as it is and as it becomes; an added one has nothing before."""
    for at, (was, now) in enumerate(zip(before, after, strict=False)):
        if was != now:
            is_added, is_moved = len(after) > len(before), was.strip() == now.strip()
            told = (_shown(was), _shown(now)) if is_moved else (was.strip(), now.strip())
            return at, "" if is_added else told[0], told[1]
    return None


def _shown(row: str) -> str:
    """Give a row with its indent told: of two rows that differ in that alone, nothing else would show."""
    blanks = row[: len(row) - len(row.lstrip())]
    return f"{blanks.replace(chr(9), '<tab>').replace(' ', '·')}{row.strip()}"


Tries = Callable[[Rows, int, str], Iterator[Rows]]


def _mended(rows: Rows, told: str, tried: Tries) -> Rows | None:
    """Give the rows with one kind of slip mended wherever the parser stops for it; None where it goes on."""
    for _ in range(_MOST):
        text = "\n".join(rows)
        stops = fault(text)
        if stops is None:
            return rows
        if not re.search(told, stops.message) or not 0 < stops.line <= len(rows):
            return None
        made = list(tried(rows, stops.line - 1, stops.message))
        whole = [each for each in made if fault("\n".join(each)) is None]
        if whole:
            return whole[0]
        then = ((each, fault("\n".join(each))) for each in made)
        further = [each for each, stop in then if stop is None or stop.line > stops.line]
        if not further:
            return None
        rows = further[0]
    return None


def _with(rows: Rows, at: int, row: str) -> Rows:
    return [*rows[:at], row, *rows[at + 1 :]]


def _tabs(rows: Rows, _at: int, _message: str) -> Iterator[Rows]:
    """Write the tabs at the beginning of rows as blanks: all of one width."""
    blanks = [row[: len(row) - len(row.lstrip())] for row in rows]
    if not any("\t" in blank for blank in blanks) or not any(" " in blank for blank in blanks):
        return
    for width in _WIDTHS:
        yield [
            blank.expandtabs(width) + row.lstrip() if "\t" in blank else row
            for blank, row in zip(blanks, rows, strict=True)
        ]


def _character(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """Write the plain character in place of a wide, a slanted or an unseen one, outside of texts."""
    parts = re.split(r"(\"[^\"]*\"|'[^']*')", rows[at])
    plain = "".join(part if index % 2 else _plain(part) for index, part in enumerate(parts))
    for row in (plain, _plain(rows[at])):
        if row != rows[at]:
            yield _with(rows, at, row)


def _plain(text: str) -> str:
    return "".join(
        ""
        if unicodedata.category(sign) == "Cf"
        else _QUOTES.get(sign) or (plain if len(plain := unicodedata.normalize("NFKC", sign)) == 1 else sign)
        for sign in text
    )


def _python_2(rows: Rows, _at: int, _message: str) -> Iterator[Rows]:
    """Write what Python 2 alone reads as Python 3 has it, in the whole file."""
    yield [_of_python_3(row) for row in rows]


def _of_python_3(row: str) -> str:
    if to := _PRINTED_TO.match(row):
        return f"{to['lead']}print({to['told']}, file={to['file']})"
    if printed := _PRINTED.match(row):
        told = (printed["told"] or "").strip()
        ends = ', end=" "' if told.endswith(",") else ""
        return f"{printed['lead']}print({told.rstrip(',')}{ends})"
    if caught := _CAUGHT.match(row):
        return f"{caught['lead']} as {caught['name']}:{row[caught.end() :]}"
    if raised := _RAISED.match(row):
        return f"{raised['lead']}({raised['said']})"
    return row


def _colon(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """End a block's head by its colon; `else if` is `elif`."""
    row = re.sub(r"^(\s*)else\s+if\b", r"\1elif", rows[at])
    if row != rows[at]:
        yield _with(rows, at, row)
    found = _TAIL.match(row)
    if found is not None and _HEAD.match(row):
        yield _with(rows, at, f"{found['code'].rstrip(';')}:{found['tail']}")


def _compared(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """Write `==` where a condition has one `=`."""
    signs = list(re.finditer(r"(?<![=!<>:+\-*/%&|^@])=(?!=)", rows[at]))
    if len(signs) == 1 and re.match(r"\s*(?:if|elif|while|assert|return)\b", rows[at]):
        yield _with(rows, at, f"{rows[at][: signs[0].start()]}=={rows[at][signs[0].end() :]}")


def _counted(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """Write `+= 1` for `++`, which Python does not have."""
    if found := re.match(r"^(\s*[\w.\[\]'\"]+)\s*(\+\+|--)\s*;?\s*$", rows[at]):
        yield _with(rows, at, f"{found[1]} {found[2][0]}= 1")


def _comma(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """Put a comma at the end of the row, or of the one above; within a row where only one place does."""
    for place in (at, at - 1):
        found = _TAIL.match(rows[place]) if place >= 0 else None
        if found is not None and found["code"].strip() and not found["code"].endswith((",", "(", "[", "{")):
            yield _with(rows, place, f"{found['code']},{found['tail']}")
    spaced = (
        _with(rows, at, f"{rows[at][: place.start()]}, {rows[at][place.end() :]}")
        for place in _BETWEEN.finditer(rows[at])
    )
    inner = [made for made in spaced if fault("\n".join(made)) is None]
    if len(inner) == 1:
        yield inner[0]


def _bracket(rows: Rows, at: int, message: str) -> Iterator[Rows]:
    """Close a bracket that stays open, at the end of the first row where the file then parses."""
    found = _OPENED.search(message)
    if found is None:
        return
    begin = int(found["line"]) - 1 if found["line"] else at
    for place in range(begin, min(len(rows), begin + _FAR)):
        tail = _TAIL.match(rows[place])
        if tail is None or not tail["code"].strip():
            continue
        code = tail["code"]
        ends = next((sign for sign in (":", ",") if code.endswith(sign)), "")
        yield _with(rows, place, f"{code.removesuffix(ends)}{_CLOSING[found['open']]}{ends}{tail['tail']}")


def _surplus(rows: Rows, at: int, message: str) -> Iterator[Rows]:
    """Take out a closing bracket that nothing opens, where the row has one such at its end."""
    if found := re.search(r"unmatched '([)\]}])'", message):
        place = rows[at].rfind(found[1])
        if place >= 0:
            yield _with(rows, at, rows[at][:place] + rows[at][place + 1 :])


def _quote(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """End a text at the end of its row, before the brackets that close there."""
    row = rows[at].rstrip()
    bare = row.rstrip(")]},:")
    for sign in ('"', "'"):
        if row.count(sign) % 2:
            yield _with(rows, at, row + sign)
            yield _with(rows, at, bare + sign + row[len(bare) :])


def _inner_quotes(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    """Write the other quotes within the braces of a formatted text, which the same ones end (Python 3.11)."""
    for sign, other in (('"', "'"), ("'", '"')):
        begin, end = rows[at].find(f"f{sign}"), rows[at].rfind(sign)
        if 0 <= begin < end - 1:
            inner = rows[at][begin + 2 : end]
            parts = re.split(r"(\{[^{}]*\})", inner)
            told = "".join(part.replace(sign, other) if part[:1] == "{" else part for part in parts)
            yield _with(rows, at, f"{rows[at][: begin + 2]}{told}{rows[at][end:]}")


def _raw(rows: Rows, at: int, _message: str) -> Iterator[Rows]:
    r"""Write a path of Windows as raw text: `\U` begins a character's number."""
    yield _with(rows, at, re.sub(r"(?<![\w'\"])(['\"])(?=[A-Za-z]:\\)", r"r\1", rows[at]))


def _level(rows: Rows, at: int, message: str) -> Iterator[Rows]:
    """Bring a row, and those below that stand as deep, to the level that is nearest of those above it."""
    depth = _depth(rows[at])
    above = [row for row in rows[:at] if row.strip() and not row.lstrip().startswith("#")]
    if not above or "\t" in "".join(row[: _depth(row)] for row in [*above, rows[at]]):
        return
    levels = {_depth(above[-1])} if "unexpected indent" in message else {_depth(row) for row in above}
    nearest = sorted((abs(level - depth), level) for level in levels if level != depth)
    if not nearest or (len(nearest) > 1 and nearest[0][0] == nearest[1][0]):
        return
    moved, last = nearest[0][1] - depth, at
    while last + 1 < len(rows) and rows[last + 1].strip() and _depth(rows[last + 1]) >= depth:
        last += 1
    for end in dict.fromkeys((last, at)):
        yield [
            *rows[:at],
            *(" " * max(0, _depth(row) + moved) + row.lstrip() for row in rows[at : end + 1]),
            *rows[end + 1 :],
        ]


def _depth(row: str) -> int:
    return len(row) - len(row.lstrip())


def _nothing(rows: Rows, at: int, message: str) -> Iterator[Rows]:
    """Give a block whose rows are all comments a statement that does nothing."""
    found = re.search(r"on line (\d+)", message)
    head = int(found[1]) - 1 if found else at - 1
    between = [row.strip() for row in rows[head + 1 : at]]
    if 0 <= head < at and any(between) and all(not row or row.startswith("#") for row in between):
        yield [*rows[: head + 1], " " * (_depth(rows[head]) + 4) + "pass", *rows[head + 1 :]]


# What the parser says, and what is tried then; the first after which the file parses counts.
_SLIPS: Mapping[str, tuple[str, Tries]] = {
    "tabs": (r"tabs and spaces|unindent|unexpected indent|expected an indented block", _tabs),
    "character": (r"invalid (?:non-printable )?character", _character),
    "python-2": (r"Missing parentheses in call|multiple exception types|^invalid syntax$", _python_2),
    "colon": (r"expected ':'|^invalid syntax$", _colon),
    "compared": (r"instead of '='|perhaps you meant \"==\"", _compared),
    "counted": (r"^invalid syntax$", _counted),
    "comma": (r"forgot a comma|^invalid syntax$|':' expected after dictionary key", _comma),
    "bracket": (r"was never closed|does not match opening", _bracket),
    "surplus": (r"unmatched '", _surplus),
    "quote": (r"unterminated (?:f-)?string literal", _quote),
    "inner-quotes": (r"f-string", _inner_quotes),
    "raw": (r"unicodeescape", _raw),
    "level": (r"unexpected indent|unindent does not match", _level),
    "nothing": (r"expected an indented block", _nothing),
}
