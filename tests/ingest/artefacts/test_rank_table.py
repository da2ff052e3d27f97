"""The ranks' dumps side by side tell who did not come, and blame nobody whose dump is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ingest.artefacts.file_heads import is_dump
from ingest.artefacts.flight_recorder import RankDump, read_dump
from ingest.artefacts.rank_table import RankTable, rank_table
from tests.ingest.artefacts.dumps import SECOND, done, dump, entry
from tests.tables import each_row

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of real processes, recorded by PyTorch."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("recorded")
    command = [sys.executable, "-m", "tests.ingest.artefacts.gloo_jobs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=500)
    return folder


def read_all(folder: Path, ending: str) -> list[RankDump]:
    files = [
        path for path in sorted(folder.glob(f"trace_rank_?{ending}")) if is_dump(path.read_bytes()[:4096])
    ]
    return [read_dump(path.read_bytes(), path.name) for path in files]


# job, kind, the odd ranks, ranks without a dump, what most and what the odd ones called, where the odd one is
RECORDED: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], str, str, str]] = {
    "sizes": ("sizes-differ", (0,), (), "[8]", "[16]", "called"),
    "operations": ("operations-differ", (0,), (), "all_reduce", "broadcast", "called"),
    "types": ("types-differ", (0,), (), "Float", "Double", "called"),
    "never": ("never-called", (1,), (2,), "", "", "run"),
    "late": ("late", (1,), (), "", "", "late"),
    "groups": ("never-called", (1,), (), "", "", "groups"),
}


@pytest.mark.long
def test_recorded_jobs_tell_what_was_done_to_them(recorded: Path) -> None:
    """Pickle and JSON tell the same, but for the stack, which JSON has not."""
    wrong = []
    for job, (kind, outliers, missing, expected, found, function) in RECORDED.items():
        for ending in ("", ".json"):
            first = rank_table(read_all(recorded / job, ending)).verdicts[0]
            told = (first.kind, first.outliers, first.missing, first.expected, first.found)
            where = first.call.function if first.call else ""
            if told != (kind, outliers, missing, expected, found) or where != ("" if ending else function):
                wrong.append((job, ending, first))
    assert wrong == []
    late = rank_table(read_all(recorded / "late", "")).verdicts[0]
    assert 1.9 < late.delay_s < 60
    assert rank_table(read_all(recorded / "sound", "")).verdicts == ()


def table_of(ranks: Mapping[int, Sequence[dict[str, Any]]]) -> RankTable:
    return rank_table(dump(rank, entries) for rank, entries in ranks.items())


def shaped(given: list[list[int]], result: list[list[int]]) -> dict[str, Any]:
    return {"input_sizes": given, "output_sizes": result}


FULL = [*done(1, 2), entry(3)]
OTHER: dict[str, Any] = {"process_group": ("5", "mesh_tp"), "pg_id": 1}
# what each rank recorded, then kind, sequence, odd ranks and ranks without a dump
NCCL: dict[str, tuple[dict[int, list[dict[str, Any]]], tuple[str, int, tuple[int, ...], tuple[int, ...]]]] = {
    "a wrong first rank is the odd one": (
        {0: [*done(1, 2), entry(3, "broadcast")], 1: FULL, 2: FULL, 3: FULL},
        ("operations-differ", 3, (0,), ()),
    ),
    "two against two accuse nobody": (
        {0: [*done(1, 2), entry(3, "broadcast")], 1: [*done(1, 2), entry(3, "broadcast")], 2: FULL, 3: FULL},
        ("operations-differ", 3, (), ()),
    ),
    "a rank never called": ({0: FULL, 1: FULL, 2: FULL, 3: done(1, 2)}, ("never-called", 3, (3,), ())),
    "one rank alone called": (
        {0: FULL, 1: done(1, 2), 2: done(1, 2), 3: done(1, 2)},
        ("called-alone", 3, (0,), ()),
    ),
    "a rank without a dump is missing and not blamed": (
        {0: FULL, 1: FULL, 2: FULL},
        ("dumps-missing", 3, (), (3,)),
    ),
    "the guilty rank is told although another's dump is missing": (
        {0: FULL, 1: FULL, 2: done(1, 2)},
        ("never-called", 3, (2,), (3,)),
    ),
    "all called alike and nothing ended": (dict.fromkeys(range(4), FULL), ("not-completed", 3, (), ())),
    "calls that ranks queued ahead are no sign": (
        {0: [*FULL, entry(4), entry(5)], 1: FULL, 2: [*FULL, entry(4)], 3: FULL},
        ("not-completed", 3, (), ()),
    ),
    "one rank has not finished what the others have": (
        {0: done(1, 2, 3), 1: done(1, 2, 3), 2: FULL, 3: done(1, 2, 3)},
        ("not-completed", 3, (2,), ()),
    ),
    "later than the time-out": (
        {**dict.fromkeys(range(3), FULL), 3: [*done(1, 2), entry(3, time_created_ns=700 * SECOND)]},
        ("late", 3, (3,), ()),
    ),
    "buffers that begin at different places": (
        {0: [*done(2), entry(3)], 1: FULL, 2: FULL, 3: done(1, 2)},
        ("never-called", 3, (3,), ()),
    ),
    "two groups called in different orders": (
        {
            0: [*done(1), entry(1, **OTHER, state="completed"), entry(2, time_created_ns=5 * SECOND)],
            1: [
                *done(1),
                entry(1, **OTHER, state="completed"),
                entry(2, **OTHER, time_created_ns=5 * SECOND),
            ],
        },
        ("order-differs", 2, (), (2, 3)),
    ),
}


@each_row("name", NCCL)
def test_verdicts_of_recorded_states(name: str) -> None:
    ranks, expected = NCCL[name]
    first = table_of(ranks).verdicts[0]
    assert (first.kind, first.sequence, first.outliers, first.missing) == expected


@each_row(
    "operation, first, second",
    [
        ("all_gather", shaped([[3]], [[3], [5]]), shaped([[5]], [[3], [5]])),
        ("reduce_scatter", shaped([[3], [5]], [[3]]), shaped([[3], [5]], [[5]])),
        ("all_to_all", shaped([[2, 8]], [[6, 8]]), shaped([[6, 8]], [[2, 8]])),
        ("gather", shaped([[4]], [[4], [4]]), shaped([[4]], [])),
        ("scatter", shaped([[4], [4]], [[4]]), shaped([], [[4]])),
    ],
)
def test_sizes_that_may_differ_are_no_mismatch(
    operation: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Uneven shards and what the root alone holds."""
    ranks = {
        0: [*done(1), entry(2, operation, **first)],
        **{rank: [*done(1), entry(2, operation, **second)] for rank in (1, 2, 3)},
    }
    assert table_of(ranks).verdicts[0].kind == "not-completed"


