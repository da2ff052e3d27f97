"""Reports on cards and ports, in the forms of the tools that print them."""

from __future__ import annotations

import json


def nvidia_smi(*, uncorrected: int = 0, failed: str = "No", pending: str = "No", action: str = "None") -> str:
    """Give `nvidia-smi -q` of two cards, the second of which has these readings."""
    cards = [("00000000:4B:00.0", 0, "No", "No", "None")]
    cards.append(("00000000:9D:00.0", uncorrected, failed, pending, action))
    rows = ["", "==============NVSMI LOG==============", "", "Timestamp : Mon Nov 23 10:00:00 2026", ""]
    rows += ["Driver Version                            : 570.86.15", "Attached GPUs : 2"]
    for bus, errors, fault, waits, asks in cards:
        rows += [
            f"GPU {bus}",
            "    Product Name                          : NVIDIA H100 80GB HBM3",
            f"    GPU Recovery Action                   : {asks}",
            "    Clocks Event Reasons",
            "        HW Slowdown                       : Not Active",
            "            HW Thermal Slowdown           : Not Active",
            "    ECC Errors",
            "        Volatile",
            "            SRAM Uncorrectable Parity     : 0",
            f"            DRAM Uncorrectable            : {errors}",
            "        Aggregate",
            "            DRAM Uncorrectable            : 7",
            "    Remapped Rows",
            f"        Pending                           : {waits}",
            f"        Remapping Failure Occurred        : {fault}",
        ]
    return "\n".join(rows) + "\n"


def bug_report(*, xid: int = 79, **readings: str) -> str:
    """Give what nvidia-bug-report.sh gathers: the kernel's log and nvidia-smi's report among others."""
    rule = "_" * 44
    return "\n".join(
        [
            rule,
            "",
            "Start of NVIDIA bug report log file.",
            rule,
            "/sbin/dmesg",
            f"[ 9123.44] NVRM: Xid (PCI:0000:9d:00): {xid}, pid=4711, name=python",
            rule,
            "/usr/bin/nvidia-smi --query",
            nvidia_smi(**readings),  # type: ignore[arg-type]  # words alone
            rule,
        ]
    )


def dcgm_diag(result: str) -> str:
    """Give the table of `dcgmi diag`."""
    wide = [("DCGM Version", "3.3.5"), ("Denylist", "Pass"), ("GPU Memory", result)]
    rows = [f"| {name:25} | {value:46} |" for name, value in wide]
    rule = f"+{'-' * 27}+{'-' * 48}+"
    head = f"| {'Diagnostic':25} | {'Result':46} |"
    section = f"|-----  Hardware  ----------+{'-' * 48}|"
    return "\n".join([rule, head, rule, *rows[:2], section, rows[2], rule]) + "\n"


def dcgm_diag_json(status: str) -> str:
    """Give what `dcgmi diag -j` prints."""
    test = {"name": "GPU Memory", "results": [{"gpu_ids": "3", "status": status}]}
    return json.dumps(
        {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [test]}]}}
    )


def dcgm_health(value: str) -> str:
    """Give what `dcgmi health --check -j` prints."""
    return json.dumps({"body": {"Overall Health": {"value": value}}, "header": ["Health Monitor Report"]})


def ibstat(state: str) -> str:
    """Give `ibstat` of two adapters, the second of which has this state."""
    return "".join(
        f"CA 'mlx5_{number}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {told}\n"
        f"\t\tPhysical state: LinkUp\n\t\tRate: 400\n"
        for number, told in enumerate(("Active", state))
    )


def npu_smi(health: str) -> str:
    """Give the table of `npu-smi info` of two cards, the second of which has this health."""
    rule = f"+{'-' * 27}+{'-' * 15}+{'-' * 30}+"
    rows = [f"| npu-smi 24.1.rc2                 Version: 24.1.rc2 {' ' * 20}|", rule]
    rows += [f"| {'NPU   Name':25} | {'Health':13} | {'Power(W)    Temp(C)':28} |", rule]
    for card, told in ((0, "OK"), (3, health)):
        rows += [f"| {card}     910B3{' ' * 14} | {told:13} | {'93.2        41':28} |"]
        rows += [f"| {0:<25} | {'0000:C1:00.0':13} | {'0           3161 / 65536':28} |", rule]
    return "\n".join(rows) + "\n"


def rdma_statistic(retries: int = 0) -> str:
    """Give `rdma statistic show` of two ports, the second of which retried so often in vain."""
    return (
        "link mlx5_0/1 rx_write_requests 9 out_of_sequence 12 local_ack_timeout_err 0 rnr_nak_retry_err 0 \n"
        f"link mlx5_1/1 rx_write_requests 9 out_of_sequence 3 local_ack_timeout_err {retries} \n"
    )


def rdma_statistic_json(retries: int = 0) -> str:
    """Give `rdma -j statistic show` of an EFA."""
    counters = {"tx_bytes": 8, "retrans_timeout_events": retries, "retrans_pkts": 4}
    return json.dumps([{"ifindex": 0, "ifname": "rdmap16s27", "port": 1, **counters}])


def port_counters(downed: int = 0) -> str:
    """Give the files of a port's counters, as `grep . /sys/class/infiniband/*/ports/*/*counters/*` does."""
    place = "/sys/class/infiniband/mlx5_0/ports/1"
    return f"{place}/counters/link_downed:{downed}\n{place}/hw_counters/local_ack_timeout_err:0\n"


def perfquery(downed: int = 0) -> str:
    """Give `perfquery` of one port."""
    return (
        "# Port extended counters: Lid 4 port 1 (CapMask: 0x5A00)\nPortSelect:......................1\n"
        f"SymbolErrorCounter:..............0\nLinkDownedCounter:...............{downed}\n"
    )


def ethtool(downed: int = 0) -> str:
    """Give `ethtool -S` of a port."""
    return f"NIC statistics:\n     rx_packets: 12345\n     link_down_events_phy: {downed}\n"


def ibdiagnet(errors: int = 0) -> str:
    """Give the summary of ibdiagnet."""
    return (
        "-I- Stage                     Warnings   Errors     Comment   \n"
        "-I- Discovery                 0          0         \n"
        f"-I- Port Counters             2          {errors}         \n"
    )
