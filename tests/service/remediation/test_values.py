"""Values computed from facts: each rule's numbers, its bounds, and its silence where facts are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

from corpus.log_patterns import PatternTable
from corpus.rules import known_rules
from corpus.schema import Change, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact, Value
from ingest.logs.inputs import sources
from service.pipeline.lint import findings
from service.pipeline.triage import Triage
from service.remediation.changes import propose_changes
from service.remediation.rules.context import (
    GIB,
    Answer,
    CannotHelp,
    ComputedValue,
    RuleContext,
    gib_of,
    parsed,
)
from service.remediation.rules.evaluation import apply_rule
from service.remediation.rules.operators import divisor_at_most
from service.remediation.setting_values import misfit_reason
from service.remediation.values import (
    at_least_told,
    compute_value,
    leads_astray,
    measured_gib,
    printed_number,
    rule_for,
    rule_ids,
)
from service.schemas.diagnosis import Diagnosis, Dropped, ProposedChange
from tests.factories import traceback
from tests.service.factories import case, change, failed, library, report, setting, spec
from tests.tables import each_row
from tests.warm import diagnosed

RULES = known_rules().rules
Facts = Mapping[str, Mapping[str, Value]]
# Steps that tell what each took, and not how many there are.
TIMED = [f"iter {step}: loss 2.9, time 45000.00ms" for step in (1, 2, 3)]
EXAMPLES = settings(derandomize=True, deadline=None, max_examples=60)


def given_of(
    rule: str,
    cause: str,
    now: object = None,
    facts: Facts | None = None,
    others: Mapping[str, object] | None = None,
    key: str = "x.size",
    framework: str = "verl",
    to: Scalar = 1,
    **fields: Any,
) -> RuleContext:
    """Make a situation of one setting whose range is open, with one fact of each kind."""
    found = [Fact(kind, 3, values) for kind, values in (facts or {}).items()]
    told = [setting(name, str(value)) for name, value in (others or {}).items()]
    own = spec(
        key, **{"framework": framework, "rule": rule, "min": None, "max": None, "default": None, **fields}
    )
    wanted = Change.model_validate(change(key, to, framework=framework))
    return RuleContext(wanted, own, None if now is None else str(now), cause, found, told)


def answer(situation: RuleContext) -> Answer:
    """Apply the rule that the situation's setting names."""
    rule = rule_for(situation.change, situation.spec, situation.cause)
    assert rule is not None
    return compute_value(rule, situation)


def value(situation: RuleContext) -> Scalar | None:
    """Give the computed value, None where there is none."""
    made = answer(situation)
    return made.value if isinstance(made, ComputedValue) else None


OOM = {"gpu_oom": {"asked_gib": 4.0, "free_gib": 1.2, "capacity_gib": 80.0}}
FREE = {"gpu_oom": {"free_gib": 40.0, "capacity_gib": 80.0, "utilization": 0.9, "asked_gib": 72.0}}
SHORT = {
    "kv_cache": {"max_model_len": 32768, "needed_gib": 8.0, "available_gib": 4.0},
    "gpu_memory": {"capacity_gib": 80.0},
}
KILL = {"host_oom": {"used_gib": 97.5, "limit_gib": 100.0, "threshold": 0.95}}
TRAINING, LOGITS, ROLLOUT = "gpu-oom-training", "gpu-oom-logits", "gpu-oom-rollout"
SMALL, LONG, INVALID = "kv-cache-too-small", "sequence-too-long", "config-key-invalid"
NODES = {"n_gpus_per_node": 8}
RANKS = {"n_gpus_per_node": 8, "nnodes": 2, "ppo_micro_batch_size_per_gpu": 2}
LENGTHS = {"max_prompt_length": 1000, "max_response_length": 6000}
BATCH, PARALLEL, WAIT = "batch-not-divisible", "parallelism-invalid", "collective-straggler"
PROMPT = {"data.max_prompt_length": 1024, "data.max_response_length": 3072}


@each_row(
    ("rule", "cause", "now", "facts", "others", "expected"),
    [
        ("gpu-share", ROLLOUT, 0.9, OOM, {}, 0.84),
        ("gpu-share", TRAINING, 0.6, OOM, {}, 0.54),
        (
            "gpu-share",
            ROLLOUT,
            0.5,
            {"gpu_oom": {"asked_gib": 0.1, "free_gib": 0.09, "capacity_gib": 80.0}},
            {},
            0.45,
        ),
        ("gpu-share", ROLLOUT, None, OOM, {}, None),
        ("gpu-share", ROLLOUT, 0.9, {}, {}, None),
        ("gpu-share", ROLLOUT, 0.12, OOM, {}, None),
        ("gpu-share", ROLLOUT, 0.5, {**OOM, "gpu_memory": {"weights_gib": 60.0}}, {}, None),
        ("gpu-share", "gpu-memory-occupied", 0.9, FREE, {}, 0.48),
        ("gpu-share", "gpu-memory-occupied", None, FREE, {}, 0.48),
        ("gpu-share", "gpu-memory-occupied", 0.9, {}, {}, None),
        ("gpu-share", "gpu-memory-occupied", 0.4, FREE, {}, None),
        ("gpu-share", SMALL, 0.8, SHORT, {}, 0.86),
        ("gpu-share", SMALL, None, SHORT, {}, None),
        ("gpu-share", SMALL, 0.8, {}, {}, None),
        (
            "gpu-share",
            SMALL,
            0.7,
            {"kv_cache": {"available_gib": -3.0}, "gpu_memory": {"capacity_gib": 80.0}},
            {},
            0.76,
        ),
        ("static-share", ROLLOUT, 0.88, OOM, {}, 0.82),
        ("static-share", SMALL, 0.7, {}, {}, 0.75),
        ("static-share", SMALL, 0.93, {}, {}, 0.95),
        ("static-share", SMALL, None, {}, {}, None),
        ("context-length", SMALL, 65536, {"kv_cache": {"estimated_n": 40500}}, {}, 40448),
        ("context-length", SMALL, None, {"kv_cache": {"max_model_len": 32768, "capacity": 17840}}, {}, 17664),
        ("context-length", SMALL, None, SHORT, {}, 15872),
        ("context-length", SMALL, 32768, {}, {}, None),
        ("context-length", SMALL, 32768, {"kv_cache": {"estimated_n": 200}}, {}, 192),
        ("context-length", SMALL, 32768, {"kv_cache": {"estimated_n": 4000}}, PROMPT, None),
        ("context-length", SMALL, 4096, {"kv_cache": {"estimated_n": 40500}}, {}, None),
        ("context-length", LONG, 2048, {}, PROMPT, 4096),
        ("context-length", LONG, 4096, {"sequence": {"length": 5951}}, {}, 6144),
        ("context-length", LONG, 4096, {"sequence": {"length": 5951}}, {"max_tokens": 1000}, 7168),
        ("context-length", LONG, 4096, {}, {}, None),
        ("context-length", INVALID, 65536, {"sequence": {"length": 65536, "limit": 32768}}, {}, 32768),
        ("context-length", INVALID, 65536, {"sequence": {"length": 65536}}, {}, None),
        ("input-length", LONG, 256, {"sequence": {"length": 311, "limit": 256}}, {}, 320),
        ("input-length", LONG, 256, {}, {}, None),
        ("input-length", LONG, 4096, {"sequence": {"length": 311}}, {}, None),
        ("input-length", LONG, 1, {"sequence": {"length": 10**7}}, {}, None),
        ("input-length", TRAINING, 5000, {}, {}, 2496),
        ("input-length", TRAINING, 64, {}, {}, None),
        ("input-length", TRAINING, None, {}, {}, None),
        ("half-length", LOGITS, 8192, OOM, {}, 4096),
        ("half-length", LOGITS, None, OOM, {}, None),
        (
            "prompt-within-context",
            LONG,
            4096,
            {"sequence": {"limit": 4096}},
            {"max_completion_length": 1000},
            3072,
        ),
        ("prompt-within-context", LONG, 4096, {"sequence": {"limit": 4096}}, {}, None),
        ("token-budget", TRAINING, 16384, {}, PROMPT, 8192),
        ("token-budget", TRAINING, 6000, {}, PROMPT, 4096),
        ("token-budget", TRAINING, 16384, {}, {}, None),
        ("token-budget", TRAINING, 4000, {}, PROMPT, None),
        ("token-budget", TRAINING, 6000, {}, {**PROMPT, "actor.ulysses_sequence_parallel_size": 2}, 3000),
        ("token-budget", LONG, 8192, {"sequence": {"length": 9216}}, {}, 9216),
        ("token-budget", LONG, 8192, {"sequence": {"length": 9000}}, {}, 9216),
        ("token-budget", LONG, 8192, {}, {}, None),
        ("batched-tokens", ROLLOUT, 8192, {}, {}, 4096),
        ("batched-tokens", ROLLOUT, 1024, {}, {"max_num_seqs": 700}, 700),
        ("batched-tokens", ROLLOUT, 8192, {}, {"max_model_len": 6000, "enable_chunked_prefill": False}, 6000),
        ("batched-tokens", ROLLOUT, None, {}, {}, None),
        ("batched-tokens", ROLLOUT, 200, {}, {}, None),
        ("batched-tokens", INVALID, 2048, {"batch": {"size": 2048, "least_n": 8192}}, {}, 8192),
        ("batched-tokens", INVALID, 128, {"batch": {"size": 128, "seqs_n": 256}}, {}, 256),
        ("batched-tokens", INVALID, 128, {}, {}, None),
    ],
)
def test_shares_and_lengths_follow_from_the_facts(
    rule: str, cause: str, now: object, facts: Facts, others: Mapping[str, object], expected: float | None
) -> None:
    """A share or a length is what the log's sizes leave, and nothing where the log states too little."""
    kind = "float" if rule.endswith("share") else "int"
    assert value(given_of(rule, cause, now, facts, others, type=kind)) == expected


