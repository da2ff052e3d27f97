"""Conditions over a snapshot hold, do not hold, or cannot be told.

What was not measured is never taken for zero.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from service.telemetry.conditions import SNAPSHOT, SnapshotContext, evaluate
from service.telemetry.snapshot import (
    Cgroup,
    Disk,
    Gpu,
    Host,
    Kernel,
    Nic,
    Scheduler,
    Snapshot,
    known,
    unavailable,
)
from tests.service.telemetry.makers import CRASH, course, kernel, snapshot, xid
from tests.tables import each_row

NO = unavailable("nobody looked")


def told(text: str, made: Snapshot, crash: float | None = CRASH.timestamp()) -> bool | None:
    """Tell whether a condition holds."""
    return evaluate(text, SnapshotContext(made, crash)).holds


def cards(**columns: list[Any]) -> Snapshot:
    """Make a snapshot of cards; a column gives a field's reading on each, None where it is not available."""
    rows = zip(*columns.values(), strict=True)
    made = [
        {name: NO if value is None else known(value) for name, value in zip(columns, row, strict=True)}
        for row in rows
    ]
    return snapshot(gpus=tuple(Gpu(id=str(place), **row) for place, row in enumerate(made)))


@each_row(
    ("text", "values", "holds"),
    [
        ("any(gpus.ecc_uncorrected > 0)", [0, 2], True),
        ("gpus.ecc_uncorrected > 0", [0, 0], False),
        ("gpus.ecc_uncorrected > 0", [0, None], None),
        ("gpus.ecc_uncorrected > 0", [2, None], True),
        ("gpus.ecc_uncorrected > 0", [], None),
        ("gpus.ecc_uncorrected > 0", [1], True),
        ("all(gpus.ecc_uncorrected == 0)", [0, 0], True),
        ("all(gpus.ecc_uncorrected == 0)", [0, None], None),
        ("all(gpus.ecc_uncorrected == 0)", [1, None], False),
        ("none(gpus.ecc_uncorrected > 0)", [0, 0], True),
        ("none(gpus.ecc_uncorrected > 0)", [0, None], None),
        ("none(gpus.ecc_uncorrected > 0)", [3, None], False),
        ("one(gpus.ecc_uncorrected > 0)", [0, 3], True),
        ("one(gpus.ecc_uncorrected > 0)", [3, 3], False),
        ("one(gpus.ecc_uncorrected > 0)", [3], None),
        ("one(gpus.ecc_uncorrected > 0)", [3, None], None),
        ("not gpus.ecc_uncorrected > 0", [0, 0], True),
        ("not gpus.ecc_uncorrected > 0", [0, None], None),
    ],
)
def test_that_a_quantifier_knows_three_answers(
    text: str, values: list[int | None], holds: bool | None
) -> None:
    assert told(text, cards(ecc_uncorrected=values)) is holds


@each_row(
    ("peak", "limit", "holds"),
    [(99.0, 100.0, True), (50.0, 100.0, False), (None, 100.0, None), (99.0, None, None)],
)
def test_that_fields_are_compared_with_each_other(
    peak: float | None, limit: float | None, holds: bool | None
) -> None:
    group = Cgroup(
        memory_peak_gib=NO if peak is None else known(peak),
        memory_max_gib=NO if limit is None else known(limit),
    )
    assert told("cgroup.memory_peak_gib >= 0.98 * cgroup.memory_max_gib", snapshot(cgroup=group)) is holds


def test_that_an_item_is_compared_with_its_own_field() -> None:
    disks = (
        Disk(path="/a", free_gib=known(5.0), total_gib=known(10.0)),
        Disk(path="/b", free_gib=known(1.0), total_gib=known(100.0)),
    )
    assert told("disks.free_gib < 0.02 * disks.total_gib", snapshot(disks=disks))
    assert told("all(disks.free_gib < 0.02 * disks.total_gib)", snapshot(disks=disks)) is False


@each_row(
    ("text", "holds"),
    [
        ("scheduler.state in ['TIMEOUT', 'CANCELLED']", True),
        ("scheduler.state in ['FAILED']", False),
        ("scheduler.state == 'TIMEOUT'", True),
        ("'hw-thermal' in gpus.throttle", True),
        ("'power-cap' in gpus.throttle", False),
        ("gpus.remap_failed == true", True),
        ("gpus.state == 'lost'", None),
    ],
)
def test_that_words_lists_and_truths_are_compared(text: str, holds: bool | None) -> None:
    made = snapshot(
        scheduler=Scheduler(kind="slurm", state=known("TIMEOUT")),
        gpus=(Gpu(id="0", throttle=known(("hw-thermal",)), remap_failed=known(True)),),
    )
    assert told(text, made) is holds


@each_row(
    ("before_s", "crash", "holds"),
    [
        (300, True, True),
        (-60, True, True),
        (-600, True, False),
        (3 * 3600, True, False),
        (300, False, True),
        (30 * 3600, False, False),
    ],
)
def test_that_an_xid_counts_only_shortly_before_the_crash(before_s: float, crash: bool, holds: bool) -> None:
    made = snapshot(kernel=kernel(xid(79, before_s)), taken_at=CRASH + timedelta(hours=1))
    assert told("xid:48|79", made, CRASH.timestamp() if crash else None) is holds
    assert told("xid:31", made, CRASH.timestamp() if crash else None) is False


