"""Host memory, shared memory and the object store."""

from __future__ import annotations

from corpus.frameworks import known_frameworks
from service.remediation.rules.context import (
    GIB,
    ComputedValue,
    RuleContext,
    ValueRule,
    down_to,
    gib_of,
    number_text,
    up_to,
)

SLURM = "https://slurm.schedmd.com/sbatch.html"
RAY_STORE = "https://docs.ray.io/en/latest/ray-core/scheduling/memory-management.html"
RAY_OOM = "https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html"
RAY_SHM = "https://github.com/ray-project/ray/blob/master/python/ray/_private/services.py"
SWAP = "https://github.com/vllm-project/vllm/blob/v0.6.3/vllm/config.py"
OFFLOAD = "https://docs.vllm.ai/en/latest/configuration/engine_args/"

_KILLED = frozenset(
    {
        "host-oom-kill",
        "host-memory-leak",
        "checkpoint-host-peak",
        "cpu-offload-pressure",
        "dataloader-worker-killed",
        "ray-memory-monitor-kill",
    }
)
_SHM = frozenset({"shm-exhausted"})
_STORE_FULL = frozenset({"object-store-full"})
_RAY_KILL = frozenset({"ray-memory-monitor-kill", "host-oom-kill"})
_OFFLOAD = frozenset({"cpu-offload-pressure"})
_NO_ROOM = frozenset({"kv-cache-too-small"})
HEADROOM = 1.25
_MOST_GIB = 16384


def _size(s: RuleContext, gibs: float) -> str | int:
    """Write a size the way the setting's framework reads it."""
    suffix = known_frameworks().row(s.change.framework).size_suffix
    return f"{gibs:.0f}{suffix}" if suffix else int(gibs * GIB)


def _above_peak(s: RuleContext) -> ComputedValue | None:
    present = gib_of(s.now, s.spec.unit)
    peak = max(
        [*s.every("host_oom", "used_gib", "limit_gib"), *s.every("host_memory", "used_gib")], default=0.0
    )
    # A job that is killed with no figure in its log was at the limit that it had set.
    peak = peak or (present or 0.0 if s.cause == "host-oom-kill" else 0.0)
    if not 0 < peak <= _MOST_GIB or present == 0:  # Slurm's 0 is all of the node
        return None
    target = max(1.0, up_to(peak * HEADROOM, 1))
    machine = s.stated("host_memory", "limit_gib")
    if machine is not None and machine < target:
        target = down_to(machine * 0.95, 1)  # a limit over the machine's own is none
    if target <= peak:
        return None
    value = _size(s, target)
    return ComputedValue(
        value,
        number_text(
            f"The job reached {peak:.5g} GiB; x {HEADROOM:g} and rounded up is {value}.",
            f"作业用到 {peak:.5g} GiB；乘 {HEADROOM:g} 后向上取整为 {value}。",
        ),
    )


def _above_store(s: RuleContext) -> ComputedValue | None:
    suggested, store = s.stated("shm", "suggested_gib"), s.stated("shm", "store_gib")
    target = suggested or (store * 1.1 if store else None)
    present = gib_of(s.now, s.spec.unit) or s.stated("shm", "shm_gib") or 0.0
    if target is None or not 0 < target <= _MOST_GIB or up_to(target, 1) <= present:
        return None
    value = _size(s, up_to(target, 1))
    wanted = f"{suggested:g} GiB of shared memory" if suggested else f"an object store of {store:g} GiB"
    wanted_zh = f"{suggested:g} GiB 共享内存" if suggested else f"{store:g} GiB 的对象存储"
    return ComputedValue(
        value, number_text(f"The log asks for {wanted}: {value}.", f"日志需要{wanted_zh}：取 {value}。")
    )


def _store_in_shm(s: RuleContext) -> ComputedValue | None:
    shm = s.stated("shm", "shm_gib")
    if shm is None and (count := s.stated("shm", "shm_bytes_n")) is not None:
        shm = count / GIB
    if not shm or shm <= 0:
        return None
    value = int(shm * 0.9 * GIB)
    return ComputedValue(
        value,
        number_text(
            f"Shared memory has {shm:.4g} GiB; nine tenths of it are {value} bytes.",
            f"共享内存有 {shm:.4g} GiB，取其九成即 {value} 字节。",
        ),
    )


