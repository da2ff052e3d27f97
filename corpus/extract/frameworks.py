"""Where each framework declares its settings, and how its users spell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from corpus.extract import arguments, constants, environment, fields, headers, options, trees
from corpus.extract.checkouts import Checkout, matching
from corpus.extract.declarations import Declaration, Style, completed, unique
from corpus.extract.expressions import Source, parsed

Form = Literal[
    "arguments", "constants", "environment", "fields", "nccl", "options", "ray", "slurm", "torch", "trees"
]


@dataclass(frozen=True)
class Origin:
    """One place of a framework's source that declares settings, all in one form.

    `files` are the ends of paths, `beside` further files whose classes and constants the declarations use.
    `omit` leaves out keys that no failure turns on. `names` says which classes (and below which key),
    commands or variables count, as the form needs it.
    """

    form: Form
    files: tuple[str, ...]
    catalogue: str
    spelled: str
    style: Style = "as-is"
    names: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    omit: tuple[str, ...] = ()


def _env(files: tuple[str, ...], *wanted: str, form: Form = "environment", catalogue: str = "env") -> Origin:
    return Origin(form, files, catalogue, "env", names=dict.fromkeys(wanted, ""))


_DEEPSPEED_PLACES = {
    "FP16_": "fp16.",
    "BFLOAT16_": "bf16.",
    "AMP_": "amp.",
    "ACT_CHKPT_": "activation_checkpointing.",
    "CHECKPOINT_": "checkpoint.",
    "SPARSE_": "sparse_attention.",
    "SPARSE_GRADIENTS": "",
    "PLD_": "progressive_layer_drop.",
    "EIGENVALUE_": "eigenvalue.",
    "DATA_TYPES_": "data_types.",
    "GRAD_ACCUM_": "data_types.",
    "PIPELINE_": "pipeline.",
    "DATALOADER_": "",
    "TORCH_AUTOCAST_": "torch_autocast.",
    "GRADIENT_": "",
    "AIO_": "aio.",
    "COMPILE_": "compile.",
    "LOAD_UNIVERSAL_": "checkpoint.",
    "USE_NODE_LOCAL_": "checkpoint.",
    "CURRICULUM_": "curriculum_learning.",
    "CONNECTION_": "zero_optimization.",
}
_SGLANG_PARTS = (
    "Device",
    "Disagg",
    "Exec?*",
    "Lora",
    "Memory",
    "Mm",
    "Model",
    "Observability",
    "Parallel",
    "Schedule",
    "Serving",
    "Spec",
)
_VLLM_BESIDE = (
    "vllm/config.py",
    "vllm/config/*.py",
    "vllm/engine/arg_utils.py",
    "vllm/v1/attention/backends/registry.py",
)

ORIGINS: dict[str, tuple[Origin, ...]] = {
    "verl": (
        Origin(
            "trees",
            (
                "verl/trainer/config/_generated_ppo*.yaml",
                "verl/trainer/config/ppo_trainer.yaml",
                "verl/trainer/config/ppo_megatron_trainer.yaml",
                "verl/trainer/config/sft_trainer*.yaml",
            ),
            "verl",
            "hydra",
            beside=("verl/workers/config/*.py", "verl/trainer/config/*.py"),
            omit=(
                "*profiler*",
                "*npu_profile*",
                "*nsight*",
                "*.profile",
                "*.profile.*",
                "*.model_config.*",
                "*.turbo_config*",
                "*torchtitan*",
                "*veomni*",
                "distillation.teacher_models.*",
                "*.tracing.*",
                "*.mtp.*",
                "*.qat.*",
            ),
        ),
        _env(("verl/*.py",), "VERL_*"),
    ),
    "easyr1": (
        Origin(
            "fields",
            ("verl/trainer/config.py",),
            "easyr1",
            "hydra",
            names={"PPOConfig": ""},
            beside=("verl/workers/config.py", "verl/workers/*/config.py"),
        ),
    ),
    "openrlhf": (Origin("arguments", ("openrlhf/cli/train_*.py",), "openrlhf", "flag", "name"),),
    "trl": (
        Origin(
            "fields",
            (
                "trl/trainer/*_config.py",
                "trl/trainer/*config*.py",
                "trl/experimental/*_config.py",
                "trl/commands/*.py",
                "trl/scripts/utils.py",
            ),
            "trl",
            "yaml",
            names={"*Config": "", "ScriptArguments": "", "*ScriptArguments": ""},
        ),
    ),
    "llamafactory": (
        Origin(
            "fields",
            ("llamafactory/hparams/*_args.py", "llmtuner/hparams/*_args.py"),
            "llamafactory",
            "yaml",
            names={"*Arguments": "", "*Args": ""},
        ),
    ),
    "ms-swift": (
        Origin(
            "fields",
            (
                "swift/llm/argument/*.py",
                "swift/llm/argument/*/*.py",
                "swift/llm/utils/argument.py",
                "swift/arguments/*.py",
                "swift/arguments/*/*.py",
                "swift/trainers/*arguments.py",
                "swift/rlhf_trainers/arguments.py",
                "swift/megatron/argument*/*.py",
                "swift/llm/megatron/argument.py",
                "swift/ray*/arguments.py",
            ),
            "ms-swift",
            "flag",
            names={"*Arguments": "--", "*Mixin": "--"},
        ),
    ),
    "vllm": (
        Origin(
            "arguments",
            ("vllm/engine/arg_utils.py", "vllm/entrypoints/*cli_args.py"),
            "vllm",
            "flag",
            "flag",
            beside=_VLLM_BESIDE,
        ),
        Origin(
            "fields",
            ("vllm/entrypoints/*cli_args.py",),
            "vllm",
            "flag",
            "flag",
            names={"FrontendArgs": "", "BaseFrontendArgs": ""},
            beside=_VLLM_BESIDE,
        ),
        _env(("vllm/envs.py",), "VLLM_*"),
    ),
    "sglang": (
        Origin(
            "arguments",
            ("sglang/srt/server_args.py",),
            "sglang",
            "flag",
            "flag",
            beside=("sglang/srt/arg_groups/*.py",),
        ),
        Origin(
            "fields",
            ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/*.py"),
            "sglang",
            "flag",
            "flag",
            names=dict.fromkeys(("ServerArgs", *_SGLANG_PARTS), ""),
            beside=("sglang/srt/arg_groups/*.py",),
        ),
        _env(("sglang/srt/*.py", "sglang/*.py"), "SGLANG_*", "SGL_*"),
    ),
    "deepspeed": (
        Origin(
            "fields",
            (
                "deepspeed/runtime/zero/config.py",
                "deepspeed/runtime/precision_config.py",
                "deepspeed/comm/config.py",
                "deepspeed/monitor/config.py",
                "deepspeed/runtime/tensor_parallel/config.py",
                "deepspeed/profiling/config.py",
                "deepspeed/compile/config.py",
                "deepspeed/runtime/config.py",
                "deepspeed/runtime/swap_tensor/aio_config.py",
            ),
            "deepspeed",
            "json",
            names={
                "DeepSpeedZeroConfig": "zero_optimization.",
                "DeepSpeedFP16Config": "fp16.",
                "DeepSpeedBF16Config": "bf16.",
                "CommsConfig": "comms_logger.",
                "TPTrainingConfig": "tensor_parallel.",
                "HybridEngineConfig": "hybrid_engine.",
                "TensorBoardConfig": "tensorboard.",
                "WandbConfig": "wandb.",
                "CSVConfig": "csv_monitor.",
                "CompileConfig": "compile.",
            },
            beside=("deepspeed/runtime/zero/*.py", "deepspeed/runtime/tensor_parallel/*.py"),
        ),
        Origin(
            "constants",
            (
                "deepspeed/runtime/constants.py",
                "deepspeed/runtime/activation_checkpointing/config.py",
                "deepspeed/runtime/swap_tensor/constants.py",
            ),
            "deepspeed",
            "json",
            names=_DEEPSPEED_PLACES,
        ),
        Origin("arguments", ("deepspeed/launcher/runner.py",), "deepspeed", "flag", "flag"),
        _env(("deepspeed/*.py",), "DEEPSPEED_*", "DS_*"),
    ),
    "megatron": (
        Origin(
            "arguments",
            ("megatron/training/arguments.py", "megatron/arguments.py"),
            "megatron",
            "flag",
            "flag",
            beside=(
                "megatron/core/transformer/*.py",
                "megatron/core/*config*.py",
                "megatron/training/config/*.py",
                "megatron/core/optimizer/optimizer_config.py",
                "megatron/core/distributed/*config.py",
                "megatron/core/transformer/moe/*config*.py",
            ),
        ),
    ),
    "accelerate": (
        Origin(
            "fields",
            ("accelerate/commands/config/config_args.py",),
            "accelerate",
            "yaml",
            names={"ClusterConfig": "", "BaseConfig": ""},
            beside=("accelerate/utils/dataclasses.py",),
        ),
        Origin("arguments", ("accelerate/commands/launch.py",), "accelerate", "flag", "flag"),
        _env(("accelerate/*.py",), "ACCELERATE_*", "FSDP_*"),
    ),
    "transformers": (
        Origin(
            "fields",
            ("transformers/training_args.py", "transformers/training_args_seq2seq.py"),
            "transformers",
            "yaml",
            names={"TrainingArguments": "", "Seq2SeqTrainingArguments": ""},
            beside=("transformers/trainer_utils.py",),
        ),
    ),
    "ray": (
        Origin("options", ("ray/scripts/scripts.py",), "ray", "flag", "flag", names={"start": ""}),
        _env(("ray_config_def.h",), "RAY_*", form="ray"),
        _env(
            (
                "ray/_private/*.py",
                "ray/dashboard/consts.py",
                "ray/autoscaler/_private/constants.py",
                "ray/_common/*.py",
                "ray/train/constants.py",
                "ray/data/context.py",
            ),
            "RAY_*",
        ),
    ),
    "nccl": (_env(("src/*.cc", "src/*.h", "src/*.cpp"), "NCCL_*", form="nccl", catalogue="nccl"),),
    "pytorch": (
        Origin("arguments", ("torch/distributed/run.py",), "pytorch", "flag", "flag"),
        _env(
            (
                "c10d/ProcessGroupNCCL.hpp",
                "c10d/TraceUtils.h",
                "c10d/FlightRecorder.hpp",
                "c10d/NCCLUtils.hpp",
                "c10d/Utils.hpp",
                "c10d/TCPStoreBackend.hpp",
                "c10/cuda/CUDAAllocatorConfig.h",
                "c10d/*.hpp",
            ),
            "TORCH_*",
            "PYTORCH_*",
            form="torch",
        ),
        _env(
            (
                "torch/distributed/*.py",
                "torch/_inductor/*.py",
                "torch/_dynamo/config.py",
                "torch/cuda/*.py",
                "torch/utils/data/*.py",
                "torch/_logging/*.py",
                "torch/compiler/*.py",
                "torch/serialization.py",
                "torch/__init__.py",
                "torch/hub.py",
            ),
            "TORCH*",
            "PYTORCH_*",
        ),
    ),
    "slurm": (Origin("slurm", ("src/common/slurm_opt.c",), "slurm", "directive"),),
}

_READERS: dict[Form, Callable[[Mapping[str, str], Source, Origin], Iterator[Declaration]]] = {
    "arguments": lambda _texts, source, origin: arguments.read(source, origin.style),
    "constants": lambda _texts, source, origin: constants.read(source, origin.names),
    "environment": lambda _texts, source, origin: environment.read(source, tuple(origin.names)),
    "fields": lambda _texts, source, origin: fields.read(source, origin.names, origin.style),
    "nccl": lambda texts, _source, _origin: headers.nccl(texts),
    "options": lambda _texts, source, origin: options.read(source, tuple(origin.names), origin.style),
    "ray": lambda texts, _source, _origin: headers.ray(texts),
    "slurm": lambda texts, _source, _origin: headers.slurm(texts),
    "torch": lambda texts, _source, _origin: headers.torch(texts),
    "trees": lambda texts, source, _origin: trees.read(texts, source),
}


def declared(checkout: Checkout, origins: Sequence[Origin]) -> dict[str, Declaration]:
    """Give the settings that some places of a checkout declare, by key."""
    found: dict[str, Declaration] = {}
    for origin in origins:
        for key, row in unique(_read(checkout, origin)).items():
            found[key] = completed(found[key], row) if key in found else row
    return found


def _read(checkout: Checkout, origin: Origin) -> Iterator[Declaration]:
    texts = matching(checkout, origin.files)
    python = {path: text for path, text in texts.items() if path.endswith(".py")}
    source = parsed({**matching(checkout, origin.beside), **python})
    for row in _READERS[origin.form](texts, source, origin):
        if not any(fnmatchcase(row.key, pattern) for pattern in origin.omit):
            yield row
