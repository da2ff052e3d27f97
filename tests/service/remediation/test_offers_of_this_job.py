"""The first change is one of this very job, by its options, its machine and its launcher; near misses too."""

from __future__ import annotations

from typing import NamedTuple

from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained, opened

SITE = "/opt/env/lib/python3.11/site-packages/"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 0 has a total capacity "
    "of 39.39 GiB of which {free} GiB is free. Including non-PyTorch memory, this process has 38.00 GiB "
    "memory in use. Of the allocated memory 37.00 GiB is allocated by PyTorch, and 0.20 GiB is reserved by "
    "PyTorch but unallocated."
)


class Job(NamedTuple):
    """A log, the files beside it, the first change's key (empty: none is offered) and those that none has."""

    log: str
    files: dict[str, str]
    first: str
    absent: tuple[str, ...] = ()


def stack(*calls: str, error: str) -> str:
    """Write a traceback of `FILE:LINE:FUNCTION: CODE` calls; `~` stands for the installed packages."""
    rows = (call.split(":", 3) for call in calls)
    told = "".join(
        f'  File "{file.replace("~", SITE)}", line {line}, in {name}\n    {code.strip()}\n'
        for file, line, name, code in rows
    )
    return f"Traceback (most recent call last):\n{told}{error}\n"


ADAM = stack(
    "/job/train.py:9:<module>: trainer.train()",
    "~transformers/trainer.py:2100:_inner_training_loop: self.optimizer.step()",
    "~torch/optim/adamw.py:121:_init_group: state['exp_avg'] = torch.zeros_like(p)",
    error=OOM.format(asked="0.50", free="0.10"),
)
ARGUMENTS = (
    "from transformers import Trainer, TrainingArguments\n"
    'args = TrainingArguments(output_dir="o", per_device_train_batch_size=1, {more}bf16=True)\n'
)
STEP = "/job/train.py:30:main: loss = model(batch)"
EVALUATION = (
    "/job/run.py:60:main: trainer.evaluate()",
    "~transformers/trainer.py:3095:evaluate: output = eval_loop(",
    "~transformers/trainer.py:3280:evaluation_loop: loss, logits = self.prediction_step(model, inputs)",
)
OCCUPIED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 31.72 GiB total "
    "capacity; 4.10 GiB already allocated; 20.00 MiB free; 4.20 GiB reserved in total by PyTorch)"
)
ONE_CARD = "Number of available GPUs: 1\n"
ROWS = {"conf.yaml": "epochs: 3\nbatch_size: 64\n"}
LOADS = "import os\n\n\ndef load(path):\n    return open(path).read()\n"
MAIN = (
    "import argparse\nfrom store import build\n"
    'p = argparse.ArgumentParser()\np.add_argument("--weights")\n'
    'p.add_argument("--fast", action="store_true")\n'
    "a = p.parse_args()\nbuild(cfg, weights=a.weights, fast=a.fast)\n"
)
DENIED = (
    'import argparse\nimport os\np = argparse.ArgumentParser()\np.add_argument("--out")\n'
    'p.add_argument("--model")\n'
    "a = p.parse_args()\n"
)
FROM_HUB = f"{DENIED}m = AutoModel.from_pretrained(a.model)\n"
SCRIPT = "import numpy\nimport torch\nimport transformers\n"
BARE = stack("/job/train.py:1:<module>: import numpy", error="ModuleNotFoundError: No module named 'numpy'")
GOES = "#!/bin/bash\nBASE=/data/kim\ncd $BASE\npython prepare.py --rows lists/rows.txt\n"


