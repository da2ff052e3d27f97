"""The first change for failures that a made-up log tells, each beside one that differs in what decides."""

from __future__ import annotations

from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from tests.warm import diagnosed

SITE = "/opt/env/lib/python3.11"
TORCH = f"{SITE}/site-packages/torch"


def stack(*calls: str, error: str) -> str:
    """Write a traceback of `file:function` calls, the innermost last."""
    frames = "".join(
        f'  File "{call.rpartition(":")[0]}", line {place}, in {call.rpartition(":")[2]}\n'
        for place, call in enumerate(calls, 11)
    )
    return f"Traceback (most recent call last):\n{frames}{error}\n"


def answer(triage: Triage, log: str) -> tuple[str, list[tuple[str, str]]]:
    """Give the cause and the changes of framework and key, the cures before what finds out."""
    found = diagnosed(triage, sources.from_text(log), "en")
    return found.cause, [(change.framework, change.key) for change in found.changes]


def disk(*calls: str, path: str = "") -> str:
    """Write the error of a full device."""
    return stack(*calls, error=f"OSError: [Errno 28] No space left on device{path}")


LOADER = ("/job/train.py:main", f"{TORCH}/utils/data/dataloader.py:__init__")
FEED = (f"{SITE}/multiprocessing/queues.py:_feed", f"{SITE}/multiprocessing/reduction.py:dumps")


def test_that_the_path_without_space_tells_a_disk_from_shared_memory(triage: Triage) -> None:
    """Neither is cured by what a crash of a library asks for."""
    lock = (*LOADER, f"{SITE}/multiprocessing/synchronize.py:__init__")
    temporary = (*FEED, f"{SITE}/tempfile.py:mkdtemp")
    rows = {
        disk(*temporary, path=": '/tmp/pymp-9x8y7z'"): ("disk-full", ("env", "TMPDIR")),
        disk(*lock): ("shm-exhausted", ("docker", "--shm-size")),
        disk(*lock, path=": '/dev/shm/sem.k2f9a1'"): ("shm-exhausted", ("docker", "--shm-size")),
        f"+ python train.py --num-workers 16\n{disk(*lock)}": ("shm-exhausted", ("python", "num-workers")),
    }
    found = {log: answer(triage, log) for log in rows}
    assert {log: (cause, changes[0]) for log, (cause, changes) in found.items()} == rows
    assert not {key for _, changes in found.values() for _, key in changes} & {
        "LD_PRELOAD",
        "OMP_NUM_THREADS",
    }


def test_that_a_communicator_without_memory_before_any_step_finds_the_card_occupied(triage: Triage) -> None:
    """In a step the job's own activations fill it."""
    oom = (
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
        "ProcessGroupNCCL.cpp:3356, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL "
        "version 2.26.2\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 2 'out of memory'"
    )
    barrier = f"{TORCH}/distributed/distributed_c10d.py:barrier"
    step = ("/job/train.py:train_epoch", "/job/train.py:training_step", barrier)
    rows = {
        stack("/job/train.py:main", "/job/train.py:prepare_data", barrier, error=oom): "gpu-memory-occupied",
        stack(*step, error=oom): "gpu-oom-training",
    }
    found = {log: answer(triage, log) for log in rows}
    assert {log: cause for log, (cause, _) in found.items()} == rows
    assert found[next(iter(rows))][1][0] == ("env", "CUDA_VISIBLE_DEVICES")


def test_that_a_taken_port_is_changed_where_the_job_reads_it(triage: Triage) -> None:
    """The environment for a process group of the script's own; the launcher's option for its store."""
    taken = (
        "RuntimeError: The server socket has failed to listen on any local network address. useIpv6: 0, "
        "code: -98, name: EADDRINUSE, message: address already in use"
    )
    rows = {
        stack(
            "/job/train.py:setup",
            f"{TORCH}/distributed/rendezvous.py:_env_rendezvous_handler",
            f"{TORCH}/distributed/rendezvous.py:_create_c10d_store",
            error=taken,
        ): ("env", "MASTER_PORT"),
        stack(
            f"{TORCH}/distributed/run.py:run",
            f"{TORCH}/distributed/elastic/rendezvous/static_tcp_rendezvous.py:next_rendezvous",
            error=taken,
        ): ("pytorch", "--standalone"),
    }
    assert {log: answer(triage, log)[1][0] for log in rows} == rows


