"""A snapshot of GPU memory tells who held what when a request failed, without running anything of it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.artefacts.memory_snapshot import read_snapshot
from ingest.errors import ArtefactError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from tests.ingest.artefacts.snapshots import (
    FORWARD,
    GIB,
    MIB,
    block,
    entry,
    fragmented,
    full,
    growing,
    oom,
    packed,
    segment,
    snapshot,
)
from tests.tables import each_row

STEPS = "step 1 loss 2.5\nstep 2 loss 2.25\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity "
    "of 79.11 GiB of which 20.00 MiB is free. Including non-PyTorch memory, this process has 78.08 GiB "
    "memory in use. Of the allocated memory 77.40 GiB is allocated by PyTorch, and 10.00 MiB is reserved "
    "by PyTorch but unallocated.\n"
)


def test_memory_in_use_is_told_by_who_allocated_it() -> None:
    """The job's own call names a holder, and the file of the forward pass its module."""
    (card,) = read_snapshot(packed(full()))
    assert (card.asked, card.free, card.allocated) == (2 * GIB, 300 * MIB, 62 * GIB)
    assert (card.idle, card.largest_idle, card.is_fragmented) == (100 * MIB, 100 * MIB, False)
    assert [(held.call.line, held.size // GIB, held.blocks) for held in card.holders] == [
        (40, 40, 20),
        (12, 14, 1),
        (47, 8, 1),
    ]
    assert card.holders[0].module == "transformers/models/llama/modeling_llama.py"
    assert card.asked_by is not None
    assert (card.asked_by.file, card.asked_by.line) == ("/work/train.py", 40)


def test_idle_memory_in_small_pieces_is_fragmentation() -> None:
    (card,) = read_snapshot(packed(fragmented()))
    assert (card.idle, card.largest_idle, card.is_fragmented) == (6 * GIB, 256 * MIB, True)


def test_what_is_allocated_all_along_and_never_freed_grows() -> None:
    (card,) = read_snapshot(packed(growing()))
    assert card.growing is not None
    assert (card.growing.call.line, card.growing.blocks) == (47, 400)


def test_memory_in_use_is_told_along_the_trace() -> None:
    """It ends at what the snapshot holds, and a freed block is in use no more."""
    rows = [("alloc", 8, 2 * GIB), ("alloc", 9, 4 * GIB), ("free_requested", 9, 4 * GIB)]
    trace = [*(entry(action, place, size, FORWARD) for action, place, size in rows), oom(GIB, 0)]
    (card,) = read_snapshot(packed(snapshot([segment([block(8, 2 * GIB, FORWARD)])], [trace])))
    assert card.course == {0: 2.0, 1: 6.0, 2: 2.0, 3: 2.0}
    (silent,) = read_snapshot(packed(snapshot([segment([block(8, GIB, FORWARD)])], [[]])))
    assert silent.course == {}


def test_the_course_of_memory_is_a_curve_of_the_job(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(growing()))
    (curve,) = reader.read(open_job(tmp_path)).curves
    assert curve.name == "snapshot-memory"
    assert curve.points[-1].value > 2 * curve.points[0].value


def test_weights_that_are_loaded_at_once_do_not_grow() -> None:
    """What stands from one part of the trace is no leak, however many tensors it is."""
    weights = [entry("alloc", number * GIB, GIB, FORWARD) for number in range(40)]
    steps = [
        entry(action, 1 << 45, GIB, FORWARD) for _ in range(200) for action in ("alloc", "free_completed")
    ]
    (card,) = read_snapshot(packed(snapshot([segment([block(0, GIB, FORWARD)])], [[*weights, *steps]])))
    assert card.growing is None


def test_the_card_whose_request_failed_stands_first() -> None:
    segments = [segment([block(number * GIB, GIB, FORWARD)], device=number) for number in range(3)]
    cards = read_snapshot(packed(snapshot(segments, [[], [], [oom(2 * GIB, 0)]])))
    assert [card.device for card in cards] == [2, 0, 1]


@each_row("protocol", [2, 3, 4, 5])
def test_a_snapshot_is_known_by_its_content(protocol: int) -> None:
    data = packed(full(), protocol)
    assert artefact_kind(data[:HEAD]) == "memory"
    assert len(read_snapshot(data)) == 1


@each_row(
    "blocks", [[{"size": GIB, "state": "active_allocated", "history": [{"frames": [], "real_size": 1}]}]]
)
def test_a_list_of_segments_of_an_old_version_is_read(blocks: list[object]) -> None:
    """Until 2.0 a snapshot was the list alone, and a block's stack stood in its history."""
    old = [
        {"device": 0, "total_size": 2 * GIB, "allocated_size": GIB, "segment_type": "large", "blocks": blocks}
    ]
    (card,) = read_snapshot(packed(old))
    assert (card.reserved, card.allocated, card.holders) == (2 * GIB, GIB, ())


class Hostile:
    """A value whose pickle makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_snapshot_that_asks_for_code_is_refused(tmp_path: Path) -> None:
    """It comes from whoever sends the log."""
    value = full() | {"more": Hostile(tmp_path / "made")}
    with pytest.raises(ArtefactError, match="more than plain values"):
        read_snapshot(packed(value))
    assert not (tmp_path / "made").exists()


@each_row(
    "data",
    [
        packed(full())[:-40],
        packed({"segments": [], "device_traces": [[]]}),
        packed({"segments": "x", "device_traces": {"a": 1}}),
        packed({"segments": [7, None, {"blocks": 3}], "device_traces": [3]}),
        packed(7),
    ],
)
def test_what_is_damaged_or_holds_no_memory_is_refused(data: bytes) -> None:
    with pytest.raises(ArtefactError):
        read_snapshot(data)


def test_a_list_that_a_memo_repeats_is_read_once_each() -> None:
    """A small pickle may name one long stack a million times."""
    calls = [("/work/train.py", 1, "f")] * 100_000
    shared = block(0, MIB, calls)
    (card,) = read_snapshot(packed(snapshot([segment([shared] * 500)])))
    assert card.holders[0].blocks == 500


@each_row(
    ("value", "cause", "headline"),
    [
        (full(), "gpu-oom-training", "memory-snapshot.failed"),
        (fragmented(), "gpu-memory-fragmentation", "memory-snapshot.failed"),
        (growing(), "gpu-memory-not-released", "memory-snapshot.failed"),
    ],
)
def test_a_snapshot_decides_where_the_log_only_stops(
    reader: Reader, value: object, cause: str, headline: str, tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(value))
    report = reader.read(open_job(tmp_path))
    assert report.root is not None
    assert (report.root.cause, report.root.pattern) == (cause, headline)


def test_a_snapshot_makes_the_logs_own_message_exact(reader: Reader, tmp_path: Path) -> None:
    """The message tells that memory is short, the snapshot why."""
    (tmp_path / "train.log").write_text(STEPS + OOM)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(growing()))
    report = reader.read(open_job(tmp_path))
    assert report.root is not None
    assert report.root.cause == "gpu-memory-not-released"


def test_a_snapshot_without_a_failure_fails_nothing(reader: Reader, tmp_path: Path) -> None:
    """Jobs dump them at any step."""
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(full() | {"device_traces": [[]]}))
    assert reader.read(open_job(tmp_path)).root is None
