"""Times of lines: every form that logs write means one instant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs.clock import parse_time
from tests.tables import each_row

# 2025-03-02 10:00:00 UTC.
NOON = 1740909600.0


@each_row(
    ("text", "offset"),
    [
        ("2025-03-02T10:00:00Z", 0),
        ("2025-03-02T10:00:00.123456789Z", 0.123456789),
        ("2025-03-02 10:00:00,123", 0.123),
        ("2025-03-02 10:00:00.5 UTC", 0.5),
        ("2025/03/02 10:00:00", 0),
        ("2025-03-02_10:00:00", 0),
        ("2025-03-02T18:00:00+08:00", 0),
        ("2025-03-02 18:00:00 +0800", 0),
        ("2025-03-02T05:00:00-0500", 0),
        ("2025-03-02T10:00:00,123456+00:00", 0.123456),
        ("20250302 10:00:00.25", 0.25),
        ("03/02/2025 10:00:00", 0),
        ("25/03/02 10:00:00", 0),
        ("02/Mar/2025:10:00:00 +0000", 0),
        ("Sun Mar  2 10:00:00 2025", 0),
        ("Mar  2 10:00:00 2025", 0),
        ("1740909600", 0),
        ("1740909600.5", 0.5),
        ("1740909600250", 0.25),
        ("[2025-03-02 10:00:00]", 0),
        (" 2025-03-02 10:00 ", 0),
        ("Mar  2 10:00:00", 0),
        ("Mar 02 10:00:00", 0),
        ("Mar 2 10:00", 0),
        ("03-02 10:00:00", 0),
        ("0302 10:00:00.5", 0.5),
        ("302 10:00:00", 0),
    ],
)
def test_every_form_of_a_time_is_the_same_instant(text: str, offset: float) -> None:
    """A zone counts, none is UTC, a year that is not written is the hint's."""
    assert parse_time(text, 2025) == pytest.approx(NOON + offset, abs=1e-6)


@each_row("text", ["Mar  2 10:00:00", "03-02 10:00:00", "0302 10:00:00"])
def test_without_a_year_there_is_no_instant(text: str) -> None:
    """A guess would put lines of two nodes in a wrong order."""
    assert parse_time(text) is None


@each_row(
    "text",
    [
        "",
        "boom",
        "10:00:00",
        "10:00:00,123",
        "123.456789",
        "+0.000012",
        "  0.000000",
        "2025-13-02 10:00:00",
        "2025-02-30 10:00:00",
        "2025-03-02 25:00:00",
        "2025-03-02T10:00:00+99:99",
        "0000-01-01 00:00:00",
        "Feb 29 10:00:00",
        "Zzz  2 10:00:00",
        "99999999999999",
    ],
)
def test_what_names_no_day_has_no_instant(text: str) -> None:
    """Seconds since boot, a bare clock, a day that is not in the calendar."""
    assert parse_time(text, 2025) is None


def test_a_day_that_cannot_be_a_month_is_the_day() -> None:
    """Where the month comes first is only a guess; the thirteenth settles it."""
    assert (
        parse_time("25/12/2025 00:00:00")
        == parse_time("12/25/2025 00:00:00")
        == parse_time("2025-12-25 00:00:00")
    )


def test_a_leap_second_is_the_last_of_its_minute() -> None:
    """The calendar has no sixtieth second."""
    assert parse_time("2016-12-31 23:59:60") == parse_time("2016-12-31 23:59:59")


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    text=st.text(alphabet="0123456789-/:.,T +ZJanFeb[]", max_size=40), hint=st.none() | st.integers(-5, 20000)
)
def test_any_text_is_a_time_or_none(text: str, hint: int | None) -> None:
    """Nothing raises."""
    assert parse_time(text, hint) is None or isinstance(parse_time(text, hint), float)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(when=st.datetimes())
def test_what_is_written_is_read(when: object) -> None:
    """The order of ISO times is that of their instants."""
    text = str(when).split(".", maxsplit=1)[0]
    found = parse_time(text)
    assert found is not None
    assert found == parse_time(text.replace(" ", "T") + "Z")
