"""The table of rules is whole, and each rule fires on what it speaks of and not where nothing was
measured.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from service.telemetry import rules
from service.telemetry.conditions import SnapshotContext
from service.telemetry.rules import TelemetryRule, TelemetryRules
from service.telemetry.snapshot import (
    Cgroup,
    ClusterNode,
    Disk,
    EngineMetrics,
    Gpu,
    Host,
    Kernel,
    KernelEvent,
    Nic,
    RayState,
    Scheduler,
    Snapshot,
    known,
)
from tests.factories import whole_corpus
from tests.service.telemetry.makers import CRASH, course, kernel, snapshot, xid
from tests.tables import each_row

TABLE = rules.load_rules()
RISE, LEVEL = [100.0 + 30 * place for place in range(24)], [500.0] * 24


def event(kind: Any) -> Kernel:
    """Make a kernel's log with one line of a kind."""
    return kernel(KernelEvent(kind=kind, at=CRASH.timestamp() - 60, text=f"a line of {kind}"))


def cards(count: int = 2, **fields: Any) -> dict[str, Any]:
    """Make cards; a list gives a field's value on each."""
    made = [
        {name: known(value[place] if isinstance(value, list) else value) for name, value in fields.items()}
        for place in range(count)
    ]
    return {"gpus": tuple(Gpu(id=str(place), **row) for place, row in enumerate(made))}


def host(**fields: Any) -> dict[str, Any]:
    """Make a machine's readings."""
    return {"host": Host(**{name: known(value) for name, value in fields.items()})}


def group(**fields: Any) -> dict[str, Any]:
    """Make a control group's readings."""
    return {"cgroup": Cgroup(**{name: known(value) for name, value in fields.items()})}


def ray(**fields: Any) -> dict[str, Any]:
    """Make Ray's readings."""
    return {"ray": RayState(**{name: known(value) for name, value in fields.items()})}


def nics(**fields: Any) -> dict[str, Any]:
    """Make a port's readings."""
    return {"nics": (Nic(name="mlx5_0:1", **{name: known(value) for name, value in fields.items()}),)}


def disk(**fields: Any) -> dict[str, Any]:
    """Make a file system's readings; roomy where nothing else is said."""
    made = {"free_gib": 50.0, "total_gib": 100.0, "inodes_free": 500_000, "inodes_total": 1_000_000} | fields
    return {"disks": (Disk(path="/data", **{name: known(value) for name, value in made.items()}),)}


def ended(state: str) -> dict[str, Any]:
    """Make what a scheduler recorded."""
    return {"scheduler": Scheduler(state=known(state))}


def serving(**fields: float) -> dict[str, Any]:
    """Make an engine's readings."""
    return {"serving": EngineMetrics(**{name: known(value) for name, value in fields.items()})}


def history(name: str, values: list[float]) -> dict[str, Any]:
    """Make a course up to the crash."""
    return {"history": (course(name, *values),)}


