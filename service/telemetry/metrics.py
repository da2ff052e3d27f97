"""Which metric of which exporter is which reading.

Names are those of DCGM's exporter (`etc/default-counters.csv` of its releases and the older names of
`1.x-compatibility-metrics.csv`), node_exporter, cAdvisor, kube-state-metrics, Ray, vLLM and SGLang.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Part = Literal["gpus", "host", "cgroup", "disks", "nics", "nodes", "ray", "serving", "scheduler"]
# What of a range is kept; a page of the moment has one value, and no growth.
Over = Literal["last", "max", "min", "mean", "growth", "seen"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A reading and the metrics that give it.

    `names` are the spellings of one quantity over versions; where `summed`, all that are there count
    together. `shown_by` is a label whose value is the reading, of the series that is 1.
    """

    part: Part
    field: str
    names: tuple[str, ...]
    over: Over = "last"
    scale: float = 1.0
    summed: bool = False
    shown_by: str = ""


_MIB = 1 / 1024
_BYTES = 1 / (1 << 30)
_NANOSECONDS = 1e-9

_NVLINK = (
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_replay_error_count_total",
    "dcgm_nvlink_recovery_error_count_total",
    "dcgm_nvlink_flit_crc_error_count_total",
    "dcgm_nvlink_data_crc_error_count_total",
)
_DBE = ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "dcgm_ecc_dbe_volatile_total")
_SBE = ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "dcgm_ecc_sbe_volatile_total")
_REPLAYS = ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "dcgm_pcie_replay_counter")
_ROWS = ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",)
_ERRS = ("node_network_receive_errs_total", "node_network_transmit_errs_total")
_DROPS = ("node_network_receive_drop_total", "node_network_transmit_drop_total")

DCGM: tuple[Metric, ...] = (
    Metric("gpus", "memory_used_gib", ("DCGM_FI_DEV_FB_USED", "dcgm_fb_used"), "max", _MIB),
    Metric("gpus", "memory_total_gib", ("DCGM_FI_DEV_FB_TOTAL",), "last", _MIB),
    Metric("gpus", "utilisation", ("DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_utilization"), "mean"),
    Metric("gpus", "sm_clock_mhz", ("DCGM_FI_DEV_SM_CLOCK", "dcgm_sm_clock")),
    Metric("gpus", "sm_clock_max_mhz", ("DCGM_FI_DEV_MAX_SM_CLOCK",)),
    Metric("gpus", "temperature_c", ("DCGM_FI_DEV_GPU_TEMP", "dcgm_gpu_temp"), "max"),
    Metric("gpus", "power_w", ("DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage")),
    Metric(
        "gpus",
        "thermal_throttle_s_new",
        ("DCGM_FI_DEV_THERMAL_VIOLATION", "dcgm_thermal_violation"),
        "growth",
        _NANOSECONDS,
    ),
    Metric(
        "gpus",
        "power_throttle_s_new",
        ("DCGM_FI_DEV_POWER_VIOLATION", "dcgm_power_violation"),
        "growth",
        _NANOSECONDS,
    ),
    Metric("gpus", "ecc_uncorrected", _DBE),
    Metric("gpus", "ecc_uncorrected_new", _DBE, "growth"),
    Metric("gpus", "ecc_corrected_new", _SBE, "growth"),
    Metric("gpus", "remapped_uncorrected", _ROWS),
    Metric("gpus", "remapped_uncorrected_new", _ROWS, "growth"),
    Metric("gpus", "remap_failed", ("DCGM_FI_DEV_ROW_REMAP_FAILURE",), "max"),
    Metric("gpus", "remap_pending", ("DCGM_FI_DEV_ROW_REMAP_PENDING",), "max"),
    Metric("gpus", "retired_pending", ("DCGM_FI_DEV_RETIRED_PENDING", "dcgm_retired_pages_pending"), "max"),
    Metric("gpus", "pcie_replays", _REPLAYS),
    Metric("gpus", "pcie_replays_new", _REPLAYS, "growth"),
    Metric("gpus", "nvlink_errors", _NVLINK, summed=True),
    Metric("gpus", "nvlink_errors_new", _NVLINK, "growth", summed=True),
    Metric("gpus", "xids", ("DCGM_FI_DEV_XID_ERRORS", "dcgm_xid_errors"), "seen"),
)

