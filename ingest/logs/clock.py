"""When a line was printed: the times that logs write, as seconds since the epoch.

Lines of several nodes can be put in order by it. What names no day (a bare clock, the kernel's seconds
since boot) has no place among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,12}))?)?"
_ZONE = r"\s?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?"

# How long a cluster has been up, as Ray's autoscaler writes it (ray/autoscaler/_private/event_summarizer.py).
_UPTIME = re.compile(
    r"\+(?:(?P<days>\d{1,4})d)?(?:(?P<hours>\d{1,4})h)?(?:(?P<minutes>\d{1,2})m)?(?P<seconds>\d{1,2})s"
)
_EPOCH = re.compile(r"(?P<seconds>\d{10})(?P<millis>\d{3})?(?:\.(?P<fraction>\d{1,12}))?")
_FORMS = tuple(
    re.compile(row)
    for row in (
        rf"(?P<year>\d{{4}})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[ T_]{_CLOCK}{_ZONE}",
        rf"(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d)[ T]{_CLOCK}{_ZONE}",
        rf"(?P<day>\d\d?)/(?P<month>[A-Z][a-z]{{2}})/(?P<year>\d{{4}}):{_CLOCK}{_ZONE}",
        rf"(?:[A-Z][a-z]{{2}} )?(?P<month>[A-Z][a-z]{{2}}) +(?P<day>\d\d?) {_CLOCK}(?: (?P<year>\d{{4}}))?",
        # The month comes first, as in the United States; where it cannot be one, it is the day.
        rf"(?P<month>0\d|1[0-2])/(?P<day>\d\d)/(?P<year>\d{{4}}),? {_CLOCK}",
        rf"(?P<day>\d\d)/(?P<month>\d\d)/(?P<year>\d{{4}}),? {_CLOCK}",
        rf"(?P<year>\d\d)/(?P<month>\d\d)/(?P<day>\d\d) {_CLOCK}",
        rf"(?P<month>\d\d)-(?P<day>\d\d) {_CLOCK}",
        rf"(?P<month>\d\d?)(?P<day>\d\d) {_CLOCK}",
    )
)


def parse_time(text: str, year_hint: int | None = None) -> float | None:
    """Give the seconds since the epoch that a line's time means, UTC where it names no zone.

    A form without a year takes `year_hint`. None where the text is no time, names no day, counts from boot,
    or has no year and there is no hint.
    """
    text = text.strip().strip("[]()")
    if epoch := _EPOCH.fullmatch(text):
        return int(epoch["seconds"]) + _fraction(epoch["millis"] or epoch["fraction"])
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    return None if match is None else _seconds(match.groupdict().get, year_hint)


def parse_uptime(text: str) -> float | None:
    """Give the seconds since a cluster's begin that a line's time tells; None for another time."""
    match = _UPTIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (
        _number(part) for part in match.group("days", "hours", "minutes", "seconds")
    )
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _seconds(told: Callable[[str], str | None], year_hint: int | None) -> float | None:
    written = told("year")
    # Two digits are of this century.
    year = year_hint if written is None else int(written) + (2000 if len(written) == 2 else 0)
    month = _MONTHS.get((told("month") or "").lower()) or _number(told("month"))
    if year is None:
        return None
    try:
        zone = UTC
        if (offset := told("zone")) not in (None, "Z", "UTC", "GMT"):
            minutes = int(offset[1:3]) * 60 + int(offset[-2:])
            zone = timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))
        # A leap second is the last of its minute.
        when = datetime(
            year,
            month,
            _number(told("day")),
            _number(told("hour")),
            _number(told("minute")),
            min(59, _number(told("second"))),
            tzinfo=zone,
        )
        return when.timestamp() + _fraction(told("fraction"))
    except (ValueError, OverflowError):  # a thirteenth month, a zone of two days
        return None


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _fraction(digits: str | None) -> float:
    return float(f"0.{digits}") if digits else 0.0
