"""Where NCCL is told an interface that is not there, the one that the log itself lists takes its place."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

BRIEF = (
    "lo  UNKNOWN  127.0.0.1/8\n{name}   UP   10.3.{node}.7/16\nib2  {state}  10.9.{node}.7/16\n"
    "docker0  UP  172.17.0.1/16\n"
)
BOTH = BRIEF.format(name="eno4", node=1, state="UP") + BRIEF.format(name="eno4", node=2, state="UP")
OTHER = BRIEF.format(name="eno4", node=1, state="UP") + BRIEF.format(name="ens9", node=2, state="UP")
DOWN = BRIEF.format(name="eno4", node=1, state="DOWN") + BRIEF.format(name="ens9", node=2, state="UP")
FULL = (
    "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\n2: ens5: <BROADCAST,MULTICAST> mtu 1500\n"
    "3: ens6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9001\n"
)
WORK = "Using bfloat16 Automatic Mixed Precision (AMP)\n" * 60
NONE = "n1:81:402 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"


@each_row(
    ("listed", "told", "to"),
    [
        (BOTH, "eth0", "eno4"),
        (OTHER, "=eth0", "ib2"),
        (FULL, "enp1", "ens6"),
        # None is up on all nodes, the one that is told is there, or all but some are told.
        (DOWN, "eth0", ""),
        (BOTH, "eno", ""),
        ("", "eth0", ""),
    ],
)
def test_that_the_log_s_own_list_names_the_interface(triage: Triage, listed: str, told: str, to: str) -> None:
    script = f"export NCCL_SOCKET_IFNAME={told}\nsrun python train.py\n"
    made = explained(triage, listed + WORK + NONE, ConfigFile("job.slurm", script))
    assert made.cause == "nccl-network"
    first = made.changes[0]
    assert first.key == "NCCL_SOCKET_IFNAME"
    assert (first.to == to) is bool(to)
    assert (f"+export NCCL_SOCKET_IFNAME={to}\n" in (made.patch or "")) is bool(to)


@each_row(("listed", "to"), [(FULL, "ens6"), (OTHER, "ib2"), (BOTH, ""), (DOWN, "")])
def test_that_the_only_interface_is_named_without_a_launch_file(triage: Triage, listed: str, to: str) -> None:
    """Which one NCCL was told stands nowhere; of two that are up, either may be the slow one."""
    first = explained(triage, listed + WORK + NONE).changes[0]
    assert first.key == "NCCL_SOCKET_IFNAME"
    assert (first.to == to) is bool(to)
