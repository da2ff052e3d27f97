"""NVML's readings of this machine's GPUs, out of a child process: a broken driver can hang every call.

`python -m service.telemetry.nvml [LISTEN_S]` is the child; it prints one JSON object.
https://docs.nvidia.com/deploy/nvml-api/
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from types import TracebackType
from typing import Any, Self

from pydantic import Field, TypeAdapter, ValidationError

from corpus.message import Message
from service.telemetry.snapshot import Gpu, GpuProcess, Reading, SnapshotPart, gib, known, unavailable

TIMEOUT_S = 15.0
# -P: the folder of a log is nobody's to import from.
COMMAND = (sys.executable, "-P", "-m", "service.telemetry.nvml")
MAX_LINKS = 18
# NVML's code of an error -> our word for it in `driver_error` and `state`.
WORDS = {
    9: "driver-not-loaded",
    12: "library-not-found",
    15: "lost",
    16: "reset-required",
    18: "version-mismatch",
}
RECOVERY = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain-p2p",
    4: "drain-and-reset",
    5: "recover-imex",
    6: "bus-reset",
    7: "reboot",
}
# nvml.h: why the clock is held down; idle and chosen clocks are no fault.
THROTTLE = {0x4: "power-cap", 0x8: "hw-slowdown", 0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "power-brake"}
# nvml.h: NVML_FI_DEV_NVLINK_{CRC_FLIT,CRC_DATA,REPLAY,RECOVERY}_ERROR_COUNT_TOTAL.
NVLINK_COUNTERS = (38, 45, 52, 59)
RECOVERY_FIELD = 230


_NOT_ASKED: Any = Field(default_factory=lambda: unavailable(Message("readings.nvml-not-asked")))


class GpuList(SnapshotPart):
    """What the driver shows: the cards, and where it cannot be asked, why."""

    gpus: tuple[Gpu, ...] = ()
    driver_version: Reading[str] = _NOT_ASKED
    driver_error: Reading[str] = _NOT_ASKED
    gpu_count: Reading[int] = _NOT_ASKED


def read_gpus(
    listen_s: float = 0.0, timeout_s: float = TIMEOUT_S, command: Sequence[str] = COMMAND
) -> GpuList:
    """Ask the child; where it does not answer in time, or not sensibly, everything is not available.

    With `listen_s` it waits so long for Xid events, which NVML tells only while it is listened to.
    """
    out, why = _run_child([*command, f"{listen_s:g}"], timeout_s + listen_s)
    return _no_gpus(why) if why else _read(out)


class PersistentSampler:
    """A child that stays for many samples.

    One that hangs or dies is let go, and the next sample begins another.

    It is forked: loading Python and the driver's library for each sample costs a hundred times what the
    sample does.
    """

    def __init__(self, ask: Callable[[float], GpuList] | None = None) -> None:
        self._ask = ask or collect
        self._child: ForkProcess | None = None
        self._pipe: Connection | None = None

    def read(self, listen_s: float = 0.0, timeout_s: float = TIMEOUT_S) -> GpuList:
        """Ask the child, as the function `read` does."""
        pipe = self._pipe or self._begun()
        try:
            pipe.send(listen_s)
            if pipe.poll(timeout_s + listen_s):
                return _read(pipe.recv_bytes())
            why = f"NVML did not answer in {timeout_s + listen_s:g} s; the driver may hang"
        except (EOFError, OSError):
            code = None
            if self._child is not None:
                self._child.join(timeout=1.0)
                code = self._child.exitcode
            why = f"NVML's child process ended with exit code {code}"
        self.close()
        return _no_gpus(why)

    def _begun(self) -> Connection:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(
            target=_serve_requests, args=(theirs, self._pipe, self._ask), daemon=True
        )
        self._child.start()
        theirs.close()
        return self._pipe

    def close(self) -> None:
        """Let go of the child."""
        if self._pipe is not None:
            self._pipe.close()
        if self._child is not None:
            # One that hangs inside the driver cannot be ended: waiting for it would hang us too.
            self._child.kill()
            self._child.join(timeout=1.0)
        self._pipe = self._child = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve_requests(pipe: Connection, parents: Connection, ask: Callable[[float], GpuList]) -> None:
    """Be the child that stays: answer until the parent is gone."""
    # Held open here too, the parent's end would never be at its end.
    parents.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(ask(pipe.recv()).model_dump_json().encode())


def _read(out: bytes) -> GpuList:
    try:
        return TypeAdapter(GpuList).validate_json(out)
    except ValidationError:
        return _no_gpus("NVML's child process gave no readable answer")


def _no_gpus(why: str, word: str = "") -> GpuList:
    return GpuList(
        driver_version=unavailable(why),
        driver_error=known(word) if word else unavailable(why),
        gpu_count=unavailable(why),
    )


def _run_child(command: Sequence[str], timeout_s: float) -> tuple[bytes, str]:
    child = subprocess.Popen(  # noqa: S603 - our own module
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        out, _ = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        # One that hangs inside the driver cannot be ended: waiting for it would hang us too.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=1.0)
        if child.stdout:
            child.stdout.close()
        return b"", f"NVML did not answer in {timeout_s:g} s; the driver may hang"
    return (
        (out, "")
        if child.returncode == 0
        else (b"", f"NVML's child process ended with exit code {child.returncode}")
    )


@dataclass(frozen=True, slots=True)
class _Card:
    """A card in the child: the library, the card's handle, and its readings."""

    library: Any
    handle: Any

    def tried(self, read: Callable[[], Any]) -> Reading[Any]:
        """Make a reading of a call; what the card does not support, or the driver refuses, is the reason."""
        try:
            value = read()
        except (self.library.NVMLError, OSError, ValueError, AttributeError) as error:
            return unavailable(f"NVML: {error}")
        return known(value) if value is not None else unavailable("NVML: no value")

    def call(self, name: str, *arguments: Any) -> Reading[Any]:
        """Call one of the library's functions on the card."""
        return self.tried(lambda: getattr(self.library, name)(self.handle, *arguments))

    def field(self, number: int) -> int:
        """Give one of the numbered fields; raises ValueError where the card has it not."""
        told = self.library.nvmlDeviceGetFieldValues(self.handle, [number])[0]
        if told.nvmlReturn != 0:
            raise ValueError(f"field {number} is not supported")
        # The type tells which member of the union holds the number; the integers share their low bytes.
        return int(told.value.uiVal if told.valueType == 1 else told.value.ullVal)


