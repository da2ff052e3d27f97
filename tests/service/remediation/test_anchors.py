"""A change hangs on a sign in this job: its package, what starts its ranks, a value that stands there."""

from __future__ import annotations

import re

from corpus.keys import canonical
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from tests.service.remediation.test_made_up_jobs import SITE, TORCH, answer, stack
from tests.warm import diagnosed

TAKEN = (
    "[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
    "already in use).\n"
)
REFUSED = (
    "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, "
    "useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use"
)


def keys(triage: Triage, log: str) -> set[str]:
    """Name what an answer proposes to change."""
    return {key for _, key in answer(triage, log)[1]}


def test_that_a_launchers_option_is_for_jobs_that_it_starts(triage: Triage) -> None:
    rendezvous = f"{TORCH}/distributed/rendezvous.py:_env_rendezvous_handler"
    elastic = f"{TORCH}/distributed/elastic/agent/server/api.py:_initialize_workers"
    deepspeed = f"{SITE}/site-packages/deepspeed/launcher/launch.py:main"
    spawned = f"{TORCH}/multiprocessing/spawn.py:_wrap"
    rows = {
        TAKEN + stack(elastic, error=REFUSED): {"--master_port"},
        TAKEN + stack(deepspeed, error=REFUSED): {"--master_port"},
        TAKEN + stack("/job/train.py:main", rendezvous, error=REFUSED): {"--master_port"},
        TAKEN + stack(spawned, "/job/train.py:main", rendezvous, error=REFUSED): set(),
        "".join(
            f"(WorkerDict pid=3034) {row}\n"
            for row in (
                TAKEN
                + stack(
                    "/job/engine.py:main",
                    f"{SITE}/site-packages/ray/_private/worker.py:main_loop",
                    error=REFUSED,
                )
            ).splitlines()
        ): set(),
        "+ python train.py --epochs 3\n"
        + TAKEN
        + stack("/job/train.py:main", rendezvous, error=REFUSED): set(),
    }
    found = {log: keys(triage, log) & {"--master_port", "--standalone"} for log in rows}
    assert {log: bool(keys) for log, keys in found.items()} == {log: bool(keys) for log, keys in rows.items()}
    owners = {owner for owner, _ in answer(triage, TAKEN + stack(deepspeed, error=REFUSED))[1]}
    assert "pytorch" not in owners


def test_that_tensors_on_two_devices_are_no_matter_of_ranks(triage: Triage) -> None:
    error = (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 "
        "and cpu! (when checking argument for argument index in method wrapper_CUDA__index_select)"
    )
    calls = ("/job/train.py:main", f"{TORCH}/nn/modules/module.py:_call_impl", "/job/model.py:forward")
    for log in (
        stack(*calls, error=error),
        f"+ torchrun --nproc_per_node=2 train.py\n{stack(*calls, error=error)}",
    ):
        cause, changes = answer(triage, log)
        assert (cause, {owner for owner, _ in changes}) == ("user-code-error", {"code"})


def test_that_a_package_to_change_is_one_that_the_job_shows(triage: Triage) -> None:
    """A library of the engine's own that does not load is no matter of another extension."""
    symbol = "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE"
    engine = stack(
        "/job/serve.py:main",
        f"{SITE}/site-packages/vllm/_custom_ops.py:<module>",
        error=f"ImportError: {SITE}/site-packages/vllm/_C.abi3.so: {symbol}",
    )
    attention = stack(
        "/job/train.py:main",
        f"{SITE}/site-packages/flash_attn/__init__.py:<module>",
        error=f"ImportError: {SITE}/site-packages/flash_attn_2_cuda.cpython-311.so: {symbol}",
    )
    rows = {engine: {"vllm"}, attention: {"flash-attn"}}
    packages = {"vllm", "flash-attn", "bitsandbytes", "xformers"}
    assert {log: keys(triage, log) & packages for log in rows} == rows