@each_row(
    ("rule", "cause", "now", "facts", "others", "expected"),
    [
        ("micro-batch", TRAINING, 8, OOM, {}, 4),
        ("micro-batch", TRAINING, 6, {}, {}, 3),
        ("micro-batch", TRAINING, 9, {}, {}, 3),
        ("micro-batch", TRAINING, 7, {}, {}, 1),
        ("micro-batch", TRAINING, 1, {}, {}, None),
        ("micro-batch", TRAINING, None, OOM, {}, None),
        ("micro-batch", TRAINING, "auto", OOM, {}, None),
        ("micro-batch", LOGITS, 8, OOM, {}, 2),
        ("micro-batch", LOGITS, 8, {"gpu_oom": {"asked_gib": 40.0, "free_gib": 1.0}}, {}, 1),
        ("micro-batch", BATCH, 8, {"batch": {"size": 12, "divisor": 8}}, {}, 6),
        ("micro-batch", BATCH, 8, {}, {}, None),
        ("micro-batch", BATCH, 4, {"batch": {"size_n": 96, "micro_n": 4, "dp_n": 16}}, {}, 3),
        ("global-batch", BATCH, 500, {"batch": {"size": 2500, "divisor": 16}}, {}, 496),
        ("global-batch", BATCH, 30, {"batch": {"size": 30, "divisor": 8}}, {}, 24),
        (
            "global-batch",
            BATCH,
            30,
            {"batch": {"size": 30, "divisor": 8}},
            {"actor.ppo_mini_batch_size": 26},
            32,
        ),
        ("global-batch", BATCH, 64, {"batch": {"size": 64, "divisor": 128}}, {}, 128),
        ("global-batch", BATCH, None, {"batch": {"size": 30, "divisor": 8}}, {}, None),
        ("global-batch", BATCH, 30, {}, {}, None),
        ("global-batch", BATCH, None, {"batch": {"size_n": 1000, "micro_n": 4, "dp_n": 3}}, {}, 996),
        (
            "product-batch",
            BATCH,
            256,
            {"batch": {"size_n": 256, "micro_n": 2, "accumulation_n": 18, "world_n": 7}},
            {},
            252,
        ),
        ("product-batch", BATCH, 256, {}, {}, None),
        ("mini-batch", BATCH, 128, {"batch": {"size": 64, "divisor": 128}}, {}, 64),
        ("mini-batch", BATCH, 60, {"batch": {"size": 60, "divisor": 8}}, {}, 56),
        ("mini-batch", BATCH, 60, {}, {}, None),
        ("group-size", BATCH, 16, {"batch": {"valid": "2, 3, 4, 6, 8, 12, 24"}}, {}, 8),
        ("group-size", BATCH, 9, {"batch": {"valid": "2, 4"}}, {}, 4),
        ("group-size", BATCH, None, {"batch": {"group_n": 8, "valid": "2, 3, 4, 6, 12"}}, {}, 4),
        ("group-size", BATCH, 2, {"batch": {"valid": "3, 9"}}, {}, 3),
        ("group-size", BATCH, None, {"batch": {"size_n": 12, "divisor_n": 8}}, {}, 6),
        ("group-size", BATCH, None, {"batch": {"size_n": 7, "divisor_n": 4}}, {}, None),
        ("group-size", BATCH, 8, {"batch": {"valid": 1}}, {}, None),
        ("group-size", BATCH, 8, {}, {}, None),
        ("requests", ROLLOUT, 1024, OOM, {}, 512),
        ("requests", ROLLOUT, None, {"warmup": {"requests": 256}}, {}, 128),
        ("requests", SMALL, None, {"kv_cache": {"max_num_seqs": 1024, "blocks": 412}}, {}, 412),
        ("requests", ROLLOUT, None, {}, {}, None),
        ("capture", ROLLOUT, 160, {}, {}, 80),
        ("capture", ROLLOUT, None, {}, {}, None),
        ("workers", "shm-exhausted", 32, {}, {}, 16),
        ("workers", "shm-exhausted", 32, {"workers": {"suggested_n": 8}}, {}, 8),
        ("workers", "shm-exhausted", None, {}, {}, None),
        ("processes", "host-oom-kill", 16, {}, {}, 8),
        ("processes", "host-oom-kill", None, {"preprocess": {"num_proc": 64}}, {}, 32),
        ("processes", "host-oom-kill", 1, {}, {}, None),
        ("build-jobs", "jit-build-failed", 64, {}, {}, 32),
        ("bucket", TRAINING, 500000000, {}, {}, 250000000),
        ("pixels", LONG, 1003520, {}, {}, 501760),
        ("concurrency", "reward-function-failed", 64, {}, {}, 32),
        ("rollout-size", "host-oom-kill", 512, {}, {"ppo_mini_batch_size": 96}, 192),
        ("rollout-size", "host-oom-kill", 128, {}, {"ppo_mini_batch_size": 96}, None),
        ("save-interval", "disk-full", 10, {}, {}, 50),
        ("save-interval", "disk-full", -1, {}, {}, None),
        ("lora-rank", INVALID, None, {"lora": {"size": 48, "limit": 16}}, {}, 64),
        ("lora-rank", INVALID, None, {"lora": {"size": 600, "limit": 16}}, {}, None),
        ("learning-rate", "nan-or-inf", "3e-4", {}, {}, 0.0001),
        ("learning-rate", "nan-or-inf", None, {}, {}, None),
    ],
)
def test_counts_stay_divisible(
    rule: str, cause: str, now: object, facts: Facts, others: Mapping[str, object], expected: float | None
) -> None:
    """A batch becomes a number that still divides, a count half of what it was."""
    kind = "float" if rule == "learning-rate" else "int"
    assert value(given_of(rule, cause, now, facts, others, type=kind)) == expected


