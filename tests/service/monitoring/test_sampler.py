"""Sampling: what is started beside a job is gone with it, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service.monitoring.sampler import TelemetrySampler
from tests.processes import children, command
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent.parent.parent
KILLED = """
import time
from service.monitoring.sampler import TelemetrySampler
with TelemetrySampler(1, 0.0):
    print("up", flush=True)
    time.sleep(60)
"""


def samplers(parent: int) -> list[int]:
    """Give the samplers that a process has started, by its threads; one that waits to be reaped is none."""
    return [number for number in children(parent) if runs(number) and b"snapshot" in command(number)]


def runs(process: int) -> bool:
    """Tell whether a process runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(holds: Callable[[], object]) -> bool:
    """Wait until something holds; tells whether it came to that."""
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(holds())


@pytest.mark.long
def test_that_a_job_that_ends_while_sampling_begins_leaves_no_sampler() -> None:
    for number in range(20):
        with TelemetrySampler(5, 0.0):
            time.sleep(number * 0.0002)
    assert until(lambda: samplers(os.getpid()) == [])


def test_that_the_sampler_goes_with_a_run_that_is_killed() -> None:
    beside = subprocess.Popen([sys.executable, "-c", KILLED], cwd=ROOT, stdout=subprocess.PIPE)
    assert beside.stdout is not None
    beside.stdout.readline()
    assert until(lambda: samplers(beside.pid))
    (sampler,) = samplers(beside.pid)
    beside.kill()
    beside.wait()
    beside.stdout.close()
    assert until(lambda: not runs(sampler))
