"""What the first collective of a job tells: who joined it, and whether all asked for the same group."""

from __future__ import annotations

from dataclasses import replace

from corpus import log_patterns
from ingest.logs.refinement import refine_by_files
from tests.factories import ReadLog
from tests.tables import each_row

CAUGHT = (
    "[rank{rank}]:[E1118 20:27:21.4 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran "
    "for 600081 milliseconds before timing out.\n"
    "[rank{rank}]:[E1118 20:27:21.5 ProcessGroupNCCL.cpp:2168] [PG ID 1 PG GUID 1 Rank {rank}]  failure "
    "detected by watchdog at work sequence id: {seq} PG status: last enqueued work: 9, last completed work: "
    "{done}\n"
)
TWO_NODES = "+ torchrun --nnodes 2 --nproc_per_node 1 train.py\n"
NCCL_NODES = (
    "node7:81:402 [0] NCCL INFO comm 0x55d0c0a0 rank 0 nRanks 8 nNodes {nodes} localRanks 4 localRank 0 "
    "MNNVL 0\n"
)
SIZE = "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/{size}\n"


def _waits(ranks: int, size: int, *, seq: int = 1, done: int = -1, op: str = "BROADCAST") -> str:
    told = [CAUGHT.format(rank=rank, seq=seq, done=done, op=op) for rank in range(ranks)]
    return "".join([SIZE.format(size=size), *told])


@each_row(
    ("text", "expected"),
    [
        (NCCL_NODES.format(nodes=1) + _waits(2, 2), "nccl-p2p-topology"),
        (NCCL_NODES.format(nodes=1) + _waits(8, 8), "nccl-p2p-topology"),
        # Few ranks may be of several nodes: what lies between these is the network.
        (_waits(2, 2), "nccl-network"),
        (TWO_NODES + _waits(2, 2), "nccl-network"),
        (NCCL_NODES.format(nodes=1) + NCCL_NODES.format(nodes=2) + _waits(8, 8), "nccl-network"),
        (_waits(16, 16), "nccl-network"),
        # One of the job's ranks did not come.
        (_waits(3, 4), "collective-straggler"),
        # Collectives got through before.
        (_waits(4, 4, seq=71, done=70), "collective-straggler"),
        # They are in different calls.
        (_waits(1, 2) + _waits(2, 2, op="ALLREDUCE").split("\n", 3)[3], "collective-desync"),
    ],
)
def test_that_a_first_collective_which_all_joined_waits_for_the_wire(
    text: str, expected: str, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.cause == expected


LARGE = 25_610_152
SHARED = "node7:81:402 [0] NCCL INFO ncclCommInitRank comm 0x55d0a7 rank 0 nranks 4 - Init COMPLETE\n"
SERVED = "(APIServer pid=7) INFO:     Application startup complete.\n"


def _caught(ranks: int, seq: int) -> str:
    return "".join(CAUGHT.format(rank=rank, seq=seq, done=seq - 1, op="BROADCAST") for rank in range(ranks))


def _large(ranks: int, *, seq: int = 3, done: int = 2, numel: int = LARGE) -> str:
    return _waits(ranks, 8, seq=seq, done=done).replace("=64", f"={numel}")


@each_row(
    ("text", "expected"),
    [
        (_large(3), "nccl-network"),
        (NCCL_NODES.format(nodes=1) + _large(4), "nccl-p2p-topology"),
        # A row of another rank stands in the midst of one of NCCL's own.
        ("node7:81:402 [0] NC" + _large(2), "nccl-network"),
        # The one of eight that is missing may be late.
        (_large(7), "collective-straggler"),
        # A small one is a barrier, before which a rank may be late; so may it be amid the work.
        (_large(3, numel=1), "collective-straggler"),
        (_large(3, seq=900, done=899), "collective-straggler"),
        # An engine's workers wait for no slow rank, unless one is gone; a training's may.
        (SERVED + _caught(2, 900), "engine-stall"),
        (_waits(2, 2, seq=900, done=899), "collective-straggler"),
        (SERVED + SHARED + _caught(3, 900), "collective-straggler"),
    ],
)
def test_that_nobody_is_late_where_all_stand_in_one_collective(
    text: str, expected: str, read: ReadLog
) -> None:
    """All met just before the first large one, or they are workers of one engine."""
    root = read(text).root
    assert root is not None
    assert root.cause == expected


BEGINS = (
    "node7:{pid}:402 [{rank}] NCCL INFO ncclCommInitRankConfig comm 0x55d0a{pid} rank {rank} nranks {size} "
    "cudaDev {rank} nvmlDev {rank} busId 4b000 commId 0x{id} - Init {state}\n"
)
REFUSED = (
    "node7:81:402 [1] misc/socket.cc:544 NCCL WARN socketPollConnect: connect returned Connection refused, "
    "exceeded error retry count (35)\n"
)


def _begun(*told: tuple[int, str, str], size: int = 2) -> str:
    rows = [
        BEGINS.format(pid=80 + rank, rank=rank, size=size, id=key, state=state) for rank, key, state in told
    ]
    return "".join([*rows, REFUSED])


@each_row(
    ("text", "expected"),
    [
        (_begun((0, "7a1", "START"), (1, "9fe", "START")), "rendezvous-failed"),
        # The one before was the same for both, and is done.
        (
            _begun(
                (0, "7a1", "START"),
                (1, "7a1", "START"),
                (0, "7a1", "COMPLETE"),
                (1, "7a1", "COMPLETE"),
                (1, "7a1", "START"),
                (0, "9fe", "START"),
            ),
            "rendezvous-failed",
        ),
        (_begun((0, "7a1", "START"), (1, "7a1", "START")), "nccl-network"),
        # Two groups of two ranks each begin theirs at the same time.
        (
            _begun((0, "7a1", "START"), (0, "9fe", "START"), (1, "7a1", "START"), (1, "9fe", "START")),
            "nccl-network",
        ),
        (_begun((0, "7a1", "START"), (1, "9fe", "START"), size=4), "nccl-network"),
    ],
)
def test_that_ranks_which_ask_for_different_communicators_never_met(
    text: str, expected: str, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert root.cause == expected


STUCK = (
    "[rank0]:[F ProcessGroupNCCL.cpp:1224] [PG 0 (default_pg) Rank 0] ProcessGroupNCCL's watchdog got stuck "
    "for 600 seconds without making progress in monitoring enqueued collectives.\n"
)


@each_row(
    ("script", "cause"),
    [
        ("export NCCL_P2P_DISABLE=0\n", "nccl-p2p-topology"),
        ("export NCCL_P2P_LEVEL=NVL\n", "nccl-p2p-topology"),
        ('os.environ["NCCL_P2P_LEVEL"] = "SYS"\n', "nccl-p2p-topology"),
        # What is switched off, or only talked of, did not hang.
        ("export NCCL_P2P_DISABLE=1\n", "collective-straggler"),
        ("export NCCL_P2P_LEVEL=NVL NCCL_P2P_DISABLE=1\n", "collective-straggler"),
        ("export NCCL_P2P_LEVEL=LOC\n", "collective-straggler"),
        ("# NCCL_P2P_DISABLE=0 once hung here\n", "collective-straggler"),
    ],
)
def test_that_a_stuck_watchdog_is_of_the_direct_way_only_where_the_job_asks_for_it(
    script: str, cause: str, read: ReadLog
) -> None:
    """With the direct way between cards switched off nothing can hang in it."""
    told = refine_by_files(replace(read(STUCK), launches=(script,)), log_patterns.load())
    assert told.root is not None
    assert told.root.cause == cause
