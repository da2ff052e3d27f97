"""NVML is asked in a child process, and a child that hangs, breaks or lies costs no more than its time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from service.telemetry import nvml


def child(code: str) -> tuple[str, ...]:
    """Write a child that does something else than it should."""
    return (sys.executable, "-c", code)


def test_that_a_driver_that_hangs_costs_its_time_limit_and_no_more() -> None:
    """The child ignores the polite signal, as one inside the driver does."""
    began = time.monotonic()
    found = nvml.read(timeout_s=0.7, command=child("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"))
    assert time.monotonic() - began < 10
    assert "did not answer in 0.7 s" in (found.gpu_count.unavailable or "")
    assert found.gpus == ()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os._exit(3)", "exit code 3"), ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "exit code -11"),
        ("print('no json')", "no readable answer"), ("print('{\"gpus\": [{\"no\": 1}]}')", "no readable answer"), ("", "no readable answer"),
        ("print('x' * 3_000_000)", "no readable answer"),
    ],
)
def test_that_a_child_that_breaks_or_lies_gives_a_reason(code: str, reason: str) -> None:
    found = nvml.read(timeout_s=20, command=child(code))
    assert found.gpu_count.value is None
    assert reason in (found.gpu_count.unavailable or "")


def test_that_the_real_child_answers_with_cards_or_a_reason() -> None:
    found = nvml.read()
    assert (found.gpu_count.value is None) == bool(found.gpu_count.unavailable)
    assert len(found.gpus) == (found.gpu_count.value or 0)


def test_that_the_drivers_reasons_are_named() -> None:
    assert nvml._reasons(0x1 | 0x8 | 0x40) == ("hw-slowdown", "hw-thermal")
    assert nvml._reasons(0x1) == ()


NO_GPU = pytest.mark.skipif(not Path("/proc/driver/nvidia/version").exists(), reason="this machine has no NVIDIA driver")


@NO_GPU
@pytest.mark.gpu
def test_that_a_real_gpu_is_read() -> None:
    found = nvml.read()
    assert found.driver_error.value == "none"
    for card in found.gpus:
        assert card.state.value == "ok"
        assert (card.memory_total_gib.value or 0) >= (card.memory_used_gib.value or 0) > 0
        assert card.name.value
        assert card.ecc_uncorrected.known or card.ecc_uncorrected.unavailable


@NO_GPU
@pytest.mark.gpu
def test_that_a_watched_gpu_tells_its_xids_or_that_there_were_none() -> None:
    assert all(card.xids.value == () for card in nvml.read(listen_s=1.0).gpus)
