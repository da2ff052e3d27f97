"""NVML is asked in a child process, and a child that hangs, breaks or lies costs no more than its time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.telemetry import nvml
from service.telemetry.snapshot import known
from tests.processes import children
from tests.tables import each_row
from tests.waiting import PATIENCE, until


def child(code: str) -> tuple[str, ...]:
    """Write a child that does something else than it should."""
    return (sys.executable, "-c", code)


def test_that_a_driver_that_hangs_costs_its_time_limit_and_no_more() -> None:
    """The child ignores the polite signal, as one inside the driver does."""
    began = time.monotonic()
    found = nvml.read_gpus(
        timeout_s=0.7,
        command=child("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"),
    )
    assert time.monotonic() - began < PATIENCE  # the child sleeps twice as long
    assert "did not answer in 0.7 s" in (found.gpu_count.unavailable or "")
    assert found.gpus == ()


@each_row(
    ("code", "reason"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "exit code -11"),
        ("print('no json')", "no readable answer"),
        ('print(\'{"gpus": [{"no": 1}]}\')', "no readable answer"),
        ("", "no readable answer"),
        ("print('x' * 3_000_000)", "no readable answer"),
    ],
)
def test_that_a_child_that_breaks_or_lies_gives_a_reason(code: str, reason: str) -> None:
    found = nvml.read_gpus(timeout_s=20, command=child(code))
    assert found.gpu_count.value is None
    assert reason in (found.gpu_count.unavailable or "")


def which(_listen_s: float) -> nvml.GpuList:
    """Answer with who answers."""
    return nvml.GpuList(driver_version=known(str(os.getpid())))


def hanging(listen_s: float) -> nvml.GpuList:
    """Hang as a call into a broken driver does, where asked to."""
    if listen_s:
        time.sleep(600)
    return which(listen_s)


def ending(listen_s: float) -> nvml.GpuList:
    """End as a library does that breaks, where asked to."""
    if listen_s:
        os._exit(3)
    return which(listen_s)


def test_that_one_child_stays_for_many_samples() -> None:
    """A process for each sample would cost more than one in a hundred of a core."""
    with nvml.PersistentSampler(which) as cards:
        told = {cards.read().driver_version.value for _ in range(5)}
    assert len(told) == 1
    assert told != {str(os.getpid())}
    (child_id,) = map(int, told)
    until(lambda: child_id not in children(os.getpid()), "the child is gone")


@each_row(
    ("ask", "seconds", "reason"), [(hanging, 0.5, "did not answer in 0.5"), (ending, PATIENCE, "exit code 3")]
)
def test_that_a_child_that_hangs_or_ends_gives_way_to_another(
    ask: Callable[[float], nvml.GpuList], seconds: float, reason: str
) -> None:
    with nvml.PersistentSampler(ask) as cards:
        first = cards.read().driver_version.value
        # However long the machine took to send the question: half a second and some hundredths.
        assert reason in (cards.read(0.01, seconds).driver_version.unavailable or "")
        second = cards.read().driver_version.value
    assert first
    assert second
    assert first != second


def test_that_a_child_that_stays_tells_the_same_as_one_that_does_not() -> None:
    with nvml.PersistentSampler() as cards:
        assert cards.read() == nvml.read_gpus()


def test_that_the_real_child_answers_with_cards_or_a_reason() -> None:
    found = nvml.read_gpus()
    assert (found.gpu_count.value is None) == bool(found.gpu_count.unavailable)
    assert len(found.gpus) == (found.gpu_count.value or 0)


def test_that_the_drivers_reasons_are_named() -> None:
    assert nvml.throttle_reasons(0x1 | 0x8 | 0x40) == ("hw-slowdown", "hw-thermal")
    assert nvml.throttle_reasons(0x1) == ()


NO_GPU = pytest.mark.skipif(
    not Path("/proc/driver/nvidia/version").exists(), reason="this machine has no NVIDIA driver"
)


@NO_GPU
@pytest.mark.gpu
def test_that_a_real_gpu_is_read() -> None:
    found = nvml.read_gpus()
    assert found.driver_error.value == "none"
    for card in found.gpus:
        assert card.state.value == "ok"
        assert (card.memory_total_gib.value or 0) >= (card.memory_used_gib.value or 0) > 0
        assert card.name.value
        assert card.ecc_uncorrected.known or card.ecc_uncorrected.unavailable


@NO_GPU
@pytest.mark.gpu
def test_that_a_watched_gpu_tells_its_xids_or_that_there_were_none() -> None:
    assert all(card.xids.value == () for card in nvml.read_gpus(listen_s=1.0).gpus)


class NVMLError(Exception):
    """The library's error, as nvidia-ml-py raises it."""


class Driver:
    """Stand in for nvidia-ml-py over a driver of which only some calls are supported."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0, 1, 0

    def __init__(self, **told: object) -> None:
        self._told: dict[str, object] = {"HandleByIndex": "card", "UUID": "GPU-7", **told}

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object) -> object:
            value = self._told.get(name.removeprefix("nvmlDeviceGet"), NVMLError("Not Supported"))
            if isinstance(value, Exception):
                raise value
            return value(*arguments[1:]) if callable(value) else value

        return call


def fields(number: list[int]) -> list[SimpleNamespace]:
    """Give numbered fields: a 32-bit one for the recovery action, 64-bit ones for the counters of NVLink."""
    action = number[0] == nvml.RECOVERY_FIELD
    value = SimpleNamespace(uiVal=2, ullVal=(99 << 32) | 5) if action else SimpleNamespace(uiVal=0, ullVal=5)
    return [SimpleNamespace(nvmlReturn=0, valueType=1 if action else 3, value=value)]


def test_that_a_cards_calls_become_readings() -> None:
    driver = Driver(
        MemoryInfo=SimpleNamespace(total=80 << 30, used=20 << 30),
        RemappedRows=(0, 3, 1, 0),
        TotalEccErrors=2,
        FieldValues=fields,
        ComputeRunningProcesses=[
            SimpleNamespace(pid=5, usedGpuMemory=1 << 30),
            SimpleNamespace(pid=6, usedGpuMemory=None),
        ],
        CurrentClocksThrottleReasons=0x40,
        NvLinkState=lambda link: 1 if link else 0,
        PowerUsage=312_500,
    )
    card = nvml.read_gpu(driver, 0, {0: [79, 79]})
    assert (card.id, card.state.value, card.memory_used_gib.value, card.ecc_uncorrected.value) == (
        "GPU-7",
        "ok",
        20.0,
        2,
    )
    assert (card.remapped_uncorrected.value, card.remap_pending.value, card.remap_failed.value) == (
        3,
        True,
        False,
    )
    assert (card.throttle.value, card.nvlink_down.value, card.nvlink_errors.value, card.power_w.value) == (
        ("hw-thermal",),
        1,
        20,
        312.5,
    )
    assert (card.recovery_action.value, card.xids.value) == ("reboot", (79,))
    assert [item.used_gib for item in card.processes.value or ()] == [1.0, None]
    assert card.utilisation.unavailable == "NVML: Not Supported"


@each_row(
    ("error", "state"),
    [("GPU is lost", "lost"), ("GPU requires reset", "reset-required"), ("Unknown Error", None)],
)
def test_that_a_card_that_is_gone_says_so(error: str, state: str | None) -> None:
    card = nvml.read_gpu(Driver(MemoryInfo=NVMLError(error)), 0, None)
    assert card.state.value == state
    assert "only while it is watched" in (card.xids.unavailable or "")
