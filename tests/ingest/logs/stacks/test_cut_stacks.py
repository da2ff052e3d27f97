"""Logs whose traceback lacks its first line, its last one, or was broken by a narrow console."""

from __future__ import annotations

from tests.factories import RAY, STRANGE, TORCHRUN, ReadLog, prefixed, steps, traceback
from tests.tables import each_row

SITE = "/env/lib/python3.11/site-packages"
PREPROCESS = f"""\
  File "/job/swift/llm/preprocess.py", line 51, in preprocess
    turns = row[self.turns_key]
  File "{SITE}/datasets/formatting/formatting.py", line 40, in __getitem__
    value = self.data[key]
"""
COLUMN = f"{PREPROCESS}KeyError: 'turns'\n"
NO_SYNC = f"""\
  File "{SITE}/accelerate/accelerator.py", line 901, in no_sync
    with context():
  File "/env/lib/python3.11/contextlib.py", line 137, in __enter__
    return next(self.gen)
"""
ENGINE = f'  File "{SITE}/deepspeed/runtime/engine.py", line 2011, in no_sync'
PLAN = """\
  File
"/env/lib/python3.11/site-packages/torch/distributed/checkpoint/default_plan
ner.py", line 231, in create_default_local_load_plan
    md = metadata.state_dict_metadata[fqn]
"""
RANKS = f"""\
CheckpointException ranks:dict_keys([0, 3])
Traceback (most recent call last): (RANK 0)
  File "{SITE}/torch/distributed/checkpoint/default_planner.py", line 231, in create_default_local_load_plan
    md = metadata.state_dict_metadata[fqn]
KeyError: 'optim.state.layers.7.bias.exp_avg'
Traceback (most recent call last): (RANK 3)
  File "{SITE}/torch/distributed/checkpoint/utils.py", line 160, in reduce_scatter
"""
SHARED = f"""\
  File "{SITE}/transformers/trainer.py", line 3900, in _save
    safetensors.torch.save_file(state_dict, path)
RuntimeError:
            Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again
"""


def headless(log: str) -> str:
    """Take the first line of a traceback away."""
    return log.split("\n", 1)[1]


@each_row("prefix", ["", TORCHRUN, RAY])
@each_row(
    ("log", "root", "frames"),
    [
        (headless(traceback(STRANGE)), (5, "ValueError"), ["main", "step"]),
        (COLUMN, (5, "KeyError"), ["preprocess", "__getitem__"]),
        (headless(traceback("odd.Kind: of trouble")), (5, "odd.Kind"), ["main", "step"]),
        (headless(traceback("")).rstrip(), (4, ""), ["main", "step"]),
        (f"{PREPROCESS}{ENGINE}", (5, ""), ["preprocess", "__getitem__", "no_sync"]),
        (f"{PREPROCESS}{ENGINE[:-12]}", (5, ""), ["preprocess", "__getitem__", "<module>"]),
        (f"{PREPROCESS}{ENGINE[:-22]}", (5, ""), ["preprocess", "__getitem__", "<module>"]),
    ],
    ids=[
        "known-type",
        "known-message",
        "unknown-type",
        "no-exception",
        "ends-in-a-frame",
        "cut-frame",
        "cut-path",
    ],
)
def test_that_a_stack_without_its_first_line_is_a_failure_with_its_calls(
    read: ReadLog, log: str, root: tuple[int, str], frames: list[str], prefix: str
) -> None:
    found = read(prefixed(prefix, log)).root
    assert found is not None
    assert (found.line, found.exception, [frame.function for frame in found.frames]) == (*root, frames)


def test_that_the_calls_of_a_headless_stack_tell_the_cause(read: ReadLog) -> None:
    root = read(COLUMN).root
    assert root is not None
    assert (root.cause, root.strength) == ("dataset-schema", "suggests")


def test_that_frames_name_the_frameworks_of_a_cut_stack(read: ReadLog) -> None:
    assert {"accelerate", "deepspeed"} <= {found.name for found in read(f"{NO_SYNC}{ENGINE[:-9]}").frameworks}


@each_row(
    "log",
    [
        f"{steps(1, 2)}{headless(traceback('')).rstrip()}\n{steps(3, 4, 5)}",
        '  File "/job/x.py", line 9 in <module>\n',
        'the file "a.py", line 3, is fine\n',
        f"{steps(1, 2, 3)}{RAY}ERROR 08-20 09:48:31 [a.py:2] something is odd\n",
        "an ERROR in the text of a message\n",
    ],
    ids=["work-goes-on", "dump-of-threads", "prose", "error-of-a-run-that-works", "no-level"],
)
def test_that_what_only_looks_like_a_cut_stack_is_no_failure(read: ReadLog, log: str) -> None:
    assert read(log).root is None


def test_that_a_message_without_its_type_is_that_of_the_statement(read: ReadLog) -> None:
    """A console that draws bars over a line takes the type off the message."""
    root = read(
        'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    check(rows)\n'
        '  File "/job/rows.py", line 4, in check\n    raise ValueError(\n'
        "the rows hold ['answer', 'prompt'] and no tokens\n"
    ).root
    assert root is not None
    assert (root.line, root.exception, root.cause) == (6, "ValueError", "user-code-error")


