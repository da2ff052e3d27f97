"""The numbers that a job logged beside its text tell from which step on its loss was none."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.artefacts.metric_series import curve_of, read_series
from ingest.errors import ArtefactError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from tests.tables import each_row

NAN = math.nan
LOSSES = [2.5, 2.25, NAN, 2.0, NAN, NAN, NAN]
STEPS = "step 1 loss 2.5\nstep 2 loss 2.25\n"


def field(number: int, kind: int, data: bytes) -> bytes:
    return bytes([number << 3 | kind]) + data


def text(number: int, data: bytes) -> bytes:
    return field(number, 2, bytes([len(data)]) + data)


def event(step: int, name: str, value: float, *, tensor: bool = False) -> bytes:
    """Give a record as TensorBoard's writers do, with a number of its own or in a tensor."""
    raw = struct.pack("<f", value)
    held = text(8, field(1, 0, b"\x01") + text(4, raw)) if tensor else field(2, 5, raw)
    body = (
        field(1, 1, bytes(8)) + field(2, 0, bytes([step])) + text(5, text(1, text(1, name.encode()) + held))
    )
    return record(body)


def record(body: bytes) -> bytes:
    return struct.pack("<Q", len(body)) + bytes(4) + body + bytes(4)


def events(values: Sequence[float], name: str = "train/loss", *, tensor: bool = False) -> bytes:
    first = record(field(1, 1, bytes(8)) + text(3, b"brain.Event:2"))
    return first + b"".join(event(step, name, value, tensor=tensor) for step, value in enumerate(values))


def trainer_state(values: Sequence[float]) -> bytes:
    history = [{"epoch": 0.5, "loss": value, "step": step} for step, value in enumerate(values)]
    return json.dumps({"global_step": len(values), "log_history": history}, indent=2).encode()


def summary(value: object) -> bytes:
    return json.dumps({"_step": 6, "_runtime": 9.5, "_timestamp": 1.5, "train/loss": value}).encode()


@each_row(
    ("data", "name"),
    [
        (events(LOSSES), "train/loss"),
        (events(LOSSES, tensor=True), "train/loss"),
        (trainer_state(LOSSES), "loss"),
    ],
)
def test_the_step_is_told_from_which_a_number_stayed_broken(data: bytes, name: str) -> None:
    """One bad step that the job went on from is none."""
    assert artefact_kind(data[:HEAD]) == "series"
    curve = curve_of(name, read_series(data)[name])
    assert (curve.broken_from, curve.broken, curve.last_step, curve.before) == (4, 3, 6, 2.0)


def metric(values: Sequence[float]) -> bytes:
    """Give a metric as MLflow's store of files keeps it."""
    return "".join(f"{1795940755000 + step} {value} {step}\n" for step, value in enumerate(values)).encode()


def step_rows(values: Sequence[float]) -> bytes:
    rows = [{"step": step, "train/loss": value, "lr": 1e-5} for step, value in enumerate(values)]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@each_row(
    ("name", "data", "told"),
    [
        ("mlruns/0/3f1c/metrics/train/loss", metric(LOSSES), "train/loss"),
        ("metrics/loss", metric(LOSSES), "loss"),
        ("loss", metric(LOSSES), "loss"),
        ("metrics.jsonl", step_rows(LOSSES), "train/loss"),
        ("metrics.jsonl", step_rows(LOSSES)[:-20] + b'{"step": 9, "tr', "train/loss"),
    ],
)
def test_metrics_of_mlflow_and_rows_of_json_are_series(name: str, data: bytes, told: str) -> None:
    """A file of MLflow does not hold its metric's name; rows of a job that died end within one."""
    assert artefact_kind(data[:HEAD]) == "series"
    curve = curve_of(told, read_series(data, name)[told])
    assert (curve.broken_from, curve.before) == (4, 2.0)


@each_row(
    "data",
    [
        b'{"step": 1, "msg": "loss is high"}\n{"step": 2, "msg": "still"}\n{"step": 3, "msg": "so"}\n',
        b'{"loss": 2.5}\n{"loss": 2.25}\n{"loss": 2.0}\n',
        b"2026-11-23 09:58:01 INFO step 1\n2026-11-23 09:58:02 INFO step 2\n2026-11-23 INFO step 3\n",
    ],
)
def test_rows_with_words_are_a_log(data: bytes) -> None:
    assert artefact_kind(data) is None


def test_a_number_that_ends_well_is_not_broken() -> None:
    curve = curve_of("train/loss", read_series(events(LOSSES[:4]))["train/loss"])
    assert (curve.broken_from, curve.broken) == (-1, 0)


@each_row(
    ("name", "data"),
    [
        ("events.out.tfevents.1.host", events(LOSSES)),
        ("trainer_state.json", trainer_state(LOSSES)),
        ("wandb-summary.json", summary(NAN)),
        ("wandb-summary.json", summary("NaN")),
    ],
)
def test_a_loss_that_broke_decides_where_the_log_only_stops(
    reader: Reader, name: str, data: bytes, tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / name).write_bytes(data)
    report = reader.read(open_job(tmp_path))
    assert report.root is not None
    assert (report.root.cause, report.root.pattern) == ("nan-or-inf", "curves.loss-broken")


@each_row("data", [events([2.5, 2.0]), trainer_state([2.5, 2.0]), summary(2.0)])
def test_a_loss_that_is_well_decides_nothing(reader: Reader, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "series.json").write_bytes(data)
    assert reader.read(open_job(tmp_path)).root is None


def test_the_events_of_a_job_that_died_end_within_a_record() -> None:
    """What stands whole before is read."""
    assert len(read_series(events(LOSSES)[:-9])["train/loss"]) == len(LOSSES) - 1


@each_row(
    "data",
    [
        record(text(3, b"brain.Event:2")),
        record(text(3, b"brain.Event:2")) + struct.pack("<Q", 1 << 63) + bytes(20),
        record(text(3, b"brain.Event:2")) + record(b"\xff" * 40),
        b'{"_step": 1, "_runtime": ',
        b'{"log_history": 7, "global_step": {}}',
    ],
)
def test_what_is_damaged_or_holds_no_number_is_refused(data: bytes) -> None:
    with pytest.raises(ArtefactError):
        read_series(data)


@each_row(
    ("name", "values", "pattern"),
    [
        ("reward", [0.4] * 20 + [0.0] * 20, "curves.collapsed"),
        ("loss", [2.0] * 20 + [80.0] * 20, "curves.collapsed"),
        ("loss", [2.0 - step / 100 for step in range(40)], None),
    ],
)
def test_a_collapse_counts_where_nothing_else_failed(
    reader: Reader, tmp_path: Path, name: str, values: list[float], pattern: str | None
) -> None:
    """What fell to nothing or leapt speaks of wrong numbers; a usual course of nothing."""
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "events.out.tfevents.1.host").write_bytes(events(values, name))
    root = reader.read(open_job(tmp_path)).root
    assert (root.pattern if root else None) == pattern


def test_a_collapse_is_no_cause_beside_a_failure(reader: Reader, tmp_path: Path) -> None:
    """A job that was cancelled after its reward fell to nothing was cancelled."""
    (tmp_path / "train.log").write_text(
        STEPS + "slurmstepd: error: *** JOB 7 ON gpu-07 CANCELLED AT 2026-11-23T10:05:00 ***\n"
    )
    (tmp_path / "events.out.tfevents.1.host").write_bytes(events([0.4] * 20 + [0.0] * 20, "reward"))
    root = reader.read(open_job(tmp_path)).root
    assert root is not None
    assert root.pattern != "curves.collapsed"
