"""The share of a card's memory that an engine may take."""

from __future__ import annotations

from service.remediation.rules.context import (
    Answer,
    CannotHelp,
    ComputedValue,
    RuleContext,
    ValueRule,
    down_to,
    number_text,
    up_to,
)

VLLM = "https://docs.vllm.ai/en/latest/configuration/conserving_memory/"
WORKER = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py"
KV_CACHE = "https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache/"
ALLOCATOR = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
SGLANG = "https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html"

OUT_OF_MEMORY = frozenset(
    {
        "gpu-oom-training",
        "gpu-oom-logits",
        "gpu-oom-rollout",
        "gpu-oom-model-load",
        "gpu-memory-fragmentation",
        "gpu-memory-not-released",
    }
)
_OCCUPIED = frozenset({"gpu-memory-occupied"})
_SMALL_CACHE = frozenset({"kv-cache-too-small"})
# What stays free beside the computed share: CUDA contexts and NCCL grow after the engine has measured.
MARGIN = 0.02
LEAST, MOST = 0.1, 0.95
# A smaller step than this would not survive a batch that is a little longer.
STEP = 0.05
# An engine that was planned for a share does not work with a quarter of it.
_USEFUL = 0.25
# The card that is reckoned with where the log names none: few have more, and on a smaller one a share brings
# less.
USUAL_GIB = 80.0


def missing_gib(s: RuleContext) -> tuple[float, float, float] | None:
    """Give what was asked for, what was free, and what is missing, in GiB, as one message states them."""
    pair = s.together("gpu_oom", "asked_gib", "free_gib")
    if pair is None or pair[0] <= 0:
        return None
    asked, free = pair
    # Where more is free than asked for the card is fragmented or the figures are of other moments.
    return asked, free, asked - free if asked > free else asked


def _lower(s: RuleContext) -> ComputedValue | None:
    missing, capacity = missing_gib(s), s.stated("gpu_oom", "capacity_gib")
    share = s.number if s.number is not None else s.stated("gpu_oom", "utilization")
    if missing is None or share is None or not capacity:
        return None
    asked, free, short = missing
    value = down_to(min(share - short / capacity - MARGIN, share - STEP), 0.01)
    if not _holds_weights(s, value, capacity):
        return None
    return ComputedValue(
        value,
        number_text(
            f"The log asks for {asked:g} GiB with {free:g} GiB free of {capacity:g} GiB: {short:.4g} GiB "
            "are missing, "
            f"so {share:g} - {short:.4g}/{capacity:g} less a margin gives {value:g}.",
            f"日志申请 {asked:g} GiB，空闲 {free:g} GiB，总量 {capacity:g} GiB：缺 {short:.4g} GiB，"
            f"{share:g} - {short:.4g}/{capacity:g} 再留余量，得 {value:g}。",
        ),
        proves=True,
    )


def _within_free(s: RuleContext) -> Answer:
    found = s.together("gpu_oom", "free_gib", "capacity_gib")
    if found is None or not found[1]:
        return None
    free, capacity = found
    if (own := s.stated("gpu_oom", "process_gib")) is not None:
        free += own  # the job's own memory comes back when it starts anew; the others' does not
    value = down_to(free / capacity - MARGIN, 0.01)
    share = s.number if s.number is not None else s.stated("gpu_oom", "utilization")
    if not _holds_weights(s, value, capacity) or (share is not None and value < share * _USEFUL):
        return CannotHelp(
            number_text(
                f"only {free:.4g} of {capacity:g} GiB are free: no share is enough, the other processes "
                "must end first",
                f"{capacity:g} GiB 中只有 {free:.4g} GiB 空闲：任何比例都不够，须先结束其他进程",
            )
        )
    return ComputedValue(
        value,
        number_text(
            f"The value counts the whole card; {free:.4g} of {capacity:g} GiB are free of other processes: "
            f"{free:.4g}/{capacity:g} less {MARGIN:g} gives {value:g}.",
            f"该值按整卡计；除去其他进程，{capacity:g} GiB 中有 {free:.4g} GiB 可用："
            f"{free:.4g}/{capacity:g} 减 {MARGIN:g} 得 {value:g}。",
        ),
        proves=True,
    )


def _holds_weights(s: RuleContext, share: float, capacity: float) -> bool:
    weights = s.stated("gpu_memory", "weights_gib")
    return weights is None or share * capacity > weights


