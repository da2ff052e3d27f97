"""Time commands alternately, so that load of the machine affects all of them alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Wall seconds of each run of one command, and the greatest peak memory of a run, MiB."""

    name: str
    seconds: tuple[float, ...]
    peak_mib: float

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return statistics.median(self.seconds)


def time_alternating(
    commands: Mapping[str, Sequence[str]], runs: int, environment: Mapping[str, str] | None = None
) -> list[Timing]:
    """Run the commands alternately (A B A B ...), the first round uncounted, and give their times."""
    spent: dict[str, list[float]] = {name: [] for name in commands}
    peaks: dict[str, float] = dict.fromkeys(commands, 0.0)
    timed = [
        (name, *_once(command, environment)) for _ in range(runs + 1) for name, command in commands.items()
    ]
    for name, seconds, peak in timed[len(commands) :]:
        spent[name].append(seconds)
        peaks[name] = max(peaks[name], peak)
    return [Timing(name, tuple(values), peaks[name]) for name, values in spent.items()]


def _once(command: Sequence[str], environment: Mapping[str, str] | None) -> tuple[float, float]:
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return time.perf_counter() - started, (usage.ru_maxrss / 1024)
