"""Scores and summaries say what they should, for answers that are good, bad and greedy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.library import Library
from eval.answers import Answer
from eval.incidents import Incident, Label, LabelledChange, Origin
from eval.metrics import Score, compare, ece, mean, ranking, reliability, risk_coverage, score
from tests.factories import whole_corpus
from tests.tables import each_row


@pytest.fixture(scope="module")
def known() -> Library:
    """The real corpus."""
    return whole_corpus()


def incident(tmp_path: Path, **changes: object) -> Incident:
    """Make a labelled incident on disk."""
    fields: dict[str, object] = {
        "id": "a-a",
        "causes": ("host-oom-kill",),
        "verdict": "diagnosed",
        "root_lines": (3,),
        "kind": "paste",
        "mechanism": "m",
        "split": "test",
        "origin": Origin(kind="written"),
    }
    (tmp_path / "log.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    return Incident(Label.model_validate(fields | changes), tmp_path)


def answer(**changes: object) -> Answer:
    """Make an answer that names the right cause and line."""
    fields: dict[str, object] = {
        "incident": "a-a",
        "verdict": "diagnosed",
        "causes": ("host-oom-kill",),
        "confidence": 0.9,
        "lines": (3,),
        "changes": (),
    }
    return Answer(**(fields | changes))  # type: ignore[arg-type]


@each_row(
    ("said", "field", "expected"),
    [
        ({}, "cause_top1", 1.0),
        ({"causes": ("disk-full", "host-oom-kill")}, "cause_top1", 0.0),
        ({"causes": ("disk-full", "host-oom-kill")}, "cause_top3", 1.0),
        ({"causes": ("ray-memory-monitor-kill",)}, "category", 1.0),
        ({"causes": ("disk-full",)}, "category", 0.0),
        ({"verdict": "unknown", "causes": ("insufficient-evidence",)}, "cause_top1", 0.0),
        ({"lines": (9, 3)}, "root_line_1", 0.0),
        ({"lines": (9, 3)}, "root_line_5", 1.0),
        ({"lines": (*range(10, 60), 3)}, "root_line_5", 0.0),
        ({"lines": None}, "root_line_5", None),
        ({}, "setting", None),
        ({}, "healthy", None),
        ({}, "abstained", None),
        ({"causes": ("disk-full",)}, "sure_and_wrong", 1.0),
        ({"causes": ("disk-full",), "confidence": 0.7}, "sure_and_wrong", 0.0),
        ({"confidence": None}, "sure_and_wrong", None),
        ({"grounded": (1, 2)}, "grounded", 0.5),
        ({"grounded": (0, 0)}, "grounded", None),
    ],
)
def test_an_answer_is_scored_on_each_point(
    tmp_path: Path, known: Library, said: dict[str, object], field: str, expected: float | None
) -> None:
    """Right is 1, wrong is 0, and what cannot be scored is neither."""
    assert getattr(score(incident(tmp_path), answer(**said), known), field) == expected


def test_an_answer_that_names_every_cause_names_none(tmp_path: Path, known: Library) -> None:
    """A list of all that is possible is no answer."""
    scored = score(incident(tmp_path), answer(causes=tuple(sorted(known.causes))), known)
    assert (scored.cause_top1, scored.cause_top3) == (0.0, 0.0)


@each_row(
    ("verdict", "said", "field", "expected"),
    [
        ("no-failure", {"verdict": "no-failure", "causes": ()}, "healthy", 1.0),
        ("no-failure", {}, "healthy", 0.0),
        ("unknown", {"verdict": "unknown"}, "abstained", 1.0),
        ("unknown", {}, "abstained", 0.0),
        ("unknown", {}, "cause_top1", None),
    ],
)
def test_healthy_and_unanswerable_logs_have_scores_of_their_own(
    tmp_path: Path, known: Library, verdict: str, said: dict[str, object], field: str, expected: float | None
) -> None:
    """Leaving a healthy run alone and abstaining are scored only where they are the right answer."""
    label = {"verdict": verdict, "causes": (), "root_lines": ()}
    assert getattr(score(incident(tmp_path, **label), answer(**said), known), field) == expected


@each_row(
    ("framework", "wanted", "proposed", "expected"),
    [
        ("verl", "data.train_batch_size", "data.train_batch_size", 1.0),
        ("vllm", "max_model_len", "--max-model-len", 1.0),
        ("pytorch", "num_workers", "DataLoader.num_workers", 1.0),
        ("pytorch", "workers", "DataLoader.num_workers", 0.0),
        ("vllm", "max_model_len", "gpu_memory_utilization", 0.0),
        ("script", "batch_size", "--batch-size", 1.0),
        ("script", "batch_size", "num_workers", 0.0),
        ("code", "train.py", "DataLoader.num_workers", None),
    ],
)
def test_a_setting_is_one_however_it_is_spelled(
    tmp_path: Path, known: Library, framework: str, wanted: str, proposed: str, expected: float | None
) -> None:
    """Dashes and an owner's name in front make no other setting; the user's own code is no setting.

    An option of the job's own program is one.
    """
    label = incident(tmp_path, changes=(LabelledChange(framework=framework, key=wanted),))
    assert score(label, answer(changes=((framework, proposed, "1"),)), known).setting == expected


@each_row(
    ("proposed", "expected"),
    [("--batch_size", 1.0), ("DataLoader.num_workers", 1.0), ("pad_token", 1.0), ("--lr", 0.0)],
)
def test_whatever_a_label_accepts_beside_a_setting_is_right(
    tmp_path: Path, known: Library, proposed: str, expected: float
) -> None:
    """Where a known framework's setting cures, so does the program's own option that the label names too."""
    named = (("pytorch", "num_workers"), ("script", "batch_size"), ("code", "pad_token"))
    changes = tuple(LabelledChange(framework=framework, key=key) for framework, key in named)
    label = incident(tmp_path, changes=changes)
    assert score(label, answer(changes=(("python", proposed, "1"),)), known).setting == expected


def test_changes_are_scored_for_being_first_idle_foreign_and_harmful(tmp_path: Path, known: Library) -> None:
    """Each row: the answer's changes and faults, a metric, and its score."""
    label = incident(
        tmp_path,
        changes=(LabelledChange(framework="vllm", key="max_model_len"),),
        forbidden=(
            LabelledChange(framework="slurm", key="--requeue"),
            LabelledChange(framework="vllm", key="gpu_memory_utilization", to="0.99"),
        ),
    )
    right, other = ("vllm", "--max-model-len", "4096"), ("vllm", "--gpu-memory-utilization", "0.9")
    rows: dict[tuple[str, object, object], float | None] = {
        ("setting", (other, right), ()): 1.0,
        ("setting_first", (other, right), ()): 0.0,
        ("setting_first", (right, other), ()): 1.0,
        ("no_op", (right,), ("no-op",)): 1.0,
        ("no_op", (right,), ("not-run",)): 0.0,
        ("not_run", (right,), ("not-run",)): 1.0,
        ("not_run", (right,), None): None,
        ("not_run", (), ()): None,
        ("harmful", (right, other), ()): 0.0,
        ("harmful", (("vllm", "gpu_memory_utilization", "0.99"),), ()): 1.0,
        ("harmful", (("slurm", "--requeue", "True"),), ()): 1.0,
    }
    found = {row: getattr(score(label, answer(changes=row[1], faults=row[2]), known), row[0]) for row in rows}
    assert found == rows
    assert score(incident(tmp_path), answer(changes=(right,)), known).harmful is None


