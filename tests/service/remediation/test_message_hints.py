"""What a failing message itself advises: read in general, checked against the catalogue, proposed first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpus.schema import Language, Remedy, Scalar, SettingSpec
from service.remediation.changes import propose_changes
from service.remediation.hinted_settings import hinted_changes
from service.remediation.message_hints import read_hints, read_phrases
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange
from tests.factories import event
from tests.service.factories import case, change, failed, library, report, setting, spec
from tests.tables import each_row

SHARE = spec(
    "--gpu-memory-utilization", framework="vllm", spelled="flag", type="float", default=0.9, min=0, max=1
)
LENGTH = spec("--max-model-len", framework="vllm", spelled="flag", default=None, max=None)
SEQS = spec("--max-num-seqs", framework="vllm", spelled="flag", default=256, max=None)
BIND = spec("--numa-bind", framework="vllm", spelled="flag", type="bool", default=False, min=None, max=None)
NODES = spec(
    "--numa-bind-nodes", framework="vllm", spelled="flag", type="list", default=None, min=None, max=None
)
QUANT = spec("--quantization", framework="vllm", spelled="flag", type="str", default=None, min=None, max=None)
V1 = spec("VLLM_USE_V1", framework="env", spelled="env", type="bool", default=True, min=None, max=None)
LONG = spec(
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    framework="env",
    spelled="env",
    type="bool",
    default=False,
    min=None,
    max=None,
)
ALLOCATOR = spec(
    "PYTORCH_CUDA_ALLOC_CONF", framework="env", spelled="env", type="str", default=None, min=None, max=None
)
KNOBS = (SHARE, LENGTH, SEQS, BIND, NODES, QUANT, V1, LONG, ALLOCATOR)


@each_row(
    ("message", "expected"),
    [
        (
            (
                "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
                "engine."
            ),
            [("gpu_memory_utilization", "up", ""), ("max_model_len", "down", "")],
        ),
        # What should have been set when the checkpoint was saved helps no run that loads it.
        ("Cannot resume from the checkpoint. Please use `--ckpt-full-save` during checkpoint saving.", []),
        ("Failed to load the optimizer; set `save_optim=True` when saving.", []),
        ("Cannot write. Please use `--ckpt-full-save` when saving.", [("--ckpt-full-save", "set", "")]),
        # No message is a reason to load a library into each program.
        ("Please set `LD_PRELOAD=/tmp/q.so` and start again.", []),
        (
            "Please try lowering `max_num_seqs` or `gpu_memory_utilization`.",
            [("max_num_seqs", "down", ""), ("gpu_memory_utilization", "down", "")],
        ),
        (
            "increasing `gpu_memory_utilization` (which also counts on CPU) or decreasing `max_model_len`",
            [("gpu_memory_utilization", "up", ""), ("max_model_len", "down", "")],
        ),
        (
            "No topology. Pass --numa-bind-nodes explicitly or disable --numa-bind.",
            [("--numa-bind-nodes", "set", ""), ("--numa-bind", "off", "")],
        ),
        (
            "Consider reducing tensor_parallel_size or running with --quantization gptq.",
            [("tensor_parallel_size", "down", ""), ("--quantization", "set", "gptq")],
        ),
        (
            "Please use load with map_location=torch.device('cpu') to map your storages to the CPU.",
            [("map_location", "set", "torch.device('cpu')")],
        ),
        ("Set low_memory=False.", [("low_memory", "set", "False")]),
        (
            "You may need to set `remove_unused_columns=False` here.",
            [("remove_unused_columns", "set", "False")],
        ),
        (
            "It requires setting the variable CUDA_DEVICE_MAX_CONNECTIONS to 1",
            [("CUDA_DEVICE_MAX_CONNECTIONS", "set", "1")],
        ),
        (
            "If it takes long, increase RAY_CGRAPH_get_timeout which is currently 10 seconds.",
            [("RAY_CGRAPH_get_timeout", "up", "")],
        ),
        # What is only spoken of is no advice.
        ("max_model_len is set to 4096", [("max_model_len", "named", "")]),
        (
            "--x_y is not supported when using --enable-lora",
            [("--x_y", "denied", ""), ("--enable-lora", "named", "")],
        ),
        (
            "Using --shard_all together with --engine is not possible, deactivate one of those flags.",
            [("--shard_all", "denied", ""), ("--engine", "denied", "")],
        ),
        ("The sampler does not support `warm_start`", [("warm_start", "denied", "")]),
        ("Graphs do not work here; disable it with --no-graphs", [("--no-graphs", "set", "")]),
        # What stands behind a colon is another part of the sentence.
        ("Please reduce the length of the prompt: max_model_len is 4096", [("max_model_len", "named", "")]),
        # A number that is beyond the setting which limits it.
        (
            "Rank 32 is greater than max_lora_rank 16.",
            [("max_lora_rank", "named", ""), ("max_lora_rank", "up", "")],
        ),
        (
            "Number of adapters (5) exceeds the configured `max_adapters` (4)",
            [("max_adapters", "named", ""), ("max_adapters", "up", "")],
        ),
        ("only 4 heads, less than tp_size 8", [("tp_size", "named", "")]),
        ("Please do not set --numa-bind", [("--numa-bind", "named", "")]),
        ("failed to set max_model_len", [("max_model_len", "named", "")]),
        # Nor is what helps to look at the failure, or stands in what a validator appends.
        ("unhandled error (run with NCCL_DEBUG=INFO for details)", []),
        ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1", []),
        (
            (
                "If reserved but unallocated memory is large try setting "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
            ),
            [],
        ),
        ("bad value [type=value_error, input_value=Args({'stream_interval': 1}), input_type=Args]", []),
        ("see /etc/my_own/some_file.txt and call do_it()", []),
        # What holds settings in code is no part of their names.
        (
            "You have set `args.eval_plan` but no data. Either set `args.eval_plan` to `no` or give some.",
            [("eval_plan", "named", ""), ("eval_plan", "set", "no")],
        ),
        ("training_args.max_rounds must be set to a positive value, was -1", [("max_rounds", "set", "")]),
        ("`tie_rows` must be set to False here.", [("tie_rows", "set", "False")]),
        ("Rows are not packed here. Please set `packing=False`.", [("packing", "set", "False")]),
        ("the option --lora_rows has to be specified", [("--lora_rows", "set", "")]),
    ],
)
def test_that_a_message_is_read_for_what_it_advises(
    message: str, expected: list[tuple[str, str, str]]
) -> None:
    assert [(named.name, named.way, named.value) for named in read_hints(message)] == expected


@each_row(
    ("message", "name", "way"),
    [
        ("Decrease GPU memory utilization or close other programs.", "gpu_memory_utilization", "down"),
        ("try increasing the maximum sequence length", "max_seq_len", "up"),
        ("Please reduce the number of samples per prompt", "num_samples_per_prompt", "down"),
        ("Please specify dataset for training.", "dataset", "set"),
        ("The GPU memory utilization was decreased", "gpu_memory_utilization", None),
        ("failed to increase GPU memory utilization", "gpu_memory_utilization", None),
        ("Please specify dataset and model", "dataset", None),
    ],
)
def test_that_a_setting_is_read_that_is_named_in_words(message: str, name: str, way: str | None) -> None:
    """The words may go on behind the name, so that each beginning of them is one that it may have."""
    found = {named.name: named.way for phrase in read_phrases(message) for named in phrase}
    assert found.get(name) == way


def test_that_words_mean_a_setting_that_the_job_has() -> None:
    said = "Decrease GPU memory utilization or close other programs."
    told = report(failed(text=said, body=said), frameworks=[("vllm", "")])
    advice = hinted_changes("gpu-memory-occupied", told, library(*KNOBS))
    assert [(item.key, item.way) for item in advice] == [("--gpu-memory-utilization", "down")]
    assert not hinted_changes("gpu-memory-occupied", told, library(LENGTH, SEQS))


@each_row(
    ("message", "bounds"),
    [
        ("this build supports max_num_seqs 1 through 4", (1, 4)),
        ("`top_k` must be between 2 and 9", (2, 9)),
        ("max_num_seqs must be at most 8", (None, 8)),
        ("max_num_seqs (512) cannot be greater than 256", (None, 256)),
        ("block_size should be at least 16", (16, None)),
        ("max_num_seqs must be less than 8", (None, 7)),
        ("max_num_seqs must not be less than 8", (8, None)),
        ("max_num_seqs must be greater than 0", (1, None)),
        ("`max_len` (2048) must be at least the prompt length 3000", (3000, None)),
        ("max_num_seqs must be a multiple of 8", (None, None)),
        ("max_num_seqs 9 to 4", (None, None)),
    ],
)
def test_that_bounds_are_read_behind_the_name(message: str, bounds: tuple[int | None, int | None]) -> None:
    assert [(named.low, named.high) for named in read_hints(message)] == [bounds]


def made(
    message: str,
    cause: str = "config-key-invalid",
    specs: Sequence[SettingSpec] = KNOBS,
    cases: Sequence[Any] = (),
    language: Language = "en",
    frameworks: Sequence[tuple[str, str]] = (("vllm", ""),),
    now: Mapping[str, str] | None = None,
    checked: Sequence[str] = (),
    remedies: Sequence[Remedy] = (),
) -> list[ProposedChange]:
    """Propose what the message advises to a job with these settings, beside what cases propose."""
    told = report(
        failed(body=message, cause=cause),
        frameworks=frameworks,
        settings=[setting(key, value) for key, value in (now or {}).items()],
    )
    shelf = library(*specs)
    advice = hinted_changes(cause, told, shelf, told.settings, checked)
    changes, _ = propose_changes(cases, told, shelf, told.settings, language, remedies, (), advice)
    return changes


@each_row(
    ("message", "now", "expected"),
    [
        (
            "Pass --numa-bind-nodes explicitly or disable --numa-bind.",
            {},
            [("--numa-bind-nodes", "what the message asks for"), ("--numa-bind", False)],
        ),
        (
            "Try lowering `gpu_memory_utilization`.",
            {"gpu_memory_utilization": "0.95"},
            [("--gpu-memory-utilization", "below 0.95")],
        ),
        ("Try lowering `gpu_memory_utilization`.", {}, [("--gpu-memory-utilization", "a lower value")]),
        ("Set VLLM_USE_V1=0 to use another backend.", {}, [("VLLM_USE_V1", 0)]),
        ("running with --quantization gptq.", {"quantization": "gptq"}, []),
        ("this build supports max_num_seqs 1 through 4", {}, [("--max-num-seqs", 4)]),
        (
            "this build supports max_num_seqs 1 through 4",
            {"max_num_seqs": "3"},
            [("--max-num-seqs", "a value that the message allows")],
        ),
        ("max_num_seqs (7) is no good", {}, [("--max-num-seqs", "a value that the message allows")]),
        ("Please set no_such_setting_at_all to 3", {}, []),
    ],
)
def test_that_advice_becomes_a_change_of_the_job(
    message: str, now: dict[str, str], expected: list[tuple[str, Scalar]]
) -> None:
    assert [(item.key, item.to) for item in made(message, now=now)] == expected


def test_that_advice_comes_first_and_a_case_gives_the_value() -> None:
    """A setting that a case proposes too keeps the case's value; only its place is the message's."""
    known = case(
        "vllm/one",
        changes=[
            change("--max-num-seqs", 64, framework="vllm"),
            change("--gpu-memory-utilization", 0.8, framework="vllm"),
        ],
    )
    changes = made(
        "Try lowering `gpu_memory_utilization` or disable --numa-bind.", "gpu-oom-training", cases=[known]
    )
    assert [(item.key, item.to, item.from_case) for item in changes] == [
        ("--gpu-memory-utilization", 0.8, "vllm/one"),
        ("--numa-bind", False, None),
        ("--max-num-seqs", 64, "vllm/one"),
    ]


def test_that_a_switch_which_takes_the_check_away_is_the_last_resort() -> None:
    known = case("vllm/one", changes=[change("--max-model-len", 4096, framework="vllm")])
    changes = made(
        "It is too long. To allow overriding this, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        cases=[known],
    )
    assert [item.key for item in changes] == ["--max-model-len", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"]


def test_that_a_setting_which_is_only_named_counts_where_the_value_itself_is_at_fault() -> None:
    assert made("max_num_seqs (7) is no good", "gpu-oom-training") == []


def test_that_an_engines_name_leads_to_the_one_key_of_its_trainer() -> None:
    """Of two roles' keys the one that the job sets is meant; where it sets neither, none is."""
    actor, reward = "actor_rollout_ref.rollout.max_num_seqs", "reward_model.rollout.max_num_seqs"
    specs = [spec(actor, max=None), spec(reward, max=None)]
    seen = [("verl", ""), ("vllm", "")]
    assert [item.key for item in made("Try lowering `max_num_seqs`.", specs=specs[:1], frameworks=seen)] == [
        actor
    ]
    assert made("Try lowering `max_num_seqs`.", specs=specs, frameworks=seen) == []
    assert [
        item.key
        for item in made("Try lowering `max_num_seqs`.", specs=specs, frameworks=seen, now={reward: "9"})
    ] == [reward]


