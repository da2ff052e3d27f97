"""The machine that the tests run on is read, and trees of files that stand for others."""

from __future__ import annotations

from pathlib import Path

from service.telemetry import host
from tests.tables import each_row


def test_that_this_machine_has_memory_and_limits() -> None:
    found = host.read_host()
    assert (found.memory_total_gib.value or 0) >= (found.memory_available_gib.value or 0) > 0
    assert (found.nofile_limit.value or 1) > 0
    assert (found.nofile_used.value or 0) > 0
    assert (found.boot_time.value or 0) > 1e9


def test_that_what_cannot_be_read_has_its_reason(tmp_path: Path) -> None:
    found = host.read_host(proc=tmp_path, shm=tmp_path / "none")
    for reading in (found.oom_kill, found.files_open, found.shm_total_gib):
        assert "No such file" in (reading.unavailable or "")


def test_that_the_kernels_counts_are_read(tmp_path: Path) -> None:
    (tmp_path / "sys/fs").mkdir(parents=True)
    (tmp_path / "sys/fs/file-nr").write_text("900\t0\t1000\n", encoding="utf-8")
    (tmp_path / "vmstat").write_text("pgfault 12\noom_kill 4\n", encoding="utf-8")
    found = host.read_host(proc=tmp_path)
    assert (found.oom_kill.value, found.files_open.value, found.files_max.value) == (4, 900, 1000)


def test_that_file_systems_are_read_once_each(tmp_path: Path) -> None:
    (found,) = host.read_disks([tmp_path, tmp_path / ".", tmp_path / "none"])
    assert 0 <= (found.free_gib.value or 0) <= (found.total_gib.value or 0)


def write(root: Path, files: dict[str, str]) -> None:
    """Write small files, folders included."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n", encoding="utf-8")


def test_that_cards_and_ports_are_read_and_inner_interfaces_are_not(tmp_path: Path) -> None:
    port, card = "class/infiniband/mlx5_1/ports/1", "class/net/eth0"
    write(
        tmp_path,
        {
            f"{port}/state": "1: DOWN",
            f"{port}/counters/link_downed": "2",
            f"{port}/counters/symbol_error": "5",
            f"{port}/counters/port_rcv_errors": "1",
            f"{card}/operstate": "up",
            f"{card}/device/vendor": "x",
            "class/net/lo/operstate": "unknown",
            **{
                f"{card}/statistics/{name}": "3"
                for name in ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped")
            },
        },
    )
    eth, fabric = host.read_nics(tmp_path)
    assert (eth.name, eth.up.value, eth.errors.value, eth.drops.value) == ("eth0", True, 6, 6)
    assert (fabric.name, fabric.kind, fabric.up.value, fabric.link_downed.value, fabric.errors.value) == (
        "mlx5_1:1",
        "infiniband",
        False,
        2,
        6,
    )
    assert eth.link_downed.unavailable
    assert fabric.drops.unavailable


@each_row("text", ["", "what", "1\n2"])
def test_that_a_file_with_nonsense_is_a_reason(text: str, tmp_path: Path) -> None:
    write(tmp_path, {"sys/fs/file-nr": text})
    assert host.read_host(proc=tmp_path).files_max.unavailable