def collect(listen_s: float) -> GpuList:
    """Read all cards; the child's own work."""
    try:
        import pynvml  # the one place that may hang, and not there on machines without it
    except ImportError:
        return _no_gpus("the package nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _no_gpus(f"NVML: {error}", WORDS.get(getattr(error, "value", 0), "failed"))
    xids = _xids(pynvml, listen_s) if listen_s > 0 else None
    count = int(pynvml.nvmlDeviceGetCount())
    cards = tuple(read_gpu(pynvml, number, xids) for number in range(count))
    driver = pynvml.nvmlSystemGetDriverVersion()
    return GpuList(
        gpus=cards, driver_version=known(_text(driver)), driver_error=known("none"), gpu_count=known(count)
    )


def read_gpu(library: Any, number: int, xids: dict[int, list[int]] | None) -> Gpu:
    """Read one card; `xids` are those of the kernel's log by the card's number, None where it was unread."""
    try:
        handle = library.nvmlDeviceGetHandleByIndex(number)
    except library.NVMLError as error:
        word = WORDS.get(getattr(error, "value", 0), "")
        return Gpu(id=str(number), index=number, state=known(word) if word else unavailable(f"NVML: {error}"))
    card = _Card(library, handle)
    uuid = card.call("nvmlDeviceGetUUID")
    memory = card.call("nvmlDeviceGetMemoryInfo")
    heard = (
        unavailable("NVML tells Xid events only while it is watched; see the kernel's log")
        if xids is None
        else known(tuple(dict.fromkeys(xids.get(number, ()))))
    )
    return Gpu.model_validate(
        {
            "id": str(uuid.value or number),
            "index": number,
            "name": card.call("nvmlDeviceGetName"),
            "pci": card.tried(lambda: _text(library.nvmlDeviceGetPciInfo(handle).busId)),
            "state": _state(uuid, memory),
            **_memory(memory),
            "processes": card.tried(lambda: _processes(card)),
            **_load(card),
            **_errors(card),
            **_links(card),
            "xids": heard,
            "recovery_action": card.tried(lambda: RECOVERY.get(card.field(RECOVERY_FIELD), "unknown")),
        }
    )


def _state(*asked: Reading[Any]) -> Reading[str]:
    """Tell whether the card answers; a lost one says so to any call."""
    for reading in asked:
        for word, text in (("lost", "lost"), ("reset-required", "reset")):
            if reading.unavailable and text in reading.unavailable.lower():
                return known(word)
    return known("ok") if all(reading.known for reading in asked) else unavailable(str(asked[0].unavailable))


def _text(told: object) -> str:
    """Give a name of the library's, which older releases give as bytes."""
    return told.decode() if isinstance(told, bytes) else str(told)


def _memory(memory: Reading[Any]) -> dict[str, Reading[Any]]:
    if memory.value is None:
        return dict.fromkeys(("memory_total_gib", "memory_used_gib"), unavailable(str(memory.unavailable)))
    return {
        "memory_total_gib": known(gib(memory.value.total)),
        "memory_used_gib": known(gib(memory.value.used)),
    }


def _processes(card: _Card) -> tuple[GpuProcess, ...]:
    found = card.library.nvmlDeviceGetComputeRunningProcesses(card.handle)
    return tuple(
        GpuProcess(pid=item.pid, used_gib=None if item.usedGpuMemory is None else gib(item.usedGpuMemory))
        for item in found
    )


def _load(card: _Card) -> dict[str, Reading[Any]]:
    library = card.library
    return {
        "utilisation": card.tried(lambda: float(library.nvmlDeviceGetUtilizationRates(card.handle).gpu)),
        "sm_clock_mhz": card.tried(
            lambda: float(library.nvmlDeviceGetClockInfo(card.handle, library.NVML_CLOCK_SM))
        ),
        "sm_clock_max_mhz": card.tried(
            lambda: float(library.nvmlDeviceGetMaxClockInfo(card.handle, library.NVML_CLOCK_SM))
        ),
        "temperature_c": card.tried(
            lambda: float(library.nvmlDeviceGetTemperature(card.handle, library.NVML_TEMPERATURE_GPU))
        ),
        "power_w": card.tried(lambda: library.nvmlDeviceGetPowerUsage(card.handle) / 1000),
        "throttle": card.tried(
            lambda: throttle_reasons(int(library.nvmlDeviceGetCurrentClocksThrottleReasons(card.handle)))
        ),
    }


def throttle_reasons(mask: int) -> tuple[str, ...]:
    """Name why a card is slowed down, from NVML's bit mask."""
    return tuple(word for bit, word in THROTTLE.items() if mask & bit)


def _errors(card: _Card) -> dict[str, Reading[Any]]:
    library = card.library
    rows = card.call("nvmlDeviceGetRemappedRows")
    since_load = (library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC)
    return {
        "ecc_uncorrected": card.tried(
            lambda: int(library.nvmlDeviceGetTotalEccErrors(card.handle, *since_load))
        ),
        "remapped_uncorrected": _row(rows, 1, int),
        "remap_pending": _row(rows, 2, bool),
        "remap_failed": _row(rows, 3, bool),
        "retired_pending": card.tried(
            lambda: bool(library.nvmlDeviceGetRetiredPagesPendingStatus(card.handle))
        ),
        "pcie_replays": card.tried(lambda: int(library.nvmlDeviceGetPcieReplayCounter(card.handle))),
    }


def _row(rows: Reading[Any], place: int, shape: Callable[[Any], Any]) -> Reading[Any]:
    return unavailable(str(rows.unavailable)) if rows.value is None else known(shape(rows.value[place]))


def _links(card: _Card) -> dict[str, Reading[Any]]:
    states: list[int] = []
    for link in range(MAX_LINKS):
        state = card.call("nvmlDeviceGetNvLinkState", link)
        if state.value is None:
            break
        states.append(int(state.value))
    return {
        "nvlink_errors": card.tried(lambda: sum(card.field(number) for number in NVLINK_COUNTERS)),
        "nvlink_down": known(states.count(0)) if states else unavailable("NVML: the card has no NVLink"),
    }


def _xids(library: Any, listen_s: float) -> dict[int, list[int]] | None:
    """Listen for Xid events of all cards; None where the driver does not tell them."""
    try:
        events = library.nvmlEventSetCreate()
        for number in range(library.nvmlDeviceGetCount()):
            library.nvmlDeviceRegisterEvents(
                library.nvmlDeviceGetHandleByIndex(number), library.nvmlEventTypeXidCriticalError, events
            )
    except library.NVMLError:
        return None
    found: dict[int, list[int]] = {}
    until = time.monotonic() + listen_s
    while (left := until - time.monotonic()) > 0:
        try:
            told = library.nvmlEventSetWait(events, int(1000 * left) or 1)
            found.setdefault(int(library.nvmlDeviceGetIndex(told.device)), []).append(int(told.eventData))
        except library.NVMLError:  # its time-out is one too; a card that is gone would fail at once, for ever
            time.sleep(0.05)
    # A child that stays would otherwise hold one more with each sample.
    with contextlib.suppress(library.NVMLError, AttributeError):
        library.nvmlEventSetFree(events)
    return found


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(collect(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0).model_dump(mode="json"))
    )