# For each rule: readings on which it fires, and readings, measured too, on which it does not.
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cgroup-oom-kill": (group(oom_kill_new=1), group(oom_kill_new=0)),
    "kernel-oom-kill": ({"kernel": event("oom-kill")}, {"kernel": event("io-error")}),
    "machine-oom-kill": (host(oom_kill_new=2), host(oom_kill_new=0)),
    "scheduler-out-of-memory": (ended("OUT_OF_MEMORY"), ended("FAILED")),
    "oom-kill-ever": (group(oom_kill=1), group(oom_kill=0, oom_kill_new=0) | {"kernel": kernel()}),
    "memory-peak-at-limit": (
        group(memory_peak_gib=100.0, memory_max_gib=100.0),
        group(memory_peak_gib=1.0, memory_max_gib=100.0, max_events_new=0),
    ),
    "memory-ran-out": (
        history("host.memory_available_gib", [9.0, 2.0]) | host(memory_total_gib=100.0),
        history("host.memory_available_gib", [50.0]) | host(memory_total_gib=100.0),
    ),
    "no-cgroup-oom-kill": (group(oom_kill_new=0), group(oom_kill_new=1)),
    "no-machine-oom-kill": (host(oom_kill_new=0), host(oom_kill_new=1)),
    "memory-never-near-limit": (
        group(memory_peak_gib=10.0, memory_max_gib=100.0),
        group(memory_peak_gib=90.0, memory_max_gib=100.0),
    ),
    "memory-always-there": (
        history("host.memory_available_gib", [50.0]) | host(memory_total_gib=100.0),
        history("host.memory_available_gib", [5.0]) | host(memory_total_gib=100.0),
    ),
    "memory-grew-to-a-kill": (
        history("cgroup.memory_current_gib", RISE) | group(oom_kill_new=1),
        history("cgroup.memory_current_gib", RISE)
        | group(oom_kill_new=0)
        | host(oom_kill_new=0)
        | {"kernel": kernel()}
        | ended("FAILED"),
    ),
    "memory-grew": (
        history("cgroup.memory_current_gib", RISE),
        {
            "history": (
                course("cgroup.memory_current_gib", *LEVEL),
                course("host.memory_available_gib", *LEVEL),
            )
        },
    ),
    "memory-level": (
        history("cgroup.memory_current_gib", LEVEL),
        {"history": (course("cgroup.memory_current_gib", *RISE), course("host.memory_available_gib", *RISE))},
    ),
    "memory-jumped-at-save": (
        history("cgroup.memory_current_gib", [*LEVEL[:22], 700.0, 900.0]) | group(oom_kill_new=1),
        {
            "history": (
                course("cgroup.memory_current_gib", *LEVEL),
                course("host.memory_available_gib", *LEVEL),
            )
        }
        | group(oom_kill_new=1),
    ),
    "ray-memory-kills": (ray(memory_kills_new=1), ray(memory_kills_new=0)),
    "no-ray-memory-kills": (ray(memory_kills_new=0), ray(memory_kills_new=1)),
    "ray-node-dead": (ray(nodes_dead=1), ray(nodes_dead=0)),
    "node-down": (
        {"nodes": (ClusterNode(name="a", alive=known(False)),)},
        {"nodes": (ClusterNode(name="a", alive=known(True)),)},
    ),
    "scheduler-node-fail": (ended("NODE_FAIL"), ended("FAILED")),
    "machine-check": ({"kernel": event("machine-check")}, {"kernel": kernel()}),
    "all-nodes-alive": (ray(nodes_dead=0, nodes_alive=4), ray(nodes_dead=1, nodes_alive=3)),
    "object-store-full": (
        ray(object_store_used_gib=9.9, object_store_total_gib=10.0),
        ray(object_store_used_gib=5.0, object_store_total_gib=10.0),
    ),
    "object-store-near-full": (
        ray(object_store_used_gib=9.1, object_store_total_gib=10.0),
        ray(object_store_used_gib=5.0, object_store_total_gib=10.0),
    ),
    "object-store-empty": (
        ray(object_store_used_gib=1.0, object_store_total_gib=10.0),
        ray(object_store_used_gib=9.0, object_store_total_gib=10.0),
    ),
    "shm-full": (host(shm_used_gib=10.0, shm_total_gib=10.0), host(shm_used_gib=1.0, shm_total_gib=10.0)),
    "shm-tiny": (host(shm_total_gib=0.0625), host(shm_total_gib=64.0)),
    "shm-roomy": (
        history("host.shm_used_gib", [1.0]) | host(shm_total_gib=10.0),
        history("host.shm_used_gib", [9.0]) | host(shm_total_gib=10.0),
    ),
    "xid-hardware": ({"kernel": kernel(xid(79))}, {"kernel": kernel(xid(31))}),
    "xid-contained-memory-error": ({"kernel": kernel(xid(94))}, {"kernel": kernel(xid(31))}),
    "xid-warning": ({"kernel": kernel(xid(63))}, {"kernel": kernel(xid(31))}),
    "xid-application": ({"kernel": kernel(xid(31))}, {"kernel": kernel(xid(31), xid(79))}),
    "xid-of-hardware-not-program": ({"kernel": kernel(xid(48))}, {"kernel": kernel(xid(13))}),
    "ecc-uncorrected": (cards(ecc_uncorrected_new=[0, 1]), cards(ecc_uncorrected_new=0)),
    "ecc-uncorrected-ever": (cards(ecc_uncorrected=[0, 1]), cards(ecc_uncorrected=0)),
    "rows-remapped": (cards(remapped_uncorrected_new=[0, 1]), cards(remapped_uncorrected_new=0)),
    "remap-failed": (cards(remap_failed=[False, True]), cards(remap_failed=False)),
    "remap-pending": (cards(remap_pending=[False, True]), cards(remap_pending=False, retired_pending=False)),
    "gpu-lost": (host(gpu_lost_new=1), host(gpu_lost_new=0) | cards(state="ok") | {"kernel": kernel()}),
    "gpu-wants-reset": (cards(recovery_action=["none", "reset"]), cards(recovery_action="none", state="ok")),
    "nvlink-errors": (cards(nvlink_errors_new=[0, 5000]), cards(nvlink_errors_new=0) | {"kernel": kernel()}),
    "nvlink-down": (cards(nvlink_down=[0, 3]), cards(nvlink_down=0)),
    "pcie-replays": (cards(pcie_replays_new=[0, 5000]), cards(pcie_replays_new=0) | {"kernel": kernel()}),
    "gpu-clean": (
        cards(state="ok", ecc_uncorrected_new=0) | {"kernel": kernel()},
        cards(state="ok", ecc_uncorrected_new=[0, 1]) | {"kernel": kernel()},
    ),
    "one-gpu-idle": (
        cards(utilisation=[0.0, 100.0]) | {"kernel": kernel()},
        cards(utilisation=100.0) | {"kernel": kernel()},
    ),
    "one-gpu-throttled": (
        cards(throttle=[(), ("hw-thermal",)]),
        cards(throttle=(), thermal_throttle_s_new=0.0),
    ),
    "one-gpu-slow": (
        cards(sm_clock_mhz=[300.0, 1900.0], sm_clock_max_mhz=1980.0),
        cards(sm_clock_mhz=1900.0, sm_clock_max_mhz=1980.0),
    ),
    "all-gpus-busy": (cards(utilisation=100.0), cards(utilisation=[0.0, 100.0])),
    "memory-of-others": (
        cards(others_gib=[0.0, 30.0], memory_total_gib=80.0),
        cards(others_gib=0.0, memory_total_gib=80.0),
    ),
    "memory-of-nobody-else": (cards(others_gib=0.0), cards(others_gib=[0.0, 30.0])),
    "gpu-memory-grew": (history("gpus.memory_used_gib", RISE), history("gpus.memory_used_gib", LEVEL)),
    "gpu-memory-never-full": (
        history("gpus.memory_used_gib", [30.0]) | cards(memory_total_gib=80.0),
        history("gpus.memory_used_gib", [79.0]) | cards(memory_total_gib=80.0),
    ),
    "no-gpu-shown": (host(gpu_count=0), host(gpu_count=8, driver_error="none")),
    "gpus-shown": (host(gpu_count=8, driver_error="none"), host(gpu_count=0, driver_error="none")),
    "driver-version-mismatch": (host(driver_error="version-mismatch"), host(driver_error="none")),
    "driver-works": (host(driver_error="none"), host(driver_error="version-mismatch")),
    "disk-full": (disk(free_gib=0.0), disk()),
    "inodes-gone": (disk(inodes_free=0), disk()),
    "disk-near-full": (disk(free_gib=1.0), disk()),
    "disk-roomy": (disk(), disk(inodes_free=0)),
    "disk-io-error": ({"kernel": event("io-error")}, {"kernel": kernel()}),
    "pids-refused": (group(pids_max_events_new=4), group(pids_max_events_new=0)),
    "limits-near": (
        host(nofile_used=1024, nofile_limit=1024),
        host(nofile_used=9, nofile_limit=1024, files_open=1, files_max=99, nproc_used=1, nproc_limit=99)
        | group(pids_current=1, pids_max=99),
    ),
    "limits-far": (
        host(nofile_used=9, nofile_limit=1024) | group(pids_max_events_new=0),
        host(nofile_used=1000, nofile_limit=1024) | group(pids_max_events_new=0),
    ),
    "link-lost": (nics(link_downed_new=1), nics(link_downed_new=0) | {"kernel": kernel()}),
    "packets-lost": (nics(errors_new=5000), nics(errors_new=0, drops_new=0)),
    "network-clean": (nics(link_downed_new=0, errors_new=0), nics(link_downed_new=0, errors_new=5)),
    "scheduler-ended-it": (ended("TIMEOUT"), ended("FAILED")),
    "scheduler-did-not-end-it": (ended("FAILED"), ended("TIMEOUT")),
    "segfault-in-kernel-log": ({"kernel": event("segfault")}, {"kernel": kernel()}),
    "cache-full-and-queue": (serving(cache_usage=0.99, waiting=8.0), serving(cache_usage=0.99, waiting=0.0)),
    "no-queue": (serving(waiting=0.0), serving(waiting=4.0)),
}


