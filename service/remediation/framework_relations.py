"""Whose settings the job's user makes: a log shows many frameworks, and most are driven by another one."""

from __future__ import annotations

from collections.abc import Collection

from ingest.logs.frameworks import cued_framework
from ingest.logs.report import CrashReport

_ENGINES = frozenset({"vllm", "sglang"})
_TRAINERS = frozenset({"transformers", "trl", "accelerate"})
_VERL = _ENGINES | _TRAINERS | {"verl", "deepspeed", "megatron", "pytorch"}
# What trains without being named: a script of somebody's own, with an engine in it.
_TRAINING = frozenset({"deepspeed", "megatron", "fsdp", "accelerate", "lightning", "peft"})
# What a framework drives by itself: its log is full of their frames, but their settings are out of the user's
# hands.
_DRIVES = {
    "easyr1": _VERL,
    "tinyzero": _VERL,
    "simplerl-reason": _VERL,
    "search-r1": _VERL,
    "verl": _VERL - {"verl"},
    "openrlhf": _ENGINES | _TRAINERS | {"deepspeed", "pytorch"},
    "trl": _ENGINES,
    "ms-swift": _ENGINES,
    "llamafactory": _ENGINES | {"trl"},
    "axolotl": _ENGINES | _TRAINERS,
    "lightning": frozenset({"transformers"}),
    "megatron": _TRAINERS,
    "vllm": _TRAINERS | {"deepspeed", "pytorch"},
    "sglang": _TRAINERS | {"deepspeed", "pytorch", "vllm"},
}
# Their arguments are those of the trainer they are built on, and more.
_TAKES = {name: frozenset({"transformers"}) for name in ("trl", "llamafactory", "ms-swift")}

# What starts a job: of these it uses one, so that where one is seen the others are none of its own.
PLACES = frozenset({"docker", "kubernetes", "slurm"})
# Variables of a launcher; an engine that serves starts its processes itself, and reads none of them.
_LAUNCHING = frozenset({"MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE"})
# Variables that only one framework reads.
_READ_BY = (("RAY_", "ray"), ("VLLM_", "vllm"), ("SGLANG_", "sglang"))
# What belongs to every job: its packages, its machine, and what all the others are built on.
_COMMON = frozenset({"env", "pip", "host", "linux", "python", "nccl", "pytorch", "cuda"})
# What starts Ray itself.
_ON_RAY = frozenset({"ray", "verl", "easyr1", "tinyzero", "simplerl-reason", "search-r1", "openrlhf"})


def runs(framework: str, key: str, reader: str, seen: Collection[str]) -> bool:
    """Tell whether a job that shows the frameworks `seen` reads a setting of another one.

    `reader` is whose variable it is.
    """
    if framework == "ray" or key.startswith("RAY_"):
        return bool(_ON_RAY & set(seen))
    if framework in _COMMON:
        return reader in ("", *_COMMON, *seen)
    return framework in seen


def fits_place(framework: str, key: str, report: CrashReport) -> bool:
    """Tell whether a setting outside of the trainer can be one of this job, as far as the log shows what it uses."""
    seen = shown_frameworks(report)
    # Name the engine that runs by itself, with no trainer above it; the empty string where there is none.
    engine = (
        ""
        if (_DRIVES.keys() - _ENGINES | _TRAINING) & set(seen)
        else next((name for name in ("sglang", "vllm") if name in seen), "")
    )
    if engine and (key in _LAUNCHING or (framework == "pytorch" and key.startswith("--"))):
        return False
    reader = next(
        (name for prefix, name in _READ_BY if key.startswith(prefix)), "ray" if framework == "ray" else ""
    )
    if reader and seen:
        return reader in seen and not (reader in _ENGINES and engine not in ("", reader))
    return framework not in PLACES or framework in seen or not seen & PLACES


def settable_frameworks(report: CrashReport) -> frozenset[str]:
    """Name the frameworks of the log whose settings the job's user makes."""
    seen = shown_frameworks(report)
    # An engine is hidden by the trainer that drives it; alone, it hides what it is built on.
    drivers = (seen & _DRIVES.keys()) - _ENGINES or seen & _ENGINES
    return frozenset(seen.difference(*(_DRIVES[name] for name in drivers)))


def shown_frameworks(report: CrashReport) -> frozenset[str]:
    """Name the frameworks of the log, and those whose settings they take as their own."""
    seen = {found.name for found in report.frameworks}.union(
        *(cued_framework(text) for text in report.launches)
    )
    named = seen.union(*(_TAKES.get(name, frozenset()) for name in seen))
    # The trainer shards by FSDP through accelerate alone.
    return frozenset(named | {"accelerate"} if {"fsdp", "transformers"} <= named else named)
