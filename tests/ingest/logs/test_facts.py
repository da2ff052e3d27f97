"""Facts: what a line states, in one unit."""

from __future__ import annotations

from ingest.logs.facts import Value, gib, seconds, typed
from tests.tables import each_row


@each_row(
    ("text", "expected"),
    [
        ("2.00 GiB", 2.0),
        ("512.00 MiB", 0.5),
        ("64 GB", 64),
        ("64GB", 64),
        ("1 TB", 1024),
        ("1,024 MB", 1),
        ("79.15", 79.15),
        ("1073741824 bytes", 1.0),
        ("0 bytes", 0),
        ("256Ki", 0.000244),
        ("3145728kB", 3.0),
        ("20Gi", 20),
        ("12.5M", 0.012207),
        ("unlimited", "unlimited"),
        ("", ""),
    ],
)
def test_a_size_is_gib(text: str, expected: Value) -> None:
    """Binary and decimal prefixes count alike; a bare number is GiB; what is no size stays text."""
    assert gib(text) == expected


@each_row(
    ("text", "expected"),
    [
        ("1800000 milliseconds", 1800),
        ("600000 ms", 600),
        ("600", 600),
        ("600s", 600),
        ("1.5 hours", 5400),
        ("30 minutes", 1800),
        ("0:30:00", 1800),
        ("1 day, 0:00:10", 86410),
        ("2 days, 1:00:00", 176400),
        ("0:10:00.500", 600.5),
        ("forever", "forever"),
    ],
)
def test_a_duration_is_seconds(text: str, expected: Value) -> None:
    """Clock times, days and words for units all become seconds."""
    assert seconds(text) == expected


@each_row(
    ("groups", "expected"),
    [
        (
            {"free_gib": "512 MiB", "timeout_s": "600000 ms", "rank": "3"},
            {"free_gib": 0.5, "timeout_s": 600, "rank": 3},
        ),
        ({"loss": "0.5", "step": "-1"}, {"loss": 0.5, "step": -1}),
        ({"wait_ms": "12", "signal": "SIGKILL,"}, {"wait_ms": 12.0, "wait_s": 0.012, "signal": "SIGKILL"}),
        (
            {"version": "2.6", "newest_cuda_version": "12.10", "found": "12", "value": "1", "pci": "100"},
            {"version": "2.6", "newest_cuda_version": "12.10", "found": "12", "value": "1", "pci": "100"},
        ),
        ({"actor": "1234567890123456"}, {"actor": "1234567890123456"}),
        ({"missing": None, "blank": "  "}, {}),
    ],
)
def test_groups_become_typed_values(groups: dict[str, str | None], expected: dict[str, Value]) -> None:
    """The name gives the unit; versions and ids stay text; what is absent is no field."""
    found = typed(groups)
    assert found == expected
    assert {name for name, value in found.items() if isinstance(value, str)} == {
        name for name, value in expected.items() if isinstance(value, str)
    }