@each_row(
    ("rule", "cause", "now", "facts", "expected", "fields"),
    [
        ("host-memory", "host-oom-kill", None, KILL, "125g", {"framework": "docker"}),
        ("host-memory", "host-oom-kill", "64G", {}, "80G", {"framework": "slurm"}),
        ("host-memory", "host-oom-kill", 65536, {}, "80G", {"framework": "slurm", "unit": "MiB"}),
        ("host-memory", "host-oom-kill", "512Gi", KILL, None, {"framework": "kubernetes"}),
        ("host-memory", "host-oom-kill", "100Gi", KILL, "125Gi", {"framework": "kubernetes"}),
        ("host-memory", "host-oom-kill", 0, KILL, None, {"framework": "slurm"}),
        ("host-memory", "host-oom-kill", None, {}, None, {"framework": "docker"}),
        (
            "host-memory",
            "checkpoint-host-peak",
            None,
            {"host_memory": {"used_gib": 100.0, "limit_gib": 110.0}},
            "104g",
            {"framework": "docker"},
        ),
        (
            "shm-size",
            "shm-exhausted",
            "64m",
            {"shm": {"shm_bytes_n": 67108864, "suggested_gib": 10.24}},
            "11g",
            {"framework": "docker"},
        ),
        (
            "shm-size",
            "shm-exhausted",
            None,
            {"shm": {"store_gib": 200.0, "shm_gib": 64.0}},
            "220g",
            {"framework": "docker"},
        ),
        (
            "shm-size",
            "shm-exhausted",
            "32g",
            {"shm": {"suggested_gib": 10.24}},
            None,
            {"framework": "docker"},
        ),
        ("shm-size", "shm-exhausted", "64m", {}, None, {"framework": "docker"}),
    ],
)
def test_sizes_are_written_as_their_owner_reads_them(
    rule: str, cause: str, now: object, facts: Facts, expected: str | None, fields: dict[str, Any]
) -> None:
    """Docker counts in g, Slurm in G, Kubernetes in Gi; a limit that is enough already is left."""
    assert value(given_of(rule, cause, now, facts, type="size", **fields)) == expected


