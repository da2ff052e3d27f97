"""Whose code raised an exception that no pattern knows: the user's, an engine's or a framework's.

The last resort, below every pattern: an index error in somebody's own script is a programming error
there, the same in an engine's loop is the engine's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from corpus.log_patterns import Strength
from ingest.logs.events import Event
from ingest.logs.frameworks import cued_framework

Owner = Literal["user", "engine", "framework"]

_STANDARD = re.compile(
    r"/lib(?:64)?/python3\.\d+/(?!site-packages|dist-packages)|^<frozen|^<string>|(?:site|dist)-packages/(?:torch|numpy|pandas)/"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages/")
_ENGINES = frozenset({"vllm", "sglang"})
# Slips in a program: a wrong name, key or index; what the world did wrong has other types.
_SLIPS = re.compile(
    r"^(?:builtins\.)?(?:KeyError|IndexError|NameError|UnboundLocalError|ZeroDivisionError|AttributeError|TypeError|AssertionError|RecursionError|NotImplementedError)$"
)
# What Python, NumPy and PyTorch say of a value that they were called with, whatever the type of the
# exception.
_MISUSE = re.compile(
    r"(?:too many|not enough) values to unpack|invalid literal for int\(\)|could not convert string to "
    r"float|is not in list\b|substring not found"
    r"|math domain error|dictionary update sequence|zip\(\) argument|arg is an empty sequence|iterable "
    r"argument is empty|unhashable type|Sample larger than"
    r"|setting an array element with a sequence|inhomogeneous shape|truth value of an array|could not be "
    r"broadcast|cannot reshape array|axis \d+ is out of bounds"
    r"|[Ee]xpected .{0,60}(?:tensor|scalar type|dtype|floating point|dimension|to have|to be)|must match "
    r"the size of tensor|mat1 and mat2|invalid for input of size"
    r"|does not require grad|leaf Variable|modified by an inplace operation|one element tensors|Tensors "
    r"must have same|Sizes of tensors must match"
    r"|backward through the graph a second time|Boolean value of Tensor|is not a valid "
    r"(?:device|dtype)|Dimension out of range|Incompatible shapes|result type .{1,40} can't be cast"
    r"|The size of tensor|tensors used as indices|index \d+ is out of bounds|shapes? .{1,60} (?:not "
    r"aligned|do(?:es)? not match)|must be the same (?:size|shape|dtype)"
)
# A function of the user's that a data set is mapped with: the key that it misses is a column.
_MAPPED = re.compile(
    r"datasets/(?:arrow_dataset|iterable_dataset|dataset_dict)|torch/utils/data/_utils/(?:fetch|worker)"
)
# The part of a saved state that is asked for, in the code that the traceback quotes.
_SAVED = re.compile(r"""\b\w*(?:checkpoint|ckpt|chkpt|state_?dict|saved)\w*\[["'\w]|load_state_dict\(""")
# What a framework says where it will not do what it is asked to: somebody wrote the check, and the message
# with it.
_REFUSAL = re.compile(
    r"not (?:yet |currently )?(?:supported|implemented|allowed|compatible)|only (?:makes "
    r"sense|works|supports?|supported|available|valid|be used)|[Pp]lease "
    r"(?:adjust|set|use|specify|provide|enable|disable|pass)"
    r"|must (?:be|have|not|match|equal|specify)|should (?:be|not|have)|can(?:not|'t) (?:be "
    r")?(?:use[d]?|combine[d]?|set|enable[d]?|specif(?:y|ied))|incompatible|mutually exclusive"
    r"|\b(?:[Pp]ass(?:ing)?|[Uu]s(?:e|ing)|[Ss]et(?:ting)?|[Ss]pecify(?:ing)?|[Aa]dd(?:ing)?|[Ii]ncreas(?:e|ing)|[Dd]ecreas(?:e|ing)|[Rr]educ(?:e|ing)|[Ll]ower(?:ing)?|[Rr]ais(?:e|ing)|[Dd]isabl(?:e|ing)|[Ee]nabl(?:e|ing)) [`'\"]?--[a-z]"
    r"|but (?:got|expected|found|is)\b|[Uu]nset |set to \S+,? (?:but|and)|(?:requires?|needs?) (?:that |a "
    r"|an |the |`|--)|is required|[Ii]nvalid (?:value|argument|option|config)|[Uu]nknown "
    r"(?:value|option|backend|type|mode)|[Uu]nsupported|[Uu]nrecogni[sz]ed"
)
_MODELS = re.compile(
    r"(?i)architecture|model[ _]type|model class|this model|\bmodel (?:\S{1,60} )?(?:is|are) not (?:yet "
    r"|currently )?supported|unsupported model\b"
)
_REFUSING = re.compile(
    r"^(?:builtins\.)?(?:ValueError|AssertionError|NotImplementedError|RuntimeError|Exception)$"
)
# What an assertion without words asks for, in the code that the traceback quotes.
_ASSERTED: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"%.*(?:tp|tensor|pipeline|parallel|world|cp_size|sp_size|num_heads)"),
        "parallelism-invalid",
    ),
    (re.compile(r"(?:heads|hidden|vocab|intermediate|experts)\w*\)? % "), "parallelism-invalid"),
    (
        re.compile(
            r"(?:batch|bsz|mini|micro|rollout|generations)\w*\)? %|%.*(?:batch|bsz|n_gpus|dp_size|micro)"
        ),
        "batch-not-divisible",
    ),
    (re.compile(r"len\(.*(?:ckpt|checkpoint|shard)\w*\) ?[>=!]"), "checkpoint-mismatch"),
    (
        re.compile(r"(?:param|weight)\w*\.(?:shape|size)|\.shape == (?:loaded|param|weight)"),
        "checkpoint-mismatch",
    ),
    (re.compile(r"\b(?:args?|cfg|conf|config)\b"), "config-key-invalid"),
)
# What a program was doing, told by the functions on the way; the first row that fits counts.
_DOING: tuple[tuple[re.Pattern[str], str, Strength], ...] = (
    # The first place of each part is as good as any other, so none is tried again: names may be long and
    # many.
    (
        re.compile(
            r"\A(?>.*?(?:move_model_to|sync|update|broadcast|push|load)_?\w{0,80}?(?:weights|vllm|policy))(?>.*?(?:vllm|sglang)/).*load_\w{0,80}weight"
        ),
        "engine-weight-sync",
        "suggests",
    ),
    (
        re.compile(
            r"check_ckpt|load_(?:\w+_)?checkpoint|load_(?:optim\w*|model)?_?state_dict|_load_from_checkpoint|:resume"
        ),
        "checkpoint-mismatch",
        "suggests",
    ),
    (
        re.compile(r"(?:triton|torch/_inductor|torch/_dynamo|cpp_extension)[/.]\S*$"),
        "jit-build-failed",
        "suggests",
    ),
    (
        re.compile(
            r"(?:data_?collat|collate_fn|tokenize|preprocess\w*|:__getitem__|_map_single|process_\w*(?:dataset|example)s?)\S*$"
        ),
        "dataset-schema",
        "suggests",
    ),
    (
        re.compile(r"(?:omegaconf|hydra|argparse|hf_argparser|pydantic)[/.]\S*$|parse_(?:args|config)\w*$"),
        "config-key-invalid",
        "suggests",
    ),
)
_REWARD = re.compile(r"reward|verifier|compute_score|sandbox")
_ROWS: dict[Owner, tuple[str, Strength]] = {
    "user": ("user-code-error", "suggests"),
    "engine": ("engine-crash", "suggests"),
    "framework": ("framework-bug", "suggests"),
}
_OPEN = frozenset({None, "user-code-error", "framework-bug"})


