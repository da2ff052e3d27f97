"""Batch sizes: what still divides after one of them becomes smaller."""

from __future__ import annotations

import re
from math import lcm

from corpus.frameworks import known_frameworks
from corpus.keys import levels
from service.remediation.rules.context import (
    Answer,
    CannotHelp,
    ComputedValue,
    DependentSetting,
    RuleContext,
    ValueRule,
    down_to,
    number_text,
    up_to,
)
from service.remediation.rules.lengths import asked
from service.remediation.rules.memory import OUT_OF_MEMORY, missing_gib

VERL = "https://github.com/volcengine/verl/blob/main/verl/utils/config.py"
TRAINER = "https://huggingface.co/docs/transformers/perf_train_gpu_one"
DEEPSPEED = "https://www.deepspeed.ai/docs/config-json/"
GRPO = "https://github.com/huggingface/trl/blob/main/trl/trainer/grpo_config.py"

_INDIVISIBLE = frozenset({"batch-not-divisible", "parallelism-invalid"})
MOST = 1 << 24
_UPDATES = ("ppo_micro", "micro_train", "train.micro", "for_update", "--micro-batch")


def divisor_at_most(number: int, most: int) -> int:
    """Give the largest divisor of `number` that is not over `most`; one at least."""
    return next((value for value in range(min(number, most), 0, -1) if number % value == 0), 1)


def _sharers(s: RuleContext) -> int | None:
    """Give how many GPUs share the micro batch: all where the setting counts over them, else one."""
    counted = known_frameworks().row(s.change.framework).batches.counted_over_gpus
    if not s.change.key.endswith(counted):
        return 1
    cards = s.setting("trainer.n_gpus_per_node")
    return int(cards * (s.setting("trainer.nnodes") or 1)) if cards is not None and cards >= 1 else None


def _that_fit(s: RuleContext, rows: int) -> int:
    """Give how many rows the free memory holds, where what is asked for grows with the rows as logits do."""
    missing = missing_gib(s)
    if s.cause != "gpu-oom-logits" or missing is None:
        return rows
    wanted, free, _ = missing
    return max(1, int(rows * free / wanted))