def test_that_another_failure_of_the_same_cause_may_be_the_one_that_advises() -> None:
    shelf = library(SHARE)
    quiet = failed(body="cache is too small", cause="kv-cache-too-small")
    loud = event(
        9, role="collateral", cause="kv-cache-too-small", body="Try increasing `gpu_memory_utilization`."
    )
    other = event(9, role="collateral", cause="disk-full", body="Try increasing `gpu_memory_utilization`.")
    seen = [("vllm", "")]
    assert [
        item.key for item in hinted_changes("kv-cache-too-small", report(quiet, loud, frameworks=seen), shelf)
    ] == ["--gpu-memory-utilization"]
    assert hinted_changes("kv-cache-too-small", report(quiet, other, frameworks=seen), shelf) == []


def test_that_what_repeats_another_failure_advises_nothing() -> None:
    told = report(
        failed(body="Try increasing `gpu_memory_utilization`.", pattern_role="wrapper"),
        frameworks=[("vllm", "")],
    )
    assert hinted_changes("engine-crash", told, library(SHARE)) == []


@each_row("language", ["en", "zh"])
@each_row(
    "message",
    [
        "Try lowering `gpu_memory_utilization`.",
        "Pass --numa-bind-nodes.",
        "max_num_seqs is bad",
        "please omit --quantization",
    ],
)
def test_that_words_in_place_of_a_value_are_never_written_to_a_file(message: str, language: Language) -> None:
    (item,) = made(message, language=language)
    assert is_guidance(item.to)
    assert item.status == "unverified"


