"""Names that a framework does not know: what was meant is found by history or spelling, and written in
place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from corpus.library import Library
from corpus.log_patterns import Tells
from ingest.logs.facts import Fact
from ingest.logs.stacks.stack import Frame
from service.patching.patch import patch
from service.patching.patches import ConfigFile, patch_files
from service.patching.target import PatchTarget
from service.remediation.changes import propose_changes
from service.remediation.renames import find_refused, find_renames, read_in_vain
from service.remediation.setting_values import typed_value
from tests.service.factories import failed, library, report, setting, spec
from tests.service.patching.applying import applied
from tests.tables import each_row

ROLLOUT = "actor_rollout_ref.rollout.max_num_batched_tokens"
KNOBS = (
    spec(ROLLOUT, max=None),
    spec("trainer.n_gpus_per_node"),
    spec("trainer.logger", type="list", default=None, min=None, max=None),
    spec(
        "ray_kwargs.ray_init.num_cpus",
        versions=">=0.6",
        aliases=[{"key": "ray_init.num_cpus", "versions": "<0.6"}],
    ),
    spec("--max-model-len", framework="vllm", spelled="flag", max=None),
    spec("--cpu-offload-gb", framework="vllm", spelled="flag", max=None),
    spec("rows_of_train_batch", framework="trl"),
)

REFUSED: Sequence[Tells] = ("unknown-setting", "refused-override")


def found(
    key: str, framework: str = "verl", version: str = "", tells: Sequence[Tells] = REFUSED, **given: str
) -> list[tuple[str, str | None, bool]]:
    """Give the names found for a key that a message calls unknown, the job's value and whether history tells
    it.
    """
    told = report(
        failed(tells=tells),
        frameworks=[(framework, version)],
        facts=[Fact("config_key", 3, {"key": key})],
        settings=[setting(name, value) for name, value in given.items()],
    )
    return [(item.new, item.value, item.known) for item in find_renames(told, library(*KNOBS), told.settings)]


@each_row(
    ("key", "framework", "version", "expected"),
    [
        (f"{ROLLOUT[:-1]}", "verl", "", [ROLLOUT]),
        ("trainer.n_gpu_per_node", "verl", "", ["trainer.n_gpus_per_node"]),
        ("+trainer.n_gpu_per_node", "verl", "", ["trainer.n_gpus_per_node"]),
        ("ray_init.num_cpus", "verl", "0.7", ["ray_kwargs.ray_init.num_cpus"]),
        ("ray_kwargs.ray_init.num_cpus", "verl", "0.5", ["ray_init.num_cpus"]),
        ("ray_init.num_cpus", "verl", "0.5", []),
        ("ray_init.num_cpus", "verl", "", ["ray_kwargs.ray_init.num_cpus"]),
        ("trainer.n_gpu_per_nod", "verl", "", ["trainer.n_gpus_per_node"]),
        ("--max-model-length", "vllm", "0.8", ["--max-model-len"]),
        ("trainer.logger", "verl", "", []),
        ("trainer.colour", "verl", "", []),
        ("data.n_gpus_per_node", "verl", "", []),
        ("--max-model-length", "vllm", "", ["--max-model-len"]),
        ("--max_model_length", "vllm", "", ["--max-model-len"]),
        ("--max-model-length 8 --cpu-offload-gib 4", "vllm", "", ["--max-model-len", "--cpu-offload-gb"]),
        ("--max-model-len", "vllm", "", []),
        ("--max-model-length", "verl", "", []),
        ("rows_of_trains_batch", "trl", "", ["rows_of_train_batch"]),
        ("rows_of_eval_batch", "trl", "", []),
    ],
)
def test_that_the_right_name_is_the_settings_own_or_the_nearest(
    key: str, framework: str, version: str, expected: list[str]
) -> None:
    assert [name for name, _, _ in found(key, framework, version)] == expected


def test_that_only_a_message_which_calls_the_key_unknown_counts() -> None:
    """A key that a message merely names, such as one with a wrong value, is right as it stands."""
    assert found("trainer.n_gpu_per_node", tells=()) == []


def test_that_who_refuses_an_argument_is_no_key() -> None:
    """`os` begins like the words of `optimizer_step`, which is a function here."""
    told = report(
        failed(tells=REFUSED),
        facts=[Fact("call", 3, {"name": "optimizer_step", "key": "optimizer_closure"})],
        settings=[setting("os", "Linux")],
    )
    assert find_renames(told, library(*KNOBS), told.settings) == []


def test_that_history_is_told_from_likeness() -> None:
    assert found("ray_init.num_cpus", version="0.7") == [("ray_kwargs.ray_init.num_cpus", None, True)]
    assert found("trainer.n_gpu_per_node", **{"trainer.n_gpu_per_node": "8"}) == [
        ("trainer.n_gpus_per_node", "8", False)
    ]


def test_that_the_last_part_of_a_key_stands_for_the_full_one() -> None:
    facts = [
        Fact("config_key", 3, {"key": "n_gpu_per_node"}),
        Fact("config_key", 5, {"key": "trainer.n_gpu_per_node"}),
    ]
    told = report(failed(tells=("unknown-setting",)), facts=facts)
    assert [item.old for item in find_renames(told, library(*KNOBS), [])] == ["trainer.n_gpu_per_node"]


@each_row(
    ("value", "to", "status"),
    [
        ("8", 8, "verified"),
        (None, "the value that trainer.n_gpu has", "unverified"),
        ("eight", "the value that trainer.n_gpu has", "unverified"),
    ],
)
def test_that_the_right_name_is_proposed_first_with_the_jobs_own_value(
    value: str | None, to: object, status: str
) -> None:
    told = report(
        failed(tells=REFUSED),
        facts=[Fact("config_key", 3, {"key": "trainer.n_gpu"})],
        settings=[setting("trainer.n_gpu", value)] if value else [],
    )
    shelf = library(spec("trainer.n_gpus"))
    (made,), dropped = propose_changes(
        [], told, shelf, told.settings, "en", (), find_renames(told, shelf, told.settings)
    )
    assert (made.key, made.to, made.status, made.replaces) == ("trainer.n_gpus", to, status, "trainer.n_gpu")
    assert "`trainer.n_gpu`" in made.why
    assert "`trainer.n_gpus`" in made.why
    assert dropped == []


def test_that_names_which_one_program_refuses_are_one_step() -> None:
    """With one of them left it stops again; one whose new default it has goes by its new name too."""
    text = "error: unrecognized arguments: --max-model-length 8 --cpu-offload-gib 0"
    told = report(
        failed(tells=REFUSED, text=text, body=text),
        frameworks=[("vllm", "")],
        facts=[Fact("config_key", 3, {"key": text[:-8]})],
        settings=[setting("--max-model-length", "8"), setting("--cpu-offload-gib", "0")],
    )
    shelf = library(
        spec("--max-model-len", framework="vllm", spelled="flag", max=None),
        spec("--cpu-offload-gb", framework="vllm", spelled="flag", min=0, max=None, default=0),
    )
    made, _ = propose_changes(
        [], told, shelf, told.settings, "en", (), find_renames(told, shelf, told.settings)
    )
    assert [(change.replaces, change.key, change.goes_with) for change in made] == [
        ("max-model-length", "--max-model-len", None),
        ("cpu-offload-gib", "--cpu-offload-gb", "--max-model-len"),
    ]


def test_that_what_a_launcher_gives_has_no_other_name() -> None:
    """Nobody wrote the option that the launcher adds, and what keeps it back is no name of it."""
    text = "train.py: error: unrecognized arguments: --local_rank=0"
    shelf = library(spec("--no_local_rank", framework="deepspeed", spelled="flag"))
    for launch, wanted in {"deepspeed train.py": [], "python train.py": ["--no_local_rank"]}.items():
        told = report(
            failed(tells=REFUSED, text=text, body=text),
            frameworks=[("deepspeed", "")],
            facts=[Fact("config_key", 3, {"key": "local_rank"})],
            launches=(launch,),
        )
        assert [rename.new for rename in find_renames(told, shelf, ())] == wanted


def test_that_a_key_like_no_other_is_to_go() -> None:
    """The key that the message of a parser names, else one of the job's that the refusing line quotes."""
    rows: dict[tuple[str, str], list[str]] = {
        ("ValueError: the file had unknown keys (['warp_size'])", "warp_size"): ["warp_size"],
        ("error: unrecognized arguments: --warp-size 4", "warp_size"): ["--warp-size"],
        ("error: unrecognized arguments: --warp-size-max 4", "warp_size"): ["--warp-size-max"],
        ("ValueError: unknown keys near warp_size", "warp_size"): [],
        ("ValueError: there is no setting 'warp_size'", "warp_size"): ["warp_size"],
        ("ValueError: the file had unknown keys (['warp_size'])", "data.warp_size"): ["data.warp_size"],
        ("ValueError: 'warp_size' requires the grid and the block to match", "warp_size"): [],
    }
    for (text, key), wanted in rows.items():
        refusing = failed(tells=REFUSED, text=text, body=text)
        told = report(refusing, frameworks=[("verl", "")], settings=[setting(key, "4")])
        keys = find_refused(told, told.settings, [])
        assert [option.key for option in keys] == wanted, text
        made, _ = propose_changes((), told, library(*KNOBS), told.settings, "en", refusals=keys)
        assert [(change.key, change.to, change.removes, change.status) for change in made] == [
            (key, "leave it out", True, "verified") for key in wanted
        ], text


