"""What programs print of their own configuration: every format, damaged ones, and hostile text."""

from __future__ import annotations

import json
import pprint
from argparse import Namespace
from ast import literal_eval
from time import thread_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.configfiles import literals, outlines
from ingest.configfiles.settings import Setting
from ingest.logs.configs.dumps import MAX_ROWS
from ingest.logs.configs.launch import from_dump
from ingest.logs.configs.settings import ConfigLine
from tests.factories import RAY, STAMP, TORCHRUN, ReadLog, interleaved, prefixed
from tests.tables import each_row


def read_rows(text: str) -> list[Setting]:
    """Read a print whose rows carry no prefixes."""
    head, *below = text.split("\n")
    return from_dump(head, 1, [ConfigLine(number, row) for number, row in enumerate(below, 2)])


def shown(text: str) -> dict[str, str]:
    """Give keys and values of a print."""
    return {item.key: item.value for item in read_rows(text)}


ONE_ROW = [
    (
        "argparse",
        (
            "Namespace(lr=1e-06, zero_stage=3, name='a, (b) c', paths=['/d/x', '/d/y'], kind=None, "
            "dtype=torch.bfloat16)"
        ),
        {
            "lr": "1e-06",
            "zero_stage": "3",
            "name": "a, (b) c",
            "paths": "['/d/x', '/d/y']",
            "kind": "None",
            "dtype": "torch.bfloat16",
        },
    ),
    (
        "argparse, nested",
        "Namespace(actor=Namespace(lr=1e-06, wd=0.1), seed=7)",
        {"actor.lr": "1e-06", "actor.wd": "0.1", "seed": "7"},
    ),
    (
        "argparse, objects",
        (
            "args: Namespace(t=datetime.timedelta(seconds=90), p=PosixPath('/x'), e=<Kind.A: 'a'>, "
            "f=functools.partial(<function g at 0x7f>, 1), z=1)"
        ),
        {
            "t": "datetime.timedelta(seconds=90)",
            "p": "PosixPath('/x')",
            "e": "<Kind.A: 'a'>",
            "f": "functools.partial(<function g at 0x7f>, 1)",
            "z": "1",
        },
    ),
    (
        "argparse, cut",
        "Namespace(model='lark-1b', max_len=4096, path='/data/tr",
        {"model": "lark-1b", "max_len": "4096", "path": "'/data/tr"},
    ),
    (
        "vllm 0.6 api server",
        (
            "args: Namespace(model='/m/lark', tensor_parallel_size=4, "
            "rope_scaling={'type': 'yarn', 'factor': 4.0}, allowed_origins=['*'])"
        ),
        {
            "model": "/m/lark",
            "tensor_parallel_size": "4",
            "rope_scaling": None,
            "rope_scaling.type": "yarn",
            "rope_scaling.factor": "4.0",
            "allowed_origins": "['*']",
        },
    ),
    (
        "vllm 0.9 and later",
        (
            "non-default args: {'model': '/m/lark', 'max_model_len': 8192, 'served_model_name': ['lark'], "
            "'enforce_eager': True}"
        ),
        {
            "model": "/m/lark",
            "max_model_len": "8192",
            "served_model_name": "['lark']",
            "enforce_eager": "True",
        },
    ),
    (
        "vllm, a call that nobody runs",
        "non-default args: {'model': __import__('os').system('x')}",
        {"model": "__import__('os').system('x')"},
    ),
    (
        "vllm 0.2",
        (
            "Initializing an LLM engine with config: model='/m/lark', dtype=torch.float16, max_seq_len=2048, "
            "tensor_parallel_size=2, seed=0)"
        ),
        {
            "model": "/m/lark",
            "dtype": "torch.float16",
            "max_model_len": "2048",
            "tensor_parallel_size": "2",
            "seed": "0",
        },
    ),
    (
        "vllm 0.6, two settings without a comma",
        (
            "Initializing an LLM engine (v0.6.3) with config: model='m', chunked_prefill_enabled=False "
            "multi_step_stream_outputs=True, "
            "enable_prefix_caching=False)"
        ),
        {
            "model": "m",
            "enable_chunked_prefill": "False",
            "multi_step_stream_outputs": "True",
            "enable_prefix_caching": "False",
        },
    ),
    (
        "vllm 0.8",
        (
            "Initializing a V1 LLM engine (v0.8.4) with config: model='m', "
            "speculative_config=SpeculativeConfig(method='ngram', n=5), served_model_name=lark, "
            'compilation_config={"level":3,"custom_ops":["none"],"cudagraph_capture_sizes":[]}'
        ),
        {
            "model": "m",
            "speculative_config": "SpeculativeConfig(method='ngram', n=5)",
            "served_model_name": "lark",
            "compilation_config.level": "3",
            "compilation_config.custom_ops": '["none"]',
            "compilation_config.cudagraph_capture_sizes": "[]",
        },
    ),
    (
        "sglang",
        (
            "server_args=ServerArgs(model_path='/m/lark', mem_fraction_static=0.88, lora_paths=None, "
            "json_model_override_args='{}')"
        ),
        {
            "model_path": "/m/lark",
            "mem_fraction_static": "0.88",
            "lora_paths": "None",
            "json_model_override_args": "{}",
        },
    ),
    (
        "ms-swift",
        "args: SftArguments(model='lark/1b', lora_rank=8, target_modules=['all-linear'], deepspeed=None)",
        {"model": "lark/1b", "lora_rank": "8", "target_modules": "['all-linear']", "deepspeed": "None"},
    ),
    (
        "hydra's overrides",
        (
            "Error executing job with overrides: ['data.train_batch_size=30', '+x.y=z', \"data.files=['a', "
            "'b']\"]"
        ),
        {"data.train_batch_size": "30", "x.y": "z", "data.files": "['a', 'b']"},
    ),
    ("hydra's overrides, cut", "Error executing job with overrides: ['cut off", {}),
    (
        "deepspeed launcher",
        (
            "process 512 spawned with command: ['/usr/bin/python3', '-u', 'sft.py', '--local_rank=0', "
            "'--zero_stage', '2']"
        ),
        {"u": "true", "local_rank": "0", "zero_stage": "2"},
    ),
    (
        "subprocess",
        (
            "subprocess.CalledProcessError: Command '['python', 'sft.py', '--lr', '1e-5']' returned non-zero "
            "exit status 1."
        ),
        {"lr": "1e-5"},
    ),
    (
        "deepspeed row",
        "[config.py:1003:print]   zero_optimization_stage ...... 2",
        {"zero_optimization.stage": "2"},
    ),
    (
        "deepspeed row, a long name",
        "[config.py:1003:print]   checkpoint_tag_validation_enabled  True",
        {"checkpoint_tag_validation_enabled": "True"},
    ),
    (
        "deepspeed row, pydantic",
        (
            "[config.py:1003:print]   zero_config .................. stage=3 contiguous_gradients=True "
            "offload_param=None "
            "offload_optimizer=DeepSpeedZeroOffloadOptimizerConfig(device='cpu', pin_memory=True) "
            "sub_group_size=1000000000"
        ),
        {
            "zero_optimization.stage": "3",
            "zero_optimization.contiguous_gradients": "True",
            "zero_optimization.offload_param": "None",
            "zero_optimization.offload_optimizer.device": "cpu",
            "zero_optimization.offload_optimizer.pin_memory": "True",
            "zero_optimization.sub_group_size": "1000000000",
        },
    ),
    ("deepspeed environment", "[launch.py:139:main] 0 NCCL_IB_TIMEOUT=23", {"NCCL_IB_TIMEOUT": "23"}),
    (
        "nccl",
        "gpu-a4:811:902 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.",
        {"NCCL_IB_DISABLE": "1"},
    ),
    ("nccl, a list", "NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_1", {"NCCL_IB_HCA": "mlx5_0,mlx5_1"}),
    (
        "env",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    ),
    (
        "ray",
        (
            "ray init kwargs: {'num_cpus': None, 'runtime_env': {'env_vars': {'NCCL_DEBUG': 'WARN'}, "
            "'working_dir': None}}"
        ),
        {"num_cpus": "None", "NCCL_DEBUG": "WARN", "runtime_env.working_dir": "None"},
    ),
    (
        "transformers' summary",
        "  Instantaneous batch size per device = 1,024",
        {"per_device_train_batch_size": "1024"},
    ),
    (
        "omegaconf in one row",
        "{'trainer': {'nnodes': 2}, 'data': {'train_batch_size': 64}}",
        {"trainer.nnodes": "2", "data.train_batch_size": "64"},
    ),
    ("a configurator's argument", "Overriding: max_iters = 600", {"max_iters": "600"}),
    ("a run of a sweep", "wandb: \tdecay: [0.1, 0.01]", {"decay": "[0.1, 0.01]"}),
    ("a summary of a run", "wandb:  learning_rate 0.00035", {}),
    ("a step's results", "{'loss': 0.81, 'grad_norm': 1.2, 'epoch': 0.3}", {}),
    ("results by split", "{'eval': {'loss': 0.81}, 'test': {'loss': 0.9}}", {}),
    ("a model's description", "Model config LarkConfig {", {}),
    ("a model's size", '  "num_attention_heads": 40,', {"model_config.num_attention_heads": "40"}),
    ("prose", "nothing here", {}),
]