def test_that_what_the_source_checks_is_offered_where_the_job_sets_it_and_little_else_is() -> None:
    """A name of the source means the job's setting of that name, whatever object it hangs on there."""
    checked = (
        "scheduler_config.max_num_seqs",
        "cache_config.gpu_memory_utilization",
        "prompt_lens",
        "quantization",
    )
    now = {"max_num_seqs": "7", "quantization": "gptq"}
    two = case(
        "vllm/two",
        changes=[
            change("--max-model-len", 4096, framework="vllm"),
            change("--numa-bind", True, framework="vllm"),
        ],
    )
    assert [item.key for item in made("this is no good", now=now, checked=checked)] == ["--max-num-seqs"]
    offered = made("this is no good", now=now, checked=checked, cases=[two])
    assert [item.key for item in offered] == ["--max-model-len", "--numa-bind"]


def test_that_what_the_source_checks_comes_before_what_the_cause_alone_calls_for() -> None:
    rows = [
        Remedy.model_validate(
            {
                "framework": "vllm",
                "kind": "flag",
                "key": key,
                "to": to,
                "why": {"en": "it helps", "zh": "有用"},
                "cause": "config-value-invalid",
                "source": "https://example.org/1",
            }
        )
        for key, to in (("--numa-bind", True), ("--max-num-seqs", 4))
    ]
    known = case("vllm/one", changes=[change("--max-model-len", 4096, framework="vllm")])
    now = {"max_num_seqs": "7"}
    keys = [
        [item.key for item in made("no good", now=now, cases=[known], remedies=rows, checked=checked)]
        for checked in ((), ("max_num_seqs",))
    ]
    assert keys == [
        ["--max-model-len", "--numa-bind", "--max-num-seqs"],
        ["--max-num-seqs", "--max-model-len", "--numa-bind"],
    ]


