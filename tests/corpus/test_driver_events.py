"""The catalogue of the driver's numbered errors agrees with the patterns that find their lines."""

from __future__ import annotations

from corpus import driver_events, log_patterns
from tests.tables import each_row

EVENTS = driver_events.load()
TABLE = log_patterns.load()


@each_row(
    ("event", "code", "speaks_for", "recovery"),
    [
        ("xid", 31, "program", "restart-app"),
        ("xid", 63, "notice", "ignore"),
        ("xid", 79, "hardware", "reboot"),
        ("xid", 94, "hardware", "restart-app"),
        ("xid", 95, "hardware", "reset-gpu"),
        ("xid", 149, "link", "check-links"),
        ("sxid", 20034, "link", "check-links"),
        ("sxid", 23001, "hardware", "reboot"),
    ],
)
def test_a_number_tells_what_failed_and_what_to_do(
    event: str, code: int, speaks_for: str, recovery: str
) -> None:
    found = EVENTS.of(event, code)
    assert found is not None
    assert (found.speaks_for, found.recovery) == (speaks_for, recovery)


def test_a_number_that_nobody_published_has_no_row() -> None:
    assert EVENTS.of("xid", 999) is None
    assert EVENTS.of("xid", "79") is None


def test_patterns_call_those_hardware_that_the_catalogue_does() -> None:
    """A line of a card or link that failed is no program's; a program's is no card's."""
    hardware = [TABLE.by_id[name].compiled for name in ("cuda.xid-hardware", "linux.xid-hardware")]
    application = [TABLE.by_id[name].compiled for name in ("cuda.xid-application", "linux.xid-application")]
    codes = [(row, code) for row in EVENTS.rows if row.event == "xid" for code in row.codes]
    for row, code in codes:
        line = f"NVRM: Xid (PCI:0000:4b:00): {code}, pid=88, name=python"
        if row.speaks_for in ("hardware", "link"):
            assert all(expression.search(line) for expression in hardware), code
        if row.speaks_for == "program":
            assert not any(expression.search(line) for expression in hardware), code
        else:
            assert not any(expression.search(line) for expression in application) or code == 43, code