@each_row(("text", "expected"), [row[1:] for row in ONE_ROW], ids=[row[0] for row in ONE_ROW])
def test_a_print_in_one_row_gives_its_settings(text: str, expected: dict[str, str | None]) -> None:
    """What frameworks print of themselves is read, never run."""
    assert shown(text) == {key: value for key, value in expected.items() if value is not None}


TRAINING_ARGUMENTS = """\
Training/evaluation parameters TrainingArguments(
_n_gpu=1,
accelerator_config={'split_batches': False, 'dispatch_batches': None},
deepspeed=/cfg/z2.json,
eval_strategy=no,
hub_token=<HUB_TOKEN>,
learning_rate=2e-05,
lr_scheduler_kwargs={},
report_to=['wandb'],
)
output_dir=/not/part/of/it,
"""
DATACLASS = """\
GRPOConfig(
    beta=0.04,
    extra={'a': 1},
    names=['x',
           'y'],
)
"""
MEGATRON = """\
------------------------ arguments ------------------------
  account_for_embedding_in_pipeline_split ......... False
  adam_beta1 ...................................... 0.9
using a fused kernel
  data_path ....................................... ['1.0', '/d/lark text']
  apply_a_setting_whose_name_is_longer_than_the_dots  7
-------------------- end of arguments ---------------------
  adam_eps ........................................ 1e-08
"""
ELASTIC = """\
Starting elastic_operator with launch configs:
  entrypoint       : sft.py
  nproc_per_node   : 8
  rdzv_configs     : {'timeout': 900}
  log_dir          : /logs/tr_x

  after            : no
"""
ELASTIC_OLD = """\
torch.distributed.launcher.api: [INFO] Starting elastic_operator with launch configs:
torch.distributed.launcher.api: [INFO]   entrypoint       : sft.py
torch.distributed.launcher.api: [INFO]   max_restarts     : 0
torch.distributed.run: [WARNING] something else
"""
DEEPSPEED_JSON = """\
[config.py:989:print_user_config]   json = {
    "train_micro_batch_size_per_gpu":1,
    "zero_optimization":{
        "stage":3,
        "offload_param":{
            "device":"cpu"
        },
        "reduce_bucket_size":5.000000e+08
    },
    "betas":[
        0.9,
        0.95
    ]
}
    "not":"part"
"""
DEEPSPEED_NESTED = """\
[config.py:1003:print]   activation_checkpointing_config  {
    "partition_activations": false,
    "number_checkpoints": null
}
"""
AXOLOTL = """\
[axolotl.cli.config:load_cfg:250] [PID:31] config:
{
  "adapter": "qlora",
  "datasets": [
    {
      "path": "lark/chat"
    }
  ],
  "bf16": true
}
"""
PPRINT = """\
{'actor_rollout_ref': {'actor': {'checkpoint': {'contents': ['model',
                                                             'extra']},
                                 'clip_ratio': 0.2,
                                 'note': 'a long value that pprint '
                                         'cuts in two',
                                 'optim': {}},
                       'hybrid_engine': True},
 'trainer': {'nnodes': 2}}
step:1 - loss:0.3
"""
OMEGACONF = """\
[2025-03-02 10:00:00,000][__main__][INFO] - trainer:
  nnodes: 2
  logger:
  - console
  - wandb
  project: 'it''s'
  flow: {a: 1, b: [x, y]}
  empty: null
data:
  files:
    - /d/a.parquet
  prompt: "a: b # c"
  text: this value is so long that the printer
    goes on below
  block: |
    first
    second
lr: 1.0e-06

step: 7
"""
HEADED = """\
===== Training arguments =====
batch_size = 32
lr = 1e-4
model.name = 'lark'
done in 3 s
"""
HEADED_COLONS = """\
Config:
--------------------
seed        : 7
model:
  hidden: 64
  layers : 2
--------------------
"""
CONFIGURED = """\
Overriding config with config/train_lark.py:
# to be started by torchrun

out_dir = 'out-lark'
max_iters = 100000 # 300 B tokens
batch_size=12

tokens per step will be: 491,520
lr = 3
"""

