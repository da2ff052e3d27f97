"""Dumps of all versions of the format are read, known by their content; hostile ones end in a sentence."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from ingest.artefacts.file_heads import is_dump
from ingest.artefacts.flight_recorder import MOST_ENTRIES, rank_in, read_dump
from ingest.errors import ArtefactError
from tests.ingest.artefacts.dumps import dump_value, entry
from tests.tables import each_row


def as_text(value: dict[str, Any]) -> dict[str, Any]:
    """Write numbers as strings, as JSON of some releases does."""
    return {key: str(given) if type(given) is int else given for key, given in value.items()}


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: given for key, given in value.items() if key not in keys}


# The entry as each version of the format has it.
_OLD = without(entry(7, pg_name="0", seq_id=7), "process_group", "collective_seq_id", "p2p_seq_id", "is_p2p")
FORMS: dict[str, object] = {
    "2.10": dump_value([entry(7)]),
    "2.7": without(dump_value([entry(7)], nccl_version="2.21.5"), "comm_lib_version"),
    "2.4": dump_value([without(entry(7), "thread_id", "thread_name")], version="2.4"),
    "numbers as text": dump_value([as_text(entry(7))]),
    "ranks as a list": dump_value([entry(7)], pg_config={"0": {"name": "0", "ranks": [0, 1, 2, 3]}}),
    "1.x": {"version": "1.5", "entries": [_OLD]},
    "bare list": [_OLD],
}


@each_row("form", FORMS)
def test_all_versions_of_the_format_tell_the_same(form: str) -> None:
    written = [
        (pickle.dumps(FORMS[form], 2), "nccl_trace_rank_3"),
        (json.dumps(FORMS[form]).encode(), "a/3.json"),
    ]
    for data, name in written:
        assert is_dump(data[:4096])
        read = read_dump(data, name)
        (call,) = read.collectives
        assert (read.rank, call.group, call.sequence, call.operation) == (3, "0", 7, "all_reduce")
        assert call.given.shapes == ((8,),)
        assert call.given.types == ("Float",)
        assert call.own_call is not None
        assert (call.own_call.function, call.own_call.line) == ("train_step", 40)
        assert read.members.get("0", (0, 1, 2, 3)) == (0, 1, 2, 3)


@each_row(
    "name, rank",
    [
        ("nccl_trace_rank_12", 12),
        ("trace_rank_0.json", 0),
        ("host7/hccl_trace_rank_5", 5),
        ("rank3_dump.pickle", 3),
        ("rank10.trace.gz", 10),
        ("dump-4.pkl", 4),
        ("nccl_trace", None),
        ("node2/dump.json", None),
    ],
)
def test_the_rank_stands_in_the_file_name(name: str, rank: int | None) -> None:
    assert rank_in(name) == rank


@each_row(
    "data",
    [
        pickle.dumps({"model": [1, 2], "optimizer": {"state": {}}}, 2),
        b'{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
        b"[rank0]: nccl_trace profiling_name record_id input_sizes"[1:],
        b"",
        b"Traceback (most recent call last):",
    ],
)
def test_other_files_are_no_dumps(data: bytes) -> None:
    assert not is_dump(data)


@each_row(
    "data, name, told",
    [
        (pickle.dumps(dump_value([entry(1)]), 2), "nccl_trace", "tells the rank"),
        (json.dumps(dump_value([entry(1)])).encode()[:-40], "rank_1", "cut or damaged"),
        (b"[" * 200_000, "rank_1", "cut or damaged"),
        (b'{"entries": ' + b"9" * 10_000 + b"}", "rank_1", "cut or damaged"),
        (b"\xff\xfe{", "rank_1", "cut or damaged"),
        (b"{" + b" " * (17 << 20), "rank_1", "larger than 16 MiB"),
        (b'{"entries": 3}', "rank_1", "no flight recorder dump"),
        (b'{"entries": [1, 2]}', "rank_1", "no flight recorder dump"),
        (b'"entries"', "rank_1", "no flight recorder dump"),
        (b'{"steps": [1]}', "rank_1", "no flight recorder dump"),
    ],
)
def test_a_damaged_or_foreign_file_ends_in_a_sentence(data: bytes, name: str, told: str) -> None:
    with pytest.raises(ArtefactError, match=told):
        read_dump(data, name)


def test_a_dump_of_wrong_types_is_read_as_far_as_it_goes() -> None:
    """Fields that are not what they should be count as not there."""
    wrong: dict[str, Any] = {key: {"a": 1} for key in entry(1)}
    read = read_dump(
        pickle.dumps(dump_value([wrong, entry(2)], pg_config={"0": 3, "1": {"ranks": {}}}), 2), "rank_1"
    )
    assert [call.sequence for call in read.collectives] == [0, 2]
    assert read.collectives[0].calls == ()


@pytest.mark.long
def test_of_too_many_entries_the_last_are_kept() -> None:
    """Entries share their values, as a hostile pickle's memo lets a million do."""
    shared = entry(1, input_sizes=[list(range(5000))] * 1000)
    data = pickle.dumps({"entries": [shared] * 150_000 + [entry(2)]}, 2)
    assert len(data) < 1 << 20
    read = read_dump(data, "rank_0")
    assert len(read.collectives) == MOST_ENTRIES
    assert read.omitted == 150_001 - MOST_ENTRIES
    assert read.collectives[-1].sequence == 2
