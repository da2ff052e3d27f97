"""Conditions evaluated against what a log holds."""

from __future__ import annotations

from ingest.logs.conditions import ReportView, all_hold, holds
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework
from ingest.logs.stacks.tracebacks import Frame
from tests.factories import event
from tests.tables import each_row

ROOT = event(
    3,
    pattern="torch.cuda-oom",
    also=("torch.oom-short",),
    exception="torch.OutOfMemoryError",
    frames=(Frame("/x/vllm/worker/worker.py", 9, "execute_model"),),
    remote="WorkerDict.generate",
)
OTHER = event(9, pattern="ray.actor-died", body="in save_checkpoint the actor died")
VIEW = ReportView(
    events=(ROOT, OTHER),
    root=ROOT,
    facts=(
        Fact("gpu_oom", 3, {"free_gib": 0.5, "gpu": 3}),
        Fact("gpu_oom", 4, {"free_gib": 20.0}),
        Fact("exit", 9, {"signal": "SIGKILL"}),
    ),
    frameworks=(Framework("vllm", "0.8.2", 1), Framework("verl", "", 2), Framework("ray", "nightly", 2)),
    settings=(
        Setting("actor_rollout_ref.rollout.gpu_memory_utilization", "0.9", 1, "hydra"),
        Setting("zero-stage", "3", 1, "flag"),
        Setting("offload", "True", 1, "hydra"),
    ),
    phase="rollout",
    seen={"verl.seen"},
    has_saved=True,
)


@each_row(
    ("condition", "expected"),
    [
        ("pattern:torch.cuda-oom", True),
        ("pattern:torch.oom-short", True),
        ("pattern:ray.*", True),
        ("pattern:verl.seen", True),
        ("pattern:torch", False),
        ("saved:checkpoint", True),
        ("counted:steps", False),
        ("root:torch.*", True),
        ("root:torch.oom-short", True),
        ("root:ray.*", False),
        ("cause:gpu-oom-training", True),
        ("cause:gpu-oom", False),
        ("frame:vllm/worker/.*:execute_model", True),
        ("frame:WorkerDict", True),
        ("frame:save_checkpoint", True),
        ("frame:megatron", False),
        ("stack:vllm/worker/.*:execute_model", True),
        ("stack:WorkerDict", False),
        ("missing:own", False),
        ("exception:OutOfMemory", True),
        ("exception:KeyError", False),
        ("framework:vllm", True),
        ("framework:vllm<0.8.3", True),
        ("framework:vllm>=0.9", False),
        ("framework:verl<0.5", True),
        ("framework:ray>=2", True),
        ("framework:trl", False),
        ("framework:trl|verl", True),
        ("framework:trl|vllm<0.8", False),
        ("phase:rollout", True),
        ("phase:save", False),
        ("config:actor_rollout_ref.rollout.gpu_memory_utilization > 0.85", True),
        ("config:gpu_memory_utilization > 0.85", True),
        ("config:gpu-memory-utilization > 0.95", False),
        ("config:memory_utilization", False),
        ("config:--zero-stage == 3", True),
        ("config:zero_stage == 2", False),
        ("config:offload == true", True),
        ("config:missing", False),
        ("gpu_oom.free_gib < 1", True),
        ("gpu_oom.free_gib > 10", True),
        ("gpu_oom.free_gib > 30", False),
        ("gpu_oom.asked_gib > 0", False),
        ("exit.signal == 'sigkill'", True),
        ("exit.signal ~ 'TERM'", False),
        ("shm.size_gib < 1", False),
    ],
)
def test_a_condition_holds_where_the_log_shows_it(condition: str, expected: bool) -> None:
    """What is not seen does not hold; a version that is not printed or not readable may fit."""
    assert holds(condition, VIEW) is expected


@each_row(
    "condition",
    [
        "root:*",
        "pattern:*",
        "frame:.",
        "exception:.",
        "framework:verl",
        "config:x",
        "a.b == 1",
        "phase:save",
        "job:training",
        "command:x",
    ],
)
def test_nothing_holds_of_an_empty_log(condition: str) -> None:
    """No condition is true of nothing."""
    assert holds(condition, ReportView((), None, (), (), ())) is False


def test_all_means_each() -> None:
    """One that fails is enough; none asked is all."""
    assert all_hold(("phase:rollout", "root:torch.*"), VIEW)
    assert not all_hold(("phase:rollout", "root:ray.*"), VIEW)
    assert all_hold((), VIEW)