@each_row(
    ("made", "holds"),
    [
        (snapshot(), None),
        (snapshot(kernel=Kernel(events=unavailable("not permitted"))), None),
        (snapshot(kernel=kernel()), False),
        (snapshot(kernel=Kernel(since=CRASH.timestamp() + 1, events=known(()))), None),
        (snapshot(kernel=kernel(), taken_at=CRASH - timedelta(minutes=5)), None),
        (cards(xids=[(), (79,)]), True),
        (cards(xids=[(), ()]), False),
        (cards(xids=[(), None]), None),
        (snapshot(kernel=kernel(), gpus=(Gpu(id="a"),)), False),
    ],
)
def test_that_no_xid_is_said_only_where_somebody_looked(made: Snapshot, holds: bool | None) -> None:
    assert told("xid:79", made) is holds


def test_that_a_snapshot_from_long_before_the_crash_says_nothing() -> None:
    outcome = evaluate(
        "host.oom_kill > 0",
        SnapshotContext(
            snapshot(taken_at=CRASH - timedelta(hours=2), host=Host(oom_kill=known(1))), CRASH.timestamp()
        ),
    )
    assert outcome.holds is None
    assert "120 minutes before the crash" in (outcome.seen[0].unavailable or "")


@each_row(
    ("fields", "reason"),
    [
        ({"taken_at": CRASH + timedelta(days=3)}, "72 hours after"),
        ({"baseline_at": CRASH + timedelta(seconds=30)}, "baseline is later than the crash"),
    ],
)
def test_that_a_reading_of_another_time_says_nothing(fields: dict[str, Any], reason: str) -> None:
    outcome = evaluate(
        "host.oom_kill_new > 0",
        SnapshotContext(snapshot(host=Host(oom_kill_new=known(1)), **fields), CRASH.timestamp()),
    )
    assert outcome.holds is None
    assert reason in (outcome.seen[0].unavailable or "")


FALLING, LEVEL = [900.0 - 30 * place for place in range(24)], [500.0 + place % 2 for place in range(24)]
SUDDEN = [500.0] * 22 + [300.0, 60.0]


@each_row(
    ("values", "shape", "holds"),
    [
        (FALLING, "falls", True),
        (FALLING, "drops", False),
        (FALLING, "level", False),
        (LEVEL, "level", True),
        (LEVEL, "falls", False),
        (SUDDEN, "drops", True),
        (SUDDEN, "falls", False),
        (FALLING[::-1], "rises", True),
        ([-v for v in SUDDEN], "jumps", True),
        (FALLING[:5], "falls", None),
        ([0.0] * 24, "falls", False),
        ([0.0] * 24, "level", True),
    ],
)
def test_that_a_course_has_a_shape(values: list[float], shape: str, holds: bool | None) -> None:
    made = snapshot(history=(course("host.memory_available_gib", *values),))
    assert told(f"{shape}(host.memory_available_gib)", made) is holds


def test_that_extremes_are_those_up_to_the_crash() -> None:
    made = snapshot(
        history=(course("host.memory_available_gib", *LEVEL),), host=Host(memory_total_gib=known(1000.0))
    )
    assert told("lowest(host.memory_available_gib) > 0.3 * host.memory_total_gib", made)
    assert told("highest(host.memory_available_gib) < 0.3 * host.memory_total_gib", made) is False
    assert (
        told(
            "lowest(host.memory_available_gib) > 0.3 * host.memory_total_gib", made, CRASH.timestamp() + 7200
        )
        is None
    )
    assert told("lowest(host.shm_used_gib) > 1", made) is None


def test_that_a_course_of_cards_is_compared_with_the_smallest() -> None:
    made = cards(memory_total_gib=[80.0, 40.0]).model_copy(
        update={"history": (course("gpus.memory_used_gib", *[30.0] * 20, id="0"),)}
    )
    assert told("highest(gpus.memory_used_gib) < 0.6 * smallest(gpus.memory_total_gib)", made) is False


def test_that_what_was_looked_at_is_told() -> None:
    outcome = evaluate(
        "nics.link_downed_new > 0",
        SnapshotContext(snapshot(nics=(Nic(name="mlx5_0:1", link_downed_new=known(2)),))),
    )
    assert [(item.name, item.value) for item in outcome.seen] == [("nics[mlx5_0:1].link_downed_new", 2)]


@each_row(
    "text",
    [
        "",
        "host",
        "host.memory > 1",
        "gpus.id == 1",
        "most(gpus.ecc_uncorrected) > 1",
        "xid:",
        "xid:a",
        "kernel:asleep",
        "falls(host.x)",
        "falls(host.oom_kill > 1)",
        "falls()",
        "host.oom_kill > 2 * host.nothing",
        "pattern:torch.*",
    ],
)
def test_that_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"no condition|there is no|write numbers|not read|takes one reading"
    ):
        SNAPSHOT.check(text)
