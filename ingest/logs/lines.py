"""Take one raw line apart: who printed it, when, on which rank, and what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from ingest.logs.json_records import unwrap_record
from ingest.logs.mojibake import mended
from ingest.logs.prefixes import Spans, infer_rank, strip_prefix

# Wider than what is shown, so that a secret that the shown part would cut is seen whole and masked first.
MAX_TEXT = 6000

# Prefixes nest: Kubernetes' time, Slurm's label, Ray's actor and the logger's own head on one line.
DEPTH = 8

# What prefixes tell, in the order of the fields of a `Line`.
_FIELDS = ("actor", "pid", "node", "rank", "time", "level", "told")

# Prefixes are read once for all lines that differ only in their digits: so many such shapes, of lines that
# are no longer than this, are remembered.
SHAPES, SHAPED = 8192, 2000
# Prefixes tell digits from each other only where they name a machine, an escape or a version by them.
_SHAPE = bytes.maketrans(b"023456789", b"1" * 9)
_VALUED = re.compile(rb"(?<![0-9A-Za-z])[ahAH]111|#111\[|<1")
# What may be a record: its message need not stand in the line as it is told.
_RECORD = re.compile(r'\{"|MESSAGE=|\b(?:time|ts|timestamp|level|lvl|severity)=')


class LineLayout(NamedTuple):
    """What all lines of a shape have in common.

    `parts` cuts the body and each of `_FIELDS` out of one, where it has any of them, and `begin` is where the
    body begins. `names_source` tells that they say who printed them.
    """

    begin: int
    parts: Callable[[str], tuple[str, ...]] | None
    names_source: bool


_layouts: dict[bytes, LineLayout | None] = {}
# The same of raw lines that are their own text: printable ASCII, with nothing to take off or to mend. Which
# of them are is a matter of their shapes, too.
_printed: dict[bytes, LineLayout] = {}

# A bar of tqdm, behind which another writer's line goes on: `3%|#   | 7/200 [00:03<01:20, 2.1it/s]`.
_BAR = re.compile(r"[^|\n]{0,200}?\d{1,3}%\|[^|\n]{0,300}\|[^\[\]\n]{0,80}\[[^\[\]\n]{0,300}\]")
# One that was cut off while it was drawn, with what another writer said behind it.
_CUT_BAR = re.compile(r"[^|\n]{0,200}?\d{1,3}%\|[#█▉▊▋▌▍▎▏\d]{0,300} +(?=[A-Za-z]\w*[\w:. ]{0,60}: )")


class Line(NamedTuple):
    r"""One line, or one `\r` segment of it.

    `text` is the whole segment without escapes, `body` what stands after the prefixes. Each of the other
    fields is empty where the line does not say it. `told` is the rank, or the place in the parallel groups
    (TP3), that a logger or the message itself names: no part of `source`, since a logger says it on the first
    line of a record only, and not on those of the traceback below it.
    """

    number: int
    text: str
    body: str
    actor: str = ""
    pid: str = ""
    node: str = ""
    rank: str = ""
    time: str = ""
    level: str = ""
    told: str = ""

    @property
    def source(self) -> str:
        """Name the stream that printed the line; equal for lines of one process."""
        if not (self.rank or self.actor or self.pid or self.node):
            return ""
        return _source(self.actor, self.rank, self.pid, self.node)


@lru_cache(2048)
def _source(actor: str, rank: str, pid: str, node: str) -> str:
    parts = [actor] if actor else []
    parts += [f"{key}={value}" for key, value in (("rank", rank), ("pid", pid), ("ip", node)) if value]
    return " ".join(parts)


def parse_line(raw: bytes, number: int, column: int | None = None) -> Line:
    r"""Parse a raw line; of a line redrawn with `\r`, the part that holds byte `column`, else the last."""
    shape = raw.translate(_SHAPE) if len(raw) <= SHAPED else b""
    layout = _printed.get(shape)
    if layout is not None:
        return line_like(layout, raw, number)
    segment, at = _segment(raw, column)
    text = _clipped(segment, at)
    line = Line(number, text, *_taken_apart(text))
    if shape and raw.isascii() and text.encode() == raw and (layout := _layout_of(text, shape)) is not None:
        if len(_printed) >= SHAPES:
            _printed.clear()
        _printed[shape] = layout
    return line


def is_plain(raw: bytes) -> bool:
    """Tell whether a raw line is its own text, of a shape by which its parts are known once it was parsed."""
    return len(raw) <= SHAPED and raw.translate(_SHAPE) in _printed


def bare_text(raw: bytes) -> str | None:
    """Give a raw line that is known by its shape to have no prefix; None of every other."""
    layout = _printed.get(raw.translate(_SHAPE))
    return raw.decode("ascii") if layout and not layout.begin and not layout.parts else None


def printed_layout(raw: bytes) -> LineLayout | None:
    """Give where the parts of a raw line are that is its own text; None where its shape is not known yet."""
    return _printed.get(raw.translate(_SHAPE)) if len(raw) <= SHAPED else None


def line_like(layout: LineLayout, raw: bytes, number: int) -> Line:
    """Give a raw line that is its own text, of a shape whose parts are known."""
    text = raw.decode("ascii")
    if layout.parts is None:
        return Line(number, text, text[layout.begin :])
    # Past the constructor, which takes three times as long.
    return tuple.__new__(Line, (number, text, *layout.parts(text)))


def names_source(raw: bytes) -> bool:
    """Tell whether a raw line is known by its shape to say who printed it; others may yet do so."""
    layout = _printed.get(raw.translate(_SHAPE))
    return layout is not None and layout.names_source


def message_of(text: str) -> str:
    """Give what a line says behind a progress bar and prefixes; all of it where nothing else is there."""
    bar = (_BAR.match(text) or _CUT_BAR.match(text)) if "%|" in text else None
    return _taken_apart((text[bar.end() :] if bar is not None else text).strip())[0].strip() or text


def _taken_apart(text: str) -> tuple[str, ...]:
    """Give a line's body and what `_FIELDS` names: prefix after prefix is taken off until none is left."""
    if len(text) > SHAPED or not text.isascii():
        return _read(text)
    layout = _layout_of(text, text.encode().translate(_SHAPE))
    if layout is None:
        return _read(text)
    return layout.parts(text) if layout.parts else (text[layout.begin :],)


