"""What NCCL counted tells who did not come, from its text and from its JSON alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.artefacts.ras_status import ras_table, read_ras
from ingest.errors import ArtefactError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from tests.ingest.artefacts.ras_files import launched, ras_json, ras_text
from tests.tables import each_row

STEPS = "step 1 loss 2.5\nstep 2 loss 2.25\n"
EVEN = {"AllReduce": launched(8, 1241), "Broadcast": launched(8, 3)}
ONE_BEHIND = {"AllReduce": launched(8, 1241, r3=1240), "Broadcast": launched(8, 3)}
TWO_BEHIND = {"AllReduce": launched(8, 1241, r3=1240, r5=1240)}
ONE_AHEAD = {"AllReduce": launched(8, 1240, r6=1241)}
ANOTHER = {"AllReduce": launched(8, 1241, r3=1240), "Broadcast": launched(8, 3, r3=4)}
NONE_YET = {"AllReduce": launched(8, 7, r2=0)}


@each_row(
    ("counts", "kind", "operation", "sequence", "outliers"),
    [
        (ONE_BEHIND, "never-called", "AllReduce", 1241, (3,)),
        (TWO_BEHIND, "never-called", "AllReduce", 1241, (3, 5)),
        (ONE_AHEAD, "called-alone", "AllReduce", 1241, (6,)),
        (ANOTHER, "operations-differ", "AllReduce", 1241, (3,)),
        (NONE_YET, "never-called", "AllReduce", 1, (2,)),
    ],
)
def test_the_odd_ranks_are_told_by_majority(
    counts: dict[str, dict[int, int]], kind: str, operation: str, sequence: int, outliers: tuple[int, ...]
) -> None:
    for text in (ras_json(counts), ras_text(counts)):
        assert artefact_kind(text.encode()[:HEAD]) == "ras"
        first = ras_table(read_ras(text.encode())).verdicts[0]
        assert (first.kind, first.operation, first.sequence) == (kind, operation, sequence)
        assert first.outliers == outliers
        assert first.others == tuple(rank for rank in range(8) if rank not in outliers)


@each_row("text", [ras_json(EVEN), ras_text(EVEN)])
def test_ranks_that_agree_have_no_verdict(text: str) -> None:
    assert ras_table(read_ras(text.encode())).verdicts == ()


@each_row("dead", [False, True])
def test_a_process_that_is_not_reached_is_named(dead: bool) -> None:
    for form in (ras_json, ras_text):
        (gone,) = read_ras(form(EVEN, (3,), dead=dead).encode()).gone
        assert (gone.host, gone.pid, gone.is_dead) == ("10.0.0.0", 4703, dead)


@each_row(
    ("text", "cause", "pattern"),
    [
        (ras_json(ONE_BEHIND), "collective-straggler", "flight-recorder.absent"),
        (ras_text(ONE_BEHIND), "collective-straggler", "flight-recorder.absent"),
        (ras_json(ANOTHER), "collective-desync", "flight-recorder.mismatch"),
        (ras_text(ONE_AHEAD), "collective-desync", "flight-recorder.order"),
        (ras_text(EVEN, (3,), dead=True), "collective-peer-died", "nccl-ras.process-gone"),
    ],
)
def test_an_answer_beside_a_log_decides(
    reader: Reader, text: str, cause: str, pattern: str, tmp_path: Path
) -> None:
    """The log only stops."""
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / f"ras.{'json' if text.startswith('{') else 'txt'}").write_text(text)
    report = reader.read(open_job(tmp_path))
    assert report.root is not None
    assert (report.root.cause, report.root.pattern) == (cause, pattern)


def test_ranks_that_agree_decide_nothing(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "ras.txt").write_text(ras_text(EVEN))
    assert reader.read(open_job(tmp_path)).root is None


@each_row("text", ['{"nccl_version": "2.29", "communicators": [', '{"communicators": ' + "[" * 100_000])
def test_a_damaged_answer_is_refused(text: str) -> None:
    with pytest.raises(ArtefactError):
        read_ras(text.encode())


@each_row(
    "value",
    [
        {"communicators": 7},
        {"communicators": [{"ranks": {"a": 1}, "missing_ranks": [3]}]},
        {"communicators": [{"hash": 5, "ranks": [{"rank": "x", "collective_counts": [1]}]}]},
    ],
)
def test_an_answer_of_another_form_tells_nothing(value: object) -> None:
    assert ras_table(read_ras(json.dumps(value).encode())).verdicts == ()


def test_a_number_of_ranks_that_no_job_has_is_cut() -> None:
    """The text may name any number."""
    text = ras_text(ONE_BEHIND).replace("7 ranks have launched", "9999999 ranks have launched")
    first = ras_table(read_ras(text.encode())).verdicts[0]
    assert first.outliers == (3,)
