"""Out of GPU memory: which branch it is, whose memory was missing, and changes that the arithmetic allows."""

from __future__ import annotations

from dataclasses import dataclass

from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from tests.warm import diagnosed

SITE = "/env/lib/python3.11/site-packages/"
MODULE = (f"{SITE}torch/nn/modules/module.py:1750 _call_impl", "return forward_call(*args, **kwargs)")


def stack(*calls: tuple[str, str]) -> str:
    """Write a traceback of calls `file:line function` with the source line of each."""
    rows = ["Traceback (most recent call last):"]
    for place, code in calls:
        file, _, rest = place.partition(":")
        line, _, function = rest.partition(" ")
        rows += [f'  File "{file}", line {line}, in {function}', f"    {code}"]
    return "\n".join(rows) + "\n"


def oom(asked: str, capacity: float, free: float, own: float, others: str = "", idle: float = 0.1) -> str:
    """Write the allocator's message."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity "
        f"of {capacity:.2f} GiB of which {free:.2f} GiB is free. {others}Including non-PyTorch memory, this "
        f"process has {own:.2f} GiB memory in use. Of the allocated memory {own - 1 - idle:.2f} GiB is "
        f"allocated by PyTorch, and {idle:.2f} GiB is reserved by PyTorch but unallocated.\n"
    )


@dataclass(frozen=True)
class Row:
    """A log; the cause of its answer, changes that it offers and must not, what it says and does not."""

    log: str
    cause: str
    offers: frozenset[str] = frozenset()
    avoids: frozenset[str] = frozenset()
    says: str = ""
    avoided_words: str = "\0"


BACKWARD = stack(("/job/run.py:40 main", "loss.backward()"), (f"{SITE}torch/_tensor.py:626 backward", "run("))
LOSS = stack(
    ("/job/run.py:40 main", "out = model(**batch)"),
    MODULE,
    (f"{SITE}transformers/models/thing/modeling_thing.py:900 forward", "logits = logits.float()"),
)
ENGINE = stack(
    (
        f"{SITE}vllm/v1/engine/core.py:90 _initialize_kv_caches",
        "free = executor.determine_available_memory()",
    ),
    (
        f"{SITE}vllm/v1/worker/gpu_model_runner.py:300 profile_run",
        "hidden = self._dummy_run(self.max_num_tokens)",
    ),
    MODULE,
)
SERVE = (
    "INFO 05-14 10:00:00 [utils.py:233] non-default args: {'model': 'org/Thing-7B-Instruct', "
    "'max_model_len': 4096, 'gpu_memory_utilization': 0.85}\n"
)
LOADED = "INFO 05-14 10:00:00 [gpu_model_runner.py:99] Model loading took {gib} GiB and 6.2 seconds\n"
LOADING = stack(
    (
        f"{SITE}vllm/model_executor/model_loader/base_loader.py:40 load_model",
        "model = initialize_model(config)",
    ),
    (f"{SITE}vllm/model_executor/layers/linear.py:80 create_weights", "weight = Parameter(torch.empty("),
)
TUNING = frozenset(
    ("--max-num-seqs", "--max-num-batched-tokens", "--enforce-eager", "--gpu-memory-utilization")
)
GENERATE = stack(
    ("/job/ask.py:12 <module>", "ids = model.generate(**batch)"),
    (f"{SITE}transformers/generation/utils.py:2200 generate", "result = self._sample("),
    MODULE,
    (f"{SITE}transformers/models/thing/modeling_thing.py:400 forward", "keys = torch.cat([old, keys])"),
)
STATES = stack(
    ("/job/run.py:40 main", "trainer.train()"),
    (f"{SITE}transformers/trainer.py:2345 _inner_training_loop", "self.optimizer.step()"),
    (f"{SITE}torch/optim/adamw.py:120 _init_group", 'state["exp_avg"] = torch.zeros_like('),
)
TUNED = (
    "[INFO|trainer.py:2144] 2024-09-01 10:00:00,000 >>   Number of trainable parameters = 7,615,616,512\n"
    f'  File "{SITE}llamafactory/train/tuner.py", line 50, in run_exp\n'
)
EMBED = stack(
    ("/job/embed.py:12 <module>", "vectors = model(**tokens)"),
    MODULE,
    (f"{SITE}torch/nn/functional.py:1459 gelu", "return torch._C._nn.gelu(input)"),
)
PAIRS = stack(("/job/graph.py:12 <module>", "order = (x @ x.T).argsort(dim=1)"))
NEIGHBOUR = "Process 4242 has {gib} GiB memory in use. "
WAKE = stack(
    (f"{SITE}vllm/v1/worker/gpu_worker.py:100 wake_up", "allocator.wake_up(tags)"),
    (f"{SITE}vllm/device_allocator/cumem.py:60 create_and_map", "python_create_and_map(*allocation_handle)"),
)
ROWS = (
    Row(BACKWARD + oom("2.00 GiB", 79.1, 1.0, 78.0), "gpu-oom-training"),
    Row(
        LOSS + oom("24.00 GiB", 47.5, 20.9, 21.5, NEIGHBOUR.format(gib="5.00")),
        "gpu-oom-logits",
        avoids=frozenset(("CUDA_VISIBLE_DEVICES",)),
    ),
    # A neighbour is to blame only where the request fits without it.
    Row(BACKWARD + oom("2.00 GiB", 79.1, 1.0, 38.0, NEIGHBOUR.format(gib="40.00")), "gpu-memory-occupied"),
    Row(BACKWARD + oom("60.00 GiB", 79.1, 1.0, 38.0, NEIGHBOUR.format(gib="40.00")), "gpu-oom-training"),
    Row(BACKWARD + oom("2.00 GiB", 79.1, 1.0, 75.0, NEIGHBOUR.format(gib="3.00")), "gpu-oom-training"),
    # Fragmentation: idle memory that is large, and more than what is asked.
    Row(BACKWARD + oom("0.50 GiB", 79.1, 0.1, 78.0, idle=9.0), "gpu-memory-fragmentation"),
    Row(BACKWARD + oom("12.00 GiB", 79.1, 0.1, 78.0, idle=9.0), "gpu-oom-training"),
    # Weights that fill the card: nothing that tunes the engine makes room.
    Row(
        SERVE + LOADED.format(gib="14.25") + ENGINE + oom("1.02 GiB", 14.56, 0.1, 14.45),
        "gpu-oom-model-load",
        frozenset(("--quantization", "--model")),
        TUNING,
        "The model's weights take 14.25 GiB, and the card has 14.56 GiB",
    ),
    Row(
        SERVE + LOADING + oom("0.25 GiB", 8.0, 0.1, 7.9),
        "gpu-oom-model-load",
        frozenset(("--quantization", "--cpu-offload-gb")),
        TUNING,
    ),
    # Weights that fit leave the engine's own settings to tune.
    Row(
        SERVE + LOADED.format(gib="14.25") + ENGINE + oom("1.02 GiB", 79.1, 0.5, 78.6),
        "gpu-oom-rollout",
        frozenset(("--gpu-memory-utilization",)),
        frozenset(("--model", "--quantization")),
    ),
    Row(
        SERVE + WAKE + "RuntimeError: CUDA Error: out of memory at /src/csrc/cumem_allocator.cpp:139\n",
        "gpu-memory-not-released",
        frozenset(("--gpu-memory-utilization",)),
        TUNING - {"--gpu-memory-utilization"},
        avoided_words="trainer still holds",
    ),
    # Adam's states do not fit: adapters, narrower states and sharding come before smaller batches.
    Row(
        TUNED + STATES + oom("0.13 GiB", 23.65, 0.02, 23.6),
        "gpu-oom-training",
        frozenset(("finetuning_type", "optim", "deepspeed")),
        frozenset(("per_device_train_batch_size",)),
        "113.5 GiB",
    ),
    Row(STATES + oom("0.13 GiB", 23.65, 0.02, 23.6), "gpu-oom-training", frozenset(("optim",))),
    # Where nothing trains, no training step is told.
    Row(GENERATE + oom("2.00 GiB", 23.7, 1.0, 22.7), "gpu-oom-rollout"),
    Row(
        EMBED + oom("2.93 GiB", 23.7, 1.0, 22.7),
        "gpu-oom-training",
        frozenset(("torch.inference_mode",)),
        avoided_words="training step",
    ),
    Row(PAIRS + oom("8.87 GiB", 23.7, 1.0, 22.7), "gpu-oom-training", avoided_words="training step"),
)


def test_that_out_of_memory_is_told_by_branch_owner_and_arithmetic(triage: Triage) -> None:
    """Each failing row is named with what its answer was."""
    found = []
    for number, row in enumerate(ROWS):
        answer = diagnosed(triage, sources.from_text(row.log), "en")
        keys = {change.key for change in answer.changes}
        is_right = (
            answer.cause == row.cause
            and row.offers <= keys
            and not keys & row.avoids
            and row.says in answer.explanation
            and row.avoided_words not in answer.headline
        )
        if not is_right:
            found.append((number, answer.cause, answer.headline, sorted(keys)))
    assert found == []


def test_that_changes_for_weights_that_do_not_fit_say_the_numbers(triage: Triage) -> None:
    """Cards, bits and GiB on the host follow from the weights and the card."""
    log = (
        "+ export CUDA_VISIBLE_DEVICES=0,1,2,3\n"
        + SERVE.replace("7B", "32B")
        + LOADING
        + oom("0.25 GiB", 39.4, 0.1, 39.3)
    )
    answer = diagnosed(triage, sources.from_text(log), "en")
    proofs = {change.key: (change.to, change.proof) for change in answer.changes}
    assert proofs["--tensor-parallel-size"] == (
        2,
        "The weights take 59.6 GiB of a card of 39.4: over 2 cards 29.8 GiB each.",
    )
    assert proofs["--quantization"][1] == "The weights take 59.6 GiB of a card of 39.4, so about 17.7."