@each_row(
    ("rule", "cause", "now", "facts", "others", "expected"),
    [
        ("object-store", "ray-memory-monitor-kill", None, KILL, {}, 10 * GIB),
        ("object-store", "ray-memory-monitor-kill", 5 * GIB, KILL, {}, None),
        ("object-store", "object-store-full", None, KILL, {}, 50 * GIB),
        ("object-store", "shm-exhausted", None, {"shm": {"shm_gib": 10.0}}, {}, 9 * GIB),
        ("object-store", "shm-exhausted", None, {"shm": {"shm_bytes_n": 10 * GIB}}, {}, 9 * GIB),
        ("object-store", "object-store-full", None, {}, {}, None),
        (
            "memory-threshold",
            "ray-memory-monitor-kill",
            None,
            {"host_oom": {"limit_gib": 800.0, "threshold": 0.95}},
            {},
            0.98,
        ),
        (
            "memory-threshold",
            "ray-memory-monitor-kill",
            None,
            {"host_oom": {"limit_gib": 200.0, "threshold": 0.95}},
            {},
            0.96,
        ),
        (
            "memory-threshold",
            "ray-memory-monitor-kill",
            None,
            {"host_oom": {"limit_gib": 500.0, "fraction": 0.9505}},
            {},
            0.98,
        ),
        ("memory-threshold", "ray-memory-monitor-kill", None, KILL, {}, None),
        ("memory-threshold", "ray-memory-monitor-kill", 0.9, {}, {}, None),
        (
            "swap-space",
            "cpu-offload-pressure",
            16,
            {"host_oom": {"asked_gib": 64.0, "limit_gib": 60.0}},
            {"tensor-parallel-size": 4},
            6,
        ),
        (
            "swap-space",
            "cpu-offload-pressure",
            16,
            {"host_oom": {"asked_gib": 64.0, "limit_gib": 60.0}},
            {},
            6,
        ),
        ("swap-space", "cpu-offload-pressure", 16, {}, {}, None),
        ("offload-gib", SMALL, None, {"kv_cache": {"available_gib": -3.1}}, {}, 5),
        ("offload-gib", SMALL, None, {"kv_cache": {"available_gib": 3.1}}, {}, None),
        ("tensor-parallel", PARALLEL, 8, {"parallel": {"heads": 28, "tp": 8}}, {}, 4),
        ("tensor-parallel", PARALLEL, 3, {"parallel": {"heads": 28, "tp": 3}}, {}, 2),
        ("tensor-parallel", PARALLEL, 3, {"parallel": {"world": 8, "tp": 3}}, {}, 1),
        ("tensor-parallel", PARALLEL, 4, {"parallel": {"world": 6, "tp": 4}}, {}, 2),
        ("tensor-parallel", "resources-insufficient", 8, {"parallel": {"tp": 8, "gpus": 6}}, {}, 4),
        ("tensor-parallel", PARALLEL, 3, {"parallel": {"size": 18944, "divisor": 3}}, {}, 2),
        ("tensor-parallel", PARALLEL, 8, {}, {}, None),
        ("tensor-parallel", PARALLEL, 8, {}, {"model_config.num_attention_heads": 28}, 4),
        ("tensor-parallel", PARALLEL, 4, {}, {"model_config.num_attention_heads": 28}, None),
        ("save-interval", "config-key-invalid", 500, {}, {"eval_steps": 200}, 400),
        ("save-interval", "config-key-invalid", 50, {}, {"eval_steps": 200}, 200),
        ("save-interval", "config-key-invalid", 50, {}, {}, None),
        ("tensor-parallel", SMALL, 2, {}, {"trainer.n_gpus_per_node": 8}, 4),
        ("tensor-parallel", SMALL, 8, {}, {"trainer.n_gpus_per_node": 8}, None),
        ("tensor-parallel", SMALL, 2, {}, {}, None),
        ("sequence-parallel", PARALLEL, 4, {"parallel": {"heads": 14, "tp": 4}}, {}, 2),
        ("sequence-parallel", TRAINING, 1, {}, {"n_gpus_per_node": 8}, 2),
        ("model-parallel", PARALLEL, 8, {"parallel": {"heads_n": 28, "tp_n": 8}}, {}, 4),
        ("gpus", "resources-insufficient", 8, {"gpus": {"available": 7.0, "wanted": 8}}, {}, 7),
        ("gpus", "resources-insufficient", 8, {}, {}, None),
        (
            "gpus",
            "resources-insufficient",
            8,
            {"gpus": {"available": 8, "wanted": 16}},
            {"trainer.nnodes": 2},
            4,
        ),
        ("gpus", "resources-insufficient", 8, {"gpus": {"available": 0, "wanted": 16}}, {}, None),
        ("gpus", "gpu-not-visible", 4, {}, {"CUDA_VISIBLE_DEVICES": "4,5,6"}, 3),
        ("gpus", "gpu-not-visible", 4, {}, {"CUDA_VISIBLE_DEVICES": "all"}, None),
        ("gpus", "checkpoint-mismatch", 16, {"parallel": {"saved_n": 32, "world_n": 16}}, {}, 32),
        ("gpus", "checkpoint-mismatch", 16, {}, {}, None),
        ("gpus", "checkpoint-mismatch", 8, {"parallel": {"saved_n": 32}}, {"trainer.nnodes": 2}, None),
        ("gpus", "checkpoint-mismatch", 4, {"parallel": {"saved_n": 8}}, {"trainer.nnodes": 1}, 8),
        *(
            (
                "nodes",
                "checkpoint-mismatch",
                now,
                {"parallel": {"saved_n": saved}},
                NODES | {"nnodes": now},
                to,
            )
            for now, saved, to in ((1, 24, 3), (4, 16, 2), (2, 16, None), (2, 20, None), (2, 4, None))
        ),
        # What a card is left with is the mini batch times the answers of a prompt, over the ranks.
        *(
            ("mini-batch", BATCH, now, {"batch": {"size": left, "divisor": 0}}, RANKS | more, to)
            for now, left, more, to in (
                (8, 0, {}, 32),
                (8, 1, {"rollout.n": 2}, 16),
                (8, 0, {"ulysses_sequence_parallel_size": 4}, None),
                (8, 0, {"train_batch_size": 16}, None),
                (8, 3, {}, None),
            )
        ),
        ("micro-batch", BATCH, 4, {"batch": {"size": 0, "divisor": 0}}, {}, None),
        *(
            ("batched-tokens", "sequence-too-long", now, {}, LENGTHS | more, to)
            for now, more, to in (
                (4096, {}, 7168),
                (8192, {}, None),
                (4096, {"max_model_len": 9000, "enable_chunked_prefill": "False"}, 9216),
                (4096, {"max_model_len": 9000, "enable_chunked_prefill": "True"}, 7168),
            )
        ),
        ("port", "port-in-use", None, {"port": {"port": 29500}}, {}, 29601),
        ("port", "port-in-use", 8000, {}, {}, 8101),
        ("port", "port-in-use", 6379, {"port": {"port": 29500}}, {}, None),
        ("port", "port-in-use", None, {}, {}, None),
        ("port", "port-in-use", None, {"port": {"port": 22}}, {}, None),
    ],
)
def test_memory_cards_and_ports_fit_what_is_there(
    rule: str, cause: str, now: object, facts: Facts, others: Mapping[str, object], expected: float | None
) -> None:
    """What a machine has bounds what a setting may take of it."""
    assert value(given_of(rule, cause, now, facts, others, type="float")) == expected


@each_row(
    ("rule", "cause", "now", "unit", "facts", "expected"),
    [
        ("group-timeout", WAIT, None, "seconds", {"collective": {"timeout_s": 1800.0}}, 3600),
        ("group-timeout", WAIT, None, "minutes", {"collective": {"timeout_s": 1800.0}}, 60),
        ("group-timeout", WAIT, 2400, "seconds", {"collective": {"timeout_s": 1800.0}}, 4800),
        ("group-timeout", WAIT, 1800, "seconds", {}, 3600),
        ("group-timeout", WAIT, None, "seconds", {"collective": {"timeout_s": 0.2}}, None),
        ("group-timeout", WAIT, None, "seconds", {}, None),
        (
            "group-timeout",
            WAIT,
            None,
            "seconds",
            {"collective": {"timeout_s": 1800.0}, "preprocess": {"percent": 20}},
            13800,
        ),
        ("group-timeout", WAIT, 86400, "seconds", {}, 86400),
        ("preprocess-timeout", WAIT, None, "seconds", {"collective": {"timeout_s": 1800.0}}, None),
        (
            "preprocess-timeout",
            WAIT,
            None,
            "seconds",
            {"collective": {"timeout_s": 1800.0}, "preprocess": {"percent": 50}},
            5400,
        ),
        ("heartbeat-timeout", WAIT, None, "seconds", {"heartbeat": {"elapsed_s": 600.0}}, 1200),
        (
            "watchdog-timeout",
            "engine-request-timeout",
            None,
            "seconds",
            {"watchdog": {"timeout_s": 300}},
            600,
        ),
        ("engine-timeout", "engine-request-timeout", None, "ms", {"rpc": {"timeout_s": 10.0}}, 20000),
        ("ready-timeout", "engine-request-timeout", None, "seconds", {"rpc": {"waited_s": 600.0}}, 1200),
        ("server-timeout", "engine-request-timeout", None, "seconds", {"http": {"timeout_s": 120.0}}, 240),
        (
            "service-timeout",
            "external-service-failed",
            None,
            "seconds",
            {"service": {"timeout_s": 90.0}},
            180,
        ),
        ("own-timeout", "ray-control-plane", 60, "seconds", {}, 120),
        ("own-timeout", "ray-control-plane", None, "seconds", {"collective": {"timeout_s": 9.0}}, None),
        ("register-timeout", "ray-control-plane", None, "seconds", {"waiting": {"timeout_s": 300}}, 600),
    ],
)
def test_a_time_out_is_longer_than_the_one_that_ran_out(
    rule: str, cause: str, now: object, unit: str, facts: Facts, expected: int | None
) -> None:
    """Twice the time that ran out, in the setting's own unit; a day at most."""
    assert value(given_of(rule, cause, now, facts, unit=unit)) == expected