def test_that_what_mends_a_consequence_is_no_change_of_the_cause(triage: Triage) -> None:
    """A card that falls off the bus lets the others time out; a longer wait is not for it."""
    log = (
        "[ 812.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.\n"
        "[rank0]:[E1103 08:30:10.120331240 ProcessGroupNCCL.cpp:633] [Rank 0] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=7712, OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, "
        "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
    cause, changes = answer(triage, log)
    assert cause == "gpu-hardware-fault"
    assert "init_process_group.timeout" not in {key for _, key in changes}


def test_that_a_setting_of_the_programs_own_is_told_once(triage: Triage) -> None:
    """The same argument of a library's class has its value from there."""
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
        "of 79.11 GiB of which 1.31 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, "
        "and 500.00 MiB is reserved by PyTorch but unallocated."
    )
    failing = stack(
        "/job/train.py:main", "/job/train.py:training_step", f"{TORCH}/_tensor.py:backward", error=oom
    )
    found = answer(triage, f"+ python train.py --batch-size 64 --lr 3e-4\n{failing}")[1]
    assert ("python", "batch-size") in found
    assert "DataLoader.batch_size" not in {key for _, key in found}
    assert "DataLoader.batch_size" in keys(triage, failing)


def test_that_options_of_a_command_joined_by_mistake_are_not_at_fault(triage: Triage) -> None:
    refused = "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: "
    stray = f"{refused}python -m torch.distributed.launch --nproc_per_node=3 train.py\n"
    assert answer(triage, stray) == ("config-key-invalid", [])
    owner, key = answer(triage, f"+ python train.py --learnrate 3e-4\n{refused}--learnrate 3e-4\n")[1][0]
    assert (owner, key.lstrip("-")) == ("python", "learnrate")


def test_that_a_nearest_name_is_one_that_the_running_version_is_known_to_have(triage: Triage) -> None:
    """Of an unknown version, only a plain slip of a name is mended."""
    start = "python -m vllm.entrypoints.openai.api_server --model org/m "
    refused = "api_server.py: error: unrecognized arguments: "
    rows = {
        f"{start}--enable-metrics\n{refused}--enable-metrics\n": "enable_metrics",
        f"{start}--max-num-seq 8\n{refused}--max-num-seq 8\n": "max_num_seqs",
    }
    assert {log: canonical(answer(triage, log)[1][0][1]) for log in rows} == rows


def test_that_a_value_which_a_further_sentence_names_is_the_changes(triage: Triage) -> None:
    log = "+ swift sft --model m --save_only_model true\n" + stack(
        f"{SITE}/site-packages/swift/llm/train/sft.py:main",
        error="ValueError: FSDP2 with SHARDED_STATE_DICT is not compatible with save_only_model=True. Either "
        "set save_only_model=False, or change state_dict_type to FULL_STATE_DICT in fsdp_config.",
    )
    found = diagnosed(triage, sources.from_text(log), "en").changes[0]
    assert (found.key.lstrip("-"), found.to) == ("save_only_model", False)


def test_that_a_common_progress_bar_shows_no_framework(triage: Triage) -> None:
    progress = "Epoch 1/40:   1%|          | 1/136 [00:01<01:58,  1.14batch/s]\n"
    oom = stack("/job/train.py:main", "/job/net.py:forward", error="RuntimeError: broken")
    names = {item.name for item in diagnosed(triage, sources.from_text(progress + oom), "en").frameworks}
    assert names <= {"pytorch", "python"}


def test_that_no_check_step_or_change_names_what_the_machine_has_not(triage: Triage) -> None:
    """On another maker's card or another system, none of NVIDIA's or Linux' commands is named."""
    step = ("/job/train.py:main", "/job/train.py:training_step")
    full = ("/job/train.py:save", f"{TORCH}/serialization.py:save")
    write = (
        "RuntimeError: [enforce fail at inline_container.cc:778] . PytorchStreamWriter failed writing file"
    )
    mps = "RuntimeError: MPS backend out of memory (MPS allocated: 8.45 GiB, max allowed: 9.07 GiB)."
    cuda = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.75 GiB total capacity)"
    windows = stack(*full, error=f"{write} data/1: file write failed").replace(
        "/job/", "C:\\Users\\me\\job\\"
    )
    rows = {
        stack(*step, error=mps): False,
        stack(*step, error=cuda): True,
        windows: False,
        stack(*full, error=f"{write} data/1: file write failed"): True,
    }
    told = {log: diagnosed(triage, sources.from_text(log), "en") for log in rows}
    texts = {
        log: " ".join(
            [*found.checks, *(step.run for step in found.steps), *(made.key for made in found.changes)]
        )
        for log, found in told.items()
    }
    tools = re.compile(r"nvidia-smi|torch\.cuda|use_liger_kernel|\bdf -|\brm -")
    assert {log: bool(tools.search(text)) for log, text in texts.items()} == rows
