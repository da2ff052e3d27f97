"""One snapshot of a machine: a value, or not available and why, for every field.

A reading that is missing never counts as zero or as fine: what nobody measured says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from corpus.message import Message, MessageText, References, Translatable
from service.telemetry.errors import InvalidSnapshotError

T = TypeVar("T")

NOT_TAKEN = "readings.not-snapshot"
MAX_BYTES = 64 << 20
GIB = 1 << 30

Point = tuple[float, float]
KernelKind = Literal[
    "xid",
    "sxid",
    "oom-kill",
    "machine-check",
    "pcie-error",
    "gpu-lost",
    "nvlink",
    "io-error",
    "link-down",
    "hung-task",
    "segfault",
]


class SnapshotPart(BaseModel):
    """A part of a snapshot; immutable, unknown fields are errors."""

    # Most processes never see a snapshot: its models are built when one is first read or taken.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Reading(Translatable, SnapshotPart, Generic[T]):
    """A value, or the reason why there is none."""

    value: T | None = None
    unavailable: MessageText | None = None
    messages: References = Field(default={})

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.value is None) == (self.unavailable is None):
            raise ValueError("a reading has either a value or the reason why it is not available")
        return self

    @property
    def known(self) -> bool:
        """Tell whether there is a value."""
        return self.value is not None


def _field(says: str) -> Reading[T]:
    made: Reading[T] = Field(default_factory=lambda: unavailable(Message(NOT_TAKEN)), description=says)
    return made


class GpuProcess(SnapshotPart):
    """A process that holds memory of a GPU; `used_gib` is None where the driver does not tell."""

    pid: int
    name: str = ""
    used_gib: float | None = None


class Gpu(SnapshotPart):
    """One GPU. Counters end in `_new` where they are what came since the baseline, else they are totals."""

    id: str
    node: str = ""
    index: int | None = None
    name: Reading[str] = _field("The product's name.")
    pci: Reading[str] = _field("The bus id.")
    state: Reading[str] = _field("`ok`, `lost` (fell off the bus) or `reset-required`.")
    memory_total_gib: Reading[float] = _field("Memory of the card.")
    memory_used_gib: Reading[float] = _field("Memory in use; over a range the highest.")
    others_gib: Reading[float] = _field("Memory held by processes that are not the job's.")
    processes: Reading[tuple[GpuProcess, ...]] = _field("Who holds memory.")
    utilisation: Reading[float] = _field(
        "Share of time with a kernel running, in percent; over a range the mean of its last minutes."
    )
    sm_clock_mhz: Reading[float] = _field("Clock of the multiprocessors.")
    sm_clock_max_mhz: Reading[float] = _field("The highest clock that the card allows.")
    temperature_c: Reading[float] = _field("Temperature of the chip; over a range the highest.")
    power_w: Reading[float] = _field("Power drawn.")
    throttle: Reading[tuple[str, ...]] = _field("Why the clock is held down at the moment.")
    thermal_throttle_s_new: Reading[float] = _field("Seconds held down for heat.")
    power_throttle_s_new: Reading[float] = _field("Seconds held down for power.")
    ecc_uncorrected: Reading[int] = _field("Uncorrectable memory errors since the driver was loaded.")
    ecc_uncorrected_new: Reading[int] = _field("Uncorrectable memory errors since the baseline.")
    ecc_corrected_new: Reading[int] = _field("Corrected memory errors since the baseline.")
    remapped_uncorrected: Reading[int] = _field("Rows replaced for uncorrectable errors, in the card's life.")
    remapped_uncorrected_new: Reading[int] = _field(
        "Rows replaced for uncorrectable errors since the baseline."
    )
    remap_pending: Reading[bool] = _field("A row waits for a reset to be replaced.")
    remap_failed: Reading[bool] = _field("A row could not be replaced.")
    retired_pending: Reading[bool] = _field("A page waits for a reset to be retired (before Ampere).")
    pcie_replays: Reading[int] = _field("Resent packets on PCIe.")
    pcie_replays_new: Reading[int] = _field("Resent packets on PCIe since the baseline.")
    nvlink_errors: Reading[int] = _field("Replays, recoveries and checksum errors over all NVLinks.")
    nvlink_errors_new: Reading[int] = _field("The same since the baseline.")
    nvlink_down: Reading[int] = _field("NVLinks that are not active.")
    xids: Reading[tuple[int, ...]] = _field(
        "Xid numbers that the driver told while it was watched; DCGM keeps the last one only."
    )
    recovery_action: Reading[str] = _field("What the driver asks for: none, reset, reboot, drain.")


class Host(SnapshotPart):
    """The machine outside of any container."""

    name: str = ""
    boot_time: Reading[float] = _field("When it was booted, in seconds since the epoch.")
    utc_offset_s: Reading[float] = _field("What its local time is ahead of UTC.")
    memory_total_gib: Reading[float] = _field("Memory of the machine.")
    memory_available_gib: Reading[float] = _field(
        "Memory that can be had without swapping; over a range the lowest."
    )
    swap_used_gib: Reading[float] = _field("Swap in use.")
    oom_kill: Reading[int] = _field("Processes killed for memory since boot, over all control groups.")
    oom_kill_new: Reading[int] = _field("The same since the baseline.")
    shm_total_gib: Reading[float] = _field("Size of /dev/shm.")
    shm_used_gib: Reading[float] = _field("What lies in /dev/shm.")
    files_open: Reading[int] = _field("Open files of the machine.")
    files_max: Reading[int] = _field("How many there may be.")
    nofile_limit: Reading[int] = _field("How many files a process may open (ulimit -n).")
    nofile_used: Reading[int] = _field("The most files that one process of the user has open.")
    nproc_limit: Reading[int] = _field("How many processes and threads the user may have (ulimit -u).")
    nproc_used: Reading[int] = _field("How many the user has.")
    memlock_gib: Reading[float] = _field("Memory that a process may lock (ulimit -l).")
    driver_version: Reading[str] = _field("Version of the NVIDIA driver.")
    driver_error: Reading[str] = _field(
        "What the driver's library said when it could not be used, as a word of ours; `none` where it works."
    )
    gpu_count: Reading[int] = _field("GPUs that the driver shows.")
    gpu_lost_new: Reading[int] = _field("GPUs that the baseline had and the snapshot has not.")


class Cgroup(SnapshotPart):
    """The control group of the job; `memory.events` and `pids.events` count since the group was made."""

    path: str = ""
    memory_max_gib: Reading[float] = _field("memory.max: the limit.")
    memory_current_gib: Reading[float] = _field("memory.current: in use.")
    memory_peak_gib: Reading[float] = _field("memory.peak: the most that was in use.")
    oom_kill: Reading[int] = _field("memory.events oom_kill: processes killed for memory.")
    oom_kill_new: Reading[int] = _field("The same since the baseline.")
    max_events: Reading[int] = _field("memory.events max: how often the limit was hit.")
    max_events_new: Reading[int] = _field("The same since the baseline.")
    pids_max: Reading[int] = _field("pids.max: how many processes and threads there may be.")
    pids_current: Reading[int] = _field("pids.current: how many there are.")
    pids_max_events: Reading[int] = _field("pids.events max: how often one more was refused.")
    pids_max_events_new: Reading[int] = _field("The same since the baseline.")


class Disk(SnapshotPart):
    """A file system that the job may write to."""

    path: str
    total_gib: Reading[float] = _field("Size.")
    free_gib: Reading[float] = _field("What may still be written; over a range the lowest.")
    inodes_total: Reading[int] = _field("Inodes; zero where the file system counts none.")
    inodes_free: Reading[int] = _field("Inodes that are free.")


class Nic(SnapshotPart):
    """A network interface or a port of an InfiniBand or RoCE adapter."""

    name: str
    node: str = ""
    kind: Literal["ethernet", "infiniband"] = "ethernet"
    up: Reading[bool] = _field("It has a link.")
    link_downed: Reading[int] = _field("How often the link was lost.")
    link_downed_new: Reading[int] = _field("The same since the baseline.")
    errors: Reading[int] = _field("Packets in error, received and sent.")
    errors_new: Reading[int] = _field("The same since the baseline.")
    drops: Reading[int] = _field("Dropped packets.")
    drops_new: Reading[int] = _field("The same since the baseline.")


class KernelEvent(SnapshotPart):
    """A line of the kernel's log that speaks of a failure; `at` is in seconds since the epoch."""

    kind: KernelKind
    at: float | None = None
    code: int | None = None
    device: str = ""
    pid: int | None = None
    process: str = ""
    text: str = ""


