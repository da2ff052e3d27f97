"""Made-up dumps in the form that PyTorch writes for NCCL, whose states gloo does not record."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from ingest.artefacts.flight_recorder import RankDump, read_dump

SECOND = 1_000_000_000


def entry(sequence: int, operation: str = "all_reduce", **given: Any) -> dict[str, Any]:
    """Give an entry with the fields of the format's version 2.10."""
    return {
        "record_id": sequence,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "thread_id": "140",
        "thread_name": "python",
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "op_id": sequence,
        "profiling_name": f"nccl:{operation}",
        "time_created_ns": sequence * SECOND,
        "input_sizes": [[8]],
        "input_dtypes": ["Float"],
        "output_sizes": [[8]],
        "output_dtypes": ["Float"],
        "state": "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": False,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "frames": [
            {"name": "all_reduce", "filename": "/opt/lib/python3.11/site-packages/torch/d.py", "line": 9},
            {"name": "train_step", "filename": "/job/train.py", "line": 40},
            {"name": "<module>", "filename": "/job/train.py", "line": 90},
        ],
    } | given


def done(*sequences: int) -> list[dict[str, Any]]:
    return [entry(sequence, state="completed") for sequence in sequences]


def dump_value(entries: Sequence[dict[str, Any]], ranks: int = 4, **given: Any) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}
    return {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27", "entries": [*entries]} | given


def dump(rank: int, entries: Sequence[dict[str, Any]], ranks: int = 4, **given: Any) -> RankDump:
    return read_dump(pickle.dumps(dump_value(entries, ranks, **given), 2), f"nccl_trace_rank_{rank}")
