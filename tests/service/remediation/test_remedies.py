"""Remedies: the rows of the table that a job can apply, in its framework's own spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.library import Library
from corpus.schema import Remedy, SettingSpec
from ingest.logs.facts import Fact
from service.pipeline.triage import Triage
from service.remediation.changes import propose_changes
from service.remediation.framework_relations import fits_place, settable_frameworks, shown_frameworks
from service.remediation.remedies import applicable
from service.remediation.setting_values import is_guidance, misfit_reason
from tests.factories import ReadLog
from tests.service.factories import URL, case, change, failed, report, setting, spec, text
from tests.tables import each_row

CAUSE = "gpu-oom-training"


def remedy(key: str = "data.size", to: Any = 128, **fields: Any) -> Remedy:
    """Make a row of the table."""
    return Remedy.model_validate(
        {
            "framework": "verl",
            "kind": "setting",
            "key": key,
            "to": to,
            "why": text("it helps"),
            "cause": CAUSE,
            "source": URL,
            **fields,
        }
    )


def library(*rows: Remedy, specs: Sequence[SettingSpec] = ()) -> Library:
    """Make a corpus of these rows and settings."""
    return Library(
        {}, {}, {(made.framework, made.key): made for made in (specs or (spec(),))}, {CAUSE: list(rows)}
    )


def named(*rows: Remedy, specs: Sequence[SettingSpec] = (), **fields: Any) -> list[tuple[str, str, object]]:
    """Give what applies to a job: framework, key and value."""
    told = report(failed(), **fields)
    return [
        (row.framework, row.key, row.to)
        for row in applicable(CAUSE, told, library(*rows, specs=specs), told.settings)
    ]


@each_row(
    ("seen", "mine"),
    [
        (["easyr1", "verl", "vllm", "ray"], {"easyr1", "ray"}),
        (["verl", "vllm", "transformers", "pytorch"], {"verl"}),
        (["openrlhf", "vllm", "deepspeed", "ray"], {"openrlhf", "ray"}),
        (["trl", "vllm", "deepspeed"], {"trl", "transformers", "deepspeed", "datasets"}),
        (["llamafactory", "transformers", "deepspeed"], {"llamafactory", "transformers", "deepspeed"}),
        (["vllm", "transformers", "pytorch"], {"vllm"}),
        (["sglang", "transformers"], {"sglang"}),
        (["vllm", "sglang", "pytorch"], {"sglang"}),
        (["transformers", "fsdp"], {"transformers", "fsdp", "accelerate"}),
        (["pytorch"], {"pytorch"}),
        ([], set()),
    ],
)
def test_that_a_framework_which_drives_another_hides_its_settings(seen: list[str], mine: set[str]) -> None:
    told = report(failed(), frameworks=[(name, "") for name in seen])
    assert settable_frameworks(told) == mine
    assert mine <= shown_frameworks(told)


@each_row(
    ("code", "is_shown"),
    [
        ("from trl import DPOConfig\n", True),
        ("if __name__ == '__main__':\n    import trl\n", True),
        ("# from trl import DPOConfig\n", False),
        ("from trlx import PPOConfig\n", False),
    ],
)
def test_that_a_jobs_code_shows_the_trainer_that_it_imports(code: str, is_shown: bool) -> None:
    assert (
        "trl" in settable_frameworks(replace(report(failed(), frameworks=[]), launches=(code,)))
    ) == is_shown


def test_that_of_the_jobs_own_settings_the_one_of_that_very_name_comes_first() -> None:
    given = [setting("optim.final_lr", "1e-6"), setting("optim.lr", "1e-3"), setting("--warmup-lr", "1e-5")]
    row = remedy("lr", 0.1, framework="python", own=r"(?:^|[._-])lr$")
    found = applicable(CAUSE, report(failed()), library(row), given)
    assert [one.key for one in found] == ["optim.lr"]


def test_that_a_message_alone_shows_whose_it_is(read: ReadLog) -> None:
    """A framework that the log shows otherwise counts before; a check that many make shows none."""
    heads = "ValueError: Total number of attention heads (14) must be divisible by tensor parallel size (4)."
    cache = "ValueError: No available memory for the cache blocks."
    anybodys = "ValueError: hidden size must be divisible by tensor parallel size"
    assert "vllm" in settable_frameworks(read(heads))
    assert settable_frameworks(read(anybodys)) <= {"python"}
    assert "sglang" in settable_frameworks(read(f"sglang==0.5.2\n{cache}"))


def test_that_a_message_alone_is_its_sources_or_that_of_the_trainer_which_others_were_made_from(
    read: ReadLog,
) -> None:
    no_row = (
        "ValueError: Call to add_lora method failed: LoRA is not enabled. Use --enable-lora to enable LoRA."
    )
    shared = "AssertionError: only support equal chunk. Got size of DataProto 30 and chunk 8."
    assert settable_frameworks(read(no_row)) == {"vllm"}
    assert settable_frameworks(read(shared)) == {"verl"}
    assert settable_frameworks(read(f"python -m verl.trainer.main config=EasyR1\n{shared}")) == {"easyr1"}


@each_row(
    ("framework", "key", "seen", "expected"),
    [
        ("docker", "--shm-size", [], True),
        ("docker", "--shm-size", ["slurm"], False),
        ("docker", "--shm-size", ["docker", "slurm"], True),
        ("slurm", "--mem", ["kubernetes"], False),
        ("slurm", "--mem", ["verl"], True),
        ("ray", "--num-cpus", ["vllm"], False),
        ("ray", "--num-cpus", ["vllm", "ray"], True),
        ("ray", "--num-cpus", [], True),
        ("env", "RAY_memory_usage_threshold", ["pytorch"], False),
        ("env", "VLLM_PORT", ["verl", "vllm"], True),
        ("env", "VLLM_PORT", ["sglang"], False),
        ("env", "MASTER_PORT", ["pytorch"], True),
        # An engine that serves starts its processes itself; a script that trains with one in it may be
        # torchrun's.
        ("env", "MASTER_PORT", ["sglang"], False),
        ("pytorch", "--nproc_per_node", ["vllm", "pytorch"], False),
        ("pytorch", "--nproc_per_node", ["vllm", "pytorch", "deepspeed"], True),
        ("pytorch", "--nproc_per_node", ["verl", "vllm"], True),
        ("pytorch", "DataLoader.num_workers", ["vllm"], True),
        ("env", "VLLM_HOST_IP", ["sglang", "vllm"], False),
        ("env", "VLLM_HOST_IP", ["verl", "sglang", "vllm"], True),
    ],
)
def test_that_a_setting_outside_of_the_trainer_must_be_one_of_what_the_job_uses(
    framework: str, key: str, seen: list[str], expected: bool
) -> None:
    assert fits_place(framework, key, report(failed(), frameworks=[(name, "") for name in seen])) is expected


@each_row(
    ("row", "seen", "kept"),
    [
        (remedy(), ["verl"], True),
        (remedy(), ["trl"], False),
        (remedy(), ["easyr1", "verl"], False),
        (remedy(), [], False),
        (remedy(framework="env", kind="env", key="A"), [], True),
        (remedy(framework="docker", key="--memory"), [], False),
        (remedy(framework="docker", key="--memory", when=["root:torch.cuda-oom"]), [], True),
        (remedy(framework="docker", key="--memory", when=["root:torch.cuda-oom"]), ["slurm"], False),
        (remedy(when=["phase:save"]), ["verl"], False),
        (remedy(when=["root:torch.*"]), ["verl"], True),
        (remedy(unless=["root:torch.*"]), ["verl"], False),
        (remedy(unless=["framework:ray"]), ["verl"], True),
    ],
)
def test_that_a_row_applies_where_its_framework_and_conditions_do(
    row: Remedy, seen: list[str], kept: bool
) -> None:
    assert bool(named(row, frameworks=[(name, "") for name in seen])) is kept


@each_row(
    ("version", "own", "expected"),
    [
        ("0.9", None, "zero_stage"),
        ("0.11", None, "ds.zero_stage"),
        ("", None, "zero_stage"),
        ("", "ds.zero_stage", "ds.zero_stage"),
        ("", "--zero-stage", "zero_stage"),
    ],
)
def test_that_a_setting_is_named_as_the_job_or_its_version_does(
    version: str, own: str | None, expected: str
) -> None:
    renamed = spec(
        "zero_stage",
        framework="openrlhf",
        versions="<0.10",
        aliases=[{"key": "ds.zero_stage", "versions": ">=0.10"}],
    )
    told = [setting(own, "3")] if own else []
    row = remedy("zero_stage", 2, framework="openrlhf")
    assert named(row, specs=[renamed], frameworks=[("openrlhf", version)], settings=told) == [
        ("openrlhf", expected, 2)
    ]


PIP = [
    spec("flash-attn", framework="pip", type="str", default=None),
    spec("ray[default]", framework="pip", type="str", default=None),
]


@each_row(
    ("name", "expected"),
    [
        ("flash_attn", ["flash-attn"]),
        ("flash_attn_2_cuda", ["flash-attn"]),
        ("flash-attn>=2.1", ["flash-attn"]),
        ("flash_attn.layers", ["flash-attn"]),
        ("ray", ["ray[default]"]),
        ("my_rewards", []),
        ("utils", []),
        ("", []),
    ],
)
def test_that_only_packages_of_the_catalogue_are_installed(name: str, expected: list[str]) -> None:
    """A module of the job's own must never be looked for on a public index."""
    row = remedy("{package.name}", "install", framework="pip", kind="package")
    assert [
        key for _, key, _ in named(row, specs=PIP, facts=[Fact("package", 3, {"name": name})])
    ] == expected


