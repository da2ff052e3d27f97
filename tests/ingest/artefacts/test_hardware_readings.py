"""Reports on cards and ports tell what is bad in them, beside a log that only stops and alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.artefacts.hardware_readings import MOST_RECORDS, read_hardware
from ingest.errors import ArtefactError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from tests.ingest.artefacts.hardware_files import (
    bug_report,
    dcgm_diag,
    dcgm_diag_json,
    dcgm_health,
    ethtool,
    ibdiagnet,
    ibstat,
    npu_smi,
    nvidia_smi,
    perfquery,
    port_counters,
    rdma_statistic,
    rdma_statistic_json,
)
from tests.tables import each_row

STEPS = "step 1 loss 2.5\nstep 2 loss 2.25\n"
TIMEOUT = (
    "[rank0]:[E1103 10:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran "
    "for 600012 milliseconds before timing out.\n"
)


def findings(text: str) -> list[tuple[str, str]]:
    """Give device and finding of each record."""
    rows = [
        dict(word.partition("=")[::2] for word in row.split()[1:]) for row in read_hardware(text.encode())
    ]
    return [(row.get("device", ""), row["finding"]) for row in rows]


@each_row(
    ("text", "found"),
    [
        (nvidia_smi(), []),
        (nvidia_smi(uncorrected=2), [("00000000:9D:00.0", "ecc-uncorrected")]),
        (nvidia_smi(failed="Yes"), [("00000000:9D:00.0", "remap-failed")]),
        (nvidia_smi(pending="Yes"), [("00000000:9D:00.0", "remap-pending")]),
        (nvidia_smi(action="Reset"), [("00000000:9D:00.0", "needs-reset")]),
        (bug_report(failed="Yes"), [("00000000:9D:00.0", "remap-failed")]),
        (dcgm_diag("Pass - All"), []),
        (dcgm_diag("Skip - All"), []),
        (dcgm_diag("Fail - GPU: 3"), [("3", "diag-failed")]),
        (dcgm_diag_json("Pass"), []),
        (dcgm_diag_json("Fail"), [("3", "diag-failed")]),
        (dcgm_health("Healthy"), []),
        (dcgm_health("Failure"), [("", "health-failed")]),
        (ibstat("Active"), []),
        (ibstat("Down"), [("mlx5_1", "port-down")]),
        (rdma_statistic(), []),
        (rdma_statistic(7), [("mlx5_1/1", "retries-exceeded")]),
        (rdma_statistic_json(), []),
        (rdma_statistic_json(2), [("rdmap16s27", "retries-exceeded")]),
        (port_counters(), []),
        (port_counters(1), [("mlx5_0/ports/1", "link-downed")]),
        (perfquery(), []),
        (perfquery(2), [("Lid_4_port_1", "link-downed")]),
        (ethtool(), []),
        (ethtool(3), [("", "link-downed")]),
        (ibdiagnet(), []),
        (ibdiagnet(3), [("", "fabric-errors")]),
        (npu_smi("OK"), []),
        (npu_smi("Alarm"), [("3", "npu-alarm")]),
    ],
)
def test_a_bad_reading_is_told_and_a_good_one_is_not(text: str, found: list[tuple[str, str]]) -> None:
    assert artefact_kind(text.encode()[:HEAD]) == "hardware"
    assert findings(text) == found


@each_row("value", [0x7FFFFFF0, 0x7FFFFFF3, 0x7FFFFFFFFFFFFFF0])
def test_a_blank_value_is_no_reading(value: int) -> None:
    """DCGM's libraries write numbers where they have none."""
    assert findings(nvidia_smi(uncorrected=value)) == []


@each_row(
    ("name", "text", "cause"),
    [
        ("smi.txt", nvidia_smi(failed="Yes"), "gpu-hardware-fault"),
        ("report.log", bug_report(), "gpu-hardware-fault"),
        ("diag.txt", dcgm_diag("Fail - GPU: 3"), "gpu-hardware-fault"),
        ("diag.json", dcgm_diag_json("Fail"), "gpu-hardware-fault"),
        ("npu.txt", npu_smi("Critical"), "gpu-hardware-fault"),
    ],
)
def test_a_report_beside_a_log_decides(
    reader: Reader, name: str, text: str, cause: str, tmp_path: Path
) -> None:
    """What a collective's time-out follows from stands in the report, packed or not."""
    (tmp_path / name).write_text(text)
    alone = reader.read(open_job(tmp_path / name))
    (tmp_path / name).unlink()
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    packed = reader.read(open_job(tmp_path / f"{name}.gz"))
    (tmp_path / "train.log").write_text(STEPS + TIMEOUT)
    for report in (alone, packed, reader.read(open_job(tmp_path))):
        assert report.root is not None
        assert report.root.cause == cause


def test_a_report_that_is_well_decides_nothing(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "smi.txt").write_text(nvidia_smi())
    (tmp_path / "train.log").write_text(STEPS + TIMEOUT)
    report = reader.read(open_job(tmp_path))
    assert report.root is not None
    assert report.root.pattern == "torch.nccl-watchdog"


def test_an_error_of_the_program_is_not_the_cards(reader: Reader, tmp_path: Path) -> None:
    """A port without a cable stands in many machines."""
    (tmp_path / "ib.txt").write_text(ibstat("Down"))
    (tmp_path / "train.log").write_text(
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f(x)\n'
        "KeyError: 'labels'\n"
    )
    report = reader.read(open_job(tmp_path))
    assert report.root is not None
    assert report.root.cause != "nccl-network"


def test_a_log_that_begins_with_a_report_is_still_a_log(reader: Reader, tmp_path: Path) -> None:
    """Scripts print the state of the cards before they train."""
    (tmp_path / "train.log").write_text(f"{nvidia_smi()}{STEPS}torch.OutOfMemoryError: CUDA out of memory.\n")
    report = reader.read(open_job(tmp_path / "train.log"))
    assert report.root is not None
    assert report.root.pattern.startswith("torch.")


@each_row("text", ['{"DCGM GPU Diagnostic": [', '{"DCGM GPU Diagnostic": ' + "[" * 100_000])
def test_a_damaged_document_is_refused(text: str) -> None:
    with pytest.raises(ArtefactError):
        read_hardware(text.encode())


def test_a_huge_report_is_cut() -> None:
    """Ten thousand failed tests are told as some."""
    tests = [
        {"name": f"t{number}", "results": [{"gpu_id": "1", "status": "Fail"}]} for number in range(10_000)
    ]
    text = json.dumps({"DCGM GPU Diagnostic": {"test_categories": [{"category": "x", "tests": tests}]}})
    assert len(read_hardware(text.encode())) == MOST_RECORDS


def test_words_of_a_report_stay_in_their_record() -> None:
    """A value may hold blanks, line breaks of other kinds and control characters."""
    (row,) = read_hardware(dcgm_diag("Fail - GPU: 3 finding=gpu-lost\x1b[31m\x0b").encode())
    assert " finding=gpu-lost" not in row
    assert "\x1b" not in row