def shape_of(text: str) -> bytes | None:
    """Give a line with its digits as ones; None where they may tell more than that numbers stand there."""
    if len(text) > SHAPED or not text.isascii():
        return None
    shape = text.encode().translate(_SHAPE)
    return shape if _layout_of(text, shape) is not None else None


def _layout_of(text: str, shape: bytes) -> LineLayout | None:
    if shape not in _layouts:
        if len(_layouts) >= SHAPES:
            _layouts.clear()
        _layouts[shape] = None if _VALUED.search(shape) else _layout(text)
    return _layouts[shape]


def _layout(text: str) -> LineLayout | None:
    """Tell where a line's parts stand; None where its text tells more than where they are, as in a record."""
    spans: Spans = {}
    found = _read_anew(text, spans)
    if "%|" in text or _RECORD.search(text):
        return None
    size = len(text)
    begin = size - len(found[0])
    if len(found) == 1:
        return LineLayout(begin, None, names_source=False)
    places = [spans.get(name, (0, 0)) for name in _FIELDS]
    parts = itemgetter(slice(begin, size), *(slice(size - start, size - end) for start, end in places))
    return LineLayout(begin, parts, names_source=bool(Line(0, text, *parts(text)).source))


# The stacks above several failures are looked at again and again, and much of a log is said more than once.
@lru_cache(1024)
def _read(text: str) -> tuple[str, ...]:
    return _read_anew(text, {})


def _read_anew(text: str, spans: Spans) -> tuple[str, ...]:
    fields: dict[str, str] = {}
    body = text
    if "%|" in text and (bar := _BAR.match(text)) is not None:
        # A logger's record behind a bar that was left open.
        record = _taken_apart(text[bar.end() :].strip())
        if len(record) > 1 and record[1 + _FIELDS.index("level")]:
            return record
    for depth in range(DEPTH):
        rest = strip_prefix(body, fields, spans, is_inner=depth > 0)
        if rest is None:
            rest = _opened(body, fields)
        if rest is None:
            break
        body = rest
    infer_rank(body, fields, spans)
    return (body, *(fields.get(name, "") for name in _FIELDS)) if fields else (body,)


def _opened(body: str, fields: dict[str, str]) -> str | None:
    message = unwrap_record(body, fields)
    if message is None:
        return None
    # Behind a record's escapes there may stand what a terminal would act on.
    fields.update({key: printable(value) for key, value in fields.items()})
    return printable(message)


def _segment(raw: bytes, column: int | None) -> tuple[bytes, int]:
    if b"\r" not in raw:
        return raw, column or 0
    if column is None:
        filled = [part for part in raw.split(b"\r") if part.strip()]
        return (filled[-1] if filled else b""), 0
    begin = raw.rfind(b"\r", 0, column) + 1
    end = raw.find(b"\r", column)
    return raw[begin : len(raw) if end < 0 else end], column - begin


def _clipped(segment: bytes, at: int) -> str:
    if len(segment) > MAX_TEXT:
        # The middle of the cut is the match, so that what was found is also what is shown.
        begin = max(0, min(at - MAX_TEXT // 2, len(segment) - MAX_TEXT))
        segment = segment[begin : begin + MAX_TEXT]
    text = mended(segment.decode("utf-8", "replace"))
    return printable(text).rstrip()


def printable(text: str, keep: str = "\t") -> str:
    """Give text without control characters and marks of direction, which a terminal or page would act on."""
    if text.isprintable() or text.replace("\t", "" if "\t" in keep else "\t").isprintable():
        return text
    return "".join(char for char in text if char in keep or char.isprintable())
