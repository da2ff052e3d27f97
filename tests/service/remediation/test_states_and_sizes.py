"""Memory and sizes that no line states: the optimizer's states, a manifest's limit, a batch's parts."""

from __future__ import annotations

import pytest

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.service.remediation.test_made_up_jobs import SITE, TORCH, stack
from tests.tables import each_row
from tests.warm import explained

PACKED = f"{SITE}/site-packages/verl"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 520.00 MiB. GPU 0 has a total capacity of "
    "44.40 GiB of which 210.00 MiB is free. Including non-PyTorch memory, this process has 44.10 GiB memory "
    "in use. Of the allocated memory 41.90 GiB is allocated by PyTorch, and 900.00 MiB is reserved by "
    "PyTorch but unallocated."
)
UPDATE = (
    f"{PACKED}/workers/fsdp_workers.py:update_actor",
    f"{PACKED}/workers/actor/dp_actor.py:update_policy",
    f"{PACKED}/workers/actor/dp_actor.py:_optimizer_step",
)
STATES = (*UPDATE, f"{TORCH}/optim/adamw.py:step", f"{TORCH}/optim/adamw.py:_init_group")
BACKWARD = (*UPDATE[:2], f"{TORCH}/_tensor.py:backward", f"{TORCH}/autograd/__init__.py:backward")
RUN = (
    "python3 -m verl.trainer.main_ppo \\\n"
    "    actor_rollout_ref.model.path=/models/Llama-3.2-%s-Instruct \\\n"
    "    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \\\n"
    "    actor_rollout_ref.rollout.free_cache_engine=%s \\\n"
    "    actor_rollout_ref.rollout.gpu_memory_utilization=0.7 \\\n"
    "    trainer.n_gpus_per_node=4 trainer.nnodes=1\n"
)
SHARE = "actor_rollout_ref.rollout.gpu_memory_utilization"
MICRO = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"


@each_row(
    ("calls", "size", "sleeps", "key", "to"),
    [
        # 3 billion parameters take 8 bytes each, on four cards 5.6 GiB of the 44.4: an eighth.
        (STATES, "3B", "False", SHARE, 0.55),
        (STATES, "1B", "False", SHARE, 0.6),
        (BACKWARD, "3B", "False", "actor_rollout_ref.rollout.free_cache_engine", True),
    ],
)
def test_that_states_are_given_the_room_of_a_cache_that_stays(
    triage: Triage, calls: tuple[str, ...], size: str, sleeps: str, key: str, to: float
) -> None:
    """Fewer rows make activations smaller, and nothing of what the optimizer creates in its first step.

    An engine that is kept awake is first put to sleep.
    """
    made = explained(triage, stack(*calls, error=OOM), ConfigFile("run.sh", RUN % (size, sleeps)))
    offered = {change.key: change.to for change in made.changes}
    assert made.changes[0].key == "actor_rollout_ref.rollout.free_cache_engine"
    assert offered[key] == pytest.approx(to)
    assert (MICRO in offered) is (calls is BACKWARD)
    assert "free_cache_engine=True" in (made.patch or "")


def test_that_an_engine_which_sleeps_leaves_the_states_its_room(triage: Triage) -> None:
    made = explained(triage, stack(*STATES, error=OOM), ConfigFile("run.sh", RUN % ("3B", "True")))
    assert {change.key for change in made.changes}.isdisjoint((MICRO,))
    assert made.changes[0].key != SHARE


EASY = """data:
  rollout_batch_size: {rollout}
worker:
  actor:
    global_batch_size: {size}
    micro_batch_size_per_device_for_update: {update}
    micro_batch_size_per_device_for_experience: {experience}
  critic:
    global_batch_size: {size}
    micro_batch_size_per_device_for_update: {update}
  rollout:
    n: {answers}
trainer:
  nnodes: 1
  n_gpus_per_node: {cards}
"""
FITTING = {"rollout": 384, "size": 96, "update": 4, "experience": 16, "answers": 6, "cards": 8}
PER_DEVICE = "%s global batch size per device must be divisible by the micro batch size."
UPDATED = "worker.%s.micro_batch_size_per_device_for_update"