def classify_exception(event: Event) -> Event:
    """Give the event with a cause by the place of its innermost call, if nothing better is known."""
    if (
        not event.frames
        or not event.exception
        or event.cause not in _OPEN
        or (event.cause and event.strength != "hints")
    ):
        return event
    if any(_REWARD.search(str(frame)) for frame in event.frames[-3:]):
        return replace(event, cause="reward-function-failed", strength="suggests")
    owner = _owner(event)
    slip = _SLIPS.match(event.exception.split("(")[0])
    misuse = owner == "user" and (event.cause == "user-code-error" or _MISUSE.search(event.body))
    if owner is None:
        return event
    cause: str | None
    strength: Strength
    cause, strength = _ROWS[owner] if slip or misuse else (None, event.strength)
    cause = _asserted(event) or cause
    if owner != "user":
        cause, strength = _doing(event) or _refused(event) or (cause, strength)
    elif event.exception.endswith("KeyError"):
        cause = _missed(event) or cause
    return replace(event, cause=cause, strength=strength) if cause else event


def _missed(event: Event) -> str | None:
    """Tell what a key of the user's own code is missing in: a saved state, or the rows of a data set."""
    if _SAVED.search(event.frames[-1].code):
        return "checkpoint-mismatch"
    return "dataset-schema" if _MAPPED.search(" ".join(str(frame) for frame in event.frames)) else None


def _refused(event: Event) -> tuple[str, Strength] | None:
    """Tell what a framework refuses, by its own words."""
    if not _REFUSING.match(event.exception.split("(")[0]) or not _REFUSAL.search(event.body):
        return None
    return ("model-unsupported" if _MODELS.search(event.body) else "config-key-invalid"), "suggests"


def _asserted(event: Event) -> str | None:
    """Tell what a bare assertion asked for."""
    code = event.frames[-1].code if event.exception.endswith("AssertionError") else ""
    return next((cause for expression, cause in _ASSERTED if expression.search(code)), None)


def _doing(event: Event) -> tuple[str, Strength] | None:
    """Tell the cause by what the calls were about: a slip while weights are handed over is the hand-over's."""
    way = " ".join(str(frame) for frame in event.frames)
    near = " ".join(str(frame) for frame in event.frames[-6:])
    for expression, cause, strength in _DOING:
        if expression.search(way if cause == "engine-weight-sync" else near):
            return cause, strength
    return None


def _owner(event: Event) -> Owner | None:
    files = [frame.file for frame in event.frames if not _STANDARD.search(frame.file)]
    if not files:
        return None
    frameworks = cued_framework(files[-1])
    if _ENGINES & set(frameworks):
        return "engine"
    return "framework" if frameworks or _INSTALLED.search(files[-1]) else "user"