def test_that_ranks_joined_into_one_message_are_read_one_by_one(read: ReadLog) -> None:
    report = read(RANKS)
    assert report.root is not None
    assert (report.root.line, report.root.cause) == (5, "checkpoint-mismatch")
    assert [event.line for event in report.events if event.pattern == "python.cut-traceback"] == [7]


def test_that_a_frame_which_a_narrow_console_broke_is_whole_again(read: ReadLog) -> None:
    report = read(f"{PLAN}KeyError:\n'optim.state.layers.7.bias.exp_avg'\n")
    assert report.root is not None
    assert [str(frame) for frame in report.root.frames] == [
        f"{SITE}/torch/distributed/checkpoint/default_planner.py:create_default_local_load_plan"
    ]
    assert (report.root.line, report.root.cause) == (4 + 1, "checkpoint-mismatch")


def test_that_a_message_below_its_exceptions_name_has_the_calls_above(read: ReadLog) -> None:
    root = read(SHARED).root
    assert root is not None
    assert (root.pattern, root.cause, [frame.function for frame in root.frames]) == (
        "torch.safetensors-shared",
        "framework-bug",
        ["_save"],
    )


@each_row("level", ["ERROR", "CRITICAL"])
def test_that_what_a_logger_calls_an_error_is_never_healthy(read: ReadLog, level: str) -> None:
    report = read(
        f"INFO 08-20 09:48:30 [a.py:1] begun\n{level} 08-20 09:48:31 [a.py:2] the library of the moon is "
        "gone\n"
    )
    assert report.root is not None
    assert (report.root.line, report.root.cause) == (2, None)


OVERFLOW = "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
SLURM_OOM = (
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch cgroup. Some of your processes may "
    "have been killed.\n"
)
CUT = 'Traceback (most recent call last):\n  File "/job/train.py", line 30, in main\n    trainer.fit()\n'


@each_row(
    ("log", "line", "cause"),
    [
        (f"{OVERFLOW}{steps(1, 2, 3)}{CUT}", 1, "nan-or-inf"),
        (f"{SLURM_OOM}{steps(1, 2, 3)}Killed\n", 1, "host-oom-kill"),
        (f"{OVERFLOW}{steps(1, 2, 3)}{traceback(STRANGE)}", 10, "user-code-error"),
        (f"{SLURM_OOM}{steps(1, 2, 3)}{traceback(STRANGE)}", 10, "user-code-error"),
    ],
    ids=["title", "earlier-run", "another-exception", "another-failure"],
)
def test_that_a_failure_without_words_is_told_by_what_was_said_before(
    read: ReadLog, log: str, line: int, cause: str | None
) -> None:
    root = read(log).root
    assert root is not None
    assert (root.line, root.cause) == (line, cause)


INVALID = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for AxolotlConfigWCapabilities
datasets
  {reason}
    For further information visit https://errors.pydantic.dev/2.6/v/x
"""


@each_row(
    ("reason", "kind"),
    [
        ("Input should be a valid list [type=list_type]", "config_value"),
        ("Extra inputs are not permitted [type=extra_forbidden]", "config_key"),
    ],
)
def test_that_the_field_below_a_validation_error_is_a_fact(read: ReadLog, reason: str, kind: str) -> None:
    report = read(INVALID.format(reason=reason))
    assert [(fact.kind, fact.fields["key"]) for fact in report.facts if "key" in fact.fields] == [
        (kind, "datasets")
    ]


@each_row(
    ("log", "names"),
    [
        (
            "ValueError: Could not find the transformer layer class Lark in the model.\n",
            {"accelerate", "fsdp"},
        ),
        (
            "- ds fp16.enabled=True vs hf fp16|fp16_full_eval+fp16_backend(amp)=False\n",
            {"transformers", "deepspeed"},
        ),
        (
            "03/04/2025 10:00:00 - INFO - __main__ - Distributed environment: MULTI_GPU  Backend: nccl\n",
            {"accelerate"},
        ),
        (f"{RAY}Actor use_remove_padding=True\n", {"verl"}),
        ("lightning_fabric.utilities.exceptions.MisconfigurationException: no such metric\n", {"lightning"}),
        (
            (
                "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct\n    full_key: "
                "a.b.actor_rollout_ref.actor.optim.lr\n"
            ),
            {"verl", "hydra"},
        ),
        # The words are vLLM's and Megatron's too; the calls say whose they are.
        (
            (
                f'  File "{SITE}/lark_layers/nn/layer/utils/sizes.py", line 52, in divide\n    x\n'
                "AssertionError: 96 is not divisible by 64\n"
            ),
            set(),
        ),
        (
            (
                f'  File "{SITE}/vllm/distributed/utils.py", line 52, in divide\n    x\n'
                "AssertionError: 96 is not divisible by 64\n"
            ),
            {"vllm"},
        ),
    ],
)
def test_that_a_message_names_the_framework_unless_its_calls_are_anothers(
    read: ReadLog, log: str, names: set[str]
) -> None:
    assert {found.name for found in read(log).frameworks} - {"python"} == names