@each_row(
    ("message", "given", "key", "to"),
    [
        (PER_DEVICE % "actor", {"update": 10}, UPDATED % "actor", 9),
        (PER_DEVICE % "actor", {"update": 20, "answers": 4, "cards": 4}, UPDATED % "actor", 16),
        (PER_DEVICE % "critic", {"update": 7}, UPDATED % "critic", 6),
        (
            "Rollout batch size * rollout.n must be divisible by actor micro batch size for experience.",
            {"experience": 20},
            "worker.actor.micro_batch_size_per_device_for_experience",
            18,
        ),
        (
            "Rollout batch size must be divisible by actor global batch size.",
            {"rollout": 400},
            "data.rollout_batch_size",
            384,
        ),
    ],
)
def test_that_sizes_which_a_message_leaves_out_are_taken_from_the_settings(
    triage: Triage, message: str, given: dict[str, int], key: str, to: int
) -> None:
    """The first change makes the very sizes fit that the message speaks of."""
    log = "$ python3 -m verl.trainer.main config=config.yaml\n" + stack(
        "/opt/EasyR1/verl/trainer/main.py:main",
        "/opt/EasyR1/verl/workers/fsdp_workers.py:_init_dist_mesh",
        error=f"ValueError: {message}",
    )
    made = explained(triage, log, ConfigFile("config.yaml", EASY.format(**FITTING | given)))
    assert (made.changes[0].key, made.changes[0].to) == (key, to)
    assert f"+{' ' * (2 if key.count('.') == 1 else 4)}{key.rpartition('.')[2]}: {to}\n" in (made.patch or "")


POD = """apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
  template:
    spec:
      containers:
        - name: main
          command: [python, train.py, --config, settings.yaml]
          resources: {{limits: {{memory: {memory}}}}}
          volumeMounts: [{{name: shared, mountPath: /dev/shm}}]
      volumes:
        - name: shared
          emptyDir: {{medium: Memory{limit}}}
"""
BUS = (
    "ERROR: Unexpected bus error encountered in worker. "
    "This might be caused by insufficient shared memory (shm).\n"
)


def test_that_a_limit_which_the_manifest_sets_is_raised_before_loaders_are_taken_away(triage: Triage) -> None:
    files = [
        ConfigFile("job.yaml", POD.format(memory="200Gi", limit=", sizeLimit: 512Mi")),
        ConfigFile("settings.yaml", "loader:\n  num_workers: 12\n"),
    ]
    made = explained(triage, BUS, *files)
    assert made.changes[0].key == "volumes.emptyDir.sizeLimit"
    assert "sizeLimit: 16Gi" in (made.patch or "")


MAKING = (
    "[2026-01-02 03:04:05,678] [INFO] [utils.py:781:see_memory_usage] Before initializing optimizer states\n"
    "[2026-01-02 03:04:05,679] [INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 120.1 GB, "
    "percent = 9.4%\n"
)
MADE = (
    "[2026-01-02 03:04:25,678] [INFO] [utils.py:781:see_memory_usage] After initializing optimizer states\n"
)
KILLED = (
    "E0102 03:04:40.000 71 api.py:874] failed (exitcode: -9) local_rank: 1 (pid: 91) of binary: /bin/python\n"
)
OFFLOAD = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "%s"}}}\n'
START = "torchrun --nproc_per_node 4 train.py --model_name_or_path /models/Qwen2.5-14B --deepspeed ds.json\n"


@each_row(
    ("log", "device", "is_named"),
    [
        (MAKING + KILLED, "cpu", True),
        (MAKING + MADE + KILLED, "cpu", False),
        (MAKING + KILLED, "none", False),
        (KILLED, "cpu", False),
    ],
)
def test_that_a_kill_amid_the_states_on_the_host_is_the_offload(
    triage: Triage, log: str, device: str, is_named: bool
) -> None:
    """Nothing else was being done, and the pod's limit is below what the states come to."""
    files = [
        ConfigFile("run.sh", START),
        ConfigFile("ds.json", OFFLOAD % device),
        ConfigFile("job.yaml", POD.format(memory="160Gi", limit="")),
    ]
    made = explained(triage, log, *files)
    assert (made.cause == "cpu-offload-pressure") is is_named
    if is_named:
        assert made.changes[0].key == "resources.limits.memory"
        assert "+          resources: {limits: {memory: 256Gi}}\n" in (made.patch or "")