def test_that_a_row_is_filled_by_each_fact_once_and_first_by_the_roots_own() -> None:
    row = remedy("{config_key.key}", "auto")
    specs = [spec(key, type="any", default=None, min=None, max=None) for key in ("a.x", "a.y")]
    facts = [
        Fact("config_key", line, {"key": key})
        for line, key in ((5, "a.x"), (6, "a.y"), (7, "a.x"), (8, "a.unknown"))
    ]
    assert [key for _, key, _ in named(row, specs=specs, facts=facts)] == ["a.x", "a.y"]
    own = Fact("config_key", 3, {"key": "a.y"})
    assert [key for _, key, _ in named(row, specs=specs, facts=[*facts, own])] == ["a.y"]
    assert named(row, specs=specs) == []
    leaf = Fact("config_key", 3, {"key": "x"})
    assert [key for _, key, _ in named(row, specs=specs, facts=[leaf, facts[0]])] == ["a.x"]


@each_row(("to", "expected"), [("{ranks.possible_n}", 1), ("at most {ranks.possible_n}", "at most 1")])
def test_that_a_value_which_is_a_fact_alone_keeps_its_type(to: str, expected: object) -> None:
    found = named(
        remedy("data.size", to), specs=[spec("data.size")], facts=[Fact("ranks", 3, {"possible_n": 1})]
    )
    assert [(value, type(value)) for _, _, value in found] == [(expected, type(expected))]