class Kernel(SnapshotPart):
    """What the kernel's log says; `since` tells from when on it was read."""

    since: float | None = None
    events: Reading[tuple[KernelEvent, ...]] = _field("The lines that matter.")


class RayState(SnapshotPart):
    """A Ray cluster as its dashboard shows it."""

    nodes_dead: Reading[int] = _field("Nodes that died unexpectedly.")
    nodes_alive: Reading[int] = _field("Nodes that are alive.")
    memory_fraction: Reading[float] = _field("The highest share of memory in use over the nodes.")
    memory_kills_new: Reading[int] = _field("Workers that Ray's memory monitor ended since the baseline.")
    object_store_total_gib: Reading[float] = _field("Capacity of the fullest node's object store.")
    object_store_used_gib: Reading[float] = _field("What is used of it.")


class ClusterNode(SnapshotPart):
    """Another machine of the job, as far as a cluster or a monitoring system shows it."""

    name: str
    alive: Reading[bool] = _field("It answers.")
    why_dead: Reading[str] = _field("What the cluster says of its end.")
    memory_fraction: Reading[float] = _field("Share of its memory in use; over a range the highest.")


class EngineMetrics(SnapshotPart):
    """An inference engine's own numbers."""

    cache_usage: Reading[float] = _field("Share of the KV cache in use, 0 to 1; over a range the highest.")
    waiting: Reading[float] = _field("Requests that wait; over a range the most.")
    running: Reading[float] = _field("Requests that run.")
    preemptions_new: Reading[float] = _field("Requests that lost their place in the cache.")


