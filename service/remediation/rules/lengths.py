"""Lengths in tokens: contexts, prompts, and the budgets of one batch."""

from __future__ import annotations

from service.remediation.rules.context import (
    ComputedValue,
    RuleContext,
    ValueRule,
    down_to,
    number_text,
    up_to,
)
from service.remediation.rules.memory import OUT_OF_MEMORY, missing_gib

KV_CACHE = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/core/kv_cache_utils.py"
SCHEDULER = "https://github.com/vllm-project/vllm/blob/main/vllm/config/scheduler.py"
MODEL = "https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py"
VERL = "https://verl.readthedocs.io/en/latest/perf/perf_tuning.html"
SEQLEN = "https://github.com/volcengine/verl/blob/main/verl/utils/seqlen_balancing.py"
TRAINER = "https://huggingface.co/docs/trl/reducing_memory_usage"

_SMALL_CACHE = frozenset({"kv-cache-too-small"})
_TOO_LONG = frozenset({"sequence-too-long"})
_INVALID = frozenset({"config-key-invalid"})
_PADDED = 64
# Sizes are printed rounded, and vLLM counts whole blocks.
_ROUNDED = 0.98
_BLOCKS = 256
MOST = 1 << 20
_PROMPT = ("max_prompt_length", "prompt_max_len", "max_prompt_len")
# A message has several wordings, and each names its length under its own name.
_LENGTHS = ("length", "length2", "length3", "length_n")
_RESPONSE = (
    "max_response_length",
    "max_completion_length",
    "generate_max_len",
    "max_new_tokens",
    "max_tokens",
)


def _fits_cache(s: RuleContext) -> ComputedValue | None:
    found = _estimate(s)
    if found is None:
        return None
    tokens, en, zh = found
    value = int(down_to(tokens, _BLOCKS if tokens >= _BLOCKS else 16))
    needed = _whole_sequence(s)
    if value < 1 or (needed is not None and value < needed):
        return None  # a shorter context would cut what the job itself sends; memory must come from elsewhere
    return ComputedValue(
        value,
        number_text(
            f"{en}: {value} is the multiple of {_BLOCKS} below.", f"{zh}，向下取 {_BLOCKS} 的倍数为 {value}。"
        ),
        proves=True,
    )


def _estimate(s: RuleContext) -> tuple[float, str, str] | None:
    """Give the tokens that one sequence may have in the cache: as printed, else as capacity, else in proportion."""
    if (estimated := s.stated("kv_cache", "estimated_n")) is not None:
        return (
            estimated,
            f"vLLM estimates that {estimated:.0f} tokens fit",
            f"vLLM 估计可放下 {estimated:.0f} 个 token",
        )
    if (pair := s.together("kv_cache", "max_model_len", "capacity")) is not None:
        return (
            pair[1],
            f"The cache holds {pair[1]:.0f} tokens of {pair[0]:.0f}",
            f"缓存只能放 {pair[1]:.0f} 个 token（需 {pair[0]:.0f}）",
        )
    parts = s.together("kv_cache", "max_model_len", "needed_gib", "available_gib")
    if parts is None or parts[1] <= 0:
        return None
    length, needed, available = parts
    return (
        length * available / needed * _ROUNDED,
        f"{available:g} of the {needed:g} GiB that {length:.0f} tokens need are there",
        f"{length:.0f} 个 token 需 {needed:g} GiB，现有 {available:g} GiB",
    )


def _whole_sequence(s: RuleContext) -> float | None:
    """Give the longest sequence that the job's own settings allow: prompt and response."""
    prompt, response = s.setting(*_PROMPT), s.setting(*_RESPONSE)
    return prompt + response if prompt is not None and response is not None else None


def _holds_request(s: RuleContext) -> ComputedValue | None:
    longest = max(s.every("sequence", *_LENGTHS), default=None)
    if longest is None or (s.number is not None and longest < s.number):
        return None
    response = s.setting(*_RESPONSE) or 0
    value = int(up_to(longest + max(response, 1), _BLOCKS))
    return ComputedValue(
        value,
        number_text(
            f"The longest input in the log has {longest:.0f} tokens, a response may add {response:.0f}: "
            f"{value}.",
            f"日志中最长输入为 {longest:.0f} 个 token，回复至多再加 {response:.0f}：取 {value}。",
        ),
        proves=True,
    )


