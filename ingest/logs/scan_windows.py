"""Which parts of a block are searched for patterns that are not looked for everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# A match silences its pattern for the rest of the line; on a line of megabytes, for this far only.
LONG_LINE = 64 << 10
# What a healthy run prints at every step is looked for in the whole of a small block; of a larger one in its
# first and last bytes, and behind what failed.
SAMPLED_OVER = 1 << 20
HEAD = 16 << 10
TAIL = 64 << 10
BEHIND = 32 << 10
WINDOWS = 64


def windows(data: bytes, start: int, stop: int, failures: Iterable[int]) -> list[tuple[int, int]]:
    """Give the parts of a block, in whole lines, that are searched for progress."""
    if stop - start <= SAMPLED_OVER:
        return [(0, len(data))]
    wanted = [(start, start + HEAD), (stop - TAIL, stop)]
    places = sorted(failures)
    wanted += [(place, place + BEHIND) for place in (*places[: WINDOWS // 2], *places[-WINDOWS // 2 :])]
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(wanted):
        begin = max(data.rfind(b"\n", max(0, begin - LONG_LINE), max(0, begin)) + 1, begin - LONG_LINE, 0)
        newline = data.find(b"\n", end, end + LONG_LINE)
        end = newline + 1 if newline >= 0 else min(len(data), end + LONG_LINE)
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def told_until(data: bytes, stop: int) -> int:
    """Give how far bytes are searched for what ends before `stop`, whose sign may stand in the line below.

    All of them where a line has no end near.
    """
    place = stop
    for _ in range(2):
        newline = data.find(b"\n", place, place + LONG_LINE)
        if newline < 0:
            return len(data)
        place = newline + 1
    return place


def signed_lines(data: bytes, signs: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Give the lines in which signs end, each with the one above it, as places in the bytes.

    What a match begins with may be the end of the line above. Lines that touch are given together.
    """
    begin = stop = -1
    for sign in signs:
        if sign <= stop:
            continue
        line = data.rfind(b"\n", 0, sign - 1) + 1
        above = data.rfind(b"\n", 0, max(0, line - 1)) + 1
        newline = data.find(b"\n", sign - 1)
        if above > stop:
            if stop >= 0:
                yield begin, stop
            begin = above
        stop = len(data) if newline < 0 else newline + 1
    if stop >= 0:
        yield begin, stop
