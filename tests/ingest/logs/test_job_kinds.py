"""The kinds of jobs that logs show, as the shipped table tells them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpus import job_kinds
from corpus.library import KNOWLEDGE
from ingest.logs.conditions import ReportView, holds
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework
from ingest.logs.stacks.stack import Frame
from tests.factories import event
from tests.tables import each_row


def view(*calls: str, command: str = "", launch: str = "", frameworks: tuple[str, ...] = ()) -> ReportView:
    """Make a job of a traceback's calls (`file:function`), its command, a file of its own and frameworks."""
    frames = tuple(Frame(path, 9, name) for path, _, name in (call.rpartition(":") for call in calls))
    failed = event(3, frames=frames)
    seen = tuple(Framework(name, "", 1) for name in frameworks)
    return ReportView((failed,), failed, (), seen, (), launches=(launch,) if launch else (), command=command)


@each_row(
    ("job", "kind"),
    [
        (view(), "unknown"),
        (view("nlp.py:<module>", "/v/torch/nn/functional.py:gelu", frameworks=("pytorch",)), "unknown"),
        (view("/w/train.py:<module>", "/v/torch/_tensor.py:backward"), "training"),
        (view("/w/main.py:<module>", "/w/main.py:train", "/v/torch/nn/functional.py:linear"), "training"),
        (view("/v/transformers/trainer.py:_inner_training_loop"), "training"),
        (view(command="torchrun --nproc_per_node 8 finetune_lora.py --lr 1e-4"), "training"),
        (view(frameworks=("llamafactory", "vllm")), "training"),
        (view(frameworks=("verl", "vllm", "ray")), "rl-training"),
        (view("/v/verl/trainer/fsdp_sft_trainer.py:fit", frameworks=("verl",)), "training"),
        (view("/v/trl/trainer/grpo_trainer.py:_generate_completions", frameworks=("trl",)), "rl-training"),
        (view("/v/vllm/entrypoints/openai/api_server.py:run_server", frameworks=("vllm",)), "serving"),
        (view(command="vllm serve org/model --port 8000", frameworks=("vllm",)), "serving"),
        (view(launch="exec python -m sglang.launch_server --tp 4"), "serving"),
        (view("/v/uvicorn/server.py:startup", "/app/api.py:main"), "serving"),
        (view("bench.py:<module>", "/v/vllm/entrypoints/llm.py:generate", frameworks=("vllm",)), "inference"),
        (view("/v/transformers/pipelines/base.py:__call__", frameworks=("transformers",)), "inference"),
        (view("/v/vllm/v1/engine/core.py:run_busy_loop", frameworks=("vllm",)), "inference"),
        (view("/v/vllm/v1/engine/core.py:run_busy_loop", frameworks=("vllm", "ray")), "unknown"),
        (view("/w/preprocess_data.py:<module>", "/v/datasets/arrow_dataset.py:map"), "script"),
        (view("/v/pip/_internal/cli/base_command.py:exc_logging_wrapper"), "build"),
        (view(command="docker build -t image ."), "build"),
    ],
)
def test_a_job_is_of_the_first_kind_that_it_shows(job: ReportView, kind: str) -> None:
    """A kind is asked for by its name alone or among others, and `unknown` is one of them."""
    assert holds(f"job:{kind}", job)
    assert holds(f"job:rollout-of-nothing|{kind}", job)
    assert not holds(f"not job:{kind}", job)


def test_traits_are_told_beside_the_kind() -> None:
    """A job under a scheduler with several processes is both, whatever its kind is."""
    job = view(command="srun torchrun --nproc_per_node 8 train.py", frameworks=("slurm",))
    traits = ("training", "scheduled", "distributed", "steps")
    assert [holds(f"job:{name}", job) for name in traits] == [True, True, True, False]


