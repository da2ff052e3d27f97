"""What a node is asked for is set against what the job puts on it."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

KILLED = """               total        used        free
Mem:            1500         100        1400
[2026-11-21 22:09:42,602] [INFO] [utils.py:781:see_memory_usage] Before initializing optimizer states
[2026-11-21 22:09:42,602] [INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 211.3 GB, percent = 14.1%
slurmstepd: error: Detected 1 oom_kill event in StepId=771204.0. Some of the step tasks have been OOM Killed.
srun: error: n1: task 0: Out Of Memory
"""  # noqa: E501 (a row of a log)
JOB = "#!/bin/bash\n#SBATCH --nodes={nodes}\n#SBATCH --gpus-per-node=8\n#SBATCH --mem={memory}\n\n{command}\n"
TRAIN = "srun deepspeed --num_gpus 8 train.py --model_path /m/{model} --deepspeed_config ds.json{more}"
OFFLOAD = (
    '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, '
    '"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "%s"}}}\n'
)


@each_row(
    ("nodes", "memory", "model", "device", "more", "to"),
    [
        # 14e9 parameters at 18 and at 16 bytes are 235 and 209 GiB; with a fifth, in steps of 8, 288 and 256.
        (1, "200G", "Qwen2.5-14B", "cpu", "", "288G"),
        (1, "200G", "Qwen2.5-14B", "none", "", "256G"),
        (2, "200G", "Qwen2.5-32B", "cpu", "", "328G"),
        # As much is asked for, adapters alone are trained, or the name tells no size.
        (1, "400G", "Qwen2.5-14B", "cpu", "", ""),
        (1, "200G", "Qwen2.5-14B", "cpu", " --lora_r 16", ""),
        (1, "200G", "base", "cpu", "", ""),
    ],
)
def test_that_memory_holds_what_is_offloaded(
    triage: Triage, nodes: int, memory: str, model: str, device: str, more: str, to: str
) -> None:
    job = JOB.format(nodes=nodes, memory=memory, command=TRAIN.format(model=model, more=more))
    files = ConfigFile("job.slurm", job), ConfigFile("ds.json", OFFLOAD % device)
    made = explained(triage, KILLED, *files)
    first = made.changes[0]
    assert (first.key == "--mem" and first.proof is not None) is bool(to)
    assert not to or (first.to == to and f"+#SBATCH --mem={to}\n" in (made.patch or ""))


OTHER_RANKS = (
    "deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP world size of "
    "{saved} but the current world size is {now}. Automatic adjustment of ZeRO's optimizer state "
    "partitioning with a new world size is not currently supported.\n"
)
LAUNCH = "srun torchrun --nnodes {nnodes} --nproc_per_node 8 tune.py --deepspeed ds.json"


@each_row(
    ("nodes", "saved", "nnodes", "to"),
    [
        (1, 32, "$SLURM_NNODES", 4),
        (4, 16, "$SLURM_JOB_NUM_NODES", 2),
        # No number of nodes makes so many, or the launcher has one of its own.
        (1, 12, "$SLURM_NNODES", None),
        (1, 32, "1", None),
    ],
)
def test_that_as_many_nodes_load_a_checkpoint_as_wrote_it(
    triage: Triage, nodes: int, saved: int, nnodes: str, to: int | None
) -> None:
    job = JOB.format(nodes=nodes, memory="0", command=LAUNCH.format(nnodes=nnodes))
    log = OTHER_RANKS.format(saved=saved, now=8 * nodes)
    made = explained(triage, log, ConfigFile("job.slurm", job))
    asked = {change.key: change.to for change in made.changes}
    assert asked.get("--nodes") == to
    assert to is None or f"+#SBATCH --nodes={to}\n" in (made.patch or "")


PREEMPTED = "slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2026-11-27T04:09:12 DUE TO PREEMPTION ***\n"
LIGHTNING = """  | Name | Type | Params
GPU available: True (cuda), used: True
LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]
"""


@each_row(
    ("option", "offered"), [("--save-every 250", False), ("--save_interval=500", False), ("--lr 1", True)]
)
def test_that_nothing_is_saved_oftener_that_is_saved_as_often(
    triage: Triage, option: str, offered: bool
) -> None:
    job = JOB.format(nodes=1, memory="0", command=f"srun python tune.py {option}")
    log = f"{LIGHTNING}{PREEMPTED}"
    made = explained(triage, log, ConfigFile("job.slurm", job))
    # Weighed, whether or not anything else speaks against it.
    told = [change.key for change in made.changes] + [item.what for item in made.engine.dropped]
    assert any("every_n_train_steps" in text for text in told) is offered
