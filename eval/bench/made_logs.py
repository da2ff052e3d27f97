"""Large made logs of many kinds, each the same at every call: what a change of the reader is compared on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from eval import incidents
from eval.bench import hostile, mixed, noisy

SIZE = 5 << 20
# By how much a woven log is smaller: nearly each of its lines is notable.
WOVEN = 5
# How many processes a woven log has, and how many lines of each are taken from one incident.
PROCESSES = 24
STRETCH = 60
# The form of a line of a process, by how its launcher marks it: `rank`, and what the process says.
FORMS: Mapping[str, Callable[[int, str], str]] = {
    "torchrun": lambda rank, text: f"[rank{rank}]: {text}",
    "default": lambda rank, text: f"[default{rank}]:{text}",
    "srun": lambda rank, text: f"{rank:2d}: {text}",
    "mpirun": lambda rank, text: f"[1,{rank}]<stderr>: {text}",
    "mpirun-host": lambda rank, text: f"[1,{rank},node-{rank // 8}]<stdout>: {text}",
    "ray": lambda rank, text: f"(WorkerDict pid={4000 + rank}, ip=10.0.0.{rank // 8}) {text}",
    "ray-rank": lambda rank, text: f"(RayTrainWorker rank={rank} pid={4000 + rank}) {text}",
    "compose": lambda rank, text: f"trainer-{rank}  | {text}",
    "clock": lambda rank, text: f"2026-05-03 10:{rank:02d}:07,123 {rank}: {text}",
    "json": lambda rank, text: json.dumps(
        {"time": "2026-05-03T10:00:07Z", "level": "info", "rank": rank, "msg": text}
    ),
    "logfmt": lambda rank, text: f"time=2026-05-03T10:00:07Z level=info rank={rank} msg={json.dumps(text)}",
    "bare": lambda _rank, text: text,
}


def all_logs(size: int = SIZE) -> dict[str, Callable[[], Iterator[bytes]]]:
    """Give what makes each log, by its name."""
    made: dict[str, Callable[[], Iterator[bytes]]] = {"quiet": partial(mixed.pieces, size)}
    for share in (0.002, 0.03, 0.1, 0.5):
        for seed in range(3):
            made[f"noisy-{share}-{seed}"] = partial(noisy.pieces, size, share, seed)
    for form in FORMS:
        for seed in range(2):
            made[f"woven-{form}-{seed}"] = partial(woven, size // WOVEN, form, seed)
    for name, kind in hostile.CASES.items():
        made[f"hostile-{name}"] = partial(kind.pieces, size if kind.units >= hostile.GIB else size // 300)
    return made


def woven(size: int, form: str, seed: int) -> Iterator[bytes]:
    """Give stretches of incidents' logs as processes print them that write at once, line by line.

    The processes of one group say the same; progress stands between the groups' failures.
    """
    dice = random.Random(f"{form} {seed}")  # noqa: S311 - a made log, no secret
    given = 0
    while given < size:
        rows = dice.choice(_rows())
        begin = dice.randrange(max(1, len(rows) - STRETCH))
        rows = rows[begin : begin + STRETCH]
        group = dice.sample(range(PROCESSES), dice.choice((1, 2, 4, 8)))
        left = {rank: iter(rows) for rank in group}
        piece: list[str] = []
        while left:
            rank = dice.choice(list(left))
            for _ in range(dice.choice((1, 1, 2, 5))):
                row = next(left[rank], None)
                if row is None:
                    del left[rank]
                    break
                piece.append(FORMS[form](rank, row))
            if dice.random() < 0.5:
                talk = mixed.DIALECTS[dice.randrange(len(mixed.DIALECTS))](dice, dice.randrange(10**5))
                piece.append(FORMS[form](dice.randrange(PROCESSES), talk))
        data = ("\n".join(piece) + "\n").encode()
        given += len(data)
        yield data


@cache
def _rows() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(incident.lines[:4000]) for incident in incidents.load())
