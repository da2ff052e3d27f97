"""Settings that two files of a job must agree in, and the interface that another variable names."""

from __future__ import annotations

import pytest

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

SITE = "/opt/conda/lib/python3.11/site-packages"
LOSS = "".join(
    f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': {step / 100}}}\n" for step in range(9)
)
SCALE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/ft/finetune.py", line 88, in <module>\n'
    "    trainer.train()\n"
    f'  File "{SITE}/transformers/trainer.py", line 2245, in train\n'
    "    return inner_training_loop(\n"
    f'  File "{SITE}/deepspeed/runtime/fp16/loss_scaler.py", line 175, in update\n'
    "    raise Exception(\n"
    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
)
SCRIPT = (
    "deepspeed --num_gpus 2 finetune.py --fp16 True --output_dir out --num_train_epochs 1 "
    "--per_device_train_batch_size 4 --deepspeed zero.json\n"
)
CONNECT = (
    "n1:70:140 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\n"
    "n1:70:140 [0] NCCL INFO NET/Socket : Using [0]docker0:172.17.0.1<0> [1]ens7:10.8.0.4<0>\n"
    "n1:70:140 [0] misc/socket.cc:556 NCCL WARN socketStartConnect: Connect to 172.17.0.1<40001> failed : "
    "Connection refused\n"
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:2251, remote "
    "process exited or there was a network error, NCCL version 2.21.5\n"
)


def test_that_both_files_of_one_precision_are_changed(triage: Triage) -> None:
    """The Trainer refuses a file of DeepSpeed that differs from its arguments."""
    files = (
        ConfigFile("run.sh", SCRIPT),
        ConfigFile("zero.json", '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}\n'),
    )
    made = explained(triage, LOSS + SCALE, *files)
    patch = made.patch or ""
    assert made.cause == "nan-or-inf"
    assert "+++ b/run.sh" in patch
    assert "--bf16 true" in patch.lower()
    assert "+++ b/zero.json" in patch
    assert '"bf16": {"enabled": true}' in patch


def test_that_a_file_which_leaves_it_to_the_trainer_stays(triage: Triage) -> None:
    """`auto` has the Trainer's value."""
    files = (
        ConfigFile("run.sh", SCRIPT),
        ConfigFile("zero.json", '{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}\n'),
    )
    made = explained(triage, LOSS + SCALE, *files)
    assert not [
        change for change in made.changes if change.goes_with == "bf16" and change.framework == "deepspeed"
    ]


@each_row(
    ("script", "value"),
    [
        ("export GLOO_SOCKET_IFNAME=ib3\ntorchrun --nnodes 2 train.py\n", "ib3"),
        # A bridge is none that other machines reach; the one that NCCL lists beside it is.
        ("export GLOO_SOCKET_IFNAME=docker0\ntorchrun --nnodes 2 train.py\n", "ens7"),
        ("torchrun --nnodes 2 train.py\n", "ens7"),
    ],
)
def test_that_the_interface_is_the_one_that_the_job_or_its_log_names(
    triage: Triage, script: str, value: str
) -> None:
    """The value of a variable stands elsewhere in the job."""
    made = explained(triage, CONNECT, ConfigFile("run.sh", script))
    first = made.changes[0]
    assert (first.key, first.to) == ("NCCL_SOCKET_IFNAME", value)
    assert f"+export NCCL_SOCKET_IFNAME={value}" in (made.patch or "")
    # The variable that is right is no change.
    kept = [change for change in made.changes if change.key == "GLOO_SOCKET_IFNAME"]
    assert not kept or "docker0" in script or "GLOO" not in script


@pytest.mark.parametrize(("strategy", "is_first"), [("NO_SHARD", True), ("SHARD_GRAD_OP", False)])
def test_that_unsharded_states_are_sharded_before_rows_are_cut(
    triage: Triage, strategy: str, is_first: bool
) -> None:
    """Where the optimizer's states do not fit, a file that shards nothing holds the lever."""
    log = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/opt/ft/tune.py", line 31, in <module>\n'
        "[rank1]:     trainer.train()\n"
        f'[rank1]:   File "{SITE}/transformers/trainer.py", line 2245, in train\n'
        "[rank1]:     self.optimizer.step()\n"
        f'[rank1]:   File "{SITE}/accelerate/optimizer.py", line 178, in step\n'
        "[rank1]:     self.optimizer.step(closure)\n"
        f'[rank1]:   File "{SITE}/torch/optim/adam.py", line 166, in _init_group\n'
        '[rank1]:     state["exp_avg"] = torch.zeros_like(\n'
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 1 has a "
        "total capacity of 44.35 GiB of which 31.19 MiB is free.\n"
    )
    given = f"distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: {strategy}\nnum_processes: 4\n"
    start = ConfigFile("run.sh", "accelerate launch --config_file fsdp.yaml tune.py --max_seq_length 4096\n")
    made = explained(triage, log, start, ConfigFile("fsdp.yaml", given))
    first = made.changes[0]
    assert (first.key == "fsdp_config.fsdp_sharding_strategy") is is_first
    assert not is_first or first.to == "FULL_SHARD"


def test_that_a_pod_without_a_volume_in_memory_gets_one_before_fewer_workers(triage: Triage) -> None:
    """A batch may be more than the 64 MB that a pod has."""
    log = (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
        "memory (shm).\n"
        "RuntimeError: DataLoader worker (pid 211) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"
    )
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train\nspec:\n  containers:\n    - name: main\n"
        "      command: [python, train.py, --workers=16]\n      volumeMounts:\n        - name: data\n"
        "          mountPath: /data\n  volumes:\n    - name: data\n      emptyDir: {}\n"
    )
    made = explained(triage, log, ConfigFile("pod.yaml", pod))
    assert made.cause == "shm-exhausted"
    assert made.changes[0].key == "volumes.emptyDir.medium"
    assert "sizeLimit: 16Gi" in (made.patch or "")


@each_row(
    ("words", "limit", "size"),
    [
        # 48 x 3 x 384 x 384 in float32, ten workers of four ranks with two each: 6.3 GiB.
        ("--batch-size=48, --workers=10, --image-size=384", "", "16Gi"),
        ("--batch-size=256, --workers=10, --image-size=384", "", "40Gi"),
        ("--batch-size=256, --workers=10, --image-size=384", "limits: {memory: 48Gi}", "24Gi"),
        ("--batch-size=256, --workers=10", "", "16Gi"),
    ],
)
def test_that_a_volume_in_memory_holds_the_batches_of_all_workers(
    triage: Triage, words: str, limit: str, size: str
) -> None:
    log = (
        "RuntimeError: DataLoader worker (pid 211) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"
    )
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train\nspec:\n  containers:\n    - name: main\n"
        f"      command: [torchrun, --nproc_per_node=4, train.py, {words}]\n"
        f"      resources: {{{limit}}}\n"
        "      volumeMounts:\n        - name: data\n"
        "          mountPath: /data\n  volumes:\n    - name: data\n      emptyDir: {sizeLimit: 90Gi}\n"
    )
    made = explained(triage, log, ConfigFile("pod.yaml", pod))
    assert made.changes[0].key == "volumes.emptyDir.medium"
    assert f"medium: Memory\n+        sizeLimit: {size}\n" in (made.patch or "")