class Scheduler(SnapshotPart):
    """What the scheduler says of how the job ended."""

    kind: Literal["slurm", "kubernetes", ""] = ""
    state: Reading[str] = _field("Slurm's job state or Kubernetes' reason, as it writes it.")
    exit_code: Reading[int] = _field("The exit code that it recorded.")


class Series(SnapshotPart):
    """How one reading went: points of (seconds since the epoch, value)."""

    name: str
    labels: dict[str, str] = {}
    points: tuple[Point, ...] = ()


class Snapshot(SnapshotPart):
    """All readings of one moment, or of the range that ends at it.

    `covers_until` is the last moment that the readings speak of; `baseline_at` when what `_new` fields count
    from was taken.
    """

    schema_: Literal["whycrash.snapshot/1"] = Field(default="whycrash.snapshot/1", alias="schema")
    taken_at: datetime
    baseline_at: datetime | None = None
    sources: tuple[str, ...] = ()
    host: Host = Field(default_factory=Host)
    cgroup: Cgroup = Field(default_factory=Cgroup)
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    kernel: Kernel = Field(default_factory=Kernel)
    nodes: tuple[ClusterNode, ...] = ()
    ray: RayState = Field(default_factory=RayState)
    serving: EngineMetrics = Field(default_factory=EngineMetrics)
    scheduler: Scheduler = Field(default_factory=Scheduler)
    history: tuple[Series, ...] = ()

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def __reduce__(self) -> tuple[Callable[[str], Snapshot], tuple[str]]:
        """Go to another process as JSON: a class such as `Reading[float]` is found by no name."""
        return Snapshot.model_validate_json, (self.model_dump_json(),)

    @model_validator(mode="after")
    def _has_zone(self) -> Self:
        for when in (self.taken_at, self.baseline_at):
            if when is not None and when.tzinfo is None:
                raise ValueError("a snapshot's times name their zone")
        return self

    def to_json(self, indent: int | None = 2) -> str:
        """Give the snapshot as JSON, every field with its value or its reason."""
        return self.model_dump_json(by_alias=True, indent=indent)


def unavailable(reason: str) -> Reading[T]:
    """Make a reading that is not there."""
    return Reading(unavailable=reason)


def known(value: T) -> Reading[T]:
    """Make a reading that is there."""
    return Reading(value=value)


def gib(number: float) -> float:
    """Turn bytes into GiB."""
    return round(number / GIB, 4)


def parse_snapshot(text: str | bytes, where: str) -> Snapshot:
    """Read a snapshot's JSON; raises InvalidSnapshotError with the first field that is wrong."""
    try:
        return Snapshot.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InvalidSnapshotError(
            Message("errors.take-whycrash-snapshot-out", where=where, field=field, msg=first["msg"])
        ) from error


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot's file; raises InvalidSnapshotError where it cannot be read or is none."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidSnapshotError(
            Message("errors.cannot-read", file=path, reason=error.strerror or error)
        ) from error
    if len(raw) > MAX_BYTES:
        raise InvalidSnapshotError(
            Message("errors.larger-mib-no-snapshot", path=path, max_bytes=MAX_BYTES >> 20)
        )
    return parse_snapshot(raw, str(path))
