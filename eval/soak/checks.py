"""What must hold afterwards: of all that was accepted nothing lost, nothing twice; and nothing grows."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import fmean, linear_regression, median
from typing import NamedTuple

from eval.soak.load import SubmissionCounts
from eval.soak.target import Sample
from service.api.client import Client
from service.schemas.errors import ServiceError

# What a life's last quarter may hold beyond its second: one that is younger than this has not settled.
SETTLED_S = 180.0
GROWS_MB = 1.25
GROWS_FILES = 16
LATE = timedelta(seconds=15)
# Parts of a life of which each says by itself how much memory there was.
STRETCHES = 20


class MemoryTrend(NamedTuple):
    """MiB at the beginning and the end of so many minutes, MiB a minute, and its standard error."""

    minutes: float
    first: float
    last: float
    slope: float
    noise: float

    def told(self) -> str:
        """Say so in a sentence."""
        return (
            f"In the later half of its longest life ({self.minutes:.0f} minutes) the server went from"
            f" {self.first:.1f} to {self.last:.1f} MiB: {self.slope:+.3f} MiB a minute,"
            f" give or take {self.noise:.3f}."
        )


@dataclass
class SoakFindings:
    """What was found; `wrong` is empty where all held."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def check(url: str, asked: SubmissionCounts, samples: Sequence[Sample], patience: float) -> SoakFindings:
    """Look for everything that was accepted, and at what the processes held."""
    found = SoakFindings()
    found.wrong += [f"a batch was made twice: {pair}" for pair in asked.twice]
    with Client(url) as client:
        for batch, names in asked.batches.items():
            _check_batch(client, batch, names, patience, found)
        for triage in asked.triages:
            _check_triage(client, triage, found)
    found.wrong += growth(samples)
    return found


def _check_batch(client: Client, batch: str, names: set[str], patience: float, found: SoakFindings) -> None:
    try:
        record = client.wait(batch, timeout=patience)
        told = Counter(result.job.name for result in client.results(batch) if result.job)
    except ServiceError as error:
        found.wrong.append(f"batch {batch}: {type(error).__name__}")
        return
    found.counts.update({f"jobs {state}": count for state, count in record.counts.items()})
    if record.total != len(names) or len(told) != len(names) or set(told.values()) != {1}:
        found.wrong.append(
            f"batch {batch}: {len(names)} jobs handed in, {record.total} kept, {told.total()} told"
        )


def _check_triage(client: Client, triage: str, found: SoakFindings) -> None:
    try:
        record = client.record(triage)
        # One whose server was killed is given as over once its deadline has passed.
        while record.state == "running" and record.deadline > datetime.now(UTC) - LATE:
            time.sleep(1.0)
            record = client.record(triage)
    except ServiceError as error:
        found.wrong.append(f"triage {triage}: {type(error).__name__}")
        return
    found.counts[f"triages {record.state}"] += 1
    if record.state == "running":
        found.wrong.append(f"triage {triage} is said to be running")


def memory_trend(samples: Sequence[Sample]) -> MemoryTrend | None:
    """Give how the server's memory went over the later half of its longest life.

    A straight line through the means of stretches of it, since samples beside each other say the same. None
    where no life was long enough to settle.
    """
    lives = [[each for each in samples if each.life == life] for life in {each.life for each in samples}]
    longest = max(lives, key=lambda lived: lived[-1].at - lived[0].at, default=[])
    if not longest or longest[-1].at - longest[0].at < SETTLED_S:
        return None
    later = longest[len(longest) // 2 :]
    if len(later) < STRETCHES:
        return None
    width = len(later) // STRETCHES
    parts = [later[place : place + width] for place in range(0, len(later) - width + 1, width)]
    minutes = [fmean(each.at for each in part) / 60 for part in parts]
    memory = [fmean(each.server_mb for each in part) for part in parts]
    slope, start = linear_regression(minutes, memory)
    rests = [found - start - slope * at for at, found in zip(minutes, memory, strict=True)]
    spread = sum((at - fmean(minutes)) ** 2 for at in minutes)
    noise = math.sqrt(sum(rest * rest for rest in rests) / (len(parts) - 2) / spread)
    return MemoryTrend((later[-1].at - later[0].at) / 60, memory[0], memory[-1], slope, noise)


def growth(samples: Sequence[Sample]) -> list[str]:
    """Say what grew in a life of the server that was long enough to settle: memory, open files."""
    wrong = []
    for life in sorted({sample.life for sample in samples}):
        lived = [sample for sample in samples if sample.life == life]
        if lived[-1].at - lived[0].at < SETTLED_S:
            continue
        quarter = len(lived) // 4
        early, late = lived[quarter : 2 * quarter], lived[-quarter:]
        memory = [median(sample.server_mb for sample in part) for part in (early, late)]
        files = [median(sample.files for sample in part) for part in (early, late)]
        if memory[1] > GROWS_MB * memory[0]:
            wrong.append(f"life {life}: the server grew from {memory[0]:.0f} to {memory[1]:.0f} MiB")
        if files[1] > files[0] + GROWS_FILES:
            wrong.append(f"life {life}: from {files[0]:.0f} to {files[1]:.0f} open files")
    return wrong