@each_row("rule", sorted(rule_ids()))
def test_no_rule_speaks_without_facts(rule: str) -> None:
    """A rule gives nothing where log and settings say nothing, but what its change needs beside it."""
    for row in (row for row in RULES if row.id == rule):
        for job in (given_of(rule, cause) for cause in row.causes):
            made = apply_rule(row, known_rules(), job)
            said = made and (made.value, made.because.to("en"), made.proves)
            assert said in (None, (job.change.to, "", False))


@each_row("row", RULES, ids=lambda row: row.id)
def test_a_rule_tells_its_formula_and_source(row: Any) -> None:
    """Every rule says what it computes and where the setting is documented."""
    assert row.formula
    assert row.source.startswith("https://")
    assert row.causes


def test_a_rule_serves_a_cause_once() -> None:
    """Two rows of one id share no cause, so that the order of the table means nothing."""
    pairs = [(row.id, cause) for row in RULES for cause in row.causes]
    assert len(pairs) == len(set(pairs))


@each_row(
    ("framework", "key", "now", "others", "also"),
    [
        (
            "transformers",
            "per_device_train_batch_size",
            8,
            {"gradient_accumulation_steps": 2},
            [("gradient_accumulation_steps", 4)],
        ),
        ("trl", "per_device_train_batch_size", 9, {}, [("gradient_accumulation_steps", 3)]),
        ("transformers", "per_device_train_batch_size", 8, {"gradient_accumulation_steps": "auto"}, []),
        ("transformers", "per_device_eval_batch_size", 8, {"gradient_accumulation_steps": 2}, []),
        ("ms-swift", "--per_device_train_batch_size", 8, {}, []),
        (
            "ms-swift",
            "--per_device_train_batch_size",
            8,
            {"gradient_accumulation_steps": 2},
            [("--gradient_accumulation_steps", 4)],
        ),
        ("deepspeed", "train_micro_batch_size_per_gpu", 8, {"train_batch_size": 64}, []),
        ("verl", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 8, {}, []),
    ],
)
def test_accumulation_keeps_the_global_batch(
    framework: str, key: str, now: int, others: Mapping[str, object], also: list[tuple[str, int]]
) -> None:
    """Where a trainer counts accumulation itself, its steps grow by what the micro batch lost."""
    made = answer(given_of("micro-batch", TRAINING, now, {}, others, key=key, framework=framework))
    assert isinstance(made, ComputedValue)
    assert [(item.key, item.value) for item in made.also] == also


@each_row(
    ("others", "now", "expected"),
    [
        ({"trainer.n_gpus_per_node": 8}, 64, 32),
        ({"trainer.n_gpus_per_node": 8}, 8, None),
        ({"trainer.n_gpus_per_node": 8, "trainer.nnodes": 2}, 32, 16),
        ({}, 64, None),
    ],
)
def test_a_micro_batch_over_all_gpus_leaves_a_row_for_each(
    others: Mapping[str, object], now: int, expected: int | None
) -> None:
    """verl's first names count over all GPUs."""
    key = "actor_rollout_ref.actor.ppo_micro_batch_size"
    assert (
        value(given_of("micro-batch", TRAINING, now, {}, others, key=key, framework="tinyzero")) == expected
    )


@each_row(
    ("cause", "now", "facts"),
    [
        ("gpu-memory-occupied", 0.9, {"gpu_oom": {"free_gib": 8.0, "capacity_gib": 80.0}}),
        ("gpu-memory-occupied", 0.9, {**FREE, "gpu_memory": {"weights_gib": 60.0}}),
        (
            SMALL,
            0.9,
            {"kv_cache": {"needed_gib": 30.0, "available_gib": 4.0}, "gpu_memory": {"capacity_gib": 80.0}},
        ),
    ],
)
def test_a_share_that_cannot_be_enough_is_not_proposed(cause: str, now: float, facts: Facts) -> None:
    """Where no share works the change is dropped, and the reason holds the numbers."""
    made = answer(given_of("gpu-share", cause, now, facts, type="float"))
    assert isinstance(made, CannotHelp)
    assert "80 GiB" in made.because.en


@each_row("text", ["64g", "64G", "64Gi", "64GiB", "65536m", "68719476736", "'64g'"])
def test_a_size_is_read_however_it_is_written(text: str) -> None:
    """Docker, Slurm and Kubernetes write the same size differently."""
    assert gib_of(text) == 64


@each_row(
    ("text", "expected"),
    [
        ("8", 8.0),
        ("'0.6'", 0.6),
        ("1e-6", 1e-6),
        ("auto", None),
        ("", None),
        (None, None),
        ("inf", None),
        ("9" * 400, None),
    ],
)
def test_words_and_endless_values_are_no_numbers(text: str | None, expected: float | None) -> None:
    """What is no plain number is none."""
    assert parsed(text) == expected


# --- properties ---

NUMBERS = st.one_of(
    st.integers(-5, 10**6),
    st.floats(0, 1e6, allow_nan=False),
    st.sampled_from(["", "auto", "2, 4, 8", "1e400"]),
)
NAMES = (
    "asked_gib",
    "free_gib",
    "capacity_gib",
    "process_gib",
    "utilization",
    "needed_gib",
    "available_gib",
    "weights_gib",
    "max_model_len",
    "capacity",
    "estimated_n",
    "length",
    "limit",
    "size",
    "divisor",
    "size_n",
    "micro_n",
    "dp_n",
    "accumulation_n",
    "world_n",
    "least_n",
    "seqs_n",
    "valid",
    "group_n",
    "heads",
    "tp",
    "world",
    "gpus",
    "available",
    "saved_n",
    "port",
    "timeout_s",
    "waited_s",
    "elapsed_s",
    "used_gib",
    "limit_gib",
    "threshold",
    "shm_gib",
    "store_gib",
    "suggested_gib",
    "requests",
    "blocks",
    "max_num_seqs",
    "percent",
    "num_proc",
    "suggested_n",
)
KINDS = (
    "gpu_oom",
    "gpu_memory",
    "kv_cache",
    "sequence",
    "batch",
    "parallel",
    "gpus",
    "port",
    "collective",
    "rpc",
    "watchdog",
    "heartbeat",
    "host_oom",
    "host_memory",
    "shm",
    "warmup",
    "preprocess",
    "workers",
    "http",
    "service",
    "waiting",
)
FACTS = st.dictionaries(
    st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), NUMBERS, max_size=8), max_size=6
)
KEYS = (
    "n_gpus_per_node",
    "nnodes",
    "max_prompt_length",
    "max_response_length",
    "ppo_mini_batch_size",
    "max_num_seqs",
)
OTHERS = st.dictionaries(st.sampled_from(KEYS), NUMBERS, max_size=4)
FRACTIONS = ("gpu-share", "static-share", "memory-threshold", "learning-rate")