def test_that_a_package_of_another_line_is_not_installed_for_the_roots() -> None:
    facts = [Fact("package", 3, {"name": "my_rewards"}), Fact("package", 9, {"name": "flash_attn"})]
    assert (
        named(remedy("{package.name}", "install", framework="pip", kind="package"), specs=PIP, facts=facts)
        == []
    )


@each_row(
    ("key", "expected"),
    [("job.part.a.x", ["a.x"]), ("a.x", ["a.x"]), ("b.x", []), ("x", ["x"]), ("b.c.x", []), ("", [])],
)
def test_that_a_setting_is_known_below_a_jobs_own_sections(key: str, expected: list[str]) -> None:
    """Agents keep a trainer's configuration under a name of their own.

    Its last part alone may be anybody's.
    """
    specs = [spec(name, type="any", default=None, min=None, max=None) for name in ("a.x", "x")]
    row = remedy("{config_key.key}", "auto")
    assert [
        found for _, found, _ in named(row, specs=specs, facts=[Fact("config_key", 3, {"key": key})])
    ] == expected


@each_row(
    ("fields", "to"),
    [
        ({"name": "flash_attn"}, "install"),
        ({"name": "flash-attn", "wanted": "2.1.0"}, ">=2.1.0"),
        ({"wanted": "flash-attn>=2.1,<3"}, "<3,>=2.1"),
        ({"name": "flash-attn", "wanted": "other>=2"}, "install"),
        ({"name": "flash-attn", "wanted": "a newer one"}, "install"),
    ],
)
def test_that_a_package_gets_the_version_that_the_message_names(fields: dict[str, Any], to: str) -> None:
    row = remedy(
        "flash-attn",
        "install",
        framework="pip",
        kind="package",
        rule="named-package",
        cause="package-missing",
    )
    told = report(failed(), facts=[Fact("package", 3, fields)])
    made, _ = propose_changes([], told, library(row, specs=PIP), [], "en", [row])
    assert [(item.key, item.to) for item in made] == [("flash-attn", to)]


