"""Settings read out of source trees: each form of declaration, versions, renames, and the merge into the
catalogue.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import library
from corpus.errors import InvalidCorpusError
from corpus.extract import arguments, constants, environment, fields, headers, merging, options, trees
from corpus.extract.__main__ import main
from corpus.extract.catalogue import SettingHistory, facts, read
from corpus.extract.checkouts import Folder, Revision, opened, version_of
from corpus.extract.declarations import Declaration, completed, styled, unique
from corpus.extract.expressions import Source, parsed
from corpus.extract.versions import agrees, ordered, span
from tests.tables import each_row


def source(text: str) -> Source:
    """Parse one module."""
    return parsed({"module.py": text})


def by_key(rows: Any) -> dict[str, Declaration]:
    """Give declarations by key."""
    return {row.key: row for row in rows}


ARGPARSE = """
import argparse
CHUNK = 2 * 1024
class Args:
    depth: int = 7
def options(parser):
    parser.add_argument("--beam-width", "--beam", "-b", type=int, default=CHUNK, help="h")
    parser.add_argument("--depth", type=int, default=Args.depth)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--no-cache", action="store_false", default=True)
    parser.add_argument("--fuse", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--mode", choices=["a", "b"], default="a")
    parser.add_argument("--name")
    parser.add_argument("--ratio", type=float, default=0.5)
    parser.add_argument("--blob", type=json.loads)
    parser.add_argument("positional")
"""


@each_row(
    ("key", "expected"),
    [
        ("--beam-width", Declaration("--beam-width", "int", 2048, spellings=("--beam", "-b"))),
        ("--depth", Declaration("--depth", "int", 7)),
        ("--fast", Declaration("--fast", "bool", False)),
        ("--no-cache", Declaration("--no-cache", "bool", False)),
        ("--fuse", Declaration("--fuse", "bool", True)),
        ("--no-fuse", Declaration("--no-fuse", "bool")),
        ("--sizes", Declaration("--sizes", "list")),
        ("--mode", Declaration("--mode", "enum", "a", ("a", "b"))),
        ("--name", Declaration("--name", "str")),
        ("--ratio", Declaration("--ratio", "float", 0.5)),
        ("--blob", Declaration("--blob", "any")),
    ],
)
def test_that_an_argument_tells_its_type_default_and_choices(key: str, expected: Declaration) -> None:
    """Each keyword of `add_argument` gives its fact."""
    assert by_key(arguments.read(source(ARGPARSE), "flag"))[key] == expected


def test_that_a_positional_argument_is_no_setting() -> None:
    """Only options are settings."""
    assert not any("positional" in key for key in by_key(arguments.read(source(ARGPARSE), "flag")))


def test_that_arguments_made_of_a_class_have_its_facts() -> None:
    """Types come from the class's annotations, through `**`, also inside another mapping."""
    text = """
Kind = Literal["x", "y"]
class Cache:
    size: int = 16
    kind: Kind = "x"
    on: Optional[bool] = None
def add(parser):
    table = get_kwargs(Cache)
    parser.add_argument("--cache-size", **table["size"])
    parser.add_argument("--kind", **{**table["kind"], "help": "h"})
    parser.add_argument("--on", **table["on"])
    parser.add_argument("--lost", **other["on"])
"""
    rows = by_key(arguments.read(source(text), "flag"))
    assert rows["--cache-size"] == Declaration("--cache-size", "int", 16)
    assert rows["--kind"] == Declaration("--kind", "enum", "x", ("x", "y"))
    assert rows["--on"].type == "bool"
    assert rows["--no-on"].type == "bool"
    assert rows["--lost"].type == "any"


def test_that_a_factory_of_arguments_turns_switches_that_are_on_around() -> None:
    """A switch that is on by default can only be turned off; excluded fields are no arguments."""
    text = """
class Log:
    save_every: int = 5
    align: bool = True
    hidden: int = 1
    norm: float = field(default=1e-5, metadata={"argparse_meta": {"arg_names": ["--norm-eps"]}})
ArgumentGroupFactory(Log, exclude=["hidden"])
"""
    rows = by_key(arguments.read(source(text), "flag"))
    assert set(rows) == {"--save-every", "--no-align", "--norm-eps"}
    assert rows["--no-align"].spellings == ("--disable-align",)
    assert rows["--norm-eps"].default == 1e-5


FIELDS = """
from enum import Enum
class Level(str, Enum):
    LOW = "low"
    HIGH = "high"
class Inner:
    size: int = pp_int(5e8)
    ratio: float = Field(0.5, ge=0.0, le=1.0)
class Base:
    seed: int = 1
class Config(Base):
    inner: Inner = field(default_factory=Inner)
    maybe: Optional[Inner] = None
    level: Level = Level.HIGH
    names: list[str] = field(default_factory=list)
    old: bool = Field(False, alias="new")
    mixed: int | float = 1
    text: "str | None" = None
    open: dict = field(default_factory=dict)
    made: int = compute()
    _private: int = 0
    never: int = field(init=False)
    noted: A[int, Arg(aliases=["--n"], choices=[1, 2])] = 1
    silent: A[int, Arg(no_cli=True)] = 1
"""


@each_row(
    ("key", "expected"),
    [
        ("z.seed", Declaration("z.seed", "int", 1)),
        ("z.inner.size", Declaration("z.inner.size", "int", 500_000_000)),
        ("z.maybe.ratio", Declaration("z.maybe.ratio", "float", 0.5, min=0.0, max=1.0)),
        ("z.level", Declaration("z.level", "enum", "high", ("low", "high"))),
        ("z.names", Declaration("z.names", "list", [])),
        ("z.new", Declaration("z.new", "bool", False)),
        ("z.mixed", Declaration("z.mixed", "float", 1)),
        ("z.text", Declaration("z.text", "str")),
        ("z.open", Declaration("z.open")),
        ("z.made", Declaration("z.made", "int")),
        ("z.noted", Declaration("z.noted", "int", 1, (1, 2), spellings=("--n",))),
    ],
)
def test_that_a_field_tells_its_type_default_and_place(key: str, expected: Declaration) -> None:
    """Nested classes give dotted keys; annotations and defaults give the facts."""
    assert by_key(fields.read(source(FIELDS), {"Config": "z."}, "as-is"))[key] == expected


def test_that_hidden_fields_are_no_settings() -> None:
    """Private fields, those not set by the constructor, and those kept off the command line stay out."""
    keys = {row.key for row in fields.read(source(FIELDS), {"Config": ""}, "as-is")}
    assert not keys & {"_private", "never", "silent", "inner", "old"}


def test_that_a_click_option_of_the_wanted_command_is_read() -> None:
    """Options of other commands stay out."""
    text = """
@click.option("--port", required=False, type=int, default=6379)
@click.option("--head", is_flag=True, default=False)
@click.option("--log-style", type=click.Choice(["auto", "record"]), default="auto")
@click.option("--address", type=str)
def start(port): ...
@click.option("--force", is_flag=True)
def stop(force): ...
"""
    assert by_key(options.read(source(text), ["start"], "flag")) == {
        "--port": Declaration("--port", "int", 6379),
        "--head": Declaration("--head", "bool", False),
        "--log-style": Declaration("--log-style", "enum", "auto", ("auto", "record")),
        "--address": Declaration("--address", "str"),
    }


def test_that_a_tree_gives_dotted_leaves_and_the_fields_of_its_classes() -> None:
    """An interpolation has no known value; a class named by `_target_` adds what the tree leaves out."""
    text = """
defaults: [_self_]
actor:
  _target_: pkg.ActorConfig
  lr: 1e-6
  micro: 4
  path: ${model.path}
  opts: {}
trainer: {logger: [console, wandb], save: false}
"""
    classes = source("class ActorConfig:\n    micro: int = 1\n    offload: bool = False\n")
    assert by_key(trees.read({"a.yaml": text}, classes)) == {
        "actor.lr": Declaration("actor.lr", "str", "1e-6"),
        "actor.micro": Declaration("actor.micro", "int", 4),
        "actor.path": Declaration("actor.path"),
        "actor.opts": Declaration("actor.opts"),
        "actor.offload": Declaration("actor.offload", "bool", False),
        "trainer.logger": Declaration("trainer.logger", "list", ["console", "wandb"]),
        "trainer.save": Declaration("trainer.save", "bool", False),
    }


def test_that_pairs_of_constants_stand_at_their_place() -> None:
    """The longest matching prefix says below which key a constant stands."""
    text = (
        'FP16_SCALE = "scale"\nFP16_SCALE_DEFAULT = 16\nSTEPS = "steps"\nSTEPS_DEFAULT = None\n'
        "LONE_DEFAULT = 3\n"
    )
    assert by_key(constants.read(source(text), {"FP16_": "fp16."})) == {
        "fp16.scale": Declaration("fp16.scale", "int", 16),
        "steps": Declaration("steps"),
    }


ENVIRONMENT = """
if TYPE_CHECKING:
    APP_TIMEOUT: int = 60
    APP_KIND: Literal["a", "b"] | None = None
class Envs:
    APP_FAST = EnvBool(True)
    APP_LIMIT = EnvInt(3)
def f():
    os.environ["APP_HOME"]
    os.environ.get("APP_ROOM", "12")
    os.getenv("APP_ON", "true")
    os.getenv("APP_BIT", "0")
    get_bool_env_var("APP_USE", "false")
    config.get("APP_NOT_ONE", "x")
    os.getenv("OTHER", "x")
"""


@each_row(
    ("key", "kind", "default", "declared"),
    [
        ("APP_TIMEOUT", "int", 60, True),
        ("APP_KIND", "enum", None, True),
        ("APP_FAST", "bool", True, True),
        ("APP_LIMIT", "int", 3, True),
        ("APP_HOME", "any", None, False),
        ("APP_ROOM", "int", 12, False),
        ("APP_ON", "bool", True, False),
        ("APP_BIT", "any", "0", False),
        ("APP_USE", "bool", False, False),
    ],
)
def test_that_a_variable_tells_its_type_by_how_it_is_read(
    key: str, kind: str, default: object, declared: bool
) -> None:
    """Declared variables are sure; those only read may be read elsewhere too."""
    row = by_key(environment.read(source(ENVIRONMENT), ["APP_*"]))[key]
    assert (row.type, row.default, row.declared) == (kind, default, declared)


def test_that_only_wanted_variables_are_read() -> None:
    """Another program's variables, and a plain dictionary's keys, are none of the framework's."""
    assert not {"OTHER", "APP_NOT_ONE"} & set(by_key(environment.read(source(ENVIRONMENT), ["APP_*"])))


def test_that_macros_and_names_of_c_headers_are_read() -> None:
    """NCCL's, Ray's, c10d's and Slurm's forms."""
    nccl = by_key(
        headers.nccl({"a.cc": 'NCCL_PARAM(Size, "BUFF_SIZE", (1 << 22));\n  x = ncclGetEnv("NCCL_IFACE");\n'})
    )
    assert (nccl["NCCL_BUFF_SIZE"].default, nccl["NCCL_IFACE"].declared) == (4194304, False)
    text = (
        "RAY_CONFIG(int64_t, size, 512 * 1024)  // why\nRAY_CONFIG(bool, on, true)\n"
        'RAY_CONFIG(std::string, dir, "")\n'
        "RAY_CONFIG(int64_t, free, (int64_t)-1)\nRAY_CONFIG(uint64_t,\n           long_name,\n           "
        "10ULL * 60);\nRAY_CONFIG(float, part, 0.5f)\n"
    )
    ray = by_key(headers.ray({"h": text}))
    assert {key: (row.type, row.default) for key, row in ray.items()} == {
        "RAY_size": ("int", 524288),
        "RAY_on": ("bool", True),
        "RAY_dir": ("str", ""),
        "RAY_free": ("int", -1),
        "RAY_long_name": ("int", 600),
        "RAY_part": ("float", 0.5),
    }
    torch = by_key(
        headers.torch(
            {
                "h": (
                    'static std::vector<std::string> A = {\n    "TORCH_A",\n    "OLD_A"};\n '
                    'std::vector<std::string> N = {};\n getCvarInt("TORCH_B", 1)'
                )
            }
        )
    )
    assert set(torch) == {"TORCH_A", "TORCH_B"}
    assert torch["TORCH_A"].spellings == ("OLD_A",)
    assert not torch["TORCH_B"].declared
    slurm = """static slurm_cli_opt_t slurm_opt_a = {
\t.name = "mem-per-gpu",
\t.has_arg = required_argument,
\t.set_func = arg_set_a,
};
static slurm_cli_opt_t slurm_opt_b = {
\t.name = "only-srun",
\t.set_func_srun = arg_set_b,
};
"""
    assert set(by_key(headers.slurm({"c": slurm}))) == {"--mem-per-gpu"}


@each_row(
    ("text", "expected"),
    [
        ("-1", -1),
        ("15 * 60 * 1000", 900000),
        ("1 << 20", 1048576),
        ("3ULL * 1024", 3072),
        ("0x10", 16),
        ("a * 2", None),
        ("f(1)", None),
        ("(int64_t)-1", -1),
        ("1 - 2", None),
        ("", None),
    ],
)
def test_that_c_constants_are_worked_out_or_left_open(text: str, expected: float | None) -> None:
    """A wrong number is worse than none."""
    assert headers.number(text) == expected


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.text(alphabet="ab(){}[]=:.,'\"\n 0123456789*+-<>_@", max_size=200))
def test_that_no_text_breaks_a_reader(text: str) -> None:
    """What cannot be parsed has no settings; nothing is run."""
    tree = source(text)
    list(arguments.read(tree, "flag"))
    list(fields.read(tree, {"*": ""}, "as-is"))
    list(environment.read(tree, ["*"]))
    for reader in (headers.nccl, headers.ray, headers.torch, headers.slurm):
        list(reader({"a": text}))