@given(
    facts=FACTS,
    others=OTHERS,
    now=st.one_of(st.none(), NUMBERS),
    bounds=st.tuples(st.integers(0, 4), st.integers(5, 10**6)),
)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_a_computed_value_is_valid_for_its_setting(
    facts: Facts, others: Mapping[str, object], now: object, bounds: tuple[int, int]
) -> None:
    """Whatever the facts, a value is within the setting's range and each rule's, and on the right side of the
    present one.
    """
    low, high = bounds
    # To make the facts takes far longer than to apply a rule.
    for row in RULES:
        note(f"{row.id}, for {min(row.causes)}")
        kind = "float" if row.id in FRACTIONS else "int"
        made = given_of(row.id, min(row.causes), now, facts, others, type=kind, min=low, max=high)
        result = compute_value(row, made)
        if isinstance(result, ComputedValue) and not isinstance(result.value, str):
            assert misfit_reason(result.value, made.spec) == ""
            assert not leads_astray(row, made.spec, made.now, result.value)
            most = row.high if row.high is not None else float("inf")
            assert row.low is None or row.low <= float(result.value) <= most


@given(now=st.integers(2, 10**5), most=st.integers(1, 10**5))
@EXAMPLES
def test_a_divisor_divides_and_is_the_largest(now: int, most: int) -> None:
    """No larger divisor is left out."""
    found = divisor_at_most(now, most)
    assert now % found == 0
    assert found <= max(most, 1)
    assert not any(now % number == 0 for number in range(found + 1, min(now, most) + 1))


@given(now=st.integers(2, 4096))
@EXAMPLES
def test_a_smaller_micro_batch_divides_what_the_present_one_did(now: int) -> None:
    """Micro batches fall, and fit every batch that they fitted."""
    found = value(given_of("micro-batch", TRAINING, now))
    assert isinstance(found, int)
    assert found <= now // 2
    assert now % found == 0


@given(prompts=st.integers(1, 2048), copies=st.integers(1, 16), gpus=st.integers(1, 64))
@EXAMPLES
def test_a_train_batch_divides_over_the_gpus(prompts: int, copies: int, gpus: int) -> None:
    """Prompts times responses are a multiple of the GPUs, and no nearer number below would be."""
    found = value(
        given_of("global-batch", BATCH, prompts, {"batch": {"size": prompts * copies, "divisor": gpus}})
    )
    assert found is None or int(found) * copies % gpus == 0
    assert (found is None) == (prompts * copies % gpus == 0)


@given(heads=st.integers(1, 128), shards=st.integers(1, 64))
@EXAMPLES
def test_shards_divide_the_heads_and_never_grow(heads: int, shards: int) -> None:
    """Tensor parallelism fits the heads."""
    found = value(given_of("tensor-parallel", PARALLEL, shards, {"parallel": {"heads": heads, "tp": shards}}))
    assert found is not None
    assert heads % int(found) == 0
    assert int(found) <= shards


# --- in a proposal ---


def proposed(
    wanted: dict[str, Any],
    specs: Sequence[SettingSpec],
    told: Sequence[Setting] = (),
    facts: Sequence[Fact] = (),
    language: str = "en",
    seen: str = "verl",
    cause: str = TRAINING,
) -> tuple[list[ProposedChange], list[Dropped]]:
    """Propose one change to a job that failed at line 3."""
    made = report(failed(), frameworks=[(seen, "1.0")], settings=told, facts=facts)
    return propose_changes(
        [case(cause=cause, changes=[wanted])], made, library(*specs), told, "zh" if language == "zh" else "en"
    )


FAILING = Fact("gpu_oom", 3, {"asked_gib": 4.0, "free_gib": 1.2, "capacity_gib": 80.0})


@each_row(
    ("language", "words"),
    [("en", "it helps. 4 at a time instead of 8"), ("zh", "中文：it helps。每次 4 条，原为 8 条")],
)
def test_a_computed_value_takes_the_cases_place_and_says_why(language: str, words: str) -> None:
    """`to` is the rule's value, and `why` holds the numbers in the answer's language."""
    (made,), _ = proposed(
        change(to=1), [spec(rule="micro-batch")], [setting("data.size", "8")], [FAILING], language
    )
    assert (made.to, made.from_, made.status) == (4, "8", "verified")
    assert made.why.startswith(words)
    assert "1.2" in made.why


def test_a_micro_batch_cannot_mend_a_batch_that_the_ranks_do_not_divide() -> None:
    """A hundred rows over sixteen ranks fit no micro batch."""
    made = answer(given_of("micro-batch", BATCH, 4, {"batch": {"size_n": 100, "micro_n": 4, "dp_n": 16}}))
    assert isinstance(made, CannotHelp)


def test_the_cases_own_value_stands_where_facts_are_missing() -> None:
    """Without the job's value nothing is computed."""
    (made,), _ = proposed(change(to=1), [spec(rule="micro-batch")])
    assert (made.to, made.why) == (1, "it helps")


def test_guidance_that_a_rule_fills_is_verified() -> None:
    """Words become a value; they stay unverified words where no rule can fill them."""
    wanted = change(to="half of the present one")
    assert (
        proposed(wanted, [spec(rule="micro-batch")], [setting("data.size", "8")])[0][0].status == "verified"
    )
    assert proposed(wanted, [spec(rule="micro-batch")])[0][0].status == "unverified"


def test_the_changes_own_rule_outranks_the_settings() -> None:
    """A case may compute a setting in its own way."""
    (made,), _ = proposed(
        change(to=1, rule="half-length"), [spec(rule="micro-batch")], [setting("data.size", "384")]
    )
    assert made.to == 192


def test_a_case_never_leads_the_wrong_way() -> None:
    """Where memory is short, a job that is below the case's value already is not told to rise."""
    made, (dropped,) = proposed(change(to=16), [spec(rule="micro-batch")], [setting("data.size", "1")])
    assert made == []
    assert "further in that direction" in dropped.why


def test_a_value_outside_the_setting_leaves_the_cases_own() -> None:
    """A setting's least value bounds what a rule may say."""
    (made,), _ = proposed(change(to=6), [spec(rule="micro-batch", min=6)], [setting("data.size", "8")])
    assert made.to == 6


def test_a_change_that_no_value_can_help_is_dropped_with_its_numbers() -> None:
    """The reader is told why the obvious setting is missing."""
    fact = Fact("gpu_oom", 3, {"free_gib": 8.0, "capacity_gib": 80.0})
    made, (dropped,) = proposed(
        change(to=0.7),
        [spec(rule="gpu-share", type="float", min=0, max=1)],
        [setting("data.size", "0.9")],
        [fact],
        cause="gpu-memory-occupied",
    )
    assert made == []
    assert "8 of 80 GiB are free" in dropped.why


def test_what_follows_a_change_is_proposed_with_it() -> None:
    """Accumulation comes as a change of its own, checked like any other."""
    specs = [
        spec("per_device_train_batch_size", framework="trl", rule="micro-batch"),
        spec("gradient_accumulation_steps", framework="trl"),
    ]
    wanted = change("per_device_train_batch_size", 1, framework="trl")
    made, _ = proposed(wanted, specs, [setting("per_device_train_batch_size", "8")], seen="trl")
    assert [(item.key, item.from_, item.to, item.status) for item in made] == [
        ("per_device_train_batch_size", "8", 4, "verified"),
        ("gradient_accumulation_steps", None, 2, "verified"),
    ]
    assert len(proposed(wanted, specs[:1], [setting("per_device_train_batch_size", "8")], seen="trl")[0]) == 1


