"""What programs print of their own configuration: one row per format, found by how it begins.

The formats are those of the print code: argparse, pprint, OmegaConf, json, DeepSpeed, Megatron, transformers,
vLLM, SGLang, torch elastic, NCCL. A reader of a format gets the text behind the beginning and the rows below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice

from ingest.configfiles import literals, outlines
from ingest.configfiles.literals import LiteralEntry
from ingest.configfiles.settings import Setting, printed
from ingest.configfiles.shell import commands
from ingest.logs.configs import tables
from ingest.logs.configs.settings import ConfigLine
from ingest.logs.configs.tables import Rows

MAX_ROWS = 3000

# Sections and settings that a printed configuration has, and a printed result or a model's description has
# not.
_KNOWN = frozenset(
    (
        "actor",
        "actor_rollout_ref",
        "algorithm",
        "adapter",
        "base_model",
        "batch_size",
        "bf16",
        "critic",
        "data",
        "dataset",
        "datasets",
        "deepspeed",
        "epochs",
        "experiment",
        "fp16",
        "gradient_accumulation_steps",
        "gradient_clipping",
        "hydra",
        "learning_rate",
        "lora",
        "lr",
        "micro_batch_size",
        "optim",
        "optimizer",
        "output_dir",
        "parallel",
        "ray_init",
        "reward_model",
        "rollout",
        "scheduler",
        "seed",
        "sequence_len",
        "train",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "trainer",
        "training",
        "worker",
        "zero_optimization",
    )
)
# What a print calls a setting where the framework's own configuration says otherwise.
_NAMES = {"max_seq_len": "max_model_len", "chunked_prefill_enabled": "enable_chunked_prefill"}
_DEEPSPEED = {
    "json": "",
    "zero_optimization_stage": "zero_optimization.stage",
    "zero_config": "zero_optimization",
    "bfloat16_enabled": "bf16.enabled",
    "bfloat16_config": "bf16",
    "float16_config": "fp16",
    "fp16_enabled": "fp16.enabled",
    "fp16_auto_cast": "fp16.auto_cast",
    "grad_accum_dtype": "data_types.grad_accum_dtype",
    "load_universal_checkpoint": "checkpoint.load_universal",
    "optimizer_name": "optimizer.type",
    "optimizer_params": "optimizer.params",
    "scheduler_name": "scheduler.type",
    "scheduler_params": "scheduler.params",
    "activation_checkpointing_config": "activation_checkpointing",
    "aio_config": "aio",
    "comms_config": "comms_logger",
    "flops_profiler_config": "flops_profiler",
}
_TRAINER = {
    "Num Epochs": "num_train_epochs",
    "Instantaneous batch size per device": "per_device_train_batch_size",
    "Gradient Accumulation steps": "gradient_accumulation_steps",
    "Total optimization steps": "max_steps",
}

_PAIR = re.compile(r"[a-z_]\w*=")


@dataclass(frozen=True, slots=True)
class OpenDump:
    """A print at its beginning: where its format was known by, that row's number, and the rows below."""

    match: re.Match[str]
    line: int
    rows: Rows

    @property
    def behind(self) -> str:
        """The rest of the first row."""
        return self.match.string[self.match.end() :]

    def nested(self) -> Rows:
        """Give the rest of the first row and the indented rows below."""
        return chain([ConfigLine(self.line, self.behind)], tables.nested(self.rows))


@dataclass(frozen=True, slots=True)
class Dump:
    """A format: how it begins, how it is read, and whether it is more than the row it begins in.

    `in_full` where it is known by the place in the code that a logger puts before the message.
    """

    begins: re.Pattern[str]
    read: Callable[[OpenDump], Iterable[Setting]]
    is_long: bool = True
    in_full: bool = False


def find(body: str, full: str) -> tuple[Dump, re.Match[str]] | None:
    """Tell which format begins in a row, by its text without and with prefixes."""
    for dump in DUMPS:
        if match := dump.begins.search(full if dump.in_full else body):
            return dump, match
    return None


def _words(begun: OpenDump) -> Iterable[Setting]:
    """Read a printed list of a command's words."""
    return commands.of_words(literals.items(begun.behind), begun.line)


