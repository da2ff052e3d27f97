"""A synthetic log of any size in the formats of many frameworks, with NOTABLE lines that match patterns."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from corpus import log_patterns

SEED = 20
NOTABLE = 200
PIECE = 1 << 20
# Number of distinct lines that the log is drawn from.
POOL = 40_000

_WORDS = [
    "solve",
    "the",
    "integral",
    "of",
    "x",
    "squared",
    "then",
    "check",
    "whether",
    "each",
    "answer",
    "is",
    "a",
    "prime",
    "and",
    "explain",
    "why",
    "rate",
    "limit",
    "memory",
]


def _verl(dice: random.Random, step: int) -> str:
    values = " - ".join(
        f"{name}:{dice.random():.4f}" for name in ("actor/entropy_loss", "actor/pg_loss", "critic/score/mean")
    )
    return (
        f"(TaskRunner pid={dice.randint(1000, 9999)}) step:{step} - {values} - "
        f"perf/throughput:{dice.randint(100, 9000)}"
    )


def _ray(dice: random.Random, step: int) -> str:
    address = f"10.0.{dice.randint(0, 7)}.{dice.randint(2, 250)}"
    return (
        f"(WorkerDict pid={dice.randint(1000, 9999)}, ip={address}) batch {step}: sequence lengths "
        f"{dice.randint(9, 99)} to {dice.randint(999, 9999)}"
    )


def _vllm(dice: random.Random, step: int) -> str:
    return (
        f"INFO 05-03 {_clock(dice)} [loggers.py:118] Engine {step % 8:03d}: Avg prompt throughput: "
        f"{dice.random() * 1000:.1f} tokens/s, "
        f"Avg generation throughput: {dice.random() * 1000:.1f} tokens/s, Running: {dice.randint(0, 99)} "
        "reqs, Waiting: 0 reqs, "
        f"GPU KV cache usage: {dice.random() * 100:.1f}%"
    )


def _clock(dice: random.Random) -> str:
    return f"{dice.randint(0, 23):02d}:{dice.randint(0, 59):02d}:{dice.randint(0, 59):02d}"


DIALECTS: tuple[Callable[[random.Random, int], str], ...] = (
    _verl,
    _ray,
    _vllm,
    # Python's logging behind torchrun's prefix of a rank.
    lambda dice, step: (
        f"[rank{dice.randint(0, 63)}]: 2026-05-03 {_clock(dice)},{step % 1000:03d} - trainer - INFO - "
        f"loss {dice.random():.5f} lr 1.0e-05"
    ),
    lambda dice, step: (
        f"node-{(rank := dice.randint(0, 62)) // 8}:{step}:{step + 9} [{rank % 8}] NCCL INFO Channel "
        f"{step % 16:02d}/0 : {rank}[{rank}] -> {rank + 1}[{rank + 1}] via P2P/CUMEM"
    ),
    # The Trainer of transformers.
    lambda dice, step: (
        f"{{'loss': {dice.random():.4f}, 'grad_norm': {dice.random():.4f}, 'learning_rate': 1e-05, "
        f"'epoch': {step / 9000:.2f}}}"
    ),
    # Megatron-LM.
    lambda dice, step: (
        f" iteration {step:8d}/ 1000000 | consumed samples: {step * 512:12d} | elapsed time per iteration "
        f"(ms): {dice.random() * 999:.1f} | lm loss: {dice.random():.6E} |"
    ),
    # DeepSpeed.
    lambda dice, step: (
        f"[2026-05-03 {_clock(dice)}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
        "lr=[1e-05], mom=[(0.9, 0.95)]"
    ),
    # A progress bar behind the label of `srun --label`.
    lambda dice, step: (
        f"{dice.randint(0, 63)}: Training: {dice.randint(0, 99)}%|####      | {step}/100000 [00:12<02:11, "
        f"{dice.random() * 9:.2f}it/s]"
    ),
    # Requests of an inference server.
    lambda dice, step: (
        f'10.0.{dice.randint(0, 7)}.{dice.randint(2, 250)}:{step} - "POST /v1/chat/completions HTTP/1.1" '
        "200 OK"
    ),
    # A prompt's words.
    lambda dice, step: f"prompt {step}: " + talk(dice),
)


def talk(dice: random.Random) -> str:
    """Give some words as prompts have them."""
    return " ".join(dice.choices(_WORDS, k=dice.randint(8, 40)))


def pieces(size: int, seed: int = SEED) -> Iterator[bytes]:
    """Give about `size` bytes of whole lines in pieces of PIECE bytes, the notable ones at random places."""
    dice = random.Random(seed)  # noqa: S311 - a made log, no secret
    pool = [DIALECTS[number % len(DIALECTS)](dice, number).encode() + b"\n" for number in range(POOL)]
    notable = _notable(dice)
    places = sorted(dice.randrange(size) for _ in notable)
    piece: list[bytes] = []
    given = begun = 0
    while given < size:
        line = pool[dice.randrange(POOL)]
        if places and given >= places[0]:
            places.pop(0)
            line = notable.pop() + b"\n"
        piece.append(line)
        given += len(line)
        if given - begun >= PIECE:
            yield b"".join(piece)
            piece, begun = [], given
    if piece:
        yield b"".join(piece)


def write(path: Path, size: int) -> None:
    """Write a log of about `size` bytes."""
    with path.open("wb") as stream:
        stream.writelines(pieces(size))


def _notable(dice: random.Random) -> list[bytes]:
    """Draw NOTABLE examples of failure patterns."""
    lines = [
        row.examples[0]
        for row in log_patterns.load().rows
        if row.fails and row.examples and "\n" not in row.examples[0]
    ]
    return [line.encode() for line in dice.sample(lines, NOTABLE)]