def test_that_cases_come_first_and_the_table_adds_what_they_do_not_say() -> None:
    specs = [spec(), spec("data.other"), spec("data.third")]
    told, rows = (
        report(failed()),
        [remedy(to=32), remedy("data.third", "as few as fit"), remedy("data.other", 8)],
    )
    made, dropped = propose_changes(
        [case(changes=[change(to=128)])], told, library(*rows, specs=specs), [], "en", rows
    )
    assert [(item.key, item.to, item.from_case) for item in made] == [
        ("data.size", 128, "verl/one"),
        ("data.other", 8, None),
        ("data.third", "as few as fit", None),
    ]
    assert dropped == []


def test_that_what_the_job_has_already_is_not_proposed_again() -> None:
    made, (dropped,) = propose_changes(
        [], report(failed()), library(), [setting("data.size", "128")], "en", [remedy()]
    )
    assert made == []
    assert "already" in dropped.why


def test_that_one_name_of_two_frameworks_is_proposed_once() -> None:
    """A trainer takes the settings of the one below under the same names."""
    specs = [spec("ddp_timeout", framework=name) for name in ("llamafactory", "transformers")]
    rows = [remedy("ddp_timeout", 100, framework=name) for name in ("llamafactory", "transformers")]
    told = report(failed(), frameworks=[("llamafactory", "")])
    made, _ = propose_changes([], told, library(*rows, specs=specs), [], "en", rows)
    assert [item.framework for item in made] == ["llamafactory"]


FRAMEWORKS = [
    "verl",
    "easyr1",
    "tinyzero",
    "simplerl-reason",
    "openrlhf",
    "trl",
    "transformers",
    "llamafactory",
    "ms-swift",
    "axolotl",
    "deepspeed",
    "accelerate",
    "megatron",
    "pytorch",
    "lightning",
    "vllm",
    "sglang",
    "ray",
    "slurm",
    "kubernetes",
    "docker",
]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.data())
def test_that_any_job_gets_settings_that_are_its_own_and_fit(triage: Triage, data: st.DataObject) -> None:
    cause = data.draw(st.sampled_from(sorted(triage.library.causes)))
    seen = data.draw(st.lists(st.sampled_from(FRAMEWORKS), max_size=4, unique=True))
    told = report(failed(cause=cause), frameworks=[(name, "") for name in seen])
    rows = applicable(cause, told, triage.library)
    made, _ = propose_changes([], told, triage.library, [], "en", rows)
    names = [(item.framework, item.key) for item in made]
    assert len(set(names)) == len(names)
    for item in made:
        found = triage.library.setting(item.framework, item.key)
        assert item.framework in settable_frameworks(told) | {
            "env",
            "nccl",
            "pip",
            "host",
            "docker",
            "kubernetes",
            "slurm",
        }
        # A command that a person gives is no setting.
        if item.kind == "command":
            continue
        assert found is not None
        assert not misfit_reason(item.to, found)
        assert is_guidance(item.to) == (item.status == "unverified")