MACHINE: tuple[Metric, ...] = (
    Metric("host", "memory_total_gib", ("node_memory_MemTotal_bytes",), "max", _BYTES),
    Metric("host", "memory_available_gib", ("node_memory_MemAvailable_bytes",), "min", _BYTES),
    Metric("host", "oom_kill", ("node_vmstat_oom_kill",), "max"),
    Metric("host", "oom_kill_new", ("node_vmstat_oom_kill",), "growth"),
    Metric("host", "files_open", ("node_filefd_allocated",), "max"),
    Metric("host", "files_max", ("node_filefd_maximum",), "min"),
    Metric("host", "boot_time", ("node_boot_time_seconds",), "max"),
    Metric("disks", "total_gib", ("node_filesystem_size_bytes",), "last", _BYTES),
    Metric("disks", "free_gib", ("node_filesystem_avail_bytes",), "min", _BYTES),
    Metric("disks", "inodes_total", ("node_filesystem_files",)),
    Metric("disks", "inodes_free", ("node_filesystem_files_free",), "min"),
    Metric("nics", "up", ("node_network_up",), "min"),
    Metric("nics", "errors", _ERRS, summed=True),
    Metric("nics", "errors_new", _ERRS, "growth", summed=True),
    Metric("nics", "drops", _DROPS, summed=True),
    Metric("nics", "drops_new", _DROPS, "growth", summed=True),
    Metric("nics", "link_downed", ("node_infiniband_link_downed_total",)),
    Metric("nics", "link_downed_new", ("node_infiniband_link_downed_total",), "growth"),
    Metric("nodes", "alive", ("up",), "min"),
)

CONTAINERS: tuple[Metric, ...] = (
    Metric("cgroup", "memory_max_gib", ("container_spec_memory_limit_bytes",), "last", _BYTES),
    Metric("cgroup", "memory_current_gib", ("container_memory_usage_bytes",), "last", _BYTES),
    Metric("cgroup", "memory_peak_gib", ("container_memory_max_usage_bytes",), "max", _BYTES),
    Metric("cgroup", "oom_kill", ("container_oom_events_total",), "max"),
    Metric("cgroup", "oom_kill_new", ("container_oom_events_total",), "growth"),
    Metric("cgroup", "max_events_new", ("container_memory_failcnt",), "growth"),
    Metric(
        "scheduler", "state", ("kube_pod_container_status_last_terminated_reason",), "max", shown_by="reason"
    ),
)

FRAMEWORKS: tuple[Metric, ...] = (
    Metric("ray", "memory_kills_new", ("ray_memory_manager_worker_eviction_total",), "growth"),
    Metric("ray", "object_store_total_gib", ("ray_object_store_capacity",), "last", _BYTES),
    Metric("ray", "object_store_used_gib", ("ray_object_store_used_memory",), "max", _BYTES),
    Metric(
        "serving",
        "cache_usage",
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
        "max",
    ),
    Metric("serving", "waiting", ("vllm:num_requests_waiting", "sglang:num_queue_reqs"), "max"),
    Metric("serving", "running", ("vllm:num_requests_running", "sglang:num_running_reqs"), "last"),
    Metric("serving", "preemptions_new", ("vllm:num_preemptions_total",), "growth"),
)

ALL: tuple[Metric, ...] = (*DCGM, *MACHINE, *CONTAINERS, *FRAMEWORKS)

# The labels that tell two things of a part apart, the first that is there of each group.
IDENTITY: Mapping[Part, tuple[tuple[str, ...], ...]] = {
    "gpus": (("UUID", "uuid"), ("hostname", "Hostname", "instance"), ("gpu",)),
    "disks": (("instance",), ("mountpoint",)),
    "nics": (("instance",), ("device",), ("port",)),
    "nodes": (("instance",),),
}
# Labels of interfaces and file systems that are no machine's own way to the outside.
INNER: Mapping[Part, tuple[str, str]] = {
    "nics": (
        "device",
        r"^(?:lo|veth|docker|br-|cali|flannel|cni|tunl|dummy|virbr|kube|nodelocaldns|vxlan|ifb)",
    ),
    "disks": ("fstype", r"^(?:overlay|squashfs|proc|sysfs|cgroup2?|devtmpfs|ramfs|autofs|nsfs|fuse\.lxcfs)$"),
}

# What DCGM writes for a field that holds nothing (dcgm_structs.h: blank 32-bit, 64-bit and floating values).
BLANK_FROM = (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 140737488355328.0)


def is_blank(name: str, value: float) -> bool:
    """Tell whether DCGM's value stands for no value."""
    if not name.upper().startswith("DCGM"):
        return False
    low, high, real = BLANK_FROM
    return low <= value <= low + 0xF or value >= high or real <= value <= real + 0xF


def identity(part: Part, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Give what names one thing of a part: a card, a file system, an interface.

    Empty where there is only one.
    """
    return tuple(
        next((labels[name] for name in group if labels.get(name)), "") for group in IDENTITY.get(part, ())
    )


def names() -> tuple[str, ...]:
    """Give every metric that is read, each once."""
    return tuple(dict.fromkeys(name for metric in ALL for name in metric.names))