def _call(begun: OpenDump) -> Iterable[Setting]:
    """Read `Name(key=value, ...)`, in one row or one row per setting."""
    if begun.behind.strip():
        return printed(literals.entries(begun.nested(), is_call=True))
    first = list(islice(begun.rows, 1))
    if first and first[0].body[:1].isspace():
        return printed(literals.entries(tables.nested(chain(first, begun.rows)), is_call=True))
    return printed(tables.call_rows(chain(first, begun.rows)))


def _mapping(begun: OpenDump) -> Iterable[Setting]:
    """Read a mapping that a label announces."""
    return printed(literals.entries(begun.nested(), is_call=False))


def _known_mapping(begun: OpenDump) -> Iterable[Setting]:
    """Read a mapping without a label, if it is a configuration by the names in it."""
    found = literals.entries(begun.nested(), is_call=False)
    known = {entry.path.split(".", 1)[0] for entry in found} & _KNOWN
    # One row may as well be a step's results, with a name or other in common.
    least = 1 if found and found[-1].line > begun.line else 2
    return printed(found) if len(known) >= least else []


def _announced(begun: OpenDump) -> Iterable[Setting]:
    """Read what follows `config:` in the next rows: JSON, a printed dict, or an outline."""
    first = next(begun.rows, None)
    if first is None:
        return []
    if (opening := re.match(r"\s*\{", first.body)) is not None:
        return _mapping(OpenDump(opening, first.number, begun.rows))
    block = list(tables.block(chain([first], begun.rows)))
    return printed(block) if len(block) > 2 else []


def _outline(begun: OpenDump) -> Iterable[Setting]:
    """Read an outline that begins with a section's name; what is no mapping of two levels is none."""
    first = list(islice(begun.rows, 1))
    if not first or not re.match(r"\s+[\w.-]+:(?: |$)", first[0].body):
        return []
    return printed(
        outlines.entries(
            tables.until_blank(chain([ConfigLine(begun.line, begun.match["section"])], first, begun.rows))
        )
    )


def _engine(begun: OpenDump) -> Iterable[Setting]:
    """Read vLLM's `key=value, ...` of an engine."""
    found = literals.entries([(begun.line, begun.behind)], is_call=True)
    renamed = (entry._replace(path=_NAMES.get(entry.path, entry.path)) for entry in found)
    return printed(renamed)


def _dotted(begun: OpenDump) -> Iterable[Setting]:
    """Read Megatron's table of arguments to its last line."""
    return printed(tables.dotted_rows(begun.rows))


def _elastic(begun: OpenDump) -> Iterable[Setting]:
    """Read torch elastic's table of its launch."""
    return printed(tables.elastic_rows(begun.rows))


def _deepspeed(begun: OpenDump) -> Iterable[Setting]:
    """Read one row of DeepSpeed's print, or the JSON that begins in it."""
    name, value = begun.match["key"], begun.match["value"].strip()
    key = _DEEPSPEED.get(name, name)
    if value[:1] == "{":
        path = f"{key}." if key else ""
        below = tables.nested(begun.rows) if value == "{" else []
        return printed(
            literals.entries(chain([ConfigLine(begun.line, value[1:])], below), is_call=False, path=path)
        )
    if name.endswith("_config") and _PAIR.match(value):
        return printed(literals.entries([ConfigLine(begun.line, value)], is_call=True, path=f"{key}."))
    return printed([LiteralEntry(key, literals.unquoted(value), begun.line)])


def _variable(begun: OpenDump) -> Iterable[Setting]:
    """Read a variable of the environment."""
    return [Setting(begun.match["key"], literals.unquoted(begun.match["value"].strip()), begun.line, "env")]


def _trainer(begun: OpenDump) -> Iterable[Setting]:
    """Read a row of the summary that transformers' trainers begin with."""
    return [Setting(_TRAINER[begun.match["key"]], begun.match["value"].replace(",", ""), begun.line, "dump")]