@each_row(
    ("name", "style", "expected"),
    [
        ("max_len", "flag", "--max-len"),
        ("--max_len", "flag", "--max_len"),
        ("--max-len", "name", "max_len"),
        ("a.b", "as-is", "a.b"),
    ],
)
def test_that_names_are_spelled_as_users_write_them(name: str, style: Any, expected: str) -> None:
    """A flag that the source spells out stays as it is."""
    assert styled(name, style) == expected


def test_that_programs_that_disagree_leave_the_default_open() -> None:
    """Choices add up, types widen; a second form fills what the first leaves open."""
    one, two = Declaration("a", "int", 1, min=0), Declaration("a", "float", 2.0, min=0)
    assert unique([one, two])["a"] == Declaration("a", "float", None, min=0)
    assert completed(Declaration("a"), one) == Declaration("a", "int", 1)


SAMPLE = ["0.1", "0.2", "0.3", "0.4"]


@each_row(
    ("present", "expected"),
    [
        (SAMPLE, ""),
        (["0.2", "0.3"], ">0.1,<0.4"),
        (["0.1"], "<0.2"),
        (["0.4"], ">0.3"),
        (["0.1", "0.4"], ""),
        ([], ""),
    ],
)
def test_that_versions_leave_out_only_what_was_seen_to_lack_the_setting(
    present: list[str], expected: str
) -> None:
    """A version between two that were read may have it."""
    assert span(present, SAMPLE) == expected
    assert agrees(expected, present, SAMPLE)


