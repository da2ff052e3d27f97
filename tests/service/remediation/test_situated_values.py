"""Switches, counts and steps that follow from what the log states, and those that its figures rule out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corpus.schema import Scalar
from service.remediation.rules.context import CannotHelp, ComputedValue
from service.schemas.value_bounds import ValueBounds
from tests.service.remediation.test_values import answer, given_of
from tests.tables import each_row

OOM: Mapping[str, Any] = {"gpu_oom": {"asked_gib": 4.0, "free_gib": 1.0}}
HELD: Mapping[str, Any] = {"host_oom": {"used_gib": 250.0, "limit_gib": 256.0}}
FULL: Mapping[str, Any] = {"host_oom": {"used_gib": 254.0, "limit_gib": 256.0}}
BATCH: Mapping[str, Any] = {"batch": {"size_n": 48, "micro_n": 4, "world_n": 6}}


def test_that_values_follow_from_the_situation() -> None:
    """Each row: rule, cause, present value and facts; the value, `no` where none helps, None for silence."""
    rows: list[tuple[str, str, object, Mapping[str, Any], Scalar | None]] = [
        ("offload", "gpu-oom-training", None, OOM, "to"),
        ("offload", "gpu-oom-training", None, {**OOM, **HELD}, "to"),
        ("offload", "gpu-oom-training", None, {**OOM, **FULL}, "no"),
        ("offload", "host-oom-kill", None, FULL, "to"),
        ("offload", "host-oom-kill", None, OOM, None),
        ("memory-saver", "gpu-oom-logits", None, OOM, "to"),
        ("memory-saver", "gpu-oom-logits", None, {}, None),
        ("graph-capture", "kv-cache-too-small", None, {"kv_cache": {"missing_gib": 2.0}}, "to"),
        ("graph-capture", "kv-cache-too-small", None, {"kv_cache": {"missing_gib": 11.0}}, "no"),
        ("graph-capture", "gpu-oom-rollout", None, OOM, "to"),
        ("keep-last", "disk-full", 5, {}, 2),
        ("keep-last", "disk-full", 1, {}, None),
        ("save-interval", "node-lost", 500, {}, 100),
        ("save-interval", "node-lost", 4, {}, None),
        ("save-interval", "disk-full", 100, {}, 500),
        ("accumulation-steps", "batch-not-divisible", 3, BATCH, 2),
        (
            "accumulation-steps",
            "batch-not-divisible",
            3,
            {"batch": {"size_n": 50, "micro_n": 4, "world_n": 6}},
            "no",
        ),
        ("parallel-degree", "parallelism-invalid", 4, {"parallel": {"world": 6}}, 3),
        ("parallel-degree", "parallelism-invalid", 8, {"gpus": {"available": 4}}, 4),
        ("parallel-degree", "parallelism-invalid", 4, {}, None),
        ("clip", "nan-or-inf", 0.0, {}, 1.0),
        ("clip", "nan-or-inf", 5.0, {}, 1.0),
        ("clip", "nan-or-inf", 0.5, {}, 0.25),
        ("ib-timeout", "nccl-network", 18, {}, 20),
        ("ib-timeout", "nccl-network", 21, {}, 22),
        ("ib-timeout", "nccl-network", 22, {}, "no"),
    ]
    found = []
    for rule, cause, now, facts, _ in rows:
        given = given_of(rule, cause, now, facts, to="as proposed", type="any")
        made = answer(given)
        value: Scalar | None = made.value if isinstance(made, ComputedValue) else None
        told = "to" if value is not None and value == given.change.to else value
        found.append("no" if isinstance(made, CannotHelp) else told)
    assert found == [row[-1] for row in rows]


def test_that_as_many_checkpoints_are_kept_as_the_disk_held() -> None:
    """One fewer than were whole, as a new one is written before an old one goes; at least one."""
    given = given_of("keep-last", "disk-full", 10, {}, type="int")
    rows = {0: 5, 1: 1, 3: 2, 9: 8, 10: 5}
    made = {held: answer(replace(given, saved_n=held)) for held in rows}
    assert {held: item.value for held, item in made.items() if isinstance(item, ComputedValue)} == rows


def test_that_a_number_of_steps_which_makes_up_the_batch_is_proved() -> None:
    """The sentence holds the arithmetic."""
    made = answer(given_of("accumulation-steps", "batch-not-divisible", 3, BATCH, type="int"))
    assert isinstance(made, ComputedValue)
    assert (made.proves, made.because.en) == (
        True,
        "The batch of 48 over 24 (micro batch x GPUs) gives 2 steps.",
    )


def test_that_a_proof_says_what_it_asks_of_any_value() -> None:
    """A bound, a divisor, or nothing where it is of another kind; what the log does not state is none."""
    rows = {
        ("global-batch", 30, "size", 8): ValueBounds(multiple_of=8, at_least=1),
        ("accumulation-steps", 3, "", 0): None,
    }
    found = {}
    for rule, now, name, number in rows:
        facts = {"batch": {name: 30, "divisor": number}} if name else BATCH
        made = answer(given_of(rule, "batch-not-divisible", now, facts, type="int"))
        assert isinstance(made, ComputedValue)
        assert made.proves
        found[rule, now, name, number] = made.bounds
    assert found == rows
    fits = {"kv_cache": {"estimated_n": 40970}}
    made = answer(given_of("context-length", "kv-cache-too-small", 131072, fits, type="int"))
    assert isinstance(made, ComputedValue)
    assert (made.value, made.bounds) == (40960, ValueBounds(at_most=40970))


@each_row(
    ("others", "world", "proves"),
    [
        ({"tensor_model_parallel_size": 4}, 16, True),
        ({"tensor_model_parallel_size": 2, "context_parallel_size": 4}, 8, False),
        ({"rollout.tensor_model_parallel_size": 4, "actor.tensor_model_parallel_size": 2}, 8, False),
    ],
    ids=["tensor-alone", "with-context", "an-engine-beside"],
)
def test_that_stages_are_proved_where_all_degrees_are_known(
    others: dict[str, object], world: int, proves: bool
) -> None:
    """A third degree divides the ranks too, and an engine's degree is not the trainer's."""
    facts = {"parallel": {"world": world}}
    key = "x.pipeline_model_parallel_size"
    made = answer(given_of("parallel-degree", "parallelism-invalid", 3, facts, others, key, type="int"))
    assert isinstance(made, ComputedValue)
    assert made.proves is proves


def test_that_a_request_for_logits_is_told_in_tokens_times_vocabulary() -> None:
    """Of logits alone; other requests say what is asked and what is free."""
    told = {}
    for cause in ("gpu-oom-logits", "gpu-oom-training"):
        made = answer(given_of("memory-saver", cause, None, OOM, to=True, type="bool"))
        assert isinstance(made, ComputedValue)
        told[cause] = made.because.en
    asked = "4 GiB are asked for, and 1 GiB are free."
    assert told == {
        "gpu-oom-logits": (
            f"{asked} 4 GiB in float32 are 1.07 billion logits: tokens of the batch x vocabulary."
        ),
        "gpu-oom-training": asked,
    }