_VARIABLES = (
    "NCCL|CUDA|TORCH|TORCHINDUCTOR|PYTORCH|RAY|VLLM|SGLANG|HF|TRANSFORMERS|OMP|MKL|GLOO|UCX|FI|DS|TRITON|TOKENIZERS|NVTE|MASTER|"
    "WANDB|HYDRA|DEEPSPEED|ACCELERATE|SLURM|NPROC|GPUS"
)
_SECTIONS = "actor_rollout_ref|algorithm|critic|data|model|optimizer|optim|trainer|training|train|hydra|worker|rollout|dataset|experiment"
# How Hydra's and other loggers begin a message, where no prefix of a launcher is.
_LOGGER = r"(?:\[[^\]]{1,60}\] ?){1,5}(?:- )?"

DUMPS: tuple[Dump, ...] = (
    Dump(re.compile(r"Error executing job with overrides: \["), _words, is_long=False),
    Dump(
        re.compile(r"(?:spawned with command: |\bCommand '|[Ll]aunch(?:ing)? (?:with )?command: )\["),
        _words,
        is_long=False,
    ),
    Dump(re.compile(r"LLM engine(?: \(v[^)]{1,80}\))? with config: "), _engine, is_long=False),
    Dump(
        re.compile(r"\[config\.py:\d{1,6}:print\w*\]\s+(?P<key>\w+)(?: \.+| {2,}| =)\s?(?P<value>\S.*)"),
        _deepspeed,
        in_full=True,
    ),
    Dump(
        re.compile(
            r"\b(?P<key>(?:NCCL|RCCL|UCX|GLOO)_[A-Z0-9_]+) set (?:by environment )?to (?P<value>\S.*?)\.?$"
        ),
        _variable,
        is_long=False,
    ),
    Dump(
        re.compile(
            r"\[launch\.py:\d{1,6}:main\] \d+ (?P<key>NCCL_\w+|\w*PYTHON\w*|UCX_\w+|MV2_\w+)=(?P<value>.+)"
        ),
        _variable,
        is_long=False,
        in_full=True,
    ),
    Dump(re.compile(rf"^(?P<key>(?:{_VARIABLES})_[A-Za-z0-9_]+)=(?P<value>.+)"), _variable, is_long=False),
    Dump(
        re.compile(
            r"(?P<key>Num Epochs|Instantaneous batch size per device|Gradient Accumulation steps|Total "
            r"optimization steps) = (?P<value>[\d,]+)"
        ),
        _trainer,
        is_long=False,
    ),
    Dump(re.compile(r"Starting elastic_operator with launch configs:"), _elastic),
    Dump(re.compile(r"(?<!-)-{12,} (?!end of )(?:[\w ]{1,40} )?arguments {1,2}-{12,}"), _dotted),
    Dump(
        re.compile(
            r"\b(?:[Nn]amespace|\w{0,60}Arg(?:ument)?s)\((?=\w+=|\s*$)|(?:^|[:=] "
            r"?)\w{1,60}Config\((?=\w+=|\s*$)"
        ),
        _call,
    ),
    Dump(
        re.compile(
            r"(?i)\b(?:non[- ]default args|\w{0,40}(?:config|configuration|cfg|args|arguments|init[_ "
            r"]kwargs|hparams|hyperparameters|runtime[_ ]env))"
            r"\s?[:=]\s*\{(?=['\"]|\s*$)"
        ),
        _mapping,
    ),
    Dump(
        re.compile(
            rf"(?i)^(?=.{{1,160}}$)(?:{_LOGGER})?[\W_]*(?:[\w/]+ "
            rf"){{0,3}}(?:args|arguments|config|configs|configuration|cfg|hparams|hyper-?parameters|options)\s?:?[\W_]*$"
        ),
        _announced,
    ),
    Dump(re.compile(rf"^(?:{_LOGGER})?\{{(?=['\"]\w+['\"]: ?\{{|\s*$)"), _known_mapping),
    Dump(re.compile(rf"^(?:{_LOGGER})?(?P<section>(?:{_SECTIONS}):)\s*$"), _outline),
)


def read(head: ConfigLine, rows: Rows, full: str) -> list[Setting]:
    """Read the print that begins in `head`, whose rows go on in `rows`; none where nothing known begins."""
    found = find(head.body, full)
    if found is None:
        return []
    dump, match = found
    return list(islice(dump.read(OpenDump(match, head.number, islice(rows, MAX_ROWS))), literals.MAX_ENTRIES))
