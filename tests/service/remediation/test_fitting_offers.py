"""Offers and words that fit the job: its ranks and cards, what failed in it, its machine, its own options."""

from __future__ import annotations

import re
from typing import NamedTuple

from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import opened

SITE = "/opt/env/lib/python3.11/site-packages/"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "39.39 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 38.00 GiB memory in "
    "use. Of the allocated memory 37.00 GiB is allocated by PyTorch, and 0.20 GiB is reserved by PyTorch but "
    "unallocated."
)
HELD = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of "
    "23.64 GiB of which 7.86 GiB is free. Process 4711 has 15.40 GiB memory in use. Including non-PyTorch "
    "memory, this process has 300.00 MiB memory in use. Of the allocated memory 2.00 MiB is allocated by "
    "PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated."
)

REFUSED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
    "capacity of 8.00 GiB of which 6.63 GiB is free. Of the allocated memory 290.30 MiB is allocated by "
    "PyTorch, and 21.70 MiB is reserved by PyTorch but unallocated."
)


class FittingOffer(NamedTuple):
    """A log, the files beside it, the first change, keys that none has, and what is and is not said.

    A change is `KEY=VALUE`, or its key alone; the empty string where none is offered.
    """

    log: str
    files: dict[str, str]
    first: str
    absent: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()


def calls(*rows: str, error: str) -> str:
    """Write a traceback of `FILE:LINE:FUNCTION: CODE`; `~` stands for the installed packages."""
    told = ""
    for row in rows:
        place, name, code = re.split(r"(?<=\d):(?=[\w<>]+: )|(?<=[\w>]): ", row, maxsplit=2)
        file, _, line = place.replace("~", SITE).rpartition(":")
        told += f'  File "{file}", line {line}, in {name}\n    {code}\n'
    return f"Traceback (most recent call last):\n{told}{error}\n"


TRAINS = (
    "/job/tune.py:40:main: trainer.train()",
    "~transformers/trainer.py:2100:_inner_training_loop: tr_loss_step = self.training_step(model, inputs)",
    "~transformers/trainer.py:3100:training_step: loss = self.compute_loss(model, inputs)",
    "~transformers/models/opt/modeling_opt.py:200:forward: weights = torch.bmm(q, k)",
)
SHARDED = {
    "tune.sh": "deepspeed --num_gpus={n} tune.py --deepspeed ds.json --per_device_train_batch_size 1\n",
    "ds.json": '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n',
}
EVALUATES = (
    "/job/tune.py:40:main: trainer.train()",
    "~transformers/trainer.py:2500:_maybe_log_save_evaluate: metrics = self.evaluate()",
    "~transformers/trainer.py:3095:evaluate: output = eval_loop(",
    "~transformers/trainer.py:3280:evaluation_loop: all_preds = nested_concat(all_preds, logits)",
    "~transformers/trainer_pt_utils.py:120:nested_concat: return torch_pad_and_concatenate(t, n)",
)
GROUPS = (
    "ValueError: The effective train batch size (2 x 3 x 1) must be evenly divisible by the number of "
    "generations per prompt (4). Given the current effective train batch size, the valid values for the "
    "number of generations are: []."
)
UPDATES = calls(
    "/w/verl/verl/workers/actor/dp_actor.py:300:update_policy: loss.backward()",
    "~torch/_tensor.py:581:backward: torch.autograd.backward(",
    error=OOM,
)
ORDINAL = calls(
    "/job/main.py:81:<module>: model.to(dev)",
    "~torch/nn/modules/module.py:1158:convert: return t.to(device)",
    error="RuntimeError: CUDA error: invalid device ordinal",
)
MISSING = calls(
    "/job/main.py:9:<module>: rows = open(a.rows)",
    error="FileNotFoundError: [Errno 2] No such file or directory: '/path/to/rows.txt'",
)
NVML = (
    "{host}:267:271 [5] misc/nvmlwrap.cc:115 NCCL WARN nvmlInit() failed: Driver/library version mismatch\n"
)
PPO = "python3 -m verl.trainer.main_ppo "
HALF = calls(
    "/job/tune.py:80:main: accelerator.clip_grad_norm_(params, 1.0)",
    "~accelerate/accelerator.py:2269:clip_grad_norm_: self.unscale_gradients()",
    "~torch/amp/grad_scaler.py:259:_unscale_grads_: raise ValueError('...')",
    error="ValueError: Attempting to unscale FP16 gradients.",
)
LOADS = calls(
    "/job/serve.py:30:__init__: self.net = Net.from_pretrained(NAME)",
    "~safetensors/torch.py:338:load_file: result[k] = f.get_tensor(k)",
    error="ValueError: could not determine the shape of object type 'torch.storage.UntypedStorage'",
)
TRACKED = 'import wandb\nwandb.init(project="p", resume="allow")\nNAME = "own/net"\n'


