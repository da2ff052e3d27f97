"""How many cards, shards and ports: whole numbers that must fit what is there."""

from __future__ import annotations

from math import gcd

from service.remediation.rules.batches import divisor_at_most
from service.remediation.rules.context import ComputedValue, RuleContext, ValueRule, number_text
from service.remediation.rules.memory import OUT_OF_MEMORY

VLLM = "https://docs.vllm.ai/en/latest/serving/parallelism_scaling/"
VERL = "https://github.com/volcengine/verl/blob/main/verl/single_controller/ray/base.py"
ULYSSES = "https://verl.readthedocs.io/en/latest/perf/perf_tuning.html"
MEGATRON = "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/parallel_state.py"
CHECKPOINT = "https://www.deepspeed.ai/tutorials/universal-checkpointing/"
PORTS = "https://www.iana.org/assignments/service-names-port-numbers/"

_MISFIT = frozenset(
    {"parallelism-invalid", "resources-insufficient", "config-key-invalid", "placement-misconfigured"}
)
_SPREAD = OUT_OF_MEMORY | {"kv-cache-too-small"}
_FEW_CARDS = frozenset(
    {"resources-insufficient", "nccl-device-misuse", "gpu-not-visible", "placement-misconfigured"}
)
_SAVED = frozenset({"checkpoint-mismatch"})
_TAKEN = frozenset({"port-in-use"})
MOST_GPUS = 65536
# The system hands out ports above this by itself, and root keeps those below 1024.
_FIRST_PORT, _LAST_PORT, _STRIDE = 1024, 32767, 101


def _shards(s: RuleContext) -> ComputedValue | None:
    """Choose the largest number of shards up to the present one that divides heads or world, and fits the cards."""
    heads, world = s.stated("parallel", "heads", "heads_n", "size"), s.stated("parallel", "world")
    shards = s.stated("parallel", "tp", "tp_n", "divisor") or s.number
    if shards is None or not 1 <= shards <= MOST_GPUS:
        return None
    now, cards = int(shards), s.stated("parallel", "gpus", "gpus2", "gpus3")
    if heads is not None and 1 <= heads <= MOST_GPUS:
        value, what, zh = _dividing(int(heads), now), f"{heads:.0f} heads", f"{heads:.0f} 个注意力头"
    elif world is not None and 1 <= world <= MOST_GPUS:
        # What divides both divides the heads too, as the present number does.
        value, what, zh = gcd(int(world), now), f"{world:.0f} ranks", f"{world:.0f} 个 rank"
    elif cards is not None and cards >= 1:
        value, what, zh = divisor_at_most(now, int(cards)), f"{cards:.0f} GPUs", f"{cards:.0f} 张卡"
    else:
        return None
    return ComputedValue(
        value,
        number_text(f"{now} does not fit {what}; {value} does.", f"{now} 与 {zh}不合；可改为 {value}。"),
    )


def _dividing(heads: int, now: int) -> int:
    """Prefer what divides the present number too, as the GPUs were chosen for it."""
    both = gcd(heads, now)
    return both if both > 1 else divisor_at_most(heads, now)


def _twice_the_cards(s: RuleContext) -> ComputedValue | None:
    cards = s.setting("n_gpus_per_node", "nproc_per_node", "gpus_per_node", "gpus-per-node")
    if s.whole is None or cards is None or 2 * s.whole > cards or int(cards) % (2 * s.whole):
        return None
    value = 2 * s.whole
    return ComputedValue(
        value,
        number_text(
            f"Twice the present {s.whole}; the node has {cards:.0f} GPUs.",
            f"当前 {s.whole} 的两倍；该节点有 {cards:.0f} 张卡。",
        ),
    )


def _visible(s: RuleContext) -> ComputedValue | None:
    """Count the cards that the job lets its processes see."""
    listed = (s.text_of("CUDA_VISIBLE_DEVICES") or "").strip("'\"")
    cards = [name for name in listed.split(",") if name.strip()]
    if not cards or not all(name.strip().isdigit() for name in cards):
        return None
    value = len(cards)
    return ComputedValue(
        value,
        number_text(
            f"CUDA_VISIBLE_DEVICES lists {value} cards.", f"CUDA_VISIBLE_DEVICES 列出了 {value} 张卡。"
        ),
    )


def _there(s: RuleContext) -> ComputedValue | None:
    return _available(s) or _visible(s)


def _available(s: RuleContext) -> ComputedValue | None:
    cards = s.stated("gpus", "available")
    nodes = s.setting("nnodes", "num_nodes") or 1
    if cards is None or not 1 <= cards <= MOST_GPUS or nodes < 1:
        return None
    value = int(cards // nodes)
    if value < 1:
        return None
    return ComputedValue(
        value,
        number_text(
            f"{cards:.0f} GPUs are there on {nodes:.0f} node(s).",
            f"{nodes:.0f} 个节点上共有 {cards:.0f} 张卡。",
        ),
    )


def _as_saved(s: RuleContext) -> ComputedValue | None:
    world, nodes = s.stated("parallel", "saved_n"), s.setting("nnodes", "num_nodes") or 1
    if world is None or not 1 <= world <= MOST_GPUS or nodes < 1 or world % nodes:
        return None
    value = int(world // nodes)
    return ComputedValue(
        value,
        number_text(
            f"The checkpoint was saved by {world:.0f} ranks: {value} on each of {nodes:.0f} node(s).",
            f"检查点由 {world:.0f} 个 rank 保存：{nodes:.0f} 个节点每个 {value} 个。",
        ),
    )


def _free_port(s: RuleContext) -> ComputedValue | None:
    taken = s.stated("port", "port", "port_n", "port_number") or s.number
    if taken is None or not _FIRST_PORT <= taken <= 65535 or s.number not in (None, taken):
        return None
    above = int(taken) + _STRIDE
    value = above if above <= _LAST_PORT else _FIRST_PORT + above % (_LAST_PORT - _FIRST_PORT)
    return ComputedValue(
        value,
        number_text(
            f"Port {taken:.0f} is taken; {value} is another one below the range that the system hands out "
            "(look whether it is free).",
            f"端口 {taken:.0f} 已被占用；{value} 位于系统自动分配范围之下（请确认空闲）。",
        ),
    )


RULES = (
    ValueRule(
        "tensor-parallel",
        _MISFIT,
        "the largest value up to the present one that divides heads or world, or fits the GPUs",
        VLLM,
        _shards,
        "down",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "tensor-parallel",
        _SPREAD,
        "twice the present one, where the node has the GPUs",
        VLLM,
        _twice_the_cards,
        "up",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "sequence-parallel",
        _MISFIT,
        "the largest divisor of the heads up to the present one",
        ULYSSES,
        _shards,
        "down",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "sequence-parallel",
        OUT_OF_MEMORY,
        "twice the present one, where the node has the GPUs",
        ULYSSES,
        _twice_the_cards,
        "up",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "model-parallel",
        _MISFIT,
        "the largest value up to the present one that divides heads or world",
        MEGATRON,
        _shards,
        "down",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "gpus",
        _FEW_CARDS,
        "the GPUs that Ray counts over the nodes, else those of CUDA_VISIBLE_DEVICES",
        VERL,
        _there,
        "down",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "gpus",
        _SAVED,
        "the ranks that saved the checkpoint, over the nodes",
        CHECKPOINT,
        _as_saved,
        "any",
        1,
        MOST_GPUS,
    ),
    ValueRule(
        "port",
        _TAKEN,
        "101 above the port that is taken, below the ephemeral range",
        PORTS,
        _free_port,
        "any",
        _FIRST_PORT,
        _LAST_PORT,
    ),
)