def test_that_a_proxy_which_refuses_comes_before_the_cache(triage: Triage) -> None:
    """Without a sign of a proxy its variables are not named."""
    calls = ("/job/train.py:main", f"{SITE}/site-packages/huggingface_hub/file_download.py:_request_wrapper")
    pool = (
        "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/a/b"
    )
    rows = {
        stack(*calls, error=f"requests.exceptions.ProxyError: {pool} (Caused by ProxyError('x'))"): True,
        stack(
            *calls, error=f"requests.exceptions.ConnectionError: {pool} (Caused by NewConnectionError(''))"
        ): False,
    }
    found = {log: answer(triage, log) for log in rows}
    assert {cause for cause, _ in found.values()} == {"hub-unreachable"}
    assert {log: changes[0] == ("env", "HTTPS_PROXY") for log, (_, changes) in found.items()} == rows


def test_that_the_setting_is_one_of_what_fails(triage: Triage) -> None:
    """What the failing line names, its caller, or what the program itself sets, comes before all else."""
    groups = stack(
        "/job/pretrain_gpt.py:main",
        "/job/megatron/core/utils.py:divide",
        "/job/megatron/core/utils.py:ensure_divisibility",
        error="AssertionError: 2 is not divisible by 8",
    )
    kernel = stack(
        "/job/sglang/srt/layers/attention/triton_ops/decode_attention.py:decode_attention_fwd",
        f"{SITE}/site-packages/triton/compiler/compiler.py:compile",
        error='triton.compiler.errors.CompilationError: at 1:0:\nValueError("type fp8e4nv not supported in '
        "this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\")",
    )
    override = stack(
        "/job/tune.py:<module>",
        f"{SITE}/site-packages/transformers/trainer.py:training_step",
        error="TypeError: MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'",
    )
    removed = stack(
        "/job/sft.py:main",
        error="TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
    )
    measured = stack(
        f"{SITE}/site-packages/vllm/v1/worker/gpu_worker.py:determine_available_memory",
        error="AssertionError: Error in memory profiling. Initial free memory 40.1 GiB, current free memory "
        "41.7 GiB. This happens when other processes sharing the same container release GPU memory while "
        "vLLM is profiling during initialization.",
    )
    diverged = "+ python train.py --lr 0.3\nepoch 1 step 8 loss: nan\n" + stack(
        "/job/train.py:train_step", error="RuntimeError: CUDA error: device-side assert triggered"
    )
    bar = "Train Epoch 1:   1%|1         | 7/526 [00:06<07:26,  1.16it/s]\n" + stack(
        "/job/trainer.py:_train_epoch",
        f"{TORCH}/_tensor.py:backward",
        error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total "
        "capacity of 94.50 GiB of which 0.93 GiB is free. Of the allocated memory 90.00 GiB is allocated by "
        "PyTorch, and 1.40 GiB is reserved by PyTorch but unallocated.",
    )
    rows = {
        groups: ("megatron", "--tensor-model-parallel-size"),
        kernel: ("sglang", "--kv-cache-dtype"),
        override: ("pip", "transformers"),
        removed: ("pip", "trl"),
        measured: ("env", "CUDA_VISIBLE_DEVICES"),
        diverged: ("python", "lr"),
        bar: ("pytorch", "DataLoader.batch_size"),
    }
    found = {log: answer(triage, log)[1] for log in rows}
    assert {log: changes[0] for log, changes in found.items()} == rows
    # Two groups for eight ranks: either number may be wrong, and no other way of splitting helps.
    assert found[groups][1:] == [("megatron", "--num-query-groups")]


def test_that_a_fork_is_answered_with_the_settings_of_the_release_that_it_was_made_from(
    triage: Triage,
) -> None:
    """What came later it has not, and the package of that name is not what runs."""
    save = ("verl/trainer/ppo/ray_trainer.py:_save_checkpoint", "torch/serialization.py:save")
    offered = {}
    for folder in ("/job/Search-R1", f"{SITE}/site-packages"):
        calls = (f"{folder}/{call}" if call.startswith("verl") else f"{TORCH}/{call}" for call in save)
        cause, changes = answer(triage, disk(*calls))
        assert cause == "disk-full"
        offered[folder] = {key for framework, key in changes if framework == "verl"}
    fork, package = offered.values()
    assert "trainer.default_local_dir" in fork
    assert {key.rpartition(".")[2] for key in package - fork} == {"max_actor_ckpt_to_keep", "save_contents"}