@each_row(
    "row",
    [
        # What is shared out over ranks stays whole on one.
        FittingOffer(
            calls(*TRAINS, error=OOM),
            {key: text.replace("{n}", "1") for key, text in SHARDED.items()},
            "gradient_checkpointing=True",
            ("zero_optimization.stage",),
        ),
        # A card without bfloat16, as the log names it.
        FittingOffer("Tesla V100-SXM2-16GB\n" + HALF, {}, "", ("mixed_precision",)),
        FittingOffer("NVIDIA A100-SXM4-40GB\n" + HALF, {}, "mixed_precision=bf16"),
        # An evaluation has its own words and changes, though a training loop called it.
        FittingOffer(
            calls(*EVALUATES, error=OOM),
            {"tune.sh": "python tune.py --per_device_train_batch_size 8 --per_device_eval_batch_size 8\n"},
            "eval_accumulation_steps=1",
            ("per_device_train_batch_size", "gradient_checkpointing"),
            ("in the evaluation", "preprocess_logits_for_metrics"),
            ("training step", "optimizer state"),
        ),
        FittingOffer(
            calls(
                "/job/fit.py:90:main: score = validate(net, loader)",
                "/job/fit.py:50:validate: out = net(batch)",
                "~torch/nn/modules/linear.py:114:forward: return F.linear(input)",
                error=OOM,
            ),
            {"conf.yaml": "batch_size: 16\nval_batch_size: 64\nlr: 0.1\n"},
            "val_batch_size=32",
            ("batch_size",),
            ("in an evaluation",),
            ("training step",),
        ),
        # What checks settings evaluates nothing.
        FittingOffer(
            calls(
                "/job/fit.py:12:main: validate(args)",
                "/job/fit.py:8:validate: assert rows % args.gradient_accumulation_steps == 0, msg",
                error="AssertionError: 30 rows must be divisible by gradient_accumulation_steps (4)",
            ),
            {"go.sh": "python fit.py --gradient_accumulation_steps 4\n"},
            "gradient_accumulation_steps",
        ),
        # Where no number divides what the message multiplies, the other side of it has its number.
        FittingOffer(
            calls(
                "/job/rl.py:9:<module>: args = GRPOConfig(per_device_train_batch_size=3)",
                "~trl/trainer/grpo_config.py:566:__post_init__: raise ValueError(",
                error=GROUPS,
            ),
            {"rl.sh": "accelerate launch rl.py --per_device_train_batch_size 3 --num_generations 4\n"},
            "per_device_train_batch_size=4",
            ("num_generations",),
        ),
        # What the engine keeps beside the update is given back first.
        FittingOffer(
            UPDATES,
            {
                "run.sh": f"{PPO}actor_rollout_ref.rollout.free_cache_engine=False "
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4\n"
            },
            "actor_rollout_ref.rollout.free_cache_engine=True",
        ),
        FittingOffer(
            UPDATES,
            {"run.sh": f"{PPO}actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4\n"},
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
        ),
        # A program's own number of its card, before what hides cards from it.
        FittingOffer(
            calls("/job/main.py:12:load: net = Net.from_pretrained(NAME).to(dev)", error=HELD),
            {"config.py": "GPU_ID = 0\n"},
            "GPU_ID",
            (),
            ("-p 4711",),
        ),
        # One task has all cards of its job.
        FittingOffer(
            ORDINAL,
            {"go.sh": "#!/bin/bash\n#SBATCH --ntasks=1\n#SBATCH --gpus-per-task=1\npython main.py --gpu 1\n"},
            "gpu",
            ("--gpu-bind", "--gpus-per-node", "--gpus-per-task"),
            (),
            ("map_location", "a checkpoint saved"),
        ),
        # What the tracker of a run is told is nothing that fails to load.
        FittingOffer(LOADS, {"serve.py": TRACKED}, "", ("resume",)),
        # A path is there or not on one machine; several nodes must all have it.
        FittingOffer(
            MISSING, {"go.sh": "python main.py --rows /path/to/rows.txt\n"}, "--rows=a path that exists"
        ),
        FittingOffer(
            MISSING,
            {"go.sh": "#SBATCH --nodes=4\nsrun python main.py --rows /path/to/rows.txt\n"},
            "--rows=a path that exists on every node",
        ),
        # A container is started again from its host.
        FittingOffer(NVML.format(host="56720d87535c"), {}, "docker restart CONTAINER", ("reboot",)),
        FittingOffer(NVML.format(host="node12"), {}, "reboot", ("docker restart CONTAINER",)),
        # Nobody who ends a run by hand asks for more checkpoints.
        FittingOffer(
            calls(*TRAINS, error="KeyboardInterrupt"),
            {"tune.sh": "python tune.py --save_steps 500 --per_device_train_batch_size 8\n"},
            "",
            ("save_steps",),
            ("Start it again",),
            ("download", "compilation"),
        ),
        # A package that needs no compiler is told nothing of such, and one machine nothing of Ray's.
        FittingOffer(
            calls(
                "/job/enc.py:5:<module>: import gensim", error="ModuleNotFoundError: No module named 'gensim'"
            ),
            {},
            "gensim",
            (),
            (),
            ("flash-attn", "Ray", "every node"),
        ),
        # Windows may refuse what the card has.
        FittingOffer(
            calls(
                "E:/lab/run.py:9:<module>: net = Net(emb_dim=768).to(dev)",
                "E:/env/lib/site-packages/torch/nn/modules/module.py:1158:convert: return t.to(device)",
                error=REFUSED,
            ),
            {"run.py": "emb_dim = 768\n"},
            "",
            ("emb_dim",),
            ("page file",),
            ("ZeRO-3",),
        ),
    ],
)
def test_that_offers_and_words_fit_the_job(row: FittingOffer, triage: Triage) -> None:
    files = [ConfigFile(name, text) for name, text in row.files.items()]
    found = opened(triage, sources.from_text(row.log), "en", files).first
    cures = [change for change in found.changes if change.purpose == "cure" and not change.guess]
    key, _, value = row.first.partition("=")
    first = next(((change.key, str(change.to)) for change in cures), ("", ""))
    assert first == (key, value or first[1])
    assert not set(row.absent) & {change.key for change in found.changes}
    text = "\n".join(
        (found.headline, found.explanation, *(step.run for step in found.steps), *(str(c.to) for c in cures))
    )
    assert [said for said in row.says if said not in text] == []
    assert [said for said in row.unsaid if said in text] == []