MANY_ROWS = [
    (
        "transformers",
        TRAINING_ARGUMENTS,
        {
            "_n_gpu": "1",
            "accelerator_config.split_batches": "False",
            "accelerator_config.dispatch_batches": "None",
            "deepspeed": "/cfg/z2.json",
            "eval_strategy": "no",
            "hub_token": "<HUB_TOKEN>",
            "learning_rate": "2e-05",
            "lr_scheduler_kwargs": "{}",
            "report_to": "['wandb']",
        },
    ),
    ("a dataclass, indented", DATACLASS, {"beta": "0.04", "extra.a": "1", "names": "['x', 'y']"}),
    (
        "megatron",
        MEGATRON,
        {
            "account_for_embedding_in_pipeline_split": "False",
            "adam_beta1": "0.9",
            "data_path": "['1.0', '/d/lark text']",
            "apply_a_setting_whose_name_is_longer_than_the_dots": "7",
        },
    ),
    (
        "torch elastic",
        ELASTIC,
        {
            "entrypoint": "sft.py",
            "nproc_per_node": "8",
            "rdzv_configs.timeout": "900",
            "log_dir": "/logs/tr_x",
        },
    ),
    ("torch elastic 2.0", ELASTIC_OLD, {"entrypoint": "sft.py", "max_restarts": "0"}),
    (
        "deepspeed json",
        DEEPSPEED_JSON,
        {
            "train_micro_batch_size_per_gpu": "1",
            "zero_optimization.stage": "3",
            "zero_optimization.offload_param.device": "cpu",
            "zero_optimization.reduce_bucket_size": "5.000000e+08",
            "betas": "[0.9, 0.95]",
        },
    ),
    (
        "deepspeed, a nested row",
        DEEPSPEED_NESTED,
        {
            "activation_checkpointing.partition_activations": "false",
            "activation_checkpointing.number_checkpoints": "null",
        },
    ),
    ("axolotl", AXOLOTL, {"adapter": "qlora", "datasets": '[{"path": "lark/chat"}]', "bf16": "true"}),
    (
        "verl",
        PPRINT,
        {
            "actor_rollout_ref.actor.checkpoint.contents": "['model', 'extra']",
            "actor_rollout_ref.actor.clip_ratio": "0.2",
            "actor_rollout_ref.actor.note": "a long value that pprint cuts in two",
            "actor_rollout_ref.actor.optim": "{}",
            "actor_rollout_ref.hybrid_engine": "True",
            "trainer.nnodes": "2",
        },
    ),
    (
        "omegaconf",
        OMEGACONF,
        {
            "trainer.nnodes": "2",
            "trainer.logger": "[console, wandb]",
            "trainer.project": "it's",
            "trainer.flow.a": "1",
            "trainer.flow.b": "[x, y]",
            "trainer.empty": "null",
            "data.files": "[/d/a.parquet]",
            "data.prompt": "a: b # c",
            "data.text": "this value is so long that the printer goes on below",
            "data.block": "first second",
            "lr": "1.0e-06",
        },
    ),
    ("a configurator's file", CONFIGURED, {"out_dir": "out-lark", "max_iters": "100000", "batch_size": "12"}),
    ("a headed block", HEADED, {"batch_size": "32", "lr": "1e-4", "model.name": "lark"}),
    ("a headed outline", HEADED_COLONS, {"seed": "7", "model.hidden": "64", "model.layers": "2"}),
]
IDS = [row[0] for row in MANY_ROWS]


