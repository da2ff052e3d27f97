"""Which frameworks a job runs, told by file paths, module names and printed versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework seen in a log; `version` is empty where none is printed."""

    name: str
    version: str
    line: int


# What a frame's path or a command's module says of the framework. The more special name comes first:
# EasyR1, TinyZero and simpleRL-reason carry a package called verl, and are told by their folder.
_CUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(expression))
    for name, expression in (
        ("easyr1", r"(?i)\bEasyR1\b|\bverl\.trainer\.main\b(?!_)|worker\.(?:actor|rollout|ref)\.\w+[.\w]*="),
        ("tinyzero", r"(?i)\bTinyZero\b"),
        ("simplerl-reason", r"(?i)\bsimpleRL(?:-reason|-Zoo)?\b"),
        ("search-r1", r"(?i)\bSearch-R1\b"),
        (
            "verl",
            r"(?:^|[/.\s(])verl(?:/|\.(?:trainer|workers|utils|single_controller|third_party))|actor_rollout_ref\.",
        ),
        ("openrlhf", r"(?:^|[/.\s(])openrlhf(?:/|\.(?:cli|trainer|models|utils))|\btrain_ppo_ray\b|OpenRLHF"),
        ("trl", r"(?:^|[/\s(])trl/(?:trainer|extras|scripts|models)|\btrl (?:sft|grpo|dpo|vllm-serve)\b"),
        ("llamafactory", r"(?:^|[/.\s(])llamafactory(?:/|-cli|\.)|LLaMA-Factory"),
        (
            "ms-swift",
            r"(?:^|[/\s(])swift/(?:llm|trainers|cli|plugin|megatron)|\bswift (?:sft|rlhf|pt)\b|ms-swift",
        ),
        (
            "vllm",
            (
                r"(?:^|[/.\s(])vllm(?:/|\.(?:engine|worker|entrypoints|executor|v1|model_executor))|\bvllm "
                r"serve\b"
            ),
        ),
        ("sglang", r"(?:^|[/.\s(])sglang(?:/|\.(?:srt|launch_server))"),
        (
            "deepspeed",
            r"(?:^|[/\s(])deepspeed(?:/(?:runtime|launcher|ops|comm|utils|inference)| --|\.runtime)",
        ),
        ("megatron", r"(?:^|[/\s(])megatron/(?:core|training|legacy|bridge)"),
        ("accelerate", r"(?:^|[/\s(])accelerate/(?:commands|utils|accelerator|state)|\baccelerate launch\b"),
        (
            "transformers",
            r"(?:^|[/\s(])transformers/(?:models|trainer|modeling_|generation|utils|tokenization|integrations)",
        ),
        ("datasets", r"site-packages/datasets/"),
        ("peft", r"site-packages/peft/"),
        ("lightning", r"(?:^|[/\s(])(?:pytorch_)?lightning/(?:pytorch|trainer|fabric)"),
        ("fsdp", r"torch/distributed/fsdp/|fully_sharded_data_parallel|FullyShardedDataParallel"),
        (
            "pytorch",
            r"(?:^|[/\s(])torch/(?:nn|distributed|utils|_|cuda|autograd|optim|multiprocessing)|\btorchrun\b",
        ),
        (
            "ray",
            (
                r"(?:^|[/\s(])ray/(?:_private|_raylet|worker|util|serve|train|data|exceptions)|\bray::|\bray "
                r"(?:job submit|start)\b"
            ),
        ),
        ("flash-attn", r"\bflash_attn(?:_2_cuda|_interface|/)"),
        ("triton", r"(?:^|[/\s(])triton/(?:compiler|runtime|backends|language)"),
        ("axolotl", r"(?:^|[/.\s(])axolotl(?:/|\.cli)"),
        ("lmdeploy", r"(?:^|[/\s(])lmdeploy/|\blmdeploy (?:serve|chat|lite)\b"),
        ("tensorrt-llm", r"(?:^|[/\s(])tensorrt_llm/|\btrtllm-(?:build|serve|bench|eval)\b"),
    )
)

_ORDER = [name for name, _ in _CUES]


# The same files stand in traceback after traceback.
@lru_cache(1024)
def cued_framework(text: str) -> tuple[str, ...]:
    """Name the frameworks that a path, command or module in `text` speaks of."""
    return tuple(name for name, expression in _CUES if expression.search(text))


class FrameworkLog:
    """Gather the frameworks of one log: the first line of each, and its version once one is printed."""

    def __init__(self) -> None:
        self._found: dict[str, Framework] = {}

    def see(self, name: str, line: int, version: str = "") -> None:
        """Note a framework; a version, once known, stays."""
        known = self._found.get(name)
        if known is None:
            self._found[name] = Framework(name, version, line)
        elif version and not known.version:
            self._found[name] = Framework(name, version, known.line)

    def see_text(self, text: str, line: int) -> None:
        """Note what the text speaks of."""
        for name in cued_framework(text):
            self.see(name, line)

    def all(self) -> tuple[Framework, ...]:
        """Give what was found, the job's own framework before what it runs on."""
        rank = {name: place for place, name in enumerate(_ORDER)}
        return tuple(
            sorted(self._found.values(), key=lambda found: (rank.get(found.name, len(rank)), found.line))
        )