def holds(rule: TelemetryRule, made: Snapshot) -> bool | None:
    """Tell what a rule makes of a snapshot."""
    return TABLE.outcome(rule, SnapshotContext(made, CRASH.timestamp())).holds


def test_that_every_rule_has_its_row_and_there_are_many() -> None:
    assert {rule.id for rule in TABLE.rules} == set(ROWS)
    assert len(ROWS) >= 30


@each_row("rule", TABLE.rules, ids=lambda rule: rule.id)
def test_that_a_rule_fires_on_what_it_speaks_of_and_on_nothing_else(rule: TelemetryRule) -> None:
    fires, silent = ROWS[rule.id]
    assert holds(rule, snapshot(**fires)) is True
    assert holds(rule, snapshot(**silent)) is False


@each_row("rule", TABLE.rules, ids=lambda rule: rule.id)
def test_that_no_rule_fires_where_nothing_was_measured(rule: TelemetryRule) -> None:
    assert holds(rule, snapshot()) is None


@each_row("rule", TABLE.rules, ids=lambda rule: rule.id)
def test_that_a_rule_names_causes_that_exist_and_says_why_in_both_languages(rule: TelemetryRule) -> None:
    assert set(rule.causes) <= set(whole_corpus().causes)
    assert re.search("[a-z]", rule.why.en)
    assert re.search("[一-鿿]", rule.why.zh)