@each_row(("text", "expected"), [row[1:] for row in MANY_ROWS], ids=IDS)
def test_a_print_over_rows_gives_its_settings_and_nothing_of_what_follows(
    text: str, expected: dict[str, str]
) -> None:
    """A print ends where its own code ends it."""
    assert shown(text) == expected


@each_row("text", [row[1] for row in MANY_ROWS], ids=IDS)
def test_each_setting_of_a_print_has_its_own_line(text: str) -> None:
    """The line that a setting names holds the last part of its key."""
    rows = text.split("\n")
    assert [
        item.key
        for item in read_rows(text)
        if item.key.rsplit(".", 1)[-1].split("_")[0] not in rows[item.line - 1]
    ] == []


@each_row("text", [row[1] for row in MANY_ROWS], ids=IDS)
def test_a_print_that_is_cut_tells_what_it_shows(text: str) -> None:
    """A log may end after any row; what stands before keeps its key."""
    rows = text.split("\n")
    cuts = [set(shown("\n".join(rows[:count]))) for count in range(1, len(rows) + 1)]
    # An empty mapping's brackets may be all that is seen of a full one.
    assert [cut - set(shown(text)) for cut in cuts if cut - set(shown(text))] == []
    assert len(set(map(len, cuts))) > 1


@each_row("prefix", ["", RAY, TORCHRUN, STAMP])
@each_row(
    "text",
    [row[1] for row in MANY_ROWS if "[config.py" not in row[1]],
    ids=[row[0] for row in MANY_ROWS if "[config.py" not in row[1]],
)
def test_a_print_is_read_behind_any_prefix(read: ReadLog, text: str, prefix: str) -> None:
    """Launchers and loggers write before each row; what they write is no part of it."""
    found = {item.key: (item.value, item.line) for item in read(prefixed(prefix, text)).settings}
    expected = {item.key: (item.value, item.line) for item in read_rows(text)}
    assert {key: found.get(key) for key in expected if "token" not in key} == {
        key: value for key, value in expected.items() if "token" not in key
    }