def test_that_a_comparison_in_a_message_gives_a_bound() -> None:
    """The bound is the nearest whole number that the comparison allows."""
    rows = {
        "`drop_last` option needs num_workers > 0": (1, None),
        "num_workers >= 2 is required": (2, None),
        "only works for top_k_size <= 8": (None, 8),
        "keep top_k_size < 8": (None, 7),
        "keep top_k_size < 8.5 %": (None, None),
    }
    made = {text: (read_hints(text)[-1].low, read_hints(text)[-1].high) for text in rows}
    assert made == rows


def test_that_a_comparison_gives_both_ways_out() -> None:
    """The less is raised to the greater, or the greater lowered to the less, whichever way it is told."""
    shelf = library(SEQS, LENGTH)
    rows = {
        "max_num_seqs (8) is smaller than max_model_len (16).": (16, 8),
        "max_model_len=16 must not be greater than max_num_seqs=8": (16, 8),
        "max_num_seqs (8) must be >= max_model_len (16)": (16, 8),
        "max_num_seqs (16) is not less than max_model_len (16)": (None, None),
    }
    for text, (more, less) in rows.items():
        told = report(
            failed(text=text, body=text, cause="config-key-invalid"),
            frameworks=[("vllm", "")],
            settings=[setting("--max-num-seqs", "8"), setting("--max-model-len", "16")],
        )
        advice = hinted_changes("config-key-invalid", told, shelf, told.settings)
        bounds = {item.key: (item.low, item.high) for item in advice if item.low or item.high}
        wanted = {"--max-num-seqs": (more, None), "--max-model-len": (None, less)} if more else {}
        assert bounds == wanted, text
