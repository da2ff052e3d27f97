"""When the job died, as far as its log tells, in seconds since the epoch."""

from __future__ import annotations

import re

from ingest.logs.clock import parse_time
from ingest.logs.report import CrashReport

_ZONED = re.compile(r"(?:Z|UTC|GMT|[+-]\d\d:?\d\d)$|^\d{10}(?:\d{3})?(?:\.\d+)?$")


def crash_time(report: CrashReport, year: int, utc_offset_s: float = 0.0) -> float | None:
    """Give when the root event was printed, or the nearest event with a time; None where no line names a day.

    A clock without a zone is that of the machine whose local time is `utc_offset_s` ahead of UTC.
    """
    root = report.root.line if report.root else 1 << 62
    near = sorted(report.events, key=lambda event: abs(event.line - root))
    for text in (event.time for event in ([report.root, *near] if report.root else near)):
        when = parse_time(text, year) if text else None
        if when is not None:
            return when if _ZONED.search(text.strip().strip("[]()")) else when - utc_offset_s
    return None