def _raise(s: RuleContext) -> Answer:
    stated = (
        s.stated("gpu_memory", "capacity_gib", "total_gib")
        or s.stated("gpu_oom", "capacity_gib")
        or s.card_gib
    )
    share = next(
        (
            number
            for number in (s.number, s.stated("gpu_memory", "utilization"), s.default)
            if number is not None
        ),
        None,
    )
    lacking = _lacking(s)
    if lacking is None or share is None:
        return None
    capacity = stated if stated is not None and stated > 0 else USUAL_GIB
    needed, available = lacking
    value = up_to(share + (needed - available) / capacity + 0.01, 0.01)
    if value > MOST:
        return CannotHelp(
            number_text(
                f"{needed - available:.4g} GiB are missing, and {MOST:g} of {capacity:g} GiB adds only "
                f"{max(0.0, MOST - share) * capacity:.4g}",
                f"缺 {needed - available:.4g} GiB，而 {capacity:g} GiB 的 {MOST:g} 只多出 "
                f"{max(0.0, MOST - share) * capacity:.4g} GiB",
            )
        )
    return ComputedValue(
        value,
        number_text(
            f"The cache needs {needed:g} GiB and has {available:g} GiB: "
            f"{share:g} + {needed - available:.4g}/{capacity:g} and a little more gives {value:g}.",
            f"KV 缓存需要 {needed:g} GiB，现有 {available:g} GiB：{share:g} + "
            f"{needed - available:.4g}/{capacity:g}，略加余量，得 {value:g}。",
        ),
        proves=stated is not None,
    )


def _lacking(s: RuleContext) -> tuple[float, float] | None:
    """Give the GiB that the cache needs and has; an empty cache needs one at least."""
    both = s.together("kv_cache", "needed_gib", "available_gib")
    if both is not None:
        return (both[0], both[1]) if both[0] > both[1] else None
    available = s.stated("kv_cache", "available_gib")
    return (1.0, available) if available is not None and available <= 0 else None


def _narrower(s: RuleContext) -> Answer:
    """Store the cache in one byte for two, where that is enough."""
    lacking = _lacking(s)
    if lacking is None or s.together("kv_cache", "needed_gib", "available_gib") is None:
        return None
    needed, available = lacking
    if needed / 2 > available:
        return CannotHelp(
            number_text(
                f"half of the {needed:g} GiB that the cache needs is {needed / 2:g}, and {available:g} "
                "are there",
                f"KV 缓存所需 {needed:g} GiB 的一半是 {needed / 2:g} GiB，而只有 {available:g} GiB",
            )
        )
    return ComputedValue(
        s.change.to,
        number_text(
            f"Half of the {needed:g} GiB that the cache needs is {needed / 2:g}, and {available:g} are "
            "there.",
            f"KV 缓存所需 {needed:g} GiB 的一半是 {needed / 2:g} GiB，现有 {available:g} GiB。",
        ),
        proves=True,
    )


def _unscattered(s: RuleContext) -> Answer:
    """Let the allocator use what it holds in pieces, where that and what is free are enough."""
    found = s.together("gpu_oom", "asked_gib", "free_gib", "reserved_gib")
    if found is None:
        return None
    asked, free, held = found
    if free + held < asked:
        return CannotHelp(
            number_text(
                f"{asked:g} GiB are asked for, and {free:g} free with {held:g} held in pieces make only "
                f"{free + held:.4g}",
                f"申请 {asked:g} GiB，而空闲 {free:g} GiB 加上零散占有的 {held:g} GiB 只有 {free + held:.4g} GiB",
            )
        )
    return None


def _fraction_up(s: RuleContext) -> ComputedValue | None:
    if s.number is None:
        return None
    value = down_to(min(s.number + STEP, MOST), 0.01)
    return ComputedValue(
        value,
        number_text(
            f"Weights and cache did not fit into {s.number:g} of the card; one step more is {value:g}.",
            f"权重与缓存放不进显卡的 {s.number:g}；再加一档为 {value:g}。",
        ),
    )


RULES = (
    ValueRule(
        "gpu-share",
        OUT_OF_MEMORY,
        "the present share less what is missing of the card, less 0.02, at least 0.05 lower",
        VLLM,
        _lower,
        "down",
        LEAST,
        MOST,
    ),
    ValueRule(
        "gpu-share",
        _OCCUPIED,
        "what other processes leave free of the card, less 0.02",
        WORKER,
        _within_free,
        "down",
        LEAST,
        MOST,
    ),
    ValueRule(
        "gpu-share",
        _SMALL_CACHE,
        "the present share and what the cache lacks of the card",
        VLLM,
        _raise,
        "up",
        LEAST,
        MOST,
    ),
    ValueRule(
        "narrow-cache",
        _SMALL_CACHE,
        "the proposed type, where half of what the cache needs is there",
        KV_CACHE,
        _narrower,
    ),
    ValueRule(
        "allocator",
        OUT_OF_MEMORY,
        "none where what is free and what is held in pieces are less than what is asked for",
        ALLOCATOR,
        _unscattered,
    ),
    ValueRule(
        "static-share",
        OUT_OF_MEMORY,
        "the present fraction less what is missing of the card, less 0.02, at least 0.05 lower",
        SGLANG,
        _lower,
        "down",
        LEAST,
        MOST,
    ),
    ValueRule(
        "static-share",
        _SMALL_CACHE,
        "the present fraction and 0.05, up to 0.95",
        SGLANG,
        _fraction_up,
        "up",
        LEAST,
        MOST,
    ),
)