def test_that_what_decides_asks_for_a_log_that_tells_little() -> None:
    assert [rule.id for rule in TABLE.rules if rule.effect == "decides" and not rule.log] == []


@each_row(
    ("changes", "message"),
    [
        ({"log": ("nobody",)}, "no sign or group 'nobody'"),
        ({"requires": ("x",)}, "no sign or group 'x'"),
        ({"all": ("host.x > 1",)}, "there is no host.x"),
        ({"when": ("what",)}, "there is no what"),
        ({"weight": 1.0}, "less than 1"),
        ({"causes": ()}, "at least 1"),
    ],
)
def test_that_a_broken_rule_is_refused(changes: dict[str, Any], message: str) -> None:
    row = {
        "id": "r",
        "causes": ("disk-full",),
        "effect": "confirms",
        "weight": 0.3,
        "why": {"en": "a", "zh": "b"},
        "all": ("host.oom_kill > 0",),
    }
    with pytest.raises(ValidationError, match=message):
        TelemetryRules.model_validate({"signs": {}, "groups": {}, "rules": (row | changes,)})


def test_that_two_rules_of_one_name_are_refused() -> None:
    row = {
        "id": "r",
        "causes": ("disk-full",),
        "effect": "confirms",
        "weight": 0.3,
        "why": {"en": "a", "zh": "b"},
    }
    with pytest.raises(ValidationError, match="two rules"):
        TelemetryRules.model_validate({"signs": {}, "groups": {}, "rules": (row, row)})