def test_sends_and_finished_jobs_accuse_nobody() -> None:
    """Pairs of ranks count their sends apart; what ended needs no verdict."""
    send = entry(9, "send 0->1", is_p2p=True, p2p_seq_id=9)
    assert table_of({0: [*done(1, 2), send], 1: done(1, 2), 2: done(1, 2, 3), 3: done(1, 2)}).verdicts == ()


def test_rows_show_how_far_each_rank_came() -> None:
    rows = table_of({0: [*done(1, 2), entry(3, state="started")], 1: done(1)}).rows
    assert [(row.rank, row.enqueued, row.started, row.completed) for row in rows] == [
        (0, 3, 3, 2),
        (1, 1, 1, 1),
    ]


def test_of_two_dumps_of_a_rank_the_later_counts() -> None:
    """PyTorch may dump more than once; a copy of an earlier moment makes nobody late."""
    dumps = [dump(rank, FULL) for rank in range(4)]
    assert rank_table([*dumps, dump(2, done(1))]).verdicts == rank_table(dumps).verdicts


def test_gloo_records_no_ends_and_a_missing_dump_is_told() -> None:
    """All that left a dump stand in one call; a sound job with all dumps shows nothing."""
    calls = [entry(1, process_group=("0", "default_pg")), entry(2)]
    table = rank_table([dump(rank, calls) for rank in (0, 1, 3)])
    assert [(one.kind, one.others, one.missing) for one in table.verdicts] == [
        ("dumps-missing", (0, 1, 3), (2,))
    ]
    assert not rank_table([dump(rank, calls) for rank in range(4)]).verdicts


def test_who_waits_in_a_group_of_its_own_is_not_blamed() -> None:
    """Rank 0 waits for rank 1 in a pair whose members gloo does not name; rank 2 waits for both."""
    pair = entry(1, process_group=("1", "undefined"), time_created_ns=9 * SECOND)
    status = {"1": {"last_enqueued_collective": 1, "last_completed_collective": -1}}
    held = dump(0, [entry(1), pair], 3, pg_status=status)
    first = rank_table([held, dump(1, [entry(1)], 3), dump(2, [entry(1), entry(2)], 3)]).verdicts[0]
    assert (first.kind, first.outliers, first.others) == ("never-called", (1,), (2,))


def test_a_mismatch_outweighs_a_delay_that_nothing_shows_to_have_ended_the_job() -> None:
    """gloo records no ends: ranks that called on after a long wait have waited it out."""
    short = {"timeout_ms": 1000}
    late = {"time_created_ns": 60 * SECOND}
    wide = shaped([[16]], [[16]])
    ranks = {
        0: [entry(1, **short, **late), entry(2, **short, time_created_ns=61 * SECOND, **wide)],
        1: [entry(1, **short), entry(2, **short)],
        2: [entry(1, **short), entry(2, **short)],
    }
    first = table_of(ranks).verdicts[0]
    assert (first.kind, first.outliers, first.sequence) == ("sizes-differ", (0,), 2)
    recorded = {
        rank: [*done(1), *(each | {"collective_seq_id": 2 + n} for n, each in enumerate(calls))]
        for rank, calls in ranks.items()
    }
    first = table_of(recorded).verdicts[0]
    assert (first.kind, first.outliers) == ("late", (0,))
