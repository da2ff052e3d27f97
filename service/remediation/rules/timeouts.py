"""Time-outs: longer than the one that ran out, by as much as the log lets one tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from service.remediation.rules.context import ComputedValue, RuleContext, ValueRule, number_text, up_to

GROUP = "https://docs.pytorch.org/docs/stable/distributed.html"
FLIGHT = "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"
VLLM = "https://github.com/vllm-project/vllm/blob/main/vllm/envs.py"
SGLANG = "https://docs.sglang.ai/advanced_features/server_arguments.html"
TRL = "https://huggingface.co/docs/trl/vllm_integration"
WANDB = "https://docs.wandb.ai/guides/track/environment-variables/"
RAY = "https://github.com/ray-project/ray/blob/master/src/ray/common/ray_config_def.h"
VERL = "https://github.com/volcengine/verl/blob/main/verl/single_controller/ray/base.py"

_WAITING = frozenset(
    {"collective-straggler", "collective-desync", "collective-peer-died", "rendezvous-failed", "nccl-network"}
)
_ENGINE = frozenset({"engine-request-timeout", "engine-crash", "collective-straggler"})
_SERVICE = frozenset({"external-service-failed", "engine-request-timeout", "hub-unreachable"})
_RAY = frozenset({"ray-control-plane", "stale-state", "node-lost"})
LEAST_S, MOST_S = 1.0, 86400.0
_SECONDS = {"minutes": 60.0, "milliseconds": 1e-3, "ms": 1e-3}
_GROUP_FACTS = (
    ("collective", "timeout_s"),
    ("store_wait", "timeout_s"),
    ("port", "timeout_s"),
    ("rendezvous", "timeout_s"),
)
# A hang that is none ends in this many times of what has passed already.
TIMES = 2
# Work of the same kind takes longer at times; it must not run out again.
_SLACK = 1.5


def _second(s: RuleContext) -> float:
    return _SECONDS.get(s.spec.unit or "", 1.0)


def _ran_out(s: RuleContext, facts: tuple[tuple[str, str], ...]) -> float | None:
    """Give the seconds that ran out: the log's figure, else the job's setting."""
    found = [number for kind, name in facts if (number := s.stated(kind, name)) is not None and number > 0]
    if found:
        return found[0]
    return s.number * _second(s) if s.number is not None and s.number > 0 else None


def _doubled(s: RuleContext, facts: tuple[tuple[str, str], ...]) -> ComputedValue | None:
    seconds = _ran_out(s, facts)
    if seconds is None or not LEAST_S <= seconds <= MOST_S:
        return None
    present = (s.number or 0) * _second(s)
    return _written(
        s,
        min(TIMES * max(seconds, present), MOST_S),
        number_text(
            f"{seconds:g} s ran out; {TIMES} times that", f"{seconds:g} 秒已超时，取其 {TIMES} 倍"
        ).model_dump(),
    )


def _written(s: RuleContext, seconds: float, said: dict[str, str]) -> ComputedValue:
    value = int(up_to(seconds / _second(s), 1))
    unit = s.spec.unit or "seconds"
    return ComputedValue(
        value, number_text(f"{said['en']}: {value} {unit}.", f"{said['zh']}：{value}（{unit}）。")
    )


def _preprocessing(s: RuleContext) -> ComputedValue | None:
    seconds, percent = _ran_out(s, _GROUP_FACTS), max(s.every("preprocess", "percent"), default=0.0)
    if seconds is None or not 1 <= percent < 100:
        return None
    whole = up_to(seconds * 100 / percent * _SLACK, 600)
    if whole > MOST_S:
        return None
    return _written(
        s,
        whole,
        number_text(
            f"After {seconds:g} s rank 0 had preprocessed {percent:g}% while the others waited; the whole "
            f"with {_SLACK:g} times the time",
            f"{seconds:g} 秒内 rank 0 只预处理了 {percent:g}%，其他 rank 在等待；按全量的 {_SLACK:g} 倍",
        ).model_dump(),
    )


def _group(s: RuleContext) -> ComputedValue | None:
    return _preprocessing(s) or _doubled(s, _GROUP_FACTS)


def _of(*facts: tuple[str, str]) -> Callable[[RuleContext], ComputedValue | None]:
    """Make the rule's function that doubles what these facts state."""
    return partial(_doubled, facts=facts)


RULES = (
    ValueRule(
        "group-timeout",
        _WAITING,
        "twice what ran out; with preprocessing shown, 1.5 times what all of it takes",
        GROUP,
        _group,
        "up",
        1,
        1e8,
    ),
    ValueRule(
        "preprocess-timeout",
        _WAITING,
        "1.5 times what all of the preprocessing takes, from the share done when the time ran out",
        GROUP,
        _preprocessing,
        "up",
        1,
        1e8,
    ),
    ValueRule(
        "heartbeat-timeout",
        _WAITING,
        "twice what ran out",
        FLIGHT,
        _of(("heartbeat", "elapsed_s")),
        "up",
        1,
        1e8,
    ),
    ValueRule(
        "watchdog-timeout",
        _ENGINE,
        "twice what ran out",
        SGLANG,
        _of(("watchdog", "timeout_s")),
        "up",
        1,
        1e8,
    ),
    ValueRule("engine-timeout", _ENGINE, "twice what ran out", VLLM, _of(("rpc", "timeout_s")), "up", 1, 1e8),
    ValueRule("ready-timeout", _ENGINE, "twice what ran out", VLLM, _of(("rpc", "waited_s")), "up", 1, 1e8),
    ValueRule(
        "server-timeout", _SERVICE, "twice what ran out", TRL, _of(("http", "timeout_s")), "up", 1, 1e8
    ),
    ValueRule(
        "service-timeout", _SERVICE, "twice what ran out", WANDB, _of(("service", "timeout_s")), "up", 1, 1e8
    ),
    ValueRule("own-timeout", _RAY | _ENGINE | _SERVICE, "twice the job's own", RAY, _of(), "up", 1, 1e8),
    ValueRule(
        "register-timeout", _RAY, "twice what ran out", VERL, _of(("waiting", "timeout_s")), "up", 1, 1e8
    ),
)