def _store_share(s: RuleContext, share: float) -> ComputedValue | None:
    node = s.stated("host_oom", "limit_gib")
    if node is None or not 0 < node <= _MOST_GIB:
        return None
    value = int(down_to(node * share, 1 if node * share >= 4 else 1 / 16) * GIB)
    return ComputedValue(
        value,
        number_text(
            f"{share:.0%} of the node's {node:g} GiB are about {value} bytes (Ray takes 30% by default).",
            f"节点内存 {node:g} GiB 的 {share:.0%} 约为 {value} 字节（Ray 默认取 30%）。",
        ),
    )


def _smaller_store(s: RuleContext) -> ComputedValue | None:
    return _store_share(s, 0.1)


def _larger_store(s: RuleContext) -> ComputedValue | None:
    return _store_share(s, 0.5)


def _threshold(s: RuleContext) -> ComputedValue | None:
    node = s.stated("host_oom", "limit_gib")
    threshold = s.number if s.number is not None else s.stated("host_oom", "threshold", "fraction")
    if node is None or threshold is None or node <= 0:
        return None
    value = down_to(min(0.98, 1 - 8 / node), 0.01)
    if value <= threshold:
        return None
    return ComputedValue(
        value,
        number_text(
            f"Leaves {node * (1 - value):.3g} of the node's {node:g} GiB free; the job was killed at "
            f"{threshold:g}.",
            f"为 {node:g} GiB 的节点留出 {node * (1 - value):.3g} GiB；作业在 {threshold:g} 时被杀。",
        ),
    )


def _swap(s: RuleContext) -> ComputedValue | None:
    pair = s.together("host_oom", "asked_gib", "limit_gib")
    if pair is None or pair[0] <= 0:
        return None
    wanted, memory = pair
    engines = s.setting("tensor_parallel_size", "tp") or (wanted / s.number if s.number else 1)
    value = int(down_to(0.4 * memory / max(engines, 1), 1))
    return ComputedValue(
        value,
        number_text(
            f"{wanted:g} GiB were asked for of {memory:g} GiB; 40% over {engines:g} GPUs are {value} GiB "
            "each.",
            f"共申请 {wanted:g} GiB，内存 {memory:g} GiB；其 40% 分到 {engines:g} 张卡，每张 {value} GiB。",
        ),
    )


def _offload(s: RuleContext) -> ComputedValue | None:
    missing = -(s.stated("kv_cache", "available_gib") or 0.0)
    if missing <= 0:
        return None
    value = int(up_to((s.number or 0) + missing + 1, 1))
    return ComputedValue(
        value,
        number_text(
            f"{missing:.4g} GiB are missing on the card: {value} GiB go to the host.",
            f"显卡上缺 {missing:.4g} GiB：将 {value} GiB 放到内存。",
        ),
    )


RULES = (
    ValueRule(
        "host-memory", _KILLED, "the peak or limit seen x 1.25, up to a whole GiB", SLURM, _above_peak, "up"
    ),
    ValueRule(
        "shm-size",
        _SHM | _STORE_FULL,
        "what the log asks for, up to a whole GiB",
        RAY_SHM,
        _above_store,
        "up",
    ),
    ValueRule("object-store", _SHM, "nine tenths of /dev/shm", RAY_STORE, _store_in_shm, "down"),
    ValueRule("object-store", _STORE_FULL, "half of the node's memory", RAY_STORE, _larger_store, "up"),
    ValueRule("object-store", _RAY_KILL, "a tenth of the node's memory", RAY_STORE, _smaller_store, "down"),
    ValueRule(
        "memory-threshold",
        _RAY_KILL,
        "what leaves 8 GiB of the node free, at most 0.98",
        RAY_OOM,
        _threshold,
        "up",
        0.5,
        0.98,
    ),
    ValueRule(
        "swap-space", _OFFLOAD, "40% of the host's memory over the engine's GPUs", SWAP, _swap, "down", 0
    ),
    ValueRule(
        "offload-gib",
        _NO_ROOM,
        "what is missing on the card and one GiB",
        OFFLOAD,
        _offload,
        "up",
        1,
        _MOST_GIB,
    ),
)
