"""Which parts of a block are searched for patterns that are not looked for everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ingest.logs.line_index import LineIndex

# A match silences its pattern for the rest of the line; on a line of megabytes, for this far only.
LONG_LINE = 64 << 10
# What a healthy run prints at every step is looked for in the whole of a small block; of a larger one in its
# first and last bytes, and behind what failed.
SAMPLED_OVER = 1 << 20
HEAD = 16 << 10
TAIL = 64 << 10
BEHIND = 32 << 10
WINDOWS = 64
# How many lines a sample may have between two of its headings, and how far above a log's end the lines may
# begin that are asked for without a match of their own: a stack that nothing announces, and what it is in.
LONGEST_SAMPLE = 150
LAST_BYTES, ABOVE_LAST = 16 << 10, 400


def is_overrun(data: bytes, end: int) -> bool:
    """Tell whether a match only ends here because its last white space ran on over the end of its line."""
    last = data[end - 1 : end]
    if not last.isspace():
        return False
    return last == b"\n" or data[data.rfind(b"\n", 0, end - 1) + 1 : end].isspace()


def windows(data: bytes, start: int, stop: int, failures: Iterable[int]) -> list[tuple[int, int]]:
    """Give the parts of a block, in whole lines, that are searched for progress."""
    if stop - start <= SAMPLED_OVER:
        return [(0, len(data))]
    wanted = [(start, start + HEAD), (stop - TAIL, stop)]
    places = sorted(failures)
    wanted += [(place, place + BEHIND) for place in (*places[: WINDOWS // 2], *places[-WINDOWS // 2 :])]
    return _joined(_whole_lines(data, begin, end) for begin, end in wanted)


def _whole_lines(data: bytes, begin: int, end: int) -> tuple[int, int]:
    """Give a part of the bytes with the rest of its first line and of its last, where they end near."""
    begin = max(data.rfind(b"\n", max(0, begin - LONG_LINE), max(0, begin)) + 1, begin - LONG_LINE, 0)
    newline = data.find(b"\n", end, end + LONG_LINE)
    return begin, newline + 1 if newline >= 0 else min(len(data), end + LONG_LINE)


def around_matches(
    index: LineIndex, data: bytes, start: int, stop: int, places: Sequence[int]
) -> list[tuple[int, int]]:
    """Give the parts of a block, in whole lines, that are searched for headings of samples.

    They tell of the lines near them alone, so that those of a large block count that stand near a match;
    `places` are those of matches, in order.
    """
    if stop - start <= SAMPLED_OVER:
        return [(0, len(data))]
    near = index.stretches(places, places, LONGEST_SAMPLE)
    if stop == len(data):
        begin = [max(0, len(data) - LAST_BYTES)]
        near += index.stretches(begin, [len(data)], ABOVE_LAST + LONGEST_SAMPLE)
    return _joined(near)


def _joined(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Make one of parts that overlap or touch; gives them in order."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(parts):
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