def _whole(s: RuleContext) -> ComputedValue | None:
    needed = _whole_sequence(s)
    if needed is None or s.number == needed:
        return None
    prompt, response = s.setting(*_PROMPT) or 0, s.setting(*_RESPONSE) or 0
    return ComputedValue(
        int(needed),
        number_text(
            f"Prompts of {prompt:.0f} and responses of {response:.0f} tokens make {needed:.0f}.",
            f"提示 {prompt:.0f} 加回复 {response:.0f} 共 {needed:.0f} 个 token。",
        ),
    )


def _request_or_whole(s: RuleContext) -> ComputedValue | None:
    return _whole(s) or _holds_request(s)


def _within_model(s: RuleContext) -> ComputedValue | None:
    limit = s.stated("sequence", "limit", "limit_n")
    if limit is None or limit < 1:
        return None
    return ComputedValue(
        int(limit),
        number_text(
            f"The model's own limit is {limit:.0f} tokens.", f"模型自身的上限是 {limit:.0f} 个 token。"
        ),
        proves=True,
    )


def _holds_input(s: RuleContext) -> ComputedValue | None:
    longest = max(s.every("sequence", *_LENGTHS), default=None)
    if longest is None:
        return None
    value = int(up_to(longest, _PADDED))
    return ComputedValue(
        value,
        number_text(
            f"The longest row that the log names has {longest:.0f} tokens: {value} is the multiple of "
            f"{_PADDED} above.",
            f"日志中最长的样本有 {longest:.0f} 个 token，向上取 {_PADDED} 的倍数为 {value}。",
        ),
    )


def _beside_response(s: RuleContext) -> ComputedValue | None:
    limit, response = s.stated("sequence", "limit", "limit_n"), s.setting(*_RESPONSE)
    if limit is None or response is None or limit <= response:
        return None
    value = int(down_to(limit - response, _PADDED))
    return ComputedValue(
        value,
        number_text(
            f"The engine takes {limit:.0f} tokens, {response:.0f} of them for the response: {value}.",
            f"引擎上限 {limit:.0f} 个 token，其中回复占 {response:.0f}：取 {value}。",
        ),
    )


def _half_length(s: RuleContext) -> ComputedValue | None:
    if s.whole is None:
        return None
    value = int(down_to(s.whole / 2, _PADDED))
    return ComputedValue(
        value,
        number_text(
            f"Half of the job's {s.whole} tokens.{asked(s, 'en')}",
            f"取作业 {s.whole} 个 token 的一半。{asked(s, 'zh')}",
        ),
    )


def asked(s: RuleContext, language: str) -> str:
    """Say how much memory the failing call wanted and found, or nothing where the log does not tell."""
    missing = missing_gib(s)
    if missing is None:
        return ""
    wanted, free, _ = missing
    return (
        f" The log asks for {wanted:g} GiB with {free:g} GiB free."
        if language == "en"
        else f"日志申请 {wanted:g} GiB，空闲 {free:g} GiB。"
    )