def test_processes_that_print_at_once_are_kept_apart(read: ReadLog) -> None:
    """Two actors' prints, row by row, are two prints."""
    other = PPRINT.replace("trainer", "critic").replace("nnodes", "budget")
    log = interleaved(prefixed(RAY, PPRINT), prefixed("(TaskRunner pid=7, ip=10.0.0.9) ", other))
    found = {item.key: item.value for item in read(log).settings}
    assert found["trainer.nnodes"] == found["critic.budget"] == "2"
    assert found["actor_rollout_ref.actor.note"] == "a long value that pprint cuts in two"


def test_a_strangers_row_does_not_end_a_print(read: ReadLog) -> None:
    """A warning of another thread stands between two rows; the print goes on."""
    rows = PPRINT.split("\n")
    log = "\n".join([*rows[:3], "lark.py:3: UserWarning: it's late (very late", *rows[3:]])
    assert {item.key: item.value for item in read(log).settings}["trainer.nnodes"] == "2"


def test_the_same_print_by_many_ranks_is_read_once(read: ReadLog) -> None:
    """Sixty-four ranks print thousands of rows; the time does not grow with them."""
    config = {"trainer": {f"setting_{number}": number for number in range(900)}}
    text = pprint.pformat(config)
    alone, together = (
        prefixed("[rank0]: ", text),
        "".join(prefixed(f"[rank{rank}]: ", text) for rank in range(64)),
    )
    first = thread_time()
    few = read(alone).settings
    second = thread_time()
    many = read(together).settings
    assert [(item.key, item.value, item.line) for item in few] == [
        (item.key, item.value, item.line) for item in many
    ]
    assert len(few) == 900
    assert thread_time() - second < 3 + 20 * (second - first)


def test_a_print_longer_than_a_shown_line_is_read_to_its_end(read: ReadLog) -> None:
    """A large framework's arguments in one row take more than what is shown of a line."""
    text = "Namespace(" + ", ".join(f"setting_{number}={number}" for number in range(1500)) + ")"
    assert {item.key: item.value for item in read(prefixed(RAY, text)).settings} == {
        f"setting_{number}": str(number) for number in range(1500)
    }


def test_a_print_without_end_is_bounded() -> None:
    """Rows beyond the bound are left."""
    text = "{'trainer': {'a': 1,\n" + "".join(f"  'k{number}': 1,\n" for number in range(2 * MAX_ROWS))
    assert len(read_rows(text)) <= MAX_ROWS + 1


NAMES = st.text("abcdefghij_", min_size=1, max_size=8)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=30) | st.text(
    "ab '\"\\,:={}[]()#-", max_size=20
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
)
LISTS = st.lists(st.integers() | st.text("abc /.", max_size=60), max_size=5)
CONFIGS = st.recursive(
    st.dictionaries(NAMES, SCALARS | LISTS, min_size=1, max_size=4),
    lambda inner: st.dictionaries(NAMES, inner | SCALARS, min_size=1, max_size=4),
    max_leaves=20,
)


def flat(config: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Give a nested configuration by dotted path."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{path}{key}.") if isinstance(value, dict) and value else {path + key: value}
    return found


def same(value: str, expected: object) -> bool:
    """Tell whether a value as printed is the one that was printed."""
    if isinstance(expected, str):
        return value == expected
    return value == repr(expected) or literal_eval(value) == expected