def test_a_mean_leaves_out_what_is_unscored() -> None:
    """Unscored is neither right nor wrong, and the interval holds the mean."""
    found = mean([1.0, None, 0.0, 1.0, None])
    assert (found.count, round(found.value, 3)) == (3, 0.667)
    assert found.low <= found.value <= found.high
    assert math.isnan(mean([None]).value)


def told(name: str, right: float, confidence: float | None) -> Score:
    """Make a score with a confidence."""
    empty = dict.fromkeys(
        (
            "cause_top3",
            "category",
            "root_line_1",
            "root_line_5",
            "setting",
            "patch",
            "grounded",
            "healthy",
            "abstained",
            "sure_and_wrong",
        )
    )
    return Score(
        incident=name,
        cause_top1=right,
        answered=1.0 if confidence is not None else 0.0,
        right=right,
        confidence=confidence,
        **empty,
    )  # type: ignore[arg-type]


def test_calibration_compares_confidence_with_truth() -> None:
    """Answers that are as often right as they say have no error; boasters have."""
    honest = [told(str(number), float(number < 8), 0.8) for number in range(10)]
    boasting = [told(str(number), float(number < 5), 0.95) for number in range(10)]
    assert ece(honest) == pytest.approx(0.0)
    assert ece(boasting) == pytest.approx(0.45)
    assert [(item.count, item.right) for item in reliability(boasting)] == [(10, 0.5)]


def test_coverage_falls_with_the_threshold() -> None:
    """The surest answers come first; unanswered ones count in the share."""
    points = risk_coverage([told("a", 1.0, 0.9), told("b", 0.0, 0.6), told("c", 0.0, None)])
    assert points == [(pytest.approx(1 / 3), 1.0), (pytest.approx(2 / 3), 0.5)]


def test_two_runs_are_compared_pair_by_pair() -> None:
    """What got better and worse is named; six of six better is hardly chance."""
    before = [told(str(number), 0.0, 0.5) for number in range(6)]
    after = [told(str(number), 1.0, 0.5) for number in range(6)]
    change = compare(before, after, "cause_top1")
    assert (change.before, change.after, len(change.better), change.worse) == (0.0, 1.0, 6, ())
    assert change.p == pytest.approx(2 / 64)
    assert compare(before, before, "cause_top1").p == 1.0


def test_that_of_a_metric_of_which_less_is_better_what_fell_got_better() -> None:
    """An answer that is no longer sure and wrong is told as an improvement."""
    before, after = [replace(told("a", 0.0, 0.9), sure_and_wrong=1.0)], [told("a", 1.0, 0.9)]
    change = compare(before, [replace(after[0], sure_and_wrong=0.0)], "sure_and_wrong")
    assert (change.better, change.worse) == (("a",), ())


def test_a_ranking_is_scored_by_its_first_fitting_case(tmp_path: Path, known: Library) -> None:
    """Recall asks for one fitting case among the first k, the reciprocal rank for how far up it is."""
    fitting = next(case.id for case in known.cases.values() if case.cause == "host-oom-kill")
    other = [case.id for case in known.cases.values() if case.cause == "disk-full"][:1]
    found = ranking([incident(tmp_path)], {"a-a": answer(retrieved={"words": (*other, fitting)})}, known)
    assert (
        found["words"]["recall@1"].value,
        found["words"]["recall@3"].value,
        found["words"]["MRR"].value,
    ) == (0.0, 1.0, 0.5)