def test_a_folder_of_knowledge_adds_kinds_before_those_that_ship(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site's own launcher tells its kind, though its script reads like another."""
    (tmp_path / "job_kinds.yaml").write_text(
        "kinds:\n- {name: simulation, trains: false, any: [\"command:'^simulate '\"]}\n"
    )
    job = view(command="simulate train.py")
    assert holds("job:training", job)
    monkeypatch.setenv(KNOWLEDGE, str(tmp_path))
    assert holds("job:simulation", view(command="simulate train.py"))


@each_row(
    ("size", "job", "is_counted"),
    [
        (32, view(command="torchrun --nproc_per_node=2 train.py"), True),
        (32, view(launch="accelerate launch train.py"), True),
        (32, view(command="deepspeed --num_gpus 1 train.py"), False),
        (32, view(launch="accelerate launch --num_processes=1 train.py"), False),
        (32, view(command="python train.py"), False),
        # No number of processes makes the sum come out.
        (8, view(command="torchrun --nproc_per_node=2 train.py"), False),
    ],
)
def test_that_one_process_is_counted_of_several(size: int, job: ReportView, is_counted: bool) -> None:
    """DeepSpeed's sum says one process; batch sizes are to blame where no more were asked for."""
    told = Fact("batch", 3, {"size_n": size, "micro_n": 4, "accumulation_n": 4, "world_n": 1})
    failed = replace(job, facts=(told,), seen=frozenset({"deepspeed.batch-triple"}))
    assert holds("job:counted-one", failed) == is_counted


@each_row(
    ("job", "absent"),
    [
        (view(command="python train.py"), "torchrun --nproc_per_node 8"),
        (view("/w/.venv/lib/ipykernel_launcher.py:main", "In [7]:<module>"), "NCCL_DEBUG=INFO"),
        (view(launch="#SBATCH -N 1\nsrun python train.py"), "NCCL_IB_HCA"),
        (view("C:\\work\\train.py:main"), "nvidia-smi | grep python"),
        (view(launch="python -m verl.trainer.main_ppo data.size=1"), "--node-ip-address 10.0.0.3"),
        (
            view(launch='{"os": "macOS-14.5-x86_64-i386-64bit"}'),
            "torch: https://download.pytorch.org/whl/cu126",
        ),
    ],
)
def test_a_job_has_no_use_for_what_its_machine_or_launch_has_not(job: ReportView, absent: str) -> None:
    """One process starts no ranks, one machine has no network between machines, a Mac has no CUDA."""
    assert not job.can_run(absent)
    assert view(command="srun torchrun --nnodes 4 train.py").can_run(absent)
    assert view(launch="ray start --head\npython -m verl.trainer.main_ppo").can_run(absent)


@each_row(
    ("seen", "absent"),
    [
        ("platform.ascend", "CUDA_LAUNCH_BLOCKING=1"),
        ("platform.xpu", "resources.limits.nvidia.com/gpu 8"),
        ("platform.rocm", "compute-sanitizer --tool memcheck"),
        ("platform.cpu-engine", "--gpu-memory-utilization 0.95"),
        ("nccl.one-node", "NCCL_IB_GID_INDEX 3"),
    ],
)
def test_what_a_log_shows_of_its_platform_decides(seen: str, absent: str) -> None:
    """A row that only a platform prints tells it, though the failing line is anybody's."""
    job = view("/w/train.py:<module>")
    assert job.can_run(absent)
    assert not replace(job, seen=frozenset({seen})).can_run(absent)


def test_a_communicator_over_several_nodes_is_no_job_of_one_node() -> None:
    """NCCL names one node for each communicator within a node, whatever the job spans."""
    within = frozenset({"nccl.one-node"})
    assert holds("job:one-node", replace(view(), seen=within))
    assert not holds("job:one-node", replace(view(), seen=within | {"nccl.more-nodes"}))


@each_row(
    ("job", "has_use"),
    [
        (view("/w/main.py:main", "/v/ray/_private/node.py:__init__"), False),
        (view("/w/train.py:<module>", "/v/torch/_tensor.py:backward"), True),
        (replace(view(), has_begun=True), True),
        (replace(view(), events=(event(3, text="the saving steps must be a multiple of 20"),)), True),
        (view(), False),
    ],
)
def test_saving_more_often_is_for_jobs_that_had_something_to_lose(job: ReportView, has_use: bool) -> None:
    """A death at the start loses no steps, however rarely the job saves."""
    assert job.can_run("trainer.save_freq 2") is has_use
    assert job.can_run("--save-interval 500") is has_use


def test_what_jobs_have_no_use_for_is_told_by_kinds_and_traits_that_there_are() -> None:
    """A row for a trait that no row shows would hold of no job."""
    table = job_kinds.load()
    asked = {name for row in (*table.tools, *table.phrases) for name in (*row.absent, *row.needs)}
    assert asked <= table.names
    assert all(row.absent or row.needs for row in (*table.tools, *table.phrases))
