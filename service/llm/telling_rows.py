"""Rows whose numbers may decide though no rule knows them: a status, an errno, a port, a size, an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ingest.logs.report import CrashReport
from service.llm.deadline import Deadline
from service.llm.log_view import LogView, Reopen
from service.llm.odd_rows import odd_rows

# Rows above the failure that are read for such, the nearest that are kept, and seconds for a large log.
READ, MOST, SECONDS = 2000, 6, 2.0
# Rows in which one rank differs from the others that are kept.
MOST_ODD = 2
_TELLING = re.compile(
    r"""
    \bHTTP(?:/\d(?:\.\d)?)?["']?[\s:=]{1,3}[45]\d\d\b
    | \b(?:status|response|error)(?:[\s_-]?code)?["']?\s?[:=]?\s?[45]\d\d\b
    | \berrno\b["']?\s?[:=]?\s?-?\d+
    | \b(?:failed|unable|could\ not|cannot|can't)\ (?:to\ )?
      (?:read|open|load|write|connect|bind|listen|find|resolve|download|fetch)\b
    | \bports?["']?\s?[:=]?\s?\d{2,5}\b
    | \b(?:bind|binding|listen|listening|serving|running)\b[^\n]{0,40}:\d{2,5}\b
    | \b(?:retry|retries|retrying|attempts?)\b[^\n\d]{0,20}\d+
    # What an engine has for its cache, and which group a rank joins.
    | \b(?:KV|key[- ]value)[ _]?cache\b[^\n\d]{0,60}\d | \b(?:blocks|num_\w*blocks)["']?\s?[:=]\s?\d+
    | \bcomm_?id\b["']?\s?[:=]?\s?(?:0x)?[0-9a-f]{4,}
    | \b(?:nranks|n_?nodes|world[ _]?size)["']?\s?[:=]?\s?\d+
    """,
    re.IGNORECASE | re.VERBOSE,
)


def telling(text: str) -> str:
    """Give the words of a row with a number that may decide; the empty string where it has none."""
    found = _TELLING.search(text)
    return found[0] if found else ""


def told_first(rows: Mapping[int, str]) -> Iterator[int]:
    """Yield the rows that tell such a number, of each number the first."""
    said: set[str] = set()
    for number, text in sorted(rows.items()):
        words = telling(text).casefold()
        if words and words not in said:
            said.add(words)
            yield number


def telling_lines(report: CrashReport, reopen: Reopen | None) -> dict[int, str]:
    """Give such lines above the failure, or the log's end, that the report does not hold."""
    root = report.root
    end = (root.traceback or root.line) if root is not None else report.limits.lines + 1
    if reopen is None or end <= 1:
        return {}
    rows = LogView(report, reopen, Deadline(SECONDS)).lines([(max(1, end - READ), end - 1)])
    # One that differs stands before one that only has a number; of these the nearest.
    odd = _nearest(odd_rows(rows), MOST_ODD)
    return {number: rows[number] for number in sorted({*odd, *_nearest(told_first(rows), MOST)})}


def _nearest(numbers: Iterable[int], most: int) -> list[int]:
    return sorted(numbers)[-most:]