def _half_budget(s: RuleContext) -> ComputedValue | None:
    least = _whole_sequence(s)
    if s.whole is None or least is None:
        return None
    shards = s.setting("ulysses_sequence_parallel_size", "ulysses_size", "ring_attn_size") or 1
    floor = int(up_to(least / max(shards, 1), 1))
    value = max(s.whole // 2, floor)
    return ComputedValue(
        value,
        number_text(
            f"Half of {s.whole}, but not less than one sequence ({floor} tokens).{asked(s, 'en')}",
            f"取 {s.whole} 的一半，且不小于一条序列（{floor} 个 token）。{asked(s, 'zh')}",
        ),
    )


def _budget_for_sequence(s: RuleContext) -> ComputedValue | None:
    lengths = s.every("sequence", "length")
    if not lengths:
        return None
    longest = max(*lengths, _whole_sequence(s) or 0)
    value = int(up_to(longest, 1024))
    return ComputedValue(
        value,
        number_text(
            f"One sequence has {longest:.0f} tokens, and the budget must hold it: {value}.",
            f"一条序列有 {longest:.0f} 个 token，预算须放得下：取 {value}。",
        ),
    )


def _half_batched(s: RuleContext) -> ComputedValue | None:
    if s.whole is None:
        return None
    chunked = (s.text_of("enable_chunked_prefill") or "").lower() != "false"
    floors = [s.setting("max_num_seqs") or 0, 0 if chunked else s.setting("max_model_len") or s.whole, 256]
    half, least = s.whole // 2, int(max(floors))
    bound = (f", but not below {least}", f"，且不低于 {least}") if least > half else ("", "")
    return ComputedValue(
        max(half, least),
        number_text(
            f"Half of {s.whole}{bound[0]}.{asked(s, 'en')}",
            f"取 {s.whole} 的一半{bound[1]}。{asked(s, 'zh')}",
        ),
    )


def _batched_for_length(s: RuleContext) -> ComputedValue | None:
    pair = s.together("batch", "size", "least_n") or s.together("batch", "size", "seqs_n")
    if pair is None or pair[1] <= pair[0]:
        return None
    return ComputedValue(
        int(pair[1]),
        number_text(
            f"The log says that {pair[0]:.0f} is too small and {pair[1]:.0f} the least.",
            f"日志说明 {pair[0]:.0f} 太小，至少为 {pair[1]:.0f}。",
        ),
        proves=True,
    )


RULES = (
    ValueRule(
        "context-length",
        _SMALL_CACHE,
        "what the cache holds as the log states it, down to a multiple of 256; not below prompt + response",
        KV_CACHE,
        _fits_cache,
        "down",
        16,
        MOST,
    ),
    ValueRule(
        "context-length",
        _TOO_LONG,
        "prompt + response as set, else the longest input and its response, up to a multiple of 256",
        MODEL,
        _request_or_whole,
        "up",
        16,
        MOST,
    ),
    ValueRule(
        "context-length",
        _INVALID,
        "the limit that the model's config states",
        MODEL,
        _within_model,
        "down",
        16,
        MOST,
    ),
    ValueRule(
        "input-length",
        _TOO_LONG,
        "the longest row that the log names, up to a multiple of 64",
        TRAINER,
        _holds_input,
        "up",
        1,
        262144,
    ),
    ValueRule(
        "input-length",
        OUT_OF_MEMORY,
        "half, down to a multiple of 64",
        TRAINER,
        _half_length,
        "down",
        64,
        MOST,
    ),
    ValueRule(
        "half-length",
        OUT_OF_MEMORY | {"cpu-offload-pressure", "kv-cache-too-small"},
        "half, down to a multiple of 64",
        TRAINER,
        _half_length,
        "down",
        64,
        MOST,
    ),
    ValueRule(
        "prompt-within-context",
        _TOO_LONG,
        "the engine's limit less the response, down to a multiple of 64",
        MODEL,
        _beside_response,
        "down",
        64,
        MOST,
    ),
    ValueRule(
        "token-budget",
        OUT_OF_MEMORY,
        "half, but one whole sequence (prompt + response over the sequence parallel size)",
        VERL,
        _half_budget,
        "down",
        1,
        MOST,
    ),
    ValueRule(
        "token-budget",
        _TOO_LONG,
        "the longest sequence, up to a multiple of 1024",
        SEQLEN,
        _budget_for_sequence,
        "up",
        1,
        MOST,
    ),
    ValueRule(
        "batched-tokens",
        OUT_OF_MEMORY | _SMALL_CACHE | {"engine-request-timeout"},
        "half; not below 256, max_num_seqs, nor max_model_len without chunked prefill",
        SCHEDULER,
        _half_batched,
        "down",
        256,
        MOST,
    ),
    ValueRule(
        "batched-tokens",
        _INVALID | _TOO_LONG,
        "the least that the log states",
        SCHEDULER,
        _batched_for_length,
        "up",
        1,
        MOST,
    ),
)