def test_that_written_versions_are_compared_with_what_was_seen() -> None:
    """A finer specifier agrees as long as no version read contradicts it."""
    assert agrees(">=0.1.7,<0.3.5", ["0.2", "0.3"], SAMPLE)
    assert not agrees(">=0.3", ["0.2", "0.3", "0.4"], SAMPLE)
    assert ordered(["0.10.0", "0.9", "0.10.0rc1"]) == ["0.9", "0.10.0rc1", "0.10.0"]


def ray_tree(root: Path, version: str, flags: str) -> Path:
    """Write a source tree of Ray's command line."""
    path = root / "ray" / version / "ray" / "scripts" / "scripts.py"
    path.parent.mkdir(parents=True)
    rows = "\n".join(f'@click.option("{flag}", type=int)' for flag in flags.split())
    path.write_text(f"{rows}\ndef start(): ...\n", encoding="utf-8")
    return root / "ray" / version


def test_that_settings_are_compared_over_versions(tmp_path: Path) -> None:
    """What came is bounded below, what went above."""
    checkouts = {
        version: Folder(ray_tree(tmp_path, version, flags))
        for version, flags in [("2.1", "--port --old"), ("2.2", "--port --new"), ("2.3", "--port --new")]
    }
    rows = {row.key: row for row in read("ray", checkouts)}
    assert {key: span(row.names[key], ["2.1", "2.2", "2.3"]) for key, row in rows.items()} == {
        "--port": "",
        "--old": "<2.2",
        "--new": ">2.1",
    }
    assert facts(rows["--port"]) == {"type": "int"}


