"""Answers of NCCL's RAS, in the forms of its text and of its JSON, made of the same counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

Counts = Mapping[str, Mapping[int, int]]


def place(rank: int) -> str:
    return f"GPU {rank} managed by process {4700 + rank} on node 10.0.0.{rank // 4}"


def ras_json(counts: Counts, missing: Sequence[int] = (), *, dead: bool = False) -> str:
    ranks = sorted({rank for by_rank in counts.values() for rank in by_rank})
    told = [
        {
            "rank": rank,
            "host": f"10.0.0.{rank // 4}",
            "pid": 4700 + rank,
            "status": {"init_state": 0, "async_error": 0, "abort_flag": False},
            "collective_counts": {name: by_rank.get(rank, 0) for name, by_rank in counts.items()},
        }
        for rank in ranks
    ]
    gone = [
        {
            "rank": rank,
            "host": f"10.0.0.{rank // 4}",
            "pid": 4700 + rank,
            "status": {"unresponsive": True, "considered_dead": dead},
        }
        for rank in missing
    ]
    group = {"hash": "0x5a6b7c", "size": len(ranks) + len(gone), "ranks": told, "missing_ranks": gone}
    head = {"nccl_version": "2.29.2", "cuda_runtime_version": 13000, "timestamp": "2026-11-23 10:00:00"}
    return json.dumps(head | {"communicators_count": 1, "communicators": [group]}, indent=2)


def ras_text(counts: Counts, missing: Sequence[int] = (), *, dead: bool = False) -> str:
    """Give the text; those of most ranks are counted, the others named."""
    ranks = len({rank for by_rank in counts.values() for rank in by_rank})
    rows = [
        "NCCL version 2.28.3 compiled with CUDA 12.9",
        "CUDA runtime version 12090, driver version 12090",
        "",
    ]
    rows += [
        "Job summary",
        "===========",
        "",
        "  Nodes  Processes         GPUs",
        f"      2          4  {ranks:11}",
    ]
    rows += ["", "Communicators... (0.00s)", "=============", "", "Errors", "======", ""]
    if dead:
        rows += ["DEAD", "  1 job process is considered dead (unreachable via the RAS network)"]
        rows += [
            f"  Process {4700 + rank} on node 10.0.0.{rank // 4} managing GPU {rank}" for rank in missing
        ]
        rows += [""]
    if missing:
        rows += ["#0-0 (005a6b7c00000000) INCOMPLETE", "  Missing communicator data from 1 rank"]
        rows += [f"  Rank {rank} -- {place(rank)}" for rank in missing] + [""]
    rows += ["Warnings", "========", ""]
    uneven = {name: by_rank for name, by_rank in counts.items() if len(set(by_rank.values())) > 1}
    if uneven:
        rows += ["#0-0 (005a6b7c00000000) MISMATCH"]
    for name, by_rank in uneven.items():
        rows += [f"  Communicator ranks have different {name} operation counts"]
        for count, number in Counter(by_rank.values()).most_common():
            did = f"launched up to operation {count}" if count else "not launched any operations"
            named = [rank for rank in by_rank if by_rank[rank] == count]
            if number > 1:
                rows += [f"  {number} ranks have {did}"]
                rows += [f"  Rank {rank} -- {place(rank)}" for rank in named if number * 4 <= ranks]
            else:
                rows += [f"  Rank {named[0]} has {did} -- {place(named[0])}"]
        rows += [""]
    return "\n".join(rows) + "\n"


def launched(ranks: int, count: int, **others: int) -> dict[int, int]:
    """Give each rank a count; `r3=5` is another of rank 3."""
    return dict.fromkeys(range(ranks), count) | {int(name[1:]): own for name, own in others.items()}