def test_that_what_a_script_gathers_itself_is_no_key_of_its_file() -> None:
    """A file may have a key of that name all the same, which the script reads for something else."""
    rows = {"Trainer(**kwargs)": [], "Trainer(**conf)": ["warp_size"]}
    text = "TypeError: Trainer.__init__() got an unexpected keyword argument 'warp_size'"
    for code, wanted in rows.items():
        frames = (Frame("/job/train.py", 3, "<module>", code),)
        told = report(
            failed(tells=REFUSED, text=text, body=text, frames=frames),
            facts=[Fact("call", 3, {"key": "warp_size", "name": "Trainer.__init__"})],
            settings=[setting("warp_size", "4")],
        )
        assert [option.key for option in find_refused(told, told.settings, [])] == wanted, code


def test_that_a_mask_never_takes_the_place_of_the_secret() -> None:
    """The report holds what stands for a secret; written to the job's file, it would be the secret's end."""
    told = report(
        failed(tells=REFUSED),
        facts=[Fact("config_key", 3, {"key": "trainer.log_dir"})],
        settings=[setting("trainer.log_dir", "s3://[redacted:url-credentials]@store/x")],
    )
    shelf = library(spec("trainer.logs_dir", type="str", default=None, min=None, max=None))
    (made,), _ = propose_changes(
        [], told, shelf, told.settings, "en", (), find_renames(told, shelf, told.settings)
    )
    assert (made.to, made.status) == ("the value that trainer.log_dir has", "unverified")


