"""What happens to a server and to what it needs while a soak lasts: each harm begins, lasts, and is mended.

While it lasts, the server must say truthfully what cannot be had; once it is mended, the server must take
work again within RECOVERS_WITHIN.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from eval.soak.api_load import ANSWERS_WITHIN
from eval.soak.parts import RayHeadPart, RayNodePart, SmallDisk, SoakPart
from eval.soak.standin import ModelStandIn, Mood
from eval.soak.target import SoakTarget
from service.api.client import Client
from service.schemas.errors import (
    BusyError,
    DiskFullError,
    LateError,
    ServiceError,
    StoreError,
    WorkerLostError,
)

# Seconds within which work is taken again; Chroma is asked again after 30.
RECOVERS_WITHIN = 120.0
# How often a full disk is filled again, and the rows of a batch that is to find no room, some megabytes.
_TRIES = 3
_MANY = 100_000
_LOG = "Traceback (most recent call last):\nValueError: while something is away\n"


class Harm(ABC):
    """Something that happens; `lasts` is for how many seconds."""

    name: str
    lasts = 20.0

    @abstractmethod
    def strike(self) -> str:
        """Let it happen; gives what did."""

    @abstractmethod
    def mend(self) -> None:
        """Undo it."""

    def look(self, target: SoakTarget) -> Sequence[str]:
        """Say what the server tells wrongly while it lasts."""
        return answered(target)


def answered(target: SoakTarget, *expected: type[ServiceError]) -> list[str]:
    """Ask for an answer; gives what is wrong: an unexpected kind of refusal, or no word in time."""
    began = time.monotonic()
    try:
        with Client(target.url) as client:
            client.triage(_LOG, model=False)
    except ServiceError as error:
        if not isinstance(error, (*expected, *_EXCUSED)):
            return [f"a log was refused with {type(error).__name__}: {error}"]
    took = time.monotonic() - began
    return [f"a log was answered after {took:.0f} seconds"] if took > ANSWERS_WITHIN else []


# Workers are killed meanwhile, and other work of a machine may hold an answer up: both is said as it is.
_EXCUSED = (WorkerLostError, BusyError, LateError)


class PartAway(Harm):
    """A part that the server needs ends without a word, and is started again."""

    def __init__(self, part: SoakPart) -> None:
        self._part = part

    def strike(self) -> str:
        """Kill it."""
        self._part.kill()
        return self.name

    def mend(self) -> None:
        """Start it."""
        self._part.start()


class DatabaseAway(PartAway):
    """PostgreSQL is away."""

    name = "PostgreSQL away"

    def look(self, target: SoakTarget) -> Sequence[str]:
        """Look whether it refuses for its database, and is not ready."""
        told = answered(target, StoreError)
        return [*told, *(["the server is ready without its database"] if target.is_ready() else [])]


class VectorsAway(PartAway):
    """Chroma is away; vectors of the server's own answer meanwhile."""

    name = "Chroma away"


