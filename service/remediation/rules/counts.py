"""Counts that one lowers step by step: requests at a time, workers, pixels, buckets."""

from __future__ import annotations

from service.remediation.rules.context import ComputedValue, RuleContext, ValueRule, number_text
from service.remediation.rules.lengths import asked
from service.remediation.rules.memory import OUT_OF_MEMORY

VLLM = "https://docs.vllm.ai/en/latest/configuration/conserving_memory/"
SGLANG = "https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html"
WORKERS = "https://docs.pytorch.org/docs/stable/data.html"
DATASETS = "https://huggingface.co/docs/datasets/process"
BUCKETS = "https://www.deepspeed.ai/docs/config-json/"
PIXELS = "https://huggingface.co/docs/transformers/model_doc/qwen2_5_vl"
SAVING = "https://huggingface.co/docs/transformers/main_classes/trainer"
RANK = "https://github.com/vllm-project/vllm/blob/main/vllm/config/lora.py"
JOBS = "https://docs.pytorch.org/docs/stable/cpp_extension.html"
ROLLOUT = "https://github.com/hiyouga/EasyR1/blob/main/verl/trainer/ray_trainer.py"
RATE = "https://huggingface.co/docs/transformers/main_classes/trainer"

_HOST = frozenset(
    {
        "host-oom-kill",
        "host-memory-leak",
        "dataloader-worker-killed",
        "shm-exhausted",
        "process-limits",
        "ray-memory-monitor-kill",
        "checkpoint-host-peak",
        "cpu-offload-pressure",
    }
)
_ENGINE = OUT_OF_MEMORY | {"kv-cache-too-small", "engine-request-timeout"}
_INVALID = frozenset({"config-key-invalid"})
_NAN = frozenset({"nan-or-inf"})
_DISK = frozenset({"disk-full", "checkpoint-host-peak", "host-memory-leak", "host-oom-kill"})
_BUILD = frozenset({"host-oom-kill", "jit-build-failed"})
_OUTSIDE = frozenset({"reward-function-failed", "external-service-failed", "engine-request-timeout"})
_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
_MANY = 1 << 40


def _half(s: RuleContext) -> ComputedValue | None:
    if s.whole is None:
        return None
    value = s.whole // 2
    return ComputedValue(
        value,
        number_text(
            f"Half of the job's {s.whole}.{asked(s, 'en')}", f"取作业当前 {s.whole} 的一半。{asked(s, 'zh')}"
        ),
    )


def _half_of_requests(s: RuleContext) -> ComputedValue | None:
    blocks = s.together("kv_cache", "max_num_seqs", "blocks")
    if blocks is not None and 1 <= blocks[1] < blocks[0]:
        return ComputedValue(
            int(blocks[1]),
            number_text(
                f"The log counts {blocks[1]:.0f} cache blocks for {blocks[0]:.0f} sequences.",
                f"日志中 {blocks[0]:.0f} 条序列只有 {blocks[1]:.0f} 个缓存块。",
            ),
        )
    requests = s.whole or int(s.stated("warmup", "requests") or 0)
    if requests < 2:
        return None
    value = requests // 2
    return ComputedValue(
        value,
        number_text(
            f"Half of {requests} requests at a time.{asked(s, 'en')}",
            f"同时请求数 {requests} 的一半。{asked(s, 'zh')}",
        ),
    )


def _half_of_workers(s: RuleContext) -> ComputedValue | None:
    """Halve, unless the case wants none at all: then an error shows in the main process."""
    suggested = s.stated("workers", "suggested_n")
    if suggested is not None and 0 <= suggested < (s.number if s.number is not None else _MANY):
        return ComputedValue(
            int(suggested),
            number_text(f"The log suggests {suggested:.0f} at most.", f"日志建议至多 {suggested:.0f} 个。"),
        )
    return _half(s) if s.change.to != 0 else None