def test_the_failing_lines_facts_come_first() -> None:
    """Of several messages the one that the failure began at gives the numbers."""
    other = Fact("gpu_oom", 9, {"asked_gib": 64.0, "free_gib": 0.1, "capacity_gib": 80.0})
    (made,), _ = proposed(
        change(to=0.4),
        [spec(rule="gpu-share", type="float", min=0, max=1)],
        [setting("data.size", "0.9")],
        [other, FAILING],
    )
    assert made.to == 0.84


@each_row(("own", "expected"), [("8", [4]), ("4", []), ("2", [1]), ("1", [])])
def test_what_failed_is_the_logs_value_whatever_the_file_holds_by_now(own: str, expected: list[int]) -> None:
    """A file that holds the computed value already is not changed again, and never back."""
    told = report(failed(), settings=[setting("data.size", "8")])
    wanted = [case(changes=[change(to=1)])]
    made, _ = propose_changes(
        wanted,
        told,
        library(spec(rule="micro-batch")),
        [setting("data.size", own), setting("data.size", "8")],
        "en",
    )
    assert [item.to for item in made] == expected


def test_an_unknown_rule_is_a_finding() -> None:
    """A rule's name that no table has is told by the lint, for settings and for cases."""
    made = library(spec(rule="no-such"), cases=[case(changes=[change(rule="nor-this")])])
    found = findings(made, PatternTable(()))
    assert "setting data.size of verl: no rule no-such" in found
    assert "case verl/one: data.size: no rule nor-this" in found


def test_the_corpus_puts_rules_on_settings(triage: Triage) -> None:
    """Settings that matter in crashes have a rule, and every rule is used somewhere."""
    settings_rules = [known.rule for known in triage.library.specs.values() if known.rule]
    changes_rules = [
        item.rule for made in triage.library.cases.values() for item in made.changes if item.rule
    ]
    table_rules = [row.rule for rows in triage.library.remedies.values() for row in rows if row.rule]
    assert len(settings_rules) >= 150
    assert rule_ids() == {*settings_rules, *changes_rules, *table_rules}


@each_row(
    ("text", "type_", "expected"),
    [("8", "int", 8.0), ("64g", "size", 64.0), ("0", "size", None), ("words", "int", None)],
)
def test_values_are_compared_as_numbers(text: str, type_: str, expected: float | None) -> None:
    """Sizes count in GiB, and a size of none is not compared."""
    assert measured_gib(text, spec(type=type_)) == expected


# --- from a log to its values ---

CARD = (
    "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
    "2.05 GiB is free. Including "
    "non-PyTorch memory, this process has 77.10 GiB memory in use."
)
VLLM = (
    "INFO 05-14 10:22:30 [api_server.py:1043] vLLM API server version 0.8.5\n"
    "INFO 05-14 10:22:30 [api_server.py:1044] non-default args: {'model': '/models/seven', "
    "'max_model_len': 65536}\n"
    "INFO 05-14 10:22:49 [gpu_model_runner.py:1347] Model loading took 14.2717 GiB and 6.24 seconds\n"
    "ERROR 05-14 10:22:58 [core.py:390] ValueError: To serve at least one request with the models's max "
    "seq len (65536), (12.00 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (7.41 GiB). Based on the available "
    "memory, the estimated maximum model length is "
    "40461. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
    "engine.\n"
)
VERL = (
    "+ python3 -m verl.trainer.main_ppo data.train_batch_size=256 data.max_prompt_length=1024 "
    "data.max_response_length=3072 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8\n"
    "step:1 - actor/pg_loss:0.1 - perf/throughput:812.4\n"
    + traceback(f"torch.OutOfMemoryError: {CARD}", "update_actor", "loss.backward()")
)
TRL = "+ accelerate launch grpo.py --num_generations 16 --per_device_train_batch_size 4\n" + traceback(
    "ValueError: The global train batch size (6 x 4) must be evenly divisible by the number of "
    "generations per prompt (16). Given the current "
    "train batch size, the valid values for the number of generations are: [2, 3, 4, 6, 8, 12, 24].",
    "__init__",
    "raise ValueError(",
).replace("/job/trainer.py", "/env/lib/trl/trainer/grpo_trainer.py")
# A divisor that is half of the nearest number, and one that is more than that.
TRL_FEW = TRL.replace("16", "6").replace("(6 x 4)", "(4 x 2)").replace("[2, 3, 4, 6, 8, 12, 24]", "[2, 4, 8]")
SGLANG = (
    "[2025-06-02 11:19:01] server_args=ServerArgs(model_path='/models/seven', tp_size=1, "
    "mem_fraction_static=0.88, chunked_prefill_size=8192)\n"
    "[2025-06-02 11:21:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/env/sglang/srt/managers/scheduler.py", line 2000, in run_scheduler_process\n    '
    "scheduler.event_loop_overlap()\n"
    f"torch.OutOfMemoryError: {CARD}\n"
)
RAY = (
    "2025-03-02 10:00:00,123\tINFO worker.py:1777 -- Started a local Ray instance.\n"
    "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to "
    "other reasons at node (ID: 5d2f)\n"
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    "Memory on the node (IP: 10.2.0.14, ID: 5d2f) where the task (actor ID: 31c0, name=Judge.__init__, "
    "pid=5120, memory used=61.40GB) was running was "
    "478.30GB / 503.20GB (0.950517), which exceeds the memory usage threshold of 0.95\n"
)
MEGATRON = (
    "+ torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 4 --global-batch-size 100\n"
    + traceback(
        "AssertionError: global batch size (100) is not divisible by micro batch size (4) times data "
        "parallel size (8)",
        "__init__",
        "assert",
    ).replace("/job/trainer.py", "/opt/megatron/core/num_microbatches_calculator.py")
)


def values(triage: Triage, log: str, language: str = "") -> dict[str, Scalar]:
    """Triage a log and give what it proposes."""
    made: Diagnosis = diagnosed(triage, sources.from_text(log), language)
    return {item.key: item.to for item in made.changes}


@each_row(
    ("log", "expected"),
    [
        (VLLM, {"--max-model-len": 40448}),
        (VERL, {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4}),
        (TRL, {"num_generations": 8}),
        (TRL_FEW, {"num_generations": 4}),
        (SGLANG, {"--mem-fraction-static": 0.81, "--chunked-prefill-size": 4096}),
        (RAY, {"RAY_memory_usage_threshold": 0.98}),
        (MEGATRON, {"--global-batch-size": 96}),
    ],
    ids=["vllm", "verl", "trl", "sglang", "ray", "megatron"],
)
def test_a_log_gives_its_own_values(triage: Triage, log: str, expected: dict[str, Scalar]) -> None:
    """From the text of a log to a value that its numbers give, for each framework."""
    found = values(triage, log)
    assert expected.items() <= found.items()


