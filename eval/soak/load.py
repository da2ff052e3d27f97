"""Who asks while a soak lasts: threads, each of one kind of load, and what was handed in and accepted."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from service.schemas.errors import ServiceError

INCIDENTS = Path(__file__).parents[1] / "incidents"
LOGS = 40
# Bytes of a log that are handed in: its end.
TAIL = 20_000
# Seconds until what was refused is asked again.
AGAIN = 1.0
# What no part that is away excuses: the server itself made a mistake.
_FAULTS = frozenset({"UnexpectedError", "CorpusError"})


@dataclass
class SubmissionCounts:
    """What was handed in and accepted, and what was refused or cut off, by its kind."""

    triages: list[str] = field(default_factory=list)
    batches: dict[str, set[str]] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    twice: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass
class LoadContext:
    """What all kinds of load share: the server's address, a folder for files, logs, and when it is over."""

    url: str
    folder: Path
    asked: SubmissionCounts = field(default_factory=SubmissionCounts)
    over: threading.Event = field(default_factory=threading.Event)
    _logs: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the logs once."""
        self._logs = [path.read_bytes() for path in sorted(INCIDENTS.glob("*/log.txt"))[:LOGS]]

    def log(self, draws: random.Random, turn: int) -> bytes:
        """Give the end of a log; each turn's is another one."""
        return draws.choice(self._logs)[-TAIL:] + f"\njob {turn}\n".encode()

    def text(self, draws: random.Random, turn: int) -> str:
        """Give the end of a log as a text."""
        return self.log(draws, turn).decode("utf-8", "replace")


class LoadKind(ABC):
    """Asks in one way; `pause` is how many seconds at most pass between two times."""

    name: ClassVar[str]
    pause: ClassVar[float] = 0.5

    def __init__(self, context: LoadContext) -> None:
        self.context = context

    @abstractmethod
    def ask(self, draws: random.Random, turn: int) -> None:
        """Ask once; raises ServiceError where nothing came of it."""

    def wrong(self) -> Sequence[str]:
        """Say, once the load is over, what did not come out as it should have."""
        return ()

    def counts(self) -> Mapping[str, int]:
        """Count what the report is to show beside triages and jobs."""
        return {}


class Load:
    """Threads that ask until they are told to stop."""

    def __init__(self, context: LoadContext, kinds: Sequence[LoadKind], seed: int, slower: float = 1) -> None:
        """`slower` is by what each pause is multiplied."""
        self._context = context
        self._kinds = kinds
        self._slower = slower
        seeds = range(seed, seed + len(kinds))
        draws = [random.Random(each) for each in seeds]  # noqa: S311 - load, and no secret
        self._threads = [
            threading.Thread(target=self._ask, args=(kind, draws[number], number), name=kind.name)
            for number, kind in enumerate(kinds)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let each end what it is at."""
        self._context.over.set()
        for thread in self._threads:
            thread.join()

    def wrong(self) -> list[str]:
        """Say what the kinds found wrong, and mistakes of the server's own."""
        asked = self._context.asked
        told = [f"{kind.name}: {row}" for kind in self._kinds for row in kind.wrong()]
        return [*told, *(f"a fault of the server's own: {row}" for row in asked.faults)]

    def counts(self) -> dict[str, int]:
        """Count what the kinds count."""
        return {name: count for kind in self._kinds for name, count in kind.counts().items()}

    def _ask(self, kind: LoadKind, draws: random.Random, number: int) -> None:
        asked, over, turn = self._context.asked, self._context.over, 0
        while not over.is_set():
            turn += 1
            try:
                kind.ask(draws, number * 1_000_000 + turn)
                asked.answered[kind.name] += 1
            except ServiceError as error:
                # A server that is being killed answers nobody; what it had accepted is looked for afterwards.
                told = type(error).__name__
                asked.refused[f"{kind.name}: {told}"] += 1
                if told in _FAULTS:
                    asked.faults.append(f"{kind.name}: {error}")
                over.wait(AGAIN)
            over.wait(kind.pause * self._slower * draws.random())