def test_that_a_rename_known_by_hand_is_one_setting(tmp_path: Path) -> None:
    """The newest name is the key, the old one keeps its versions."""
    for version, name in (("4.40", "evaluation_strategy"), ("4.50", "eval_strategy")):
        path = tmp_path / version / "transformers" / "training_args.py"
        path.parent.mkdir(parents=True)
        path.write_text(f"class TrainingArguments:\n    {name}: str = 'no'\n", encoding="utf-8")
    rows = read("transformers", {version: opened(str(tmp_path / version)) for version in ("4.40", "4.50")})
    assert [(row.key, row.names) for row in rows] == [
        ("eval_strategy", {"evaluation_strategy": frozenset({"4.40"}), "eval_strategy": frozenset({"4.50"})})
    ]


def test_that_a_revision_of_a_git_directory_is_read_without_a_checkout(tmp_path: Path) -> None:
    """Tags are read straight from the objects; an unknown one is an error that names it."""
    ray_tree(tmp_path, "x", "--port")
    git = ["git", "-C", str(tmp_path / "ray" / "x")]
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
        ["tag", "v1.0"],
    ):
        subprocess.run([*git, *words], check=True)
    place = f"{tmp_path / 'ray' / 'x' / '.git'}@v1.0"
    assert {row.key for row in read("ray", {"1.0": opened(place)})} == {"--port"}
    with pytest.raises(InvalidCorpusError, match="v9"):
        _ = Revision(tmp_path / "ray" / "x" / ".git", "v9").paths