def test_a_computed_reason_is_in_the_logs_language(triage: Triage) -> None:
    """The numbers are told in Chinese too."""
    made = diagnosed(triage, sources.from_text(VLLM), "zh")
    (why,) = [item.why for item in made.changes if item.key == "--max-model-len"]
    assert "40461" in why
    assert "向下取" in why


@each_row(
    ("now", "expected"),
    [
        ("90", "03:00:00"),
        ("30:00", "03:00:00"),
        ("1-12", None),
        ("1-06:00:00", None),
        ("0-02:00:00", "0-03:00:00"),
        ("UNLIMITED", None),
    ],
)
def test_a_time_limit_is_written_as_it_was(now: str, expected: str | None) -> None:
    """Slurm reads one number as minutes, two as minutes and seconds, and days stand before a dash.

    One that the whole fits into already is no cure.
    """
    situation = given_of("time-limit", "scheduler-terminated", now, {})
    assert value(replace(situation, texts=TIMED, settings=[setting("max_iters", "200")])) == expected


@each_row(
    ("bars", "expected"),
    [
        # The bar of the run, and one that begins anew within it.
        (["| 510/6000 [1:28:35<41:26:24, 27.17s/file]", "| 9/10 [00:12<00:01,  1.2it/s]"], "50:00:00"),
        # What it says of the rest may be less than its mean pace makes of it.
        (["| 100/400 [1:20:00<00:01, 9it/s]"], "07:00:00"),
        # A bar that is no bar of the whole, or that is done, tells nothing.
        (["| 9/10 [00:12<00:01,  1.2it/s]"], None),
        (["| 400/400 [1:20:00<00:00, 9it/s]"], None),
        # Rows of steps with what each takes, and their number behind them.
        (
            [f"iteration {step}/ 1000 | elapsed time per iteration (ms): 30000.0" for step in (1, 2, 3)],
            "10:00:00",
        ),
        ([f"iteration {step}/ 1000 | learning rate: 1e-4" for step in (1, 2, 3)], None),
        (["iteration 1/ 1000 | elapsed time per iteration (ms): 30000.0"], None),
    ],
)
def test_a_time_limit_holds_the_whole_at_the_pace_of_its_bar(bars: list[str], expected: str | None) -> None:
    """What is left counts by the bar's own word or by the mean, whichever is more.

    Where nothing tells a pace, no limit is made up.
    """
    situation = replace(given_of("time-limit", "scheduler-terminated", "01:30:00", {}), texts=bars)
    assert value(situation) == expected


def test_that_the_number_of_steps_may_be_a_setting() -> None:
    """And no limit is offered where all of them take longer than a queue gives."""
    situation = given_of("time-limit", "scheduler-terminated", "72:00:00", {})
    steps = [setting("max_iters", "100000")]
    told = answer(replace(situation, texts=TIMED, settings=steps))
    assert isinstance(told, CannotHelp)
    assert "3 of 100,000 steps were done, of about 45 s each" in told.because.en
    # A run that saves goes on job by job: of longer ones it takes fewer.
    assert value(replace(situation, texts=TIMED, settings=steps, is_saved=True)) == "144:00:00"


@each_row(
    ("rows", "expected"),
    [
        # An hour for a tenth, and for a twentieth.
        ([f"2026-03-19 1{hour}:00:00 INFO upd {200 * hour} of 2000" for hour in range(1, 5)], "12:00:00"),
        ([f"2026-03-19T1{hour}:00:00Z sample {100 * hour} / 2000 done" for hour in range(1, 5)], "23:00:00"),
        # What is no number of the job's may be any count, and two rows tell no pace.
        ([f"2026-03-19 1{hour}:00:00 INFO shard {200 * hour} of 3000" for hour in range(1, 5)], None),
        ([f"2026-03-19 1{hour}:00:00 INFO upd {200 * hour} of 2000" for hour in range(1, 3)], None),
        ([f"upd {200 * hour} of 2000" for hour in range(1, 5)], None),
    ],
)
def test_that_the_clocks_of_the_rows_that_count_tell_a_pace(rows: list[str], expected: str | None) -> None:
    """The total is a number that the job sets, whatever its script calls it."""
    situation = given_of("time-limit", "scheduler-terminated", "06:00:00", {})
    told = replace(situation, texts=rows, settings=[setting("max_updates", "2000")])
    assert value(told) == expected


def test_no_time_limit_is_offered_that_no_queue_gives() -> None:
    situation = given_of("time-limit", "scheduler-terminated", "24:00:00", {})
    told = answer(replace(situation, texts=["| 100/6000 [23:50:00<1406:10:00, 858s/it]"]))
    assert isinstance(told, CannotHelp)
    assert "100 of 6,000" in told.because.en


@each_row(("now", "expected"), [(None, None), ("4,5", "4"), ("'2, 3'", "2"), ("7", None)])
def test_that_a_process_for_one_card_gets_the_first_of_those_that_it_has(
    now: str | None, expected: str | None
) -> None:
    """The copies of `DataParallel` are made on all cards that it sees."""
    assert value(given_of("first-card", "placement-misconfigured", now, {})) == expected


@each_row(
    ("rows", "expected"),
    [
        (["{'loss': nan, 'learning_rate': 4e-07, 'epoch': 0.1}"], "4e-07"),
        (["step 1 learning_rate=2e-06", "step 2 learning_rate=3e-06"], "3e-06"),
        (["my_learning_rate: 0.5", "learning_rate_steps: 7"], None),
    ],
)
def test_that_a_log_prints_what_a_setting_is(rows: Sequence[str], expected: str | None) -> None:
    assert printed_number("training.learning_rate", rows) == expected


@each_row(
    ("log", "expected"),
    [
        ("{'loss': nan, 'learning_rate': 3e-07, 'epoch': 0.1}", 1e-07),
        ("{'loss': nan, 'learning_rate': 0.03, 'epoch': 0.1}", 1e-05),
        ("{'loss': nan, 'epoch': 0.1}", 1e-05),
    ],
)
def test_that_a_learning_rate_never_rises_where_numbers_run_away(
    log: str, expected: float, triage: Triage
) -> None:
    failure = "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"
    text = f"transformers.Trainer\n{log}\n{failure}\n"
    found = diagnosed(triage, sources.from_text(text), "en")
    rates = [change.to for change in found.changes if change.key == "learning_rate"]
    assert rates in ([], [expected])


@each_row(
    ("value", "message", "expected"),
    [
        (2048, "Prompt length of 4178 is longer than the maximum model length of 4096", 4224),
        (8192, "Prompt length of 4178 is longer than the maximum model length of 4096", 8192),
        (2048, "the prompt is too long", 2048),
    ],
)
def test_that_a_length_holds_what_the_message_counts(value: int, message: str, expected: int) -> None:
    rule = next(rule for rule in known_rules().rules if rule.id == "input-length" and rule.direction == "up")
    row = SettingSpec(
        framework="verl", key="data.max_prompt_length", type="int", unit="tokens", spelled="hydra"
    )
    assert at_least_told(rule, row, value, message) == expected
