"""Who asks: people who paste, who hand in files, who listen to streams, and programs with batches."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from service.api.client import Client
from service.schemas.errors import ServiceError
from service.schemas.events import Accepted

INCIDENTS = Path(__file__).parents[1] / "incidents"
LOGS = 40
JOBS = 25
# Seconds between two requests of one of them.
PAUSE = 0.5
AGAIN = 1.0


@dataclass
class SubmissionCounts:
    """What was handed in and accepted, and what was refused or cut off, by its kind."""

    triages: list[str] = field(default_factory=list)
    batches: dict[str, set[str]] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    twice: list[str] = field(default_factory=list)


class Load:
    """Threads that ask until they are told to stop."""

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        self.asked = SubmissionCounts()
        self._url = url
        self._folder = folder
        self._over = threading.Event()
        self._logs = [path.read_bytes() for path in sorted(INCIDENTS.glob("*/log.txt"))[:LOGS]]
        kinds: tuple[Callable[[random.Random, int], None], ...] = (
            self._paste,
            self._paste,
            self._upload,
            self._listen,
            self._batch,
        )
        seeds = range(seed, seed + len(kinds))
        dice = [random.Random(each) for each in seeds]  # noqa: S311 - load, and no secret
        self._threads = [
            threading.Thread(target=self._ask, args=(kind, dice[number], number))
            for number, kind in enumerate(kinds)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let each end what it is at."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, kind: Callable[[random.Random, int], None], dice: random.Random, number: int) -> None:
        turn = 0
        name = kind.__name__.strip("_")
        while not self._over.is_set():
            turn += 1
            try:
                kind(dice, number * 1_000_000 + turn)
                self.asked.answered[name] += 1
            except ServiceError as error:
                # A server that is being killed answers nobody; what it had accepted is looked for afterwards.
                self.asked.refused[f"{name}: {type(error).__name__}"] += 1
                self._over.wait(AGAIN)
            self._over.wait(PAUSE * dice.random())

    def _log(self, dice: random.Random, turn: int) -> bytes:
        return dice.choice(self._logs)[-20_000:] + f"\njob {turn}\n".encode()

    def _paste(self, dice: random.Random, turn: int) -> None:
        with Client(self._url) as client:
            text = self._log(dice, turn).decode("utf-8", "replace")
            self.asked.triages.append(client.triage(text, name=f"paste {turn}", model=False).id)

    def _upload(self, dice: random.Random, turn: int) -> None:
        path = self._folder / f"upload-{turn}.log"
        path.write_bytes(self._log(dice, turn) * 50)
        try:
            with Client(self._url) as client:
                self.asked.triages.append(client.triage(path, model=False).id)
        finally:
            path.unlink()

    def _listen(self, dice: random.Random, turn: int) -> None:
        with Client(self._url) as client:
            for event in client.stream(self._log(dice, turn).decode("utf-8", "replace"), model=False):
                if isinstance(event, Accepted):
                    self.asked.triages.append(event.id)

    def _accepted(self, client: Client, paths: list[Path], turn: int) -> str:
        """Hand in until it is known to be accepted; a server that was killed may have accepted it unheard."""
        while True:
            try:
                return client.batch(paths, idempotency_key=f"soak-{turn}").id
            except ServiceError:
                if self._over.wait(AGAIN):
                    raise

    def _batch(self, dice: random.Random, turn: int) -> None:
        """Hand a batch in until it is accepted, and once more: that makes no second one."""
        folder = self._folder / f"batch-{turn}"
        folder.mkdir()
        paths = [folder / f"job-{turn}-{number}.log" for number in range(JOBS)]
        for number, path in enumerate(paths):
            path.write_bytes(self._log(dice, turn * 100 + number))
        with Client(self._url) as client:
            taken = self._accepted(client, paths, turn)
            self.asked.batches[taken] = {path.stem for path in paths}
            again = client.batch(paths, idempotency_key=f"soak-{turn}").id
            if again != taken:
                self.asked.twice.append(f"{taken} and {again}")
            # As a person would, before the next one.
            ends = time.monotonic() + 60
            while client.progress(taken).state == "running" and time.monotonic() < ends:
                if self._over.wait(0.5):
                    return