@each_row(
    ("text", "value"),
    [("8", 8), ("True", True), ("'x'", "x"), ("0.5", "0.5"), ("", None), (None, None), ("-1", -1)],
)
def test_that_a_jobs_value_is_read_as_what_it_is(text: str | None, value: object) -> None:
    made = typed_value(text)
    assert made == value
    assert type(made) is type(value)


def test_that_thousands_of_settings_are_compared_in_no_time() -> None:
    many = [spec(f"trainer.option_{number}_of_many", framework="verl") for number in range(5000)]
    shelf = Library({}, {}, {(item.framework, item.key): item for item in many})
    told = report(failed(tells=REFUSED), facts=[Fact("config_key", 3, {"key": "trainer.option_77_of_mny"})])
    assert [item.new for item in find_renames(told, shelf, [])] == ["trainer.option_77_of_many"]


def misnamed(new: str, old: str, to: object, framework: str = "verl", spelled: str = "hydra") -> PatchTarget:
    """Make a target that takes the place of a wrong key."""
    return PatchTarget(framework, "flag" if spelled == "flag" else "setting", (new,), to, spelled, old)  # type: ignore[arg-type]


N = misnamed("trainer.n_gpus_per_node", "trainer.n_gpu", 8)
LEN = misnamed("--max-model-len", "--max-model-length", 4096, "vllm", "flag")
STAGE = misnamed("zero_optimization.stage", "zero_optimization.stge", 3, "deepspeed", "json")


