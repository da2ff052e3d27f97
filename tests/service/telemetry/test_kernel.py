"""The kernel's lines that matter are found, in the forms that its log is printed in, with their times."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from service.telemetry import kernel
from tests.tables import each_row
from tests.waiting import PATIENCE

BOOT = 1_700_000_000.0
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=51234, name=python3, GPU has fallen off the bus."
AT = datetime(2026, 3, 2, 9, 58, 11, tzinfo=UTC).timestamp()


@each_row(
    ("row", "kind", "code", "pid"),
    [
        (XID, "xid", 79, 51234),
        (
            (
                "NVRM: Xid (PCI:0000:18:00): 48, An uncorrectable double bit error (DBE) has been "
                "detected on GPU"
            ),
            "xid",
            48,
            None,
        ),
        (
            (
                "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV "
                "error"
            ),
            "sxid",
            12028,
            None,
        ),
        ("NVRM: GPU at PCI:0000:3b:00: GPU-aa has fallen off the bus", "gpu-lost", None, None),
        (
            "Memory cgroup out of memory: Killed process 4242 (ray::WorkerDict) total-vm:1kB, anon-rss:1kB",
            "oom-kill",
            None,
            4242,
        ),
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=python,pid=9,uid=0",
            "oom-kill",
            None,
            9,
        ),
        ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 8", "machine-check", None, None),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "machine-check", None, None),
        (
            "pcieport 0000:3a:00.0: AER: Uncorrectable (Fatal) error message received",
            "pcie-error",
            None,
            None,
        ),
        ("blk_update_request: I/O error, dev nvme1n1, sector 2048", "io-error", None, None),
        ("mlx5_core 0000:5e:00.0: mlx5_2: port down event", "link-down", None, None),
        ("INFO: task python3:4411 blocked for more than 122 seconds.", "hung-task", None, 4411),
        ("python3[77]: segfault at 0 ip 00007f sp 00007f error 4 in libx.so", "segfault", None, 77),
    ],
)
def test_that_a_line_is_known_by_its_form(row: str, kind: str, code: int | None, pid: int | None) -> None:
    (found,) = kernel.parse_kernel_log(f"[   12.500000] {row}\n", BOOT).events.value or ()
    assert (found.kind, found.code, found.pid, found.at) == (kind, code, pid, BOOT + 12.5)


@each_row(
    "row",
    [
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
        "nvidia-uvm: Loaded the UVM driver",
        "oom_reaper: reaped process 12",
        "mlx5_core 0000:5e:00.0: mlx5_2: Link up",
        "EDAC MC: Ver: 3.0.0",
        "mce: CPU0: Thermal monitoring enabled (TM1)",
    ],
)
def test_that_healthy_lines_are_none(row: str) -> None:
    assert kernel.parse_kernel_log(f"[   12.5] {row}").events.value == ()


@each_row(
    ("stamp", "offset"),
    [
        ("2026-03-02T09:58:11+0000 n1 kernel: ", 0.0),
        ("2026-03-02T17:58:11+08:00 n1 kernel: ", 0.0),
        ("Mar  2 09:58:11 n1 kernel: ", 0.0),
        ("[Mon Mar  2 17:58:11 2026] ", 28800.0),
        ("Mar  2 17:58:11 n1 kernel: ", 28800.0),
    ],
)
def test_that_every_form_of_time_gives_the_same_moment(stamp: str, offset: float) -> None:
    (found,) = kernel.parse_kernel_log(stamp + XID, None, 2026, offset).events.value or ()
    assert found.at == AT


def test_that_seconds_since_a_boot_that_is_not_known_are_no_time() -> None:
    (found,) = kernel.parse_kernel_log(f"[  12.500000] {XID}").events.value or ()
    assert found.at is None


def test_that_one_kill_told_in_two_lines_is_one() -> None:
    text = (
        "[1.5] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=9,uid=0\n"
        "[1.6] Out of memory: Killed process 9 (python) total-vm:1kB\n"
    )
    assert len(kernel.parse_kernel_log(text, BOOT).events.value or ()) == 1


def test_that_secrets_and_control_characters_of_the_log_are_not_kept() -> None:
    secret = "hf_" + "Ab" * 17
    (found,) = kernel.parse_kernel_log(f"[1.5] {XID} {secret}\x1b[31m\n", BOOT).events.value or ()
    assert secret not in found.text
    assert "\x1b" not in found.text


@each_row(
    ("command", "timeout_s", "reason"),
    [
        ((sys.executable, "-c", "raise SystemExit('not permitted')"), PATIENCE, "not permitted"),
        (("/no/such/command",), PATIENCE, "No such file"),
        ((sys.executable, "-c", "import time; time.sleep(600)"), 0.5, "no answer"),
        ((sys.executable, "-c", ""), PATIENCE, "shows nothing"),
    ],
)
def test_that_a_log_that_may_not_be_read_says_why(
    command: tuple[str, ...], timeout_s: float, reason: str
) -> None:
    found = kernel.read_kernel_log(BOOT, 2026, 0.0, [command], timeout_s)
    assert found.events.value is None
    assert reason in (found.events.unavailable or "")


def test_that_the_next_command_is_asked_where_the_first_may_not() -> None:
    rows = [("/no/such/command",), (sys.executable, "-c", f"print('[1.5] {XID}')")]
    assert [item.code for item in kernel.read_kernel_log(BOOT, 2026, 0.0, rows).events.value or ()] == [79]


def test_that_a_machine_that_is_watched_is_not_read_anew_each_time() -> None:
    """Twenty thousand lines each quarter of a minute would take a few hundredths of a core beside the job."""
    rows = [f"[{number}.000000] eth0: packet {number}" for number in range(3000)]
    kernel.may_be_event.cache_clear()
    assert kernel.parse_kernel_log("\n".join(rows), BOOT).events.value == ()
    found = kernel.parse_kernel_log("\n".join([*rows[100:], f"[5000.000000] {XID}"]), BOOT)
    assert [(event.kind, event.at) for event in found.events.value or ()] == [("xid", BOOT + 5000)]
    assert found.since == BOOT + 100
    assert kernel.may_be_event.cache_info().misses == len(rows) + 1