# What an expert names first for a failure, in each framework's own spelling.
FIRST = [
    ("collective-straggler", "verl", "actor_rollout_ref.nccl_timeout"),
    ("collective-straggler", "trl", "ddp_timeout"),
    ("collective-straggler", "ms-swift", "--ddp_timeout"),
    ("collective-straggler", "axolotl", "ddp_timeout"),
    ("collective-straggler", "deepspeed", "DEEPSPEED_TIMEOUT"),
    ("collective-straggler", "megatron", "--distributed-timeout-minutes"),
    ("collective-straggler", "sglang", "--dist-timeout"),
    ("collective-straggler", "vllm", "--distributed-timeout-seconds"),
    ("gpu-oom-training", "verl", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"),
    ("gpu-oom-training", "axolotl", "micro_batch_size"),
    ("gpu-oom-training", "easyr1", "worker.actor.micro_batch_size_per_device_for_update"),
    ("gpu-oom-training", "openrlhf", "micro_train_batch_size"),
    ("gpu-oom-training", "megatron", "--micro-batch-size"),
    ("gpu-oom-training", "deepspeed", "train_micro_batch_size_per_gpu"),
    ("gpu-oom-training", "pytorch", "DataLoader.batch_size"),
    ("gpu-oom-rollout", "vllm", "--gpu-memory-utilization"),
    ("gpu-oom-rollout", "sglang", "--mem-fraction-static"),
    ("gpu-oom-rollout", "trl", "per_device_train_batch_size"),
    ("kv-cache-too-small", "llamafactory", "vllm_gpu_util"),
    ("dataloader-worker-killed", "transformers", "dataloader_num_workers"),
    ("dataloader-worker-killed", "lightning", "DataLoader.num_workers"),
    ("dataloader-worker-killed", "megatron", "--num-workers"),
    ("dataloader-worker-killed", "verl", "data.dataloader_num_workers"),
    ("cpu-offload-pressure", "deepspeed", "zero_optimization.offload_optimizer.device"),
    ("cpu-offload-pressure", "openrlhf", "adam_offload"),
    ("checkpoint-host-peak", "axolotl", "fsdp_config.fsdp_state_dict_type"),
    ("checkpoint-host-peak", "accelerate", "fsdp_config.fsdp_state_dict_type"),
    ("checkpoint-mismatch", "deepspeed", "checkpoint.load_universal"),
    ("checkpoint-corrupt", "verl", "trainer.resume_mode"),
    ("sequence-too-long", "trl", "max_length"),
    ("sequence-too-long", "vllm", "--max-model-len"),
    ("multimodal-mismatch", "llamafactory", "cutoff_len"),
    ("nan-or-inf", "megatron", "--lr"),
    ("disk-full", "ray", ""),
    ("port-in-use", "accelerate", "--main_process_port"),
    ("external-service-failed", "verl", ""),
    ("tokenizer-template", "llamafactory", ""),
]


@each_row(("cause", "framework", "key"), FIRST, ids=[f"{row[0]}-{row[1]}" for row in FIRST])
def test_that_a_cause_has_its_setting_in_the_frameworks_own_spelling(
    cause: str, framework: str, key: str, triage: Triage
) -> None:
    """Causes that one framework alone has, or only under a condition, have an empty key here."""
    seen = [framework, "pytorch"] if framework == "lightning" else [framework]
    told = report(failed(cause=cause), frameworks=[(name, "") for name in seen])
    rows = [row.key for row in applicable(cause, told, triage.library)]
    assert not key or rows[0] == key
