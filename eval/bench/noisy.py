"""A log as long jobs print it: much of it warns, retries or fails and goes on, and one crash ends it.

It is made by a seeded writer from the healthy incidents' own lines. What is notable in them (warnings, errors
that were recovered from, tracebacks as a whole) stands, with other numbers and behind the ranks' prefixes,
between progress lines of many dialects, bars redrawn with carriage returns, JSON records and the dialogues
of a rollout.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from corpus import log_patterns
from corpus.log_patterns import PatternTable
from eval import incidents
from eval.bench import mixed
from eval.bench.read_child import CACHE
from ingest.logs.scanner import Block, Scanner

SEED = 21
RANKS = 64
# The share of notable lines among all.
SHARE = 0.03
# Numbers of distinct quiet lines, and of distinct notable units, that the log is drawn from: many, so that
# few lines say the same to the byte.
QUIET = 20_000
NOTABLE = 20_000
# How many lines of one log that say the same but for their digits are taken as units.
ALIKE = 3
# Kinds of quiet rows beside those of `mixed`, each so often among them.
EVERY = 12

_NUMBER = re.compile(r"(?<![\w.:/-])\d{2,7}(?![\w:/-])")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):")
_RANK = re.compile(r"\[rank\d+\]:")
CRASH = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 212, in <module>\n'
    "    trainer.fit()\n"
    '  File "/job/trainer.py", line 187, in fit\n'
    "    loss = self.model(**batch).loss\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.15 GiB of which 1.25 GiB is free. Of the allocated memory 70.11 GiB is allocated by PyTorch.\n"
)


def pieces(size: int, share: float = SHARE, seed: int = SEED) -> Iterator[bytes]:
    """Give about `size` bytes of whole lines in pieces of `mixed.PIECE` bytes, and the crash at their end."""
    dice = random.Random(seed)  # noqa: S311 - a made log, no secret
    kinds: tuple[Callable[[random.Random, int], str], ...] = (
        *mixed.DIALECTS * (EVERY // 3),
        _bar,
        _record,
        lambda dice, step: (
            f"[prompt] user: {mixed.talk(dice)} assistant: {mixed.talk(dice)} [score] {step % 2}"
        ),
    )
    quiet = [kinds[number % len(kinds)](dice, number).encode() + b"\n" for number in range(QUIET)]
    # Of the healthy incidents: single lines that warn or fail, and whole tracebacks.
    notable = [_varied(dice.choice(_units()), dice).encode() for _ in range(NOTABLE)]
    lines_a_unit = sum(unit.count(b"\n") for unit in notable) / len(notable)
    # Of units drawn, so many are notable that `share` of the lines are.
    odds = share / (share + lines_a_unit * (1 - share))
    piece: list[bytes] = []
    given = begun = 0
    while given < size:
        unit = dice.choice(notable) if dice.random() < odds else dice.choice(quiet)
        piece.append(unit)
        given += len(unit)
        if given - begun >= mixed.PIECE:
            yield b"".join(piece)
            piece, begun = [], given
    yield b"".join((*piece, CRASH.encode()))


def write(path: Path, size: int, share: float = SHARE, seed: int = SEED) -> None:
    """Write a log of about `size` bytes."""
    with path.open("wb") as stream:
        stream.writelines(pieces(size, share, seed))


def _bar(dice: random.Random, step: int) -> str:
    shown = "\r".join(
        f"Epoch {step % 9}: {part}%|{'#' * (part // 10):10}| {part}/100 [00:{part:02d}<01:20, "
        f"{dice.random() * 9:.2f}it/s]"
        for part in range(0, 100, 10)
    )
    return f"\r{shown}"


def _record(dice: random.Random, step: int) -> str:
    fields = {
        "time": f"2026-05-03T10:{step % 60:02d}:00Z",
        "level": "info",
        "rank": dice.randrange(RANKS),
        "msg": f"step {step} loss {dice.random():.4f}",
    }
    return json.dumps(fields)


@cache
def _units() -> tuple[str, ...]:
    table = log_patterns.load()
    return tuple(_found(table, Scanner(table.rows, CACHE)))


def _found(table: PatternTable, scanner: Scanner) -> Iterator[str]:
    for incident in incidents.load():
        if incident.label.verdict != "no-failure":
            continue
        text, seen = incident.text.replace("\r\n", "\n"), dict[str, int]()
        rows, data = text.split("\n"), text.encode()
        matches = scanner.matches(Block(data, 1, 0, len(data)))
        telling = {
            number
            for number, row in enumerate(table.rows)
            if row.fails or row.kind == "warning" or row.handler == "traceback"
        }
        end = 0
        for line in sorted({match.line for match in matches if match.row in telling}):
            if line <= end:
                continue
            end = _end(rows, line)
            unit = "\n".join(row.rsplit("\r", 1)[-1] for row in rows[line - 1 : end]) + "\n"
            shape = re.sub(r"\d+", "", unit)
            seen[shape] = seen.get(shape, 0) + 1
            if seen[shape] <= ALIKE:
                yield unit


def _end(rows: list[str], line: int) -> int:
    """Give the last line of a unit: that of a traceback's exception, else the line itself."""
    if not _TRACEBACK.search(rows[line - 1]):
        return line
    margin = rows[line - 1].partition("Traceback")[0]
    below = line
    while below < len(rows) and rows[below].removeprefix(margin)[:1].isspace():
        below += 1
    return min(below + 1, len(rows))


def _varied(unit: str, dice: random.Random) -> str:
    """Give a unit as another rank would have printed it, at another step."""
    # A number that stands twice, such as a process's, is the same one again.
    others: dict[str, str] = {}
    text = _NUMBER.sub(
        lambda number: others.setdefault(number[0], str(dice.randrange(1, 10 ** len(number[0])))), unit
    )
    rank = f"[rank{dice.randrange(RANKS)}]:"
    if _RANK.search(text):
        return _RANK.sub(rank, text)
    if dice.random() < 0.5 or text.startswith("("):
        return text
    return "".join(f"{rank} {row}\n" for row in text.splitlines())
