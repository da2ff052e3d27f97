"""Load by the API: people who paste, hand in files and listen to streams, and programs with batches."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import ClassVar

from eval.soak.load import AGAIN, LoadKind
from service.api.client import Client
from service.schemas.errors import ServiceError
from service.schemas.events import Accepted

# How often a log is repeated in an upload.
LONG = 50
# Seconds that whoever handed a batch in waits for its end before the next one.
WATCHES = 60.0
# Seconds within which a server answers or says that it is late: its request deadline, and a grace.
ANSWERS_WITHIN = 140.0


class PasteLoad(LoadKind):
    """Pastes a log."""

    name = "paste"

    def ask(self, draws: random.Random, turn: int) -> None:
        """Have a pasted log explained by rules."""
        with Client(self.context.url) as client:
            text = self.context.text(draws, turn)
            made = client.triage(text, name=f"paste {turn}", model=False)
        self.context.asked.triages.append(made.id)


class UploadLoad(LoadKind):
    """Hands in a file of a megabyte."""

    name = "upload"

    def ask(self, draws: random.Random, turn: int) -> None:
        """Have an uploaded log explained."""
        path = self.context.folder / f"upload-{turn}.log"
        path.write_bytes(self.context.log(draws, turn) * LONG)
        try:
            with Client(self.context.url) as client:
                self.context.asked.triages.append(client.triage(path, model=False).id)
        finally:
            path.unlink()


class ListenLoad(LoadKind):
    """Listens to a stream to its end."""

    name = "listen"

    def ask(self, draws: random.Random, turn: int) -> None:
        """Have a log explained event by event."""
        with Client(self.context.url) as client:
            for event in client.stream(self.context.text(draws, turn), model=False):
                if isinstance(event, Accepted):
                    self.context.asked.triages.append(event.id)


class ModelLoad(LoadKind):
    """Has a model explain as well; it may be slow, fail or break off, and the answer by rules stands."""

    name = "model"
    pause = 4.0

    # Seconds that a model has for everything that it is asked; set by who starts the server.
    deadline: ClassVar[float] = 20.0

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._late: list[str] = []

    def ask(self, draws: random.Random, turn: int) -> None:
        """Have a pasted log explained with a model."""
        began = time.monotonic()
        with Client(self.context.url) as client:
            made = client.triage(self.context.text(draws, turn), name=f"model {turn}", model=True)
        self.context.asked.triages.append(made.id)
        if (took := time.monotonic() - began) > ANSWERS_WITHIN:
            self._late.append(f"triage {made.id} took {took:.0f} seconds")

    def wrong(self) -> list[str]:
        """Name answers that came later than the server gives itself."""
        return self._late


class BatchLoad(LoadKind):
    """Hands in a batch until it is accepted, and once more: that makes no second one."""

    name = "batch"
    jobs: ClassVar[int] = 25

    def ask(self, draws: random.Random, turn: int) -> None:
        """Hand in a batch and watch it for a while."""
        folder = self.context.folder / f"batch-{turn}"
        folder.mkdir()
        paths = [folder / f"job-{turn}-{number}.log" for number in range(self.jobs)]
        for number, path in enumerate(paths):
            path.write_bytes(self.context.log(draws, turn * 100 + number))
        asked = self.context.asked
        with Client(self.context.url) as client:
            taken = self._accepted(client, paths, turn)
            asked.batches[taken] = {path.stem for path in paths}
            again = client.batch(paths, idempotency_key=f"soak-{turn}").id
            if again != taken:
                asked.twice.append(f"{taken} and {again}")
            # As a person would, before the next one.
            ends = time.monotonic() + WATCHES
            while client.progress(taken).state == "running" and time.monotonic() < ends:
                if self.context.over.wait(0.5):
                    return

    def _accepted(self, client: Client, paths: list[Path], turn: int) -> str:
        """Hand in until it is known to be accepted; a server that was killed may have accepted it unheard."""
        while True:
            try:
                return client.batch(paths, idempotency_key=f"soak-{turn}").id
            except ServiceError as error:
                self.context.asked.refused[f"{self.name}: {type(error).__name__}"] += 1
                if self.context.over.wait(AGAIN):
                    raise


class ClusterBatchLoad(BatchLoad):
    """Hands in batches that are large enough for a Ray cluster, now and then."""

    name = "batch on Ray"
    pause = 60.0
    jobs = 60
