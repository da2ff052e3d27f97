"""Lines of a log by their numbers, read again from where it lies, and masked as they may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ingest.logs.lines import printable
from ingest.logs.mojibake import mended
from ingest.logs.scanner import without_escapes
from ingest.redaction.redactor import Redactor

WIDEST = 2000
# What is read of a row beyond what is shown: a secret across the cut is masked whole, and only then cut.
BEYOND = 16 << 10

# First and last line, both counted.
Span = tuple[int, int]


def merge_ranges(spans: Iterable[Span]) -> list[Span]:
    """Join spans that touch or overlap; in order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def read_lines(chunks: Iterable[bytes], spans: Sequence[Span]) -> dict[int, bytes]:
    """Give the lines of the spans by their 1-based numbers, each cut at a width; the rest is only counted."""
    found: dict[int, bytes] = {}
    number = 1
    for chunk in chunks:
        last = number + chunk.count(b"\n")
        ahead = [span for span in spans if span[1] >= number]
        if not ahead:
            break
        pieces = chunk.split(b"\n") if ahead[0][0] <= last else []
        for begin, end in ahead if pieces else ():
            for wanted in range(max(begin, number), min(end, last) + 1):
                # The first piece may be the rest of a line that the chunk before began.
                text = found.get(wanted, b"") + pieces[wanted - number]
                found[wanted] = text[: 4 * WIDEST + BEYOND]
        number = last
    if found.get(number) == b"":
        del found[number]  # what follows the last line's end is no line
    return found


def mask_lines(found: Mapping[int, bytes]) -> dict[int, str]:
    """Give lines as they may be shown: masked together with those beside them, then cut."""
    clean: dict[int, str] = {}
    redactor = Redactor()
    for numbers in runs(sorted(found)):
        masked = redactor.rows([_shown(found[number]) for number in numbers])
        for number, text in zip(numbers, masked, strict=True):
            # Masks make a row shorter; what stood at the end of what was read may be half a secret.
            is_cut = len(found[number]) >= 4 * WIDEST + BEYOND
            clean[number] = (text[: max(0, len(text) - BEYOND // 4)] if is_cut else text)[:WIDEST]
    return clean


def runs(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    """Give the runs of numbers without a gap."""
    cuts = [
        0,
        *(place + 1 for place, (one, other) in enumerate(pairwise(numbers)) if other != one + 1),
        len(numbers),
    ]
    return (numbers[begin:end] for begin, end in pairwise(cuts) if end > begin)


def _shown(raw: bytes) -> str:
    raw = without_escapes(raw)
    if b"\r" in raw:
        filled = [part for part in raw.split(b"\r") if part.strip()]
        raw = filled[-1] if filled else b""
    return printable(mended(raw.decode("utf-8", "replace"))).rstrip()