def _smaller_micro(s: RuleContext) -> ComputedValue | None:
    now, sharers = s.whole, _sharers(s)
    if now is None or sharers is None or now % sharers or not 2 <= now // sharers <= MOST:
        return None
    own = now // sharers
    value = divisor_at_most(own, min(own // 2, _that_fit(s, own))) * sharers
    also = _accumulated(s, now // value)
    en = f"{value} divides {now}, so it divides all that {now} did.{asked(s, 'en')}"
    zh = f"{value} 整除 {now}，凡 {now} 能整除的它也能整除。{asked(s, 'zh')}"
    if known_frameworks().row(s.change.framework).batches.sums_gradients and any(
        part in s.change.key for part in _UPDATES
    ):
        en += " Gradients are summed up to the larger batch, so the training stays the same."
        zh += "梯度会自动累积到大 batch，训练结果不变。"
    return ComputedValue(value, number_text(en, zh), also)


def _accumulated(s: RuleContext, factor: int) -> tuple[DependentSetting, ...]:
    batches = known_frameworks().row(s.change.framework).batches
    key = batches.steps
    if not key or s.change.key.endswith("eval_batch_size"):
        return ()
    shown = s.text_of(levels(key)[-1])
    steps = s.setting(levels(key)[-1]) if shown is not None else 1
    inferred = shown is None and (batches.steps_inferred or s.setting("train_batch_size") is not None)
    if steps is None or steps < 1 or inferred:
        return ()  # "auto"; or the program chooses the steps by itself, as DeepSpeed does with train_batch_size
    value = int(steps) * factor
    return (
        DependentSetting(
            key,
            value,
            number_text(
                f"{int(steps)} x {factor}, so that the global batch stays as it is.",
                f"{int(steps)} × {factor}，使全局 batch 不变。",
            ),
        ),
    )


def _micro_that_divides(s: RuleContext) -> Answer:
    pair = s.together("batch", "size", "divisor") or s.together("batch", "size_n", "micro_n")
    ranks = s.stated("batch", "dp_n", "world_n") or 1
    if pair is None or not 1 <= pair[0] <= MOST or ranks < 1:
        return None
    if pair[0] % ranks:
        return CannotHelp(
            number_text(
                f"{pair[0]:.0f} is no multiple of {ranks:.0f} ranks, so no micro batch divides it",
                f"{pair[0]:.0f} 不是 {ranks:.0f} 个 rank 的倍数，任何 micro batch 都不能整除",
            )
        )
    if s.whole is None or s.whole != pair[1]:
        return None
    size = int(pair[0] // ranks)
    value = divisor_at_most(size, s.whole)
    return ComputedValue(
        value,
        number_text(
            f"{size} per GPU is not a multiple of {s.whole}; the largest divisor below is {value}.",
            f"每卡 {size} 不是 {s.whole} 的倍数；不超过它的最大约数是 {value}。",
        ),
    )


def _global_that_divides(s: RuleContext) -> ComputedValue | None:
    pair = s.together("batch", "size", "divisor") or s.together("batch", "size_n", "divisor_n")
    if pair is None or s.whole is None or min(pair) < 1 or max(pair) > MOST:
        return None
    size, divisor = int(pair[0]), int(pair[1])
    # The log counts samples: prompts times the responses of each.
    copies = size // s.whole if size % s.whole == 0 else 0
    if not copies:
        return None
    step = lcm(copies, divisor) // copies
    least = int(s.setting("ppo_mini_batch_size", "worker.actor.global_batch_size") or 1)
    return _multiple(
        s.whole,
        step,
        least,
        number_text(
            f"{s.whole} x {copies} samples must be a multiple of {divisor}",
            f"{s.whole} × {copies} 条须为 {divisor} 的倍数",
        ).model_dump(),
    )


def _multiple(now: int, step: int, least: int, said: dict[str, str]) -> ComputedValue | None:
    """Give the multiple of `step` next below, or above where none is at least `least`."""
    below = int(down_to(now, step))
    value = below if below >= max(least, 1) else int(up_to(max(now, least), step))
    if value == now:
        return None
    return ComputedValue(
        value,
        number_text(
            f"{said['en']}: the nearest multiple of {step} is {value}.",
            f"{said['zh']}：最近的 {step} 的倍数是 {value}。",
        ),
    )


def _megatron_global(s: RuleContext) -> ComputedValue | None:
    parts = s.together("batch", "size_n", "micro_n", "dp_n")
    if parts is None or min(parts) < 1:
        return None
    size, micro, ranks = (int(part) for part in parts)
    return _multiple(
        size,
        micro * ranks,
        1,
        {
            "en": f"{size} must be a multiple of {micro} x {ranks}",
            "zh": f"{size} 须为 {micro} × {ranks} 的倍数",
        },
    )


def _product(s: RuleContext) -> ComputedValue | None:
    parts = s.together("batch", "micro_n", "accumulation_n", "world_n")
    if parts is None or min(parts) < 1:
        return None
    micro, steps, world = (int(part) for part in parts)
    value = micro * steps * world
    return ComputedValue(
        value,
        number_text(
            f"{micro} x {steps} x {world} (micro batch, accumulation, GPUs) make {value}.",
            f"{micro} × {steps} × {world}（micro batch、累积、GPU 数）等于 {value}。",
        ),
    )


def _mini(s: RuleContext) -> ComputedValue | None:
    """Fit a mini batch between the batch above and the micro batch below, as far as the log names them."""
    pair = s.together("batch", "size", "divisor")
    if pair is None or s.whole is None or min(pair) < 1 or max(pair) > MOST:
        return None
    size, divisor = int(pair[0]), int(pair[1])
    if s.whole == size:
        return _multiple(
            size,
            divisor,
            1,
            {"en": f"{size} must be a multiple of {divisor}", "zh": f"{size} 须为 {divisor} 的倍数"},
        )
    if s.whole != divisor:
        return None
    value = divisor_at_most(size, divisor)
    return ComputedValue(
        value,
        number_text(
            f"The batch above has {size} rows; its largest divisor up to {divisor} is {value}.",
            f"上一级 batch 为 {size}，其不超过 {divisor} 的最大约数是 {value}。",
        ),
    )


def _train_batch(s: RuleContext) -> ComputedValue | None:
    return _product(s) or _megatron_global(s) or _global_that_divides(s)


def _group(s: RuleContext) -> ComputedValue | None:
    valid = [int(number) for number in re.findall(r"\d{1,9}", s.words("batch", "valid"))]
    asked_for = s.whole or int(s.stated("batch", "group_n") or 0)
    if not valid or not asked_for:
        return None
    # Fewer than two responses of a prompt have no advantage over one another.
    fitting = [number for number in valid if number >= 2]
    below = [number for number in fitting if number < asked_for]
    # What divides the present one keeps the other batches whole too.
    value = max([number for number in below if asked_for % number == 0] or below or fitting[:1], default=0)
    if value < 2 or value == asked_for:
        return None
    return ComputedValue(
        value,
        number_text(
            f"The log lists the values that divide; {value} is the best instead of {asked_for}.",
            f"日志列出了可整除的值，{asked_for} 可改为 {value}。",
        ),
    )


RULES = (
    ValueRule(
        "micro-batch",
        OUT_OF_MEMORY,
        "the largest divisor of the present one up to its half; accumulation steps grow by the same factor",
        TRAINER,
        _smaller_micro,
        "down",
        1,
        MOST,
    ),
    ValueRule(
        "micro-batch",
        _INDIVISIBLE,
        "the largest divisor of the mini batch of a GPU that is not over the present one",
        VERL,
        _micro_that_divides,
        "down",
        1,
        MOST,
    ),
    ValueRule(
        "global-batch",
        _INDIVISIBLE,
        "micro x accumulation x world as stated, else the nearest multiple below, else above",
        DEEPSPEED,
        _train_batch,
        "any",
        1,
        MOST,
    ),
    ValueRule(
        "product-batch",
        _INDIVISIBLE,
        "micro x accumulation x world, as stated",
        DEEPSPEED,
        _product,
        "any",
        1,
        MOST,
    ),
    ValueRule(
        "mini-batch",
        _INDIVISIBLE,
        "a divisor of the batch above, or a multiple of the micro batch, next to the present one",
        VERL,
        _mini,
        "any",
        1,
        MOST,
    ),
    ValueRule(
        "group-size",
        _INDIVISIBLE,
        "a value that the log lists as valid, under the present one, a divisor of it if there is one",
        GRPO,
        _group,
        "any",
        2,
        MOST,
    ),
)
