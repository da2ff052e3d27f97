"""A snapshot holds a value or a reason for every field, and comes back from JSON as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from corpus.message import Message
from service.telemetry import snapshot
from service.telemetry.errors import InvalidSnapshotError
from service.telemetry.snapshot import NOT_TAKEN, Gpu, Host, Reading, Snapshot, known, unavailable
from tests.tables import each_row

QUICK = settings(max_examples=40, deadline=None, derandomize=True)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
FLOATS = st.one_of(NUMBERS.map(known), st.text(min_size=1).map(unavailable))
TIMES = st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1), timezones=st.just(UTC))


@each_row("fields", [{}, {"value": 1, "unavailable": "no"}])
def test_that_a_reading_is_a_value_or_a_reason_and_never_both_or_neither(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="either a value or the reason"):
        Reading[int].model_validate(fields)


@each_row("value", [0, False, 0.0, "", ()])
def test_that_zero_and_false_are_values(value: object) -> None:
    assert known(value).known


def test_that_what_was_not_taken_says_so_and_is_no_zero() -> None:
    card = Gpu(id="a")
    assert (card.ecc_uncorrected.value, card.ecc_uncorrected.unavailable) == (None, Message(NOT_TAKEN))


@QUICK
@given(when=TIMES, total=FLOATS, used=FLOATS, name=st.text(max_size=20))
def test_that_a_snapshot_comes_back_from_json(
    when: datetime, total: Reading[float], used: Reading[float], name: str
) -> None:
    host = Host(name=name, memory_total_gib=total, swap_used_gib=used)
    made = Snapshot(taken_at=when, host=host, gpus=(Gpu(id=name, memory_used_gib=used, xids=known((1, 2))),))
    assert snapshot.parse_snapshot(made.to_json(), "x") == made


@QUICK
@given(raw=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_that_no_bytes_break_the_reader(raw: bytes) -> None:
    with pytest.raises(InvalidSnapshotError, match="x: "):
        snapshot.parse_snapshot(raw, "x")


@each_row(
    ("text", "field"),
    [
        ('{"taken_at": "2026-03-02T10:00:00Z", "colour": 1}', "colour"),
        ('{"taken_at": "2026-03-02T10:00:00"}', "zone"),
        ('{"taken_at": "2026-03-02T10:00:00Z", "schema": "whycrash.snapshot/9"}', "schema"),
        (
            '{"taken_at": "2026-03-02T10:00:00Z", "host": {"memory_total_gib": {"value": NaN}}}',
            "memory_total_gib",
        ),
        ('{"taken_at": "2026-03-02T10:00:00Z", "host": {"memory_total_gib": 5}}', "memory_total_gib"),
    ],
)
def test_that_a_file_that_is_no_snapshot_names_the_field(text: str, field: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSnapshotError, match=field):
        snapshot.load_snapshot(path)


def test_that_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidSnapshotError, match="cannot be read"):
        snapshot.load_snapshot(tmp_path / "none.json")