def _half_of_processes(s: RuleContext) -> ComputedValue | None:
    processes = s.whole or int(s.stated("preprocess", "num_proc") or 0)
    if processes < 2:
        return None
    value = processes // 2
    return ComputedValue(
        value, number_text(f"Half of the {processes} processes.", f"取 {processes} 个进程的一半。")
    )


def _lora_rank(s: RuleContext) -> ComputedValue | None:
    pair = s.together("lora", "size", "limit")
    fitting = [rank for rank in _LORA_RANKS if pair is not None and rank >= pair[0]]
    if pair is None or not fitting:
        return None
    return ComputedValue(
        fitting[0],
        number_text(
            f"The adapter has rank {pair[0]:.0f}, the limit is {pair[1]:.0f}; {fitting[0]} is the next "
            "value that vLLM takes.",
            f"适配器秩为 {pair[0]:.0f}，上限为 {pair[1]:.0f}；vLLM 接受的下一个值是 {fitting[0]}。",
        ),
    )


def _half_of_rollout(s: RuleContext) -> ComputedValue | None:
    unit = int(s.setting("worker.actor.global_batch_size", "ppo_mini_batch_size") or 1)
    if s.whole is None or unit < 1 or s.whole // 2 < unit:
        return None
    value = s.whole // 2 // unit * unit
    return ComputedValue(
        value,
        number_text(
            f"Half of {s.whole}, a multiple of the mini batch.",
            f"取 {s.whole} 的一半，且为 mini batch 的倍数。",
        ),
    )


def _rarer(s: RuleContext) -> ComputedValue | None:
    if s.whole is None:
        return None
    value = 5 * s.whole
    return ComputedValue(
        value,
        number_text(
            f"Five times the present {s.whole}, a fifth of the saves.",
            f"当前 {s.whole} 的五倍，保存次数为五分之一。",
        ),
    )


def _lower_rate(s: RuleContext) -> ComputedValue | None:
    if s.number is None or s.number <= 0:
        return None
    value = float(f"{s.number / 3:.3g}")
    return ComputedValue(value, number_text(f"A third of {s.number:g}.", f"取 {s.number:g} 的三分之一。"))


RULES = (
    ValueRule(
        "requests",
        _ENGINE,
        "half, or as many as the log has cache blocks for",
        VLLM,
        _half_of_requests,
        "down",
        1,
        _MANY,
    ),
    ValueRule("capture", _ENGINE | {"engine-crash"}, "half", SGLANG, _half, "down", 1, _MANY),
    ValueRule(
        "workers", _HOST, "what PyTorch suggests, else half", WORKERS, _half_of_workers, "down", 0, _MANY
    ),
    ValueRule("processes", _HOST, "half", DATASETS, _half_of_processes, "down", 1, _MANY),
    ValueRule("build-jobs", _BUILD, "half", JOBS, _half, "down", 1, _MANY),
    ValueRule("bucket", OUT_OF_MEMORY, "half", BUCKETS, _half, "down", 1, _MANY),
    ValueRule(
        "pixels",
        OUT_OF_MEMORY | {"kv-cache-too-small", "sequence-too-long", "multimodal-mismatch"},
        "half",
        PIXELS,
        _half,
        "down",
        1,
        _MANY,
    ),
    ValueRule(
        "rollout-size",
        OUT_OF_MEMORY | _HOST,
        "half, down to a multiple of the mini batch",
        ROLLOUT,
        _half_of_rollout,
        "down",
        1,
        _MANY,
    ),
    ValueRule("concurrency", _OUTSIDE, "half", WORKERS, _half, "down", 1, _MANY),
    ValueRule("save-interval", _DISK, "five times the present one", SAVING, _rarer, "up", 1, _MANY),
    ValueRule(
        "lora-rank",
        _INVALID,
        "the next rank that vLLM takes, from the adapter's",
        RANK,
        _lora_rank,
        "up",
        8,
        512,
    ),
    ValueRule("learning-rate", _NAN, "a third", RATE, _lower_rate, "down", 0),
)