@each_row(
    ("name", "before", "target", "after"),
    [
        (
            "run.sh",
            "python3 -m verl.trainer.main_ppo trainer.n_gpu=8 a.b=1\n",
            N,
            "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 a.b=1\n",
        ),
        (
            "run.sh",
            "python3 -m verl.trainer.main_ppo '+trainer.n_gpu=8'\n",
            N,
            "python3 -m verl.trainer.main_ppo '+trainer.n_gpus_per_node=8'\n",
        ),
        (
            "run.sh",
            "N=8\npython3 -m verl.trainer.main_ppo trainer.n_gpu=$N\n",
            N,
            "N=8\npython3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=$N\n",
        ),
        (
            "run.sh",
            "python3 -m verl.trainer.main_ppo trainer.n_gpu=8\r\n",
            N,
            "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8\r\n",
        ),
        ("run.sh", "vllm serve m --max-model-length 4096\n", LEN, "vllm serve m --max-model-len 4096\n"),
        (
            "run.sh",
            "vllm serve m --max_model_length=4096 --port 1\n",
            LEN,
            "vllm serve m --max_model_len=4096 --port 1\n",
        ),
        (
            "c.yaml",
            "trainer:\n  # cards\n  n_gpu: 8  # all\n  nnodes: 1\n",
            N,
            "trainer:\n  # cards\n  n_gpus_per_node: 8  # all\n  nnodes: 1\n",
        ),
        ("c.yaml", "trainer: {'n_gpu': 8}\n", N, "trainer: {'n_gpus_per_node': 8}\n"),
        ("ds.json", '{"zero_optimization": {"stge": 3}}\n', STAGE, '{"zero_optimization": {"stage": 3}}\n'),
    ],
)
def test_that_a_wrong_key_is_renamed_where_it_stands(
    name: str, before: str, target: PatchTarget, after: str, tmp_path: Path
) -> None:
    made = patch(name, before, [target])
    assert made.left_out == ()
    assert applied(tmp_path, before, made.diff, name) == after
    assert patch(name, after, [target]).diff == ""


@each_row(
    ("name", "before", "target", "why"),
    [
        ("run.sh", "python3 -m verl.trainer.main_ppo a.b=1\n", N, "does not set trainer.n_gpu"),
        (
            "run.sh",
            "python3 -m verl.trainer.main_ppo trainer.n_gpu=8 trainer.n_gpus_per_node=4\n",
            N,
            "the right name",
        ),
        ("run.sh", "python3 -m verl.trainer.main_ppo ~trainer.n_gpu\n", N, "taken out"),
        ("c.yaml", "trainer: {nnodes: 1}\n", N, "does not set trainer.n_gpu"),
        ("c.yaml", "trainer: {n_gpu: 8, n_gpus_per_node: 4}\n", N, "the right name"),
        (
            "c.yaml",
            "ray_init: {num_cpus: 8}\ntrainer: {a: 1}\n",
            misnamed("ray_kwargs.ray_init.num_cpus", "ray_init.num_cpus", 8),
            "move it by hand",
        ),
        ("ds.json", '{"zero_optimization": {"stge": 3, "stage": 2}}\n', STAGE, "the right name"),
    ],
)
def test_that_a_key_which_cannot_be_renamed_safely_is_left_with_the_reason(
    name: str, before: str, target: PatchTarget, why: str
) -> None:
    made = patch(name, before, [target])
    assert made.diff == ""
    assert why in made.left_out[0].why


def package(name: str, to: str) -> PatchTarget:
    """Make a target of a package."""
    return PatchTarget("pip", "package", (name,), to, "package")


RUN = "python3 -m verl.trainer.main_ppo a.b=1\n"


@each_row(
    ("before", "target", "after"),
    [
        (
            f"pip install vllm==0.6\n{RUN}",
            package("vllm", ">=0.8,<0.9"),
            f"pip install 'vllm<0.9,>=0.8'\n{RUN}",
        ),
        (
            f'uv pip install -U "vllm[audio]==0.6" einops\n{RUN}',
            package("vllm", "0.8.5"),
            f'uv pip install -U "vllm[audio]==0.8.5" einops\n{RUN}',
        ),
        (
            f"python3 -m pip install flash_attn\n{RUN}",
            package("flash-attn", "2.7.4"),
            f"python3 -m pip install flash_attn==2.7.4\n{RUN}",
        ),
        (
            f"pip install -r vllm\n{RUN}",
            package("vllm", "0.8.5"),
            f"pip install -r vllm\npython3 -m pip install vllm==0.8.5\n{RUN}",
        ),
        (
            f"export A=1\n{RUN}",
            package("einops", "install"),
            f"export A=1\npython3 -m pip install einops\n{RUN}",
        ),
        (f"pip install einops\n{RUN}", package("einops", "install"), f"pip install einops\n{RUN}"),
        (RUN, package("torch", ">=2.6"), f"python3 -m pip install 'torch>=2.6'\n{RUN}"),
    ],
)
def test_that_a_script_installs_a_package_where_it_does_so_already_or_before_the_launch(
    before: str, target: PatchTarget, after: str, tmp_path: Path
) -> None:
    made = patch("run.sh", before, [target])
    assert made.left_out == ()
    assert applied(tmp_path, before, made.diff) == after