@each_row(
    "job",
    [
        # DeepSpeed's engine does not take the optimizers of bitsandbytes.
        Job(ADAM, {"train.py": ARGUMENTS.format(more="")}, "optim"),
        Job(
            ADAM,
            # Nor does less of what the forward keeps make room for the optimizer's own states.
            {"train.py": ARGUMENTS.format(more='deepspeed="zero3.json", ')},
            "",
        ),
        # With one card there is no other to go to.
        Job(stack(STEP, error=OCCUPIED), ROWS, "CUDA_VISIBLE_DEVICES"),
        Job(ONE_CARD + stack(STEP, error=OCCUPIED), ROWS, "batch_size", ("CUDA_VISIBLE_DEVICES",)),
        # Of an evaluation the rows of a forward come first; what is put together, where that fails.
        Job(
            stack(
                *EVALUATION,
                "~torch/nn/modules/linear.py:114:forward: return F.linear(input)",
                error=OOM.format(asked="4.00", free="1.00"),
            ),
            {"run.sh": "python run.py --per_device_eval_batch_size 64 --do_eval\n"},
            "per_device_eval_batch_size",
        ),
        Job(
            stack(
                *EVALUATION,
                "~transformers/trainer_pt_utils.py:120:nested_concat: return torch.cat((t, n))",
                error=OOM.format(asked="4.00", free="1.00"),
            ),
            {"run.sh": "python run.py --per_device_eval_batch_size 64 --do_eval\n"},
            "eval_accumulation_steps",
        ),
        # Images per card are rows of a step.
        Job(
            stack(STEP, error=OOM.format(asked="2.00", free="1.00")),
            {"det.py": "data = dict(samples_per_gpu=8, workers_per_gpu=2)\n"},
            "samples_per_gpu",
        ),
        # A batch of a tokenizer is none of a step's, and the plain name comes before a longer one.
        Job(
            stack(STEP, error=OOM.format(asked="2.00", free="1.00")),
            {"run.py": "tokenizer_batch_size = 32\nteacher_batch_size = 8\nbatch_size = 16\n"},
            "batch_size",
            ("tokenizer_batch_size", "teacher_batch_size"),
        ),
        # What calls that nobody sees do with what they are handed is not known.
        Job(
            stack(
                "/job/main.py:7:<module>: build(cfg, weights=a.weights, fast=a.fast)",
                "/job/lib/store.py:40:build: load(cfg.rows)",
                "/job/load.py:5:load: return open(path).read()",
                error="FileNotFoundError: [Errno 2] No such file or directory: 'rows.npy'",
            ),
            {"main.py": MAIN, "load.py": LOADS},
            "load.py:5",
            ("--weights", "weights"),
        ),
        # Where the job may not write, the folder that an option lies in counts, and no name within the path.
        Job(
            stack(
                "/job/run.py:7:<module>: os.makedirs(a.out, exist_ok=True)",
                "/usr/lib/python3.11/os.py:225:makedirs: mkdir(name, mode)",
                error="PermissionError: [Errno 13] Permission denied: '/results'",
            ),
            {
                "run.py": f"{DENIED}os.makedirs(a.out, exist_ok=True)\n",
                "go.sh": "python run.py --out /results/a\n",
            },
            "out",
        ),
        Job(
            stack(
                "/job/run.py:7:<module>: m = AutoModel.from_pretrained(a.model)",
                "~huggingface_hub/file_download.py:1008:hf_hub_download: os.makedirs(blobs)",
                error="PermissionError: [Errno 13] Permission denied: '/hub/models--bert-small'",
            ),
            {"run.py": FROM_HUB, "go.sh": "HF_HOME=/hub python run.py --model bert-small\n"},
            "HF_HOME",
            ("model", "--model"),
        ),
        # A script's folder is where a command's relative path is looked for.
        Job(
            stack(
                "/job/prepare.py:3:<module>: rows = open(a.rows)",
                error="FileNotFoundError: [Errno 2] No such file or directory: 'lists/rows.txt'",
            ),
            {"go.sh": GOES.replace("--rows ", "")},
            "BASE",
        ),
        # A Python without the script's first package is not the environment's, unless a script started that.
        Job(BARE, {"train.py": SCRIPT}, "PATH"),
        Job(
            BARE,
            {"train.py": SCRIPT, "environment.yml": "name: seg\ndependencies:\n- numpy\n"},
            "conda activate seg",
        ),
        Job(
            BARE,
            {"train.py": SCRIPT, "go.sh": "source env/bin/activate\npython train.py\n"},
            "numpy",
            ("PATH",),
        ),
        Job(
            BARE.replace("line 1,", "line 2,").replace("numpy", "torch"),
            {"train.py": "import numpy\nimport wandb\n"},
            "torch",
            ("PATH",),
        ),
        Job(BARE.replace("numpy", "wandb"), {"train.py": SCRIPT + "import wandb\n"}, "wandb", ("PATH",)),
        # A key that code misses is one of that level with words behind it, or another word for a count.
        Job(
            stack(
                "/job/train.py:3:<module>: net = Net(cfg.model.n_heads)",
                "~omegaconf/dictconfig.py:355:__getattr__: self._format_and_raise(",
                error="omegaconf.errors.ConfigAttributeError: Missing key n_heads",
            ),
            {"c.yaml": "model:\n  num_heads: 8\n  dim: 64\n"},
            "model.n_heads",
        ),
        Job(
            stack('/job/train.py:3:<module>: s = cfg["optim"]["warmup"]', error="KeyError: 'warmup'"),
            {"c.yaml": "optim:\n  warmup_steps: 8\n  lr: 0.1\n"},
            "optim.warmup",
        ),
    ],
)
def test_that_the_first_change_is_one_of_this_job(job: Job, triage: Triage) -> None:
    files = [ConfigFile(name, text) for name, text in job.files.items()]
    found = opened(triage, sources.from_text(job.log), "en", files).first
    keys = [change.key for change in found.changes if change.purpose == "cure"]
    assert keys[:1] == ([job.first] if job.first else [])
    assert not set(job.absent) & set(keys)


@each_row(
    ("statement", "key", "is_tag"),
    [
        ("and messages[0][self.dataset_attr.role_tag] == self.dataset_attr.system_tag", "from", True),
        ('"content": message[self.dataset_attr.content_tag],', "value", True),
        ("messages = example[self.dataset_attr.messages]", "conversations", False),
    ],
)
def test_that_the_keys_of_a_turn_are_none_of_the_columns(
    triage: Triage, statement: str, key: str, is_tag: bool
) -> None:
    """LLaMA-Factory's entries name a file's columns, and beside them a turn's role and text."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "/e/lib/python3.11/site-packages/llamafactory/data/converter.py", line 151, in __call__\n'
        f"    {statement}\nKeyError: '{key}'\n"
    )
    run = "llamafactory-cli train sft.yaml\n"
    made = explained(
        triage, log, ConfigFile("run.sh", run), ConfigFile("sft.yaml", "dataset: talks\nstage: sft\n")
    )
    told = [str(change.to) for change in made.changes if change.key == "dataset"]
    assert ["`tags`" in word for word in told] == [is_tag]
