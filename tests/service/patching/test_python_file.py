"""Python code gets a suggestion: a value where it stands, or a keyword in the one call that takes it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching.patch import patch
from service.patching.patches import ConfigFile
from service.patching.python_file import settings_of, suggested
from service.patching.target import PatchTarget
from service.pipeline.triage import Triage
from tests.factories import whole_corpus
from tests.service.patching.applying import goes_back_and_forth, target
from tests.tables import each_row
from tests.warm import explained

TRAINER = """from trl import SFTConfig, SFTTrainer

args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=8,  # as much as fits
    bf16=True,
)
"""


def of(framework: str, key: str, to: Scalar, spelled: str) -> PatchTarget:
    """Make a target."""
    return target(key, to, framework=framework, spelled=spelled)


BATCH = of("trl", "per_device_train_batch_size", 1, "yaml")
STEPS = of("trl", "gradient_accumulation_steps", 8, "yaml")
EAGER = of("vllm", "--enforce-eager", True, "flag")
WORKERS = of("pytorch", "DataLoader.num_workers", 2, "directive")
ROWS = replace(of("python", "rows", 32, ""), present="64")
ROWS_OF_TOKENS = of("transformers", "model.resize_token_embeddings", "len(tokenizer)", "python")
PRECISION = of("lightning", "Trainer.precision", "bf16-mixed", "python")


@each_row(
    ("text", "wanted", "expected"),
    [
        (TRAINER, BATCH, TRAINER.replace("size=8", "size=1")),
        (TRAINER, STEPS, TRAINER.replace("bf16=True", "bf16=True,\n    gradient_accumulation_steps=8")),
        (
            "llm = LLM(model='m', max_model_len=4096, dtype='half')\n",
            EAGER,
            "llm = LLM(model='m', max_model_len=4096, dtype='half', enforce_eager=True)\n",
        ),
        ("llm = LLM('m', enforce_eager=False)\n", EAGER, "llm = LLM('m', enforce_eager=True)\n"),
        ('conf = {"per_device_train_batch_size": 8}\n', BATCH, 'conf = {"per_device_train_batch_size": 1}\n'),
        ("per_device_train_batch_size = 8\n", BATCH, "per_device_train_batch_size = 1\n"),
        (
            "p.add_argument('--num-workers', type=int, default=16)\n",
            WORKERS,
            "p.add_argument('--num-workers', type=int, default=2)\n",
        ),
        (
            "a = data.DataLoader(x, num_workers=16)\nb = DataLoader(y, num_workers=16)\n",
            of("pytorch", "DataLoader.num_workers", 2, "python"),
            None,
        ),
        ("a = DataLoader(é, num_workers=16)\n", WORKERS, "a = DataLoader(é, num_workers=2)\n"),
        ("t = L.Trainer(max_steps=1)\n", PRECISION, "t = L.Trainer(max_steps=1, precision='bf16-mixed')\n"),
        ("t = L.Trainer()\n", PRECISION, None),
        ("t = L.Trainer(**kw)\n", PRECISION, None),
        ("t = L.Trainer(precision=chosen())\n", PRECISION, None),
        ("f(num_workers=16)\n", WORKERS, None),
        ("a = DataLoader(x)\n", WORKERS, None),
        ("g(a=1)\n", BATCH, None),
        # The settings that a call is handed are made by another one, which takes them.
        (
            "T(SFTConfig(bf16=True, logging_steps=1), packing=True, max_length=8)\n",
            of("trl", "use_liger_kernel", True, "yaml"),
            "T(SFTConfig(bf16=True, logging_steps=1, use_liger_kernel=True), packing=True, max_length=8)\n",
        ),
        (
            "class TrainConfig:\n    def __init__(self):\n        self.rows = 64\n",
            ROWS,
            "class TrainConfig:\n    def __init__(self):\n        self.rows = 32\n",
        ),
        ("args.rows = 64\n", ROWS, "args.rows = 32\n"),
        (
            "if big:\n    args.rows = 64\nelse:\n    args.rows = 16\n",
            ROWS,
            "if big:\n    args.rows = 32\nelse:\n    args.rows = 16\n",
        ),
        ("def train(rows=64): ...\nfire.Fire(train)\n", ROWS, "def train(rows=32): ...\nfire.Fire(train)\n"),
        ("p.add_argument('--rows', default=64)\nargs.rows = 64\n", ROWS, None),
        # A call that is told as a value would be written as a text.
        ("out = model(ids, use_cache=True)\n", ROWS_OF_TOKENS, None),
        ("f(:\n", BATCH, None),
    ],
)
def test_that_a_value_is_changed_where_it_stands_or_added_to_the_call_that_takes_it(
    text: str, wanted: PatchTarget, expected: str | None, tmp_path: Path
) -> None:
    """Nothing else changes, and what is computed or unclear is left alone."""
    keys = [key for framework, key in whole_corpus().specs if framework == wanted.framework]
    known = frozenset(settings_of(keys))
    if expected is None:
        with pytest.raises(NotPatchableError):
            suggested(text, wanted, known)
        return
    assert suggested(text, wanted, known) == expected
    assert ast.parse(expected)
    assert suggested(expected, wanted, known) == expected
    assert goes_back_and_forth(tmp_path, text, expected, "train.py")


@each_row(
    ("before", "after"),
    [
        ("python train.py --num-workers 24 --lr 1\n", "python train.py --num-workers 2 --lr 1\n"),
        ("torchrun train.py --num_workers=24\n", "torchrun train.py --num_workers=2\n"),
        ("python train.py --lr 1\n", None),
        ("python a.py --num_workers 1\npython b.py --num_workers 4\n", None),
    ],
)
def test_that_an_option_of_the_users_own_program_is_changed_and_never_added(
    before: str, after: str | None
) -> None:
    """Whether the program would take another one is not known."""
    made = patch("run.sh", before, [WORKERS])
    assert made.text == (after or before)
    assert bool(made.left_out) == (after is None)


def test_that_the_answer_marks_a_change_of_code_as_a_suggestion_and_no_patch(triage: Triage) -> None:
    """Beside a script that can be patched there is none."""
    log = (
        '[rank0]:   File "/job/train.py", line 8, in <module>\n'
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (5.00 GiB). Based on the "
        "available memory, the estimated maximum model length is 40960. Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )
    code = ConfigFile("serve.py", "from vllm import LLM\nllm = LLM(model='m', max_model_len=131072)\n")
    answer = explained(triage, log, code)
    assert answer.patch is None
    assert answer.suggestion is not None
    assert "+llm = LLM(model='m', max_model_len=40960)" in answer.suggestion
    script = ConfigFile("run.sh", "vllm serve m --max-model-len 131072\n")
    both = explained(triage, log, code, script)
    assert both.suggestion is None
    assert both.patch is not None


def test_that_a_keyword_in_vain_is_renamed_or_taken_out() -> None:
    """Where one call of the code has it; which call is meant is not known where several do."""
    whole = 'args = SFTConfig(\n    output_dir="out",\n    max_len=8,  # tokens\n    bf16=True,\n)\n'
    renamed = PatchTarget("trl", "setting", ("max_length",), 8, "yaml", "max_len")
    rows = {
        whole: (whole.replace("max_len=", "max_length="), whole.replace("\n    max_len=8,  #", "  #")),
        "f(max_len=8, b=1)\n": ("f(max_length=8, b=1)\n", "f(b=1)\n"),
        "f(max_len=8)\n": ("f(max_length=8)\n", "f()\n"),
        "f('é', max_len=g(1))\n": ("f('é', max_length=g(1))\n", "f('é')\n"),
    }
    for text, (with_name, without) in rows.items():
        assert suggested(text, renamed, frozenset()) == with_name
        taken_out = PatchTarget("python", "setting", ("max_len",), "", removes=True)
        made = suggested(text, taken_out, frozenset())
        assert made == without or made == without.replace('"out"  #', '"out",  #'), text
        ast.parse(made)
    with pytest.raises(NotPatchableError):
        suggested("f(max_len=8)\ng(max_len=9)\n", renamed, frozenset())


def test_that_of_several_calls_the_one_in_the_traceback_gets_the_keyword() -> None:
    wanted = of("transformers", "from_pretrained.load_in_8bit", True, "python")
    code = "a = A.from_pretrained(x)\nb = B.from_pretrained(\n    y,\n)\n"
    made = suggested(code, wanted, frozenset(), {"b = B.from_pretrained("})
    assert made == code.replace("y,", "y,\n    load_in_8bit=True,")
    for quoted in (set(), {"c = f()"}, {"a = A.from_pretrained(x)", "b = B.from_pretrained("}):
        with pytest.raises(NotPatchableError):
            suggested(code, wanted, frozenset(), quoted)


def test_that_a_value_that_stands_there_in_other_quotes_is_left_alone() -> None:
    text = 'model = AutoModel.from_pretrained(name, device_map="auto")\n'
    wanted = of("transformers", "from_pretrained.device_map", "auto", "python")
    assert suggested(text, wanted, frozenset()) == text


def test_that_a_class_of_the_framework_s_own_gets_the_keyword() -> None:
    """The code says whose class it is, so that one keyword of the framework is enough."""
    wanted = of("vllm", "--gpu-memory-utilization", 0.8, "flag")
    known = frozenset({"tensor_parallel_size", "gpu_memory_utilization"})
    code = "from vllm import LLM\nllm = LLM(path, tensor_parallel_size=2)\n"
    assert suggested(code, wanted, known) == code.replace("=2)", "=2, gpu_memory_utilization=0.8)")
    with pytest.raises(NotPatchableError):
        suggested(code.replace("from vllm", "from mine"), wanted, known)


def test_that_the_model_s_own_call_gets_what_a_program_s_option_stands_for() -> None:
    """Its tokenizer is loaded by a method of the same name."""
    wanted = replace(
        of("transformers", "attn_implementation", "sdpa", "yaml"),
        argument="from_pretrained.attn_implementation",
    )
    code = "t = AutoTokenizer.from_pretrained(p)\nm = AutoModelForCausalLM.from_pretrained(p)\n"
    made = suggested(code, wanted, frozenset())
    assert made == code.replace("LM.from_pretrained(p)", "LM.from_pretrained(p, attn_implementation='sdpa')")


def test_that_what_is_told_as_json_is_written_as_the_dictionary_itself() -> None:
    """A text in quotes would be right only for a call that parses it."""
    key = "gradient_checkpointing_kwargs"
    wanted = of("transformers", key, '{"use_reentrant": false}', "yaml")
    made = suggested("T(bf16=True, save_steps=1)\n", wanted, frozenset({"bf16", "save_steps"}))
    assert made == f"T(bf16=True, save_steps=1, {key}={{'use_reentrant': False}})\n"
    unclosed = suggested(
        "T(bf16=True, save_steps=1)\n", replace(wanted, to="{a"), frozenset({"bf16", "save_steps"})
    )
    assert unclosed == f"T(bf16=True, save_steps=1, {key}='{{a')\n"