@each_row(
    ("before", "why"),
    [
        ("echo hello\n", "no command"),
        (f"docker run img {RUN}", "in a container"),
        (f"pip install vllm==0.6\npip install vllm==0.7\n{RUN}", "more than once"),
        (f"pip install 'vllm @ https://example.org/v.whl'\n{RUN}", "from an address"),
    ],
)
def test_that_a_package_is_left_to_its_user_where_the_script_is_not_the_place(before: str, why: str) -> None:
    made = patch("run.sh", before, [package("vllm", "0.8.5")])
    assert made.diff == ""
    assert why in made.left_out[0].why


def test_that_packages_go_into_the_list_of_requirements_before_any_script() -> None:
    files = [ConfigFile("run.sh", RUN), ConfigFile("requirements.txt", "torch==2.5\n")]
    made = patch_files(files, [package("vllm", ">=0.8")])
    assert [edit.file.name for edit in made.edits] == ["requirements.txt"]
    assert made.left_out == ()


def test_that_a_script_which_installs_the_package_is_changed_rather_than_another_file() -> None:
    files = [
        ConfigFile("requirements.txt", "torch==2.5\n"),
        ConfigFile("run.sh", f"pip install vllm==0.6\n{RUN}"),
    ]
    made = patch_files(files, [package("vllm", ">=0.8")])
    assert [edit.file.name for edit in made.edits] == ["run.sh"]


def test_that_a_wrong_key_is_renamed_in_the_file_that_has_it() -> None:
    files = [
        ConfigFile("other.yaml", "trainer: {nnodes: 1}\n"),
        ConfigFile("c.yaml", "trainer: {n_gpu: 8}\n"),
    ]
    made = patch_files(files, [N])
    assert [edit.file.name for edit in made.edits] == ["c.yaml"]
    assert made.left_out == ()


def test_that_a_wrong_key_is_renamed_where_it_stands_though_another_file_has_the_right_one() -> None:
    target = misnamed("optim.lr", "optim.learning_rate", "3e-3")
    files = [
        ConfigFile("conf/config.yaml", "defaults: [{optim: adamw}]\noptim: {lr: 0.1}\n"),
        ConfigFile("run.sh", "python train.py optim.learning_rate=3e-3\n"),
    ]
    (edit,) = patch_files(files, [target]).edits
    assert (edit.file.name, edit.after) == ("run.sh", "python train.py optim.lr=3e-3\n")


def test_that_an_argument_that_a_file_hands_on_is_renamed_below_its_own_level() -> None:
    """Where the call hands no level on, the argument is no key of the file's."""
    knob = spec("eval_strategy", type="any", aliases=[{"key": "evaluation_strategy", "versions": "<0.1"}])
    shelf = library(knob)
    given = [setting("training.evaluation_strategy", "steps")]
    rows = {
        "args = Args(**cfg['training'])": ["training.eval_strategy"],
        "args = Args(cfg)": ["eval_strategy"],
    }
    for code, expected in rows.items():
        event = failed(
            tells=REFUSED,
            facts={"key": "evaluation_strategy"},
            frames=(Frame("/job/train.py", 42, "main", code),),
        )
        told = report(event, facts=[Fact("call", event.line, {"key": "evaluation_strategy"})])
        assert [item.new for item in find_renames(told, shelf, given)] == expected, code


def test_that_a_variable_that_is_asked_for_is_the_one_that_the_script_sets_by_nearly_its_name() -> None:
    """Not where somebody else reads what the script sets, or where it sets the right one too."""
    export = "export RERANK_DATA=/data\n"
    told = failed(body="KeyError raised while resolving: Environment variable 'RERANK_DATA_ROOT' not found")
    asked = failed(body="KeyError: 'RERANK_DATA_ROOT'", frames=(Frame("<frozen os>", 7, "__getitem__"),))
    column = failed(body="KeyError: 'RERANK_DATA_ROOT'", frames=(Frame("/job/data.py", 7, "columns"),))
    given = [replace(setting("RERANK_DATA", "/data"), spelled="env")]
    right = replace(setting("RERANK_DATA_ROOT", "/data"), spelled="env")
    for event, script, settings, expected in (
        (told, export, given, ["RERANK_DATA_ROOT"]),
        (asked, export, given, ["RERANK_DATA_ROOT"]),
        (column, export, given, []),
        (told, export + 'ls "$RERANK_DATA"\n', given, []),
        (told, export, [*given, right], []),
        (told, export, [replace(setting("SHARDS", "8"), spelled="env")], []),
    ):
        made = replace(report(event), launches=(f"{script}run.sh",))
        assert [item.new for item in read_in_vain(made, settings)] == expected, (event.body, script)