@each_row(
    ("place", "version"),
    [
        ("repo@v0.5.0", "0.5.0"),
        ("src/verl/0.9.1", "0.9.1"),
        ("g@slurm-24-05-5-1", "24.05.5.1"),
        ("x@v0.8.5.post1", "0.8.5.post1"),
    ],
)
def test_that_a_checkout_names_its_version(place: str, version: str) -> None:
    """Tags and folders end with the version."""
    assert version_of(place) == version


def test_that_a_checkout_without_a_version_asks_for_one() -> None:
    """Nothing is guessed."""
    with pytest.raises(InvalidCorpusError, match="--version"):
        version_of("main")


def test_that_the_command_writes_a_row_for_each_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its output is what the merge reads."""
    places = [str(ray_tree(tmp_path, version, "--port")) for version in ("2.1", "2.2")]
    assert main(["ray", *places, "--out", str(tmp_path / "ray.jsonl")]) == 0
    assert "1 settings of 2 versions" in capsys.readouterr().out
    (found,) = merging.load([tmp_path / "ray.jsonl"])
    assert (found.row["key"], found.seen) == ("--port", {"--port": ["2.1", "2.2"]})


def found(key: str, seen: dict[str, list[str]], framework: str = "verl", **row: Any) -> merging.MergedSetting:
    """Make a setting as the sources have it."""
    return merging.MergedSetting(
        framework,
        {"catalogue": framework, "spelled": "hydra", "key": key, "sure": True, "type": "int", **row},
        SAMPLE,
        seen,
    )


def table(*rows: dict[str, Any]) -> dict[str, Any]:
    """Make the written settings of verl."""
    return {"verl": {"framework": "verl", "spelled": "hydra", "settings": list(rows)}}


WORDS = {"effect": {"en": "e", "zh": "z"}}


def test_that_a_merge_corrects_facts_and_keeps_words() -> None:
    """Versions, defaults and types that the source contradicts are put right; what people wrote stays."""
    written = {
        "key": "a.b",
        "type": "bool",
        "default": True,
        "versions": ">=0.3",
        **WORDS,
        "costs": {"en": "c", "zh": "c"},
        "rule": "half",
    }
    merge = merging.merged(
        table(written), [found("a.b", {"a.b": SAMPLE[1:], "a.c": ["0.1"]}, type="float", default=0.5)], {}
    )
    assert merge.tables["verl"]["settings"] == [
        {
            "key": "a.b",
            "type": "float",
            "default": True,
            "versions": ">0.1",
            "aliases": [{"key": "a.c", "versions": "<0.2"}],
            **WORDS,
            "costs": {"en": "c", "zh": "c"},
            "rule": "half",
        }
    ]
    assert len(merge.corrections) == 3
    assert merge.extracted == {}


@each_row(
    ("written", "seen", "sure", "expected"),
    [
        (">=0.2,<0.3.5", SAMPLE[1:3], True, ">=0.2,<0.3.5"),
        ("<0.3", SAMPLE, True, "<0.3"),
        (">=0.3", SAMPLE, True, None),
        (">=0.3", SAMPLE, False, ">=0.3"),
    ],
)
def test_that_written_versions_change_only_against_evidence(
    written: str, seen: list[str], sure: bool, expected: str | None
) -> None:
    """A finer one stays, so does an end that a person saw, and one that the sources cannot judge."""
    rows = table({"key": "a", "type": "int", "versions": written, **WORDS})
    merge = merging.merged(rows, [found("a", {"a": seen}, sure=sure)], {})
    assert merge.tables["verl"]["settings"][0].get("versions") == expected


def test_that_a_new_setting_is_written_where_a_person_explains_it_and_extracted_elsewhere() -> None:
    """The catalogue of words grows only by words."""
    rows = [found("new", {"new": ["0.4"]}, default=1), found("dull", {"dull": SAMPLE})]
    merge = merging.merged(table(), rows, {"verl": {"new": WORDS}})
    assert merge.tables["verl"]["settings"] == [
        {"key": "new", "type": "int", "default": 1, "versions": ">0.3", **WORDS}
    ]
    assert merge.extracted == {"verl": [{"key": "dull", "type": "int", "spelled": "hydra"}]}


def test_that_a_second_merge_changes_nothing() -> None:
    """Merging is done when it is done."""
    rows = [found("a.b", {"a.b": SAMPLE[1:], "a.c": ["0.1"]}, default=3), found("dull", {"dull": SAMPLE})]
    first = merging.merged(table({"key": "a.b", "type": "int", **WORDS}), rows, {})
    second = merging.merged(first.tables, rows, {})
    assert (second.tables, second.extracted, second.corrections) == (first.tables, first.extracted, [])


def test_that_inherited_arguments_neither_come_nor_go(tmp_path: Path) -> None:
    """A trainer that stops overriding an argument still has it."""
    for framework, seen in (("transformers", SAMPLE), ("trl", ["0.2"])):
        head = {"framework": framework, "sample": SAMPLE}
        row = {
            "catalogue": framework,
            "spelled": "yaml",
            "key": "seed",
            "type": "int",
            "default": 7,
            "sure": True,
            "seen": {"seed": seen},
        }
        (tmp_path / f"{framework}.jsonl").write_text(
            f"{json.dumps(head)}\n{json.dumps(row)}\n", encoding="utf-8"
        )
    trl = merging.load([tmp_path / "transformers.jsonl", tmp_path / "trl.jsonl"])[1]
    assert trl.versions("seed") == ""
    assert "default" not in trl.row


def test_that_what_a_merge_writes_loads(tmp_path: Path) -> None:
    """Both files of a framework are read as one catalogue; an extracted setting has no words."""
    merge = merging.merged(
        table(), [found("new", {"new": SAMPLE}), found("dull", {"dull": ["0.1"]})], {"verl": {"new": WORDS}}
    )
    root = tmp_path / "settings"
    root.mkdir()
    (root / "verl.yaml").write_text("framework: verl\nspelled: hydra\nsettings: []\n", encoding="utf-8")
    merging.write(root, merge)
    assert merging.catalogue(root) == merge.tables
    (tmp_path / "causes.yaml").write_text("{}\n", encoding="utf-8")
    loaded = library.load(tmp_path)
    assert [(key, spec.explained, spec.versions) for (_, key), spec in loaded.specs.items()] == [
        ("new", True, ""),
        ("dull", False, "<0.2"),
    ]
    (root / "verl.yaml").write_text(
        (root / "verl.yaml").read_text(encoding="utf-8").replace("key: new", "key: dull"), encoding="utf-8"
    )
    assert [(key, spec.explained) for (_, key), spec in library.load(tmp_path).specs.items()] == [
        ("dull", True)
    ]
    (root / "extracted" / "verl.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidCorpusError, match=r"verl\.json"):
        library.load(tmp_path)


def variables(path: Path, framework: str, *names: str) -> Path:
    """Write environment variables as read from one framework."""
    rows = [
        {
            "catalogue": "env",
            "spelled": "env",
            "key": name,
            "type": "int",
            "sure": True,
            "seen": {name: SAMPLE},
        }
        for name in names
    ]
    path.write_text(
        "\n".join(map(json.dumps, [{"framework": framework, "sample": SAMPLE}, *rows])) + "\n",
        encoding="utf-8",
    )
    return path


def test_that_a_merge_keeps_the_variables_of_other_frameworks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each framework is merged when it is read; a variable that it lost is gone."""
    specs = tmp_path / "settings"
    specs.mkdir()
    for framework, names in (("vllm", ["A", "B"]), ("sglang", ["B", "C"]), ("vllm", ["A"])):
        path = variables(tmp_path / f"{framework}.jsonl", framework, *names)
        assert main(["merge", str(path), "--settings", str(specs)]) == 0
    rows = json.loads((specs / "extracted" / "env.json").read_bytes())["settings"]
    assert [(row["key"], row["read_by"]) for row in rows] == [("A", "vllm"), ("B", "sglang"), ("C", "sglang")]
    assert capsys.readouterr().out == ""


def test_that_a_row_knows_its_key() -> None:
    """The preferred name is the newest declaration's."""
    assert SettingHistory("verl", "hydra", Declaration("k"), {}).key == "k"
