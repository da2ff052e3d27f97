"""Jobs of three ranks over gloo, with PyTorch's own flight recorder on; run as a program, since it forks.

`python -m tests.ingest.artefacts.gloo_jobs FOLDER` writes `FOLDER/JOB/trace_rank_N` and `trace_rank_N.json`.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["TORCH_FR_BUFFER_SIZE"] = "2000"

import torch
import torch._C._distributed_c10d as c10d

# A dump imports it: once here, before the forks, in place of twenty times in them.
import torch._dynamo
import torch.distributed as dist

WORLD = 3
PATIENCE_S = 1


def write_dump(folder: Path, rank: int) -> None:
    (folder / f"trace_rank_{rank}.json").write_bytes(c10d._dump_fr_trace_json(True, False))
    (folder / f"part_{rank}").write_bytes(c10d._dump_fr_trace(True, True, False))
    (folder / f"part_{rank}").rename(folder / f"trace_rank_{rank}")


@contextlib.contextmanager
def after_others(folder: Path, rank: int) -> Iterator[None]:
    """Let rank 0 call after the others have written theirs and gone, so that no data arrives that aborts one.

    The two first calls of the others wait for rank 0 and hold both of gloo's threads, so that what follows
    is recorded and not begun.
    """
    others = [folder / f"trace_rank_{other}" for other in range(1, WORLD)]
    while rank == 0 and not all(path.exists() for path in others):
        time.sleep(0.01)
    kept = [called(dist.all_reduce, torch.zeros(2)) for _ in range(2)]
    yield
    write_dump(folder, rank)
    assert len(kept) == 2


def called(collective: Callable[..., object], *arguments: object) -> object:
    """Call without waiting; a peer that is gone is no matter."""
    with contextlib.suppress(RuntimeError):
        return collective(*arguments, async_op=True)
    return None


def sizes(folder: Path, rank: int) -> None:
    with after_others(folder, rank):
        kept = called(dist.all_reduce, torch.zeros(16 if rank == 0 else 8))
    del kept


def operations(folder: Path, rank: int) -> None:
    with after_others(folder, rank):
        tensor = torch.zeros(8)
        kept = called(dist.broadcast, tensor, 0) if rank == 0 else called(dist.all_reduce, tensor)
    del kept


def types(folder: Path, rank: int) -> None:
    with after_others(folder, rank):
        kept = called(dist.all_reduce, torch.zeros(8, dtype=torch.float64 if rank == 0 else torch.float32))
    del kept


def never(folder: Path, rank: int) -> None:
    """Rank 1 has no more batch; rank 2's dump is lost."""
    kept = None if rank == 1 else called(dist.all_reduce, torch.zeros(8))
    if rank != 2:
        write_dump(folder, rank)
    del kept


def load_batch() -> None:
    time.sleep(PATIENCE_S + 1)


def late(folder: Path, rank: int) -> None:
    if rank == 1:
        load_batch()
    with contextlib.suppress(RuntimeError):
        dist.all_reduce(torch.zeros(8))
    write_dump(folder, rank)


def groups(folder: Path, rank: int) -> None:
    """Rank 1 never comes to the collective of ranks 0 and 1, so rank 0 not to that of all."""
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(torch.zeros(3), group=pair)
    kept = called(dist.all_reduce, torch.zeros(3), dist.ReduceOp.SUM, pair) if rank == 0 else None
    if rank == 2:
        kept = called(dist.all_reduce, torch.zeros(8))
    write_dump(folder, rank)
    del kept


def sound(folder: Path, rank: int) -> None:
    dist.barrier()
    write_dump(folder, rank)


JOBS: tuple[Callable[[Path, int], None], ...] = (sizes, operations, types, never, late, groups, sound)


def run(job: Callable[[Path, int], None], folder: Path, rank: int) -> None:
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(folder / "store"), WORLD),
        rank=rank,
        world_size=WORLD,
        timeout=datetime.timedelta(seconds=PATIENCE_S if job is late else 60),
    )
    for _ in range(3):
        dist.all_reduce(torch.zeros(4))
    job(folder, rank)


def start(job: Callable[[Path, int], None], folder: Path) -> list[int]:
    """Fork the ranks of a job; give their ids."""
    folder.mkdir()
    ranks = []
    for rank in range(WORLD):
        process = os.fork()
        if process == 0:
            try:
                run(job, folder, rank)
            finally:
                os._exit(0)
        ranks.append(process)
    return ranks


if __name__ == "__main__":
    started = [start(job, Path(sys.argv[1]) / job.__name__) for job in JOBS]
    for process in itertools.chain.from_iterable(started):
        os.waitpid(process, 0)