class DiskFull(Harm):
    """The disk of the server's home is full."""

    name = "disk full"

    def __init__(self, disk: SmallDisk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder

    def strike(self) -> str:
        """Fill it."""
        self._disk.fill()
        return self.name

    def mend(self) -> None:
        """Make room."""
        self._disk.clear()

    def look(self, target: SoakTarget) -> Sequence[str]:
        """Look whether it accepts no batch, and is not ready."""
        wrong = answered(target, DiskFullError)
        wrong += self._never(lambda: self._batch(target))
        return wrong + self._never(lambda: "the server is ready" if target.is_ready() else "")

    def _never(self, found: Callable[[], str]) -> list[str]:
        """Look again where something is found: what other work leaves makes room before the look."""
        for _ in range(_TRIES):
            self._disk.fill()
            if not (told := found()):
                return []
        return [told]

    def _batch(self, target: SoakTarget) -> str:
        path = self._folder / "no-room.log"
        path.write_text("".join(f"step {number} loss {number**0.5}\n" for number in range(_MANY)) + _LOG)
        try:
            with Client(target.url) as client:
                client.batch([path])
        except (DiskFullError, *_EXCUSED):
            return ""
        except ServiceError as error:
            return f"a batch was refused with {type(error).__name__}: {error}"
        return "a batch was accepted"


class ClockLeap(Harm):
    """The server's clock is set wrong for a while, by another span each time."""

    name = "clock leap"
    spans: tuple[timedelta, ...] = (
        timedelta(hours=3),
        timedelta(hours=-2),
        timedelta(days=400),
        timedelta(days=-40),
    )

    def __init__(self, file: Path) -> None:
        self._file = file
        self._next = 0

    def strike(self) -> str:
        """Set it wrong."""
        span = self.spans[self._next % len(self.spans)]
        self._next += 1
        self._set(span)
        return f"{self.name} of {span.total_seconds() / 3600:+g} hours"

    def mend(self) -> None:
        """Set it right."""
        self._set(timedelta())

    def _set(self, span: timedelta) -> None:
        # In one piece: the server reads it at any time.
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{span.total_seconds():.0f}\n", encoding="ascii")
        beside.replace(self._file)


class ModelMood(Harm):
    """The model's server is slow, fails or breaks off, in turn; the answer by rules stands."""

    name = "model"
    lasts = 60.0
    moods: tuple[Mood, ...] = ("late", "failing", "cut")

    def __init__(self, model: ModelStandIn) -> None:
        self._model = model
        self._next = 0

    def strike(self) -> str:
        """Put it into the next mood."""
        self._model.mood = self.moods[self._next % len(self.moods)]
        self._next += 1
        return f"{self.name} {self._model.mood}"

    def mend(self) -> None:
        """Let it answer again."""
        self._model.mood = "quick"

    def look(self, target: SoakTarget) -> Sequence[str]:
        """Look whether the answer is there, by rules, in time."""
        began = time.monotonic()
        try:
            with Client(target.url) as client:
                made = client.triage(_LOG, model=True)
        except _EXCUSED:
            return []
        except ServiceError as error:
            return [f"no answer without a model: {type(error).__name__}: {error}"]
        took = time.monotonic() - began
        wrong = [] if took < ANSWERS_WITHIN else [f"an answer took {took:.0f} seconds"]
        return wrong if made.engine.note else [*wrong, "an answer does not say that the model failed"]


class NodeLost(Harm):
    """A node of the Ray cluster is killed, and another one joins."""

    name = "Ray node lost"

    def __init__(self, head: RayHeadPart, nodes: list[RayNodePart], draws: random.Random) -> None:
        self._head = head
        self._nodes = nodes
        self._draws = draws

    def strike(self) -> str:
        """Kill one."""
        lost = self._nodes.pop(self._draws.randrange(len(self._nodes)))
        lost.__exit__(None, None, None)
        return self.name

    def mend(self) -> None:
        """Let another one join."""
        self._nodes.append(RayNodePart(self._head).__enter__())


@dataclass
class HarmSchedule:
    """Lets harms happen in turn, one at a time, and looks at the server meanwhile and afterwards."""

    target: SoakTarget
    harms: Sequence[Harm]
    # Seconds from the end of one to the beginning of the next.
    rest: float
    clock: Callable[[], float] = time.monotonic
    wrong: list[str] = field(default_factory=list)
    # What happened, and after how many seconds work was taken again.
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    # Whether nothing is amiss just now.
    is_quiet: bool = True
    _work: Iterator[bool] | None = None

    def step(self) -> None:
        """Do what is due; called again and again."""
        if self.harms:
            self._work = self._work or self._run()
            next(self._work)

    def finish(self) -> None:
        """Mend what is amiss."""
        while not self.is_quiet:
            self.step()
            time.sleep(0.2)

    def _run(self) -> Iterator[bool]:
        turn = 0
        while True:
            yield from self._waited(self.rest)
            harm = self.harms[turn % len(self.harms)]
            turn += 1
            self.is_quiet = False
            told = harm.strike()
            self.target.note(told)
            # Not at once: what is under way notices first.
            yield from self._waited(harm.lasts / 2)
            self._tell(told, *harm.look(self.target))
            yield from self._waited(harm.lasts / 2)
            harm.mend()
            yield from self._recovered(told)
            self.is_quiet = True

    def _recovered(self, told: str) -> Iterator[bool]:
        mended = self.clock()
        while not (self.target.is_ready() and not answered(self.target)):
            if self.clock() - mended > RECOVERS_WITHIN:
                self._tell(told, f"no work is taken {RECOVERS_WITHIN:g} seconds after its end")
                return
            yield True
        self.recoveries.append((told, self.clock() - mended))
        self.target.note(f"{told}: over")

    def _tell(self, told: str, *wrong: str) -> None:
        for row in wrong:
            self.wrong.append(f"{told}: {row}")
            self.target.note(f"did not hold: {told}: {row}")

    def _waited(self, seconds: float) -> Iterator[bool]:
        ends = self.clock() + seconds
        while self.clock() < ends:
            yield True