def assert_same(found: dict[str, str], config: dict[str, Any]) -> None:
    """Hold what was read against what was printed."""
    expected = flat(config)
    assert set(found) == set(expected)
    assert [key for key in expected if not same(found[key], expected[key])] == []


ROUND = settings(derandomize=True, deadline=None, max_examples=150)


@given(CONFIGS)
@ROUND
def test_what_pprint_writes_is_read_back(config: dict[str, Any]) -> None:
    """Nested, wrapped and quoted as pprint does."""
    rows = list(enumerate(pprint.pformat(config).removeprefix("{").split("\n"), 1))
    assert_same({entry.path: entry.value for entry in literals.entries(rows, is_call=False)}, config)


@given(CONFIGS, st.sampled_from([None, 2, 4]), st.booleans())
@ROUND
def test_what_json_writes_is_read_back(config: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    """In one row or many, with characters beyond ASCII escaped or not."""
    rows = list(
        enumerate(json.dumps(config, indent=indent, ensure_ascii=ascii_only).removeprefix("{").split("\n"), 1)
    )
    found = {entry.path: entry.value for entry in literals.entries(rows, is_call=False)}
    words = {"null": "None", "true": "True", "false": "False"}
    plain = {
        key: words.get(value, value) if not isinstance(flat(config).get(key), str) else value
        for key, value in found.items()
    }
    assert_same(plain, config)


@given(st.dictionaries(NAMES, SCALARS | LISTS, max_size=6))
@ROUND
def test_what_argparse_writes_is_read_back(config: dict[str, Any]) -> None:
    """The representation of a namespace."""
    assert_same(shown(repr(Namespace(**config))), config)


def as_outline(config: dict[str, Any], indent: int = 0) -> str:
    """Write YAML as OmegaConf does, strings in double quotes where a plain one would say something else."""
    rows = []
    for key, value in config.items():
        if isinstance(value, dict):
            rows.append(f"{' ' * indent}{key}:\n{as_outline(value, indent + 2)}")
        elif isinstance(value, list) and value:
            rows.append(f"{' ' * indent}{key}:\n" + "".join(f"{' ' * indent}- {item}\n" for item in value))
        else:
            rows.append(
                f"{' ' * indent}{key}: "
                f"{json.dumps(value, ensure_ascii=False) if isinstance(value, str) else value}\n"
            )
    return "".join(rows)


YAMLS = st.recursive(
    st.dictionaries(NAMES, SCALARS | st.lists(st.integers(), max_size=4), min_size=1, max_size=4),
    lambda inner: st.dictionaries(NAMES, inner | SCALARS, min_size=1, max_size=4),
    max_leaves=20,
)


@given(YAMLS)
@ROUND
def test_what_a_yaml_printer_writes_is_read_back(config: dict[str, Any]) -> None:
    """Nested mappings, lists and quoted strings."""
    found = outlines.entries(enumerate(as_outline(config).split("\n"), 1))
    assert_same({entry.path: entry.value for entry in found}, config)


HEADS = [row[1] for row in ONE_ROW] + [row[1] for row in MANY_ROWS]


@given(st.sampled_from(HEADS), st.text(max_size=80), st.text("'\"\\{}[]():=,- \n#ab", max_size=120))
@settings(derandomize=True, deadline=None, max_examples=400)
def test_no_text_raises(head: str, first: str, second: str) -> None:
    """Whatever is mixed into a print."""
    place = len(second) * 7 % max(1, len(head))
    for text in (
        first,
        second,
        head[:place] + first + head[place:],
        head[:place] + second,
        head + "\n" + second,
    ):
        assert all(item.key and item.line > 0 for item in read_rows(text))


@pytest.mark.long
@each_row(
    "piece",
    [
        "'",
        '"',
        "\\'",
        "'\\",
        "{",
        "[",
        "(",
        "<",
        "=",
        ",",
        ":",
        " ",
        "_",
        "-",
        "a=",
        "{'a':",
        "a b=",
        "- ",
        "'a' ",
        "\t",
        "#",
        ".",
        "] ",
    ],
)
@each_row(
    "head",
    [
        "Namespace(a=",
        "{'trainer': {",
        "config:\n",
        "trainer:\n  a: ",
        "-",
        "[config.py:1:print]   zero_config ... a=",
        "",
        "TrainingArguments(\na=",
    ],
)
def test_the_time_of_a_print_grows_with_its_length(head: str, piece: str) -> None:
    """Nothing is read over and over, whatever a row repeats."""
    begun = thread_time()
    read_rows(head + piece * (60_000 // len(piece)))
    assert thread_time() - begun < 1
