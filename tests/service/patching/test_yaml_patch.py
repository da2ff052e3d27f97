"""Changes of YAML files: what is changed where, what stays to the byte, what is refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.schema import ChangeKind, Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching.target import PatchTarget
from service.patching.yaml_file import apply, carries, holds
from tests.service.patching.applying import changed_lines, goes_back_and_forth, target
from tests.tables import each_row

GPU = "actor_rollout_ref.rollout.gpu_memory_utilization"
NESTED = (
    "actor_rollout_ref:\n  rollout:\n    gpu_memory_utilization: 0.9\n    n: 4\ntrainer: {logger: "
    "[console], nnodes: 1}\n"
)

# Before, after, key, value.
REPLACED: list[tuple[str, str, str, Scalar]] = [
    (NESTED, NESTED.replace("0.9", "0.5"), GPU, 0.5),
    (NESTED, NESTED.replace("nnodes: 1", "nnodes: 2"), "trainer.nnodes", 2),
    (NESTED, NESTED.replace("[console]", "[console, wandb]"), "trainer.logger", "['console', 'wandb']"),
    (f"{GPU}: 0.9\nx: 1\n", f"{GPU}: 0.5\nx: 1\n", GPU, 0.5),
    (
        "actor_rollout_ref:\n  rollout.gpu_memory_utilization: 0.9\n",
        "actor_rollout_ref:\n  rollout.gpu_memory_utilization: 0.5\n",
        GPU,
        0.5,
    ),
    ("rollout:\n  gpu_memory_utilization: 0.9\n", "rollout:\n  gpu_memory_utilization: 0.5\n", GPU, 0.5),
    (
        "# @package actor_rollout_ref.rollout\ngpu_memory_utilization: 0.9\n",
        "# @package actor_rollout_ref.rollout\ngpu_memory_utilization: 0.5\n",
        GPU,
        0.5,
    ),
    (
        "gpu-memory-utilization: 0.9   # most\n",
        "gpu-memory-utilization: 0.5   # most\n",
        "--gpu-memory-utilization",
        0.5,
    ),
    ("a: 1 # one\r\nb: 2\r\n", "a: 8 # one\r\nb: 2\r\n", "a", 8),
    ("a: 1", "a: 8", "a", 8),
    ("---\na: 1\n...\n", "---\na: 8\n...\n", "a", 8),
    ("%YAML 1.2\n---\na: 1\n", "%YAML 1.2\n---\na: 8\n", "a", 8),
    ("\ufeffa: 1\nb: 2\n", "\ufeffa: 8\nb: 2\n", "a", 8),
    ("a: 'no'\n", "a: 'bf16'\n", "a", "bf16"),
    # Text to the parser, which a number mends; a reference that is mended.
    ("a: 1e-4\n", "a: 0.0001\n", "a", 0.0001),
    ("a: ${b.size}\n", "a: ${b.batch_size}\n", "a", "${b.batch_size}"),
    ('a: "no"\n', 'a: "it\'s"\n', "a", "it's"),
    ("a: 'x'\n", "a: 'it''s'\n", "a", "it's"),
    ("a: fp16\n", "a: 'no'\n", "a", "no"),
    ("a: fp16\n", "a: '1e-5'\n", "a", "1e-5"),
    ("a: 1\n", "a: 'no'\n", "a", "no"),
    ("a: null\n", "a: '8'\n", "a", "8"),
    ("a: fp16\n", "a: x:y\n", "a", "x:y"),
    ("a: fp16\n", "a: x, [y]\n", "a", "x, [y]"),
    ("t: {a: fp16}\n", "t: {a: 'x, [y]'}\n", "t.a", "x, [y]"),
    ("a: 0.1\n", "a: 1.0e-05\n", "a", 1e-5),
    ("a: 1\n", "a: 1.0e+30\n", "a", 1e30),
    ("a: true\n", "a: false\n", "a", False),
    ("a: True\n", "a: False\n", "a", False),
    ("a: yes\n", "a: false\n", "a", False),
    ("a: 29500\n", "a: 29617\n", "a", "29617"),
    ("a: null\n", "a: 8\n", "a", 8),
    ("a: ~ # none\n", "a: 8 # none\n", "a", 8),
    ("a:\nb: 1\n", "a: 8\nb: 1\n", "a", 8),
    ("a:   # none\nb: 1\n", "a: 8   # none\nb: 1\n", "a", 8),
    ("b: {a: , c: 1}\n", "b: {a: 8 , c: 1}\n", "b.a", 8),
    ("a: &x 1\n", "a: &x 8\n", "a", 8),
    ("x: &x 1\na: *x\n", "x: &x 1\na: 8\n", "a", 8),
    ("\"a\": 1\n'b': 2\n", "\"a\": 1\n'b': 8\n", "b", 8),
    ("{\n  a: 1,  # one\n  b: 2,\n}\n", "{\n  a: 8,  # one\n  b: 2,\n}\n", "a", 8),
    ("a: word\n  goes on\nb: 1\n", "a: x\nb: 1\n", "a", "x"),
    ("old_name: 1\n", "old_name: 8\n", "new_name|old_name", 8),
    ("a: 1\n# 批大小\nb: 1\n", "a: 1\n# 批大小\nb: 8\n", "b", 8),
]

# A list of words, in place of which another list or one word comes.
LISTS: list[tuple[str, str, Scalar]] = [
    ("b:\n  - q\n  - k\nc: 1\n", "b: [x, y]\nc: 1\n", "['x', 'y']"),
    ("b:\n- q\n- k\n\n# of c\nc: 1\n", "b: [x]\n\n# of c\nc: 1\n", "['x']"),
    ("b:\n  - q\n  - k\n", "b: all-linear\n", "all-linear"),
    ("b: [q, k]\nc: 1\n", "b: all-linear\nc: 1\n", "all-linear"),
    ("b:\r\n  - 'q'\r\nc: 1\r\n", "b: all-linear\r\nc: 1\r\n", "all-linear"),
]

ADDED: list[tuple[str, str, str, Scalar]] = [
    ("t:\n  a: 1\nu: 1\n", "t:\n  a: 1\n  b: 8\nu: 1\n", "t.b", 8),
    ("t:\n    a: 1  # one\n\n# u\nu: 1\n", "t:\n    a: 1  # one\n    b: 8\n\n# u\nu: 1\n", "t.b", 8),
    ("t:\n  a: 1", "t:\n  a: 1\n  b: 8", "t.b", 8),
    ("t:\r\n  a: 1\r\n", "t:\r\n  a: 1\r\n  b: 8\r\n", "t.b", 8),
    ("t: {a: 1}\n", "t: {a: 1, b: 8}\n", "t.b", 8),
    ("t: {a: 1,}\n", "t: {a: 1, b: 8,}\n", "t.b", 8),
    ("t: {}\n", "t: {b: 8}\n", "t.b", 8),
    ("t: {}\n", "t: {b: {c: 8}}\n", "t.b.c", 8),
    ("t:\nu: 1\n", "t:\n  b: 8\nu: 1\n", "t.b", 8),
    ("t: # more\nu: 1\n", "t: # more\n  b: 8\nu: 1\n", "t.b", 8),
    ("t:\n    a: 1\n", "t:\n    a: 1\n    b:\n        c: 8\n", "t.b.c", 8),
    ("t:\n  a:\n  - 1\n  - 2\nu: 1\n", "t:\n  a:\n  - 1\n  - 2\n  b: 8\nu: 1\n", "t.b", 8),
    ("t:\n  a: |\n    text\n\nu: 1\n", "t:\n  a: |\n    text\n\n  b: 8\nu: 1\n", "t.b", 8),
    ("t:\n  a: |+\n    text\n\nu: 1\n", "t:\n  a: |+\n    text\n\n  b: 8\nu: 1\n", "t.b", 8),
    ("t:\n  a:\n  c:\nu: 1\n", "t:\n  a:\n  c:\n  b: 8\nu: 1\n", "t.b", 8),
    ("x: &x {a: 1}\nt:\n  <<: *x\n  c: 1\n", "x: &x {a: 1}\nt:\n  <<: *x\n  c: 1\n  a: 8\n", "t.a", 8),
    ("x: &x 1\nt:\n  c: *x # one\n", "x: &x 1\nt:\n  c: *x # one\n  b: 8\n", "t.b", 8),
    ("t.a: 1\nu: 1\n", "t.a: 1\nu: 1\nt.b: 8\n", "t.b", 8),
    ("t:\n  a: True\n", "t:\n  a: True\n  b: False\n", "t.b", False),
    ("t:\n  a: true\n", "t:\n  a: true\n  b: false\n", "t.b", False),
    ("t:\n  a: 1\n", "t:\n  a: 1\n  b: [console]\n", "t.b", "['console']"),
    ("t:\n  a: 1\n...\n", "t:\n  a: 1\n  b: 8\n...\n", "t.b", 8),
]


@each_row(("before", "after", "key", "to"), [*REPLACED, *ADDED])
def test_a_setting_is_written_where_it_belongs(
    before: str, after: str, key: str, to: Scalar, tmp_path: Path
) -> None:
    """Only the value is another afterwards; the diff applies and goes back; a second time changes nothing."""
    wanted = target(key, to)
    assert apply(before, wanted) == after
    assert holds(after, wanted)
    assert apply(after, wanted) == after
    assert goes_back_and_forth(tmp_path, before, after, "config.yaml")


@each_row(("before", "after", "key", "to"), REPLACED)
def test_a_key_that_stands_there_is_carried(before: str, after: str, key: str, to: Scalar) -> None:
    assert carries(before, target(key, to))
    assert not holds(before, target(key, to))


@each_row(("before", "after", "key", "to"), ADDED)
def test_a_key_that_is_added_was_not_carried(before: str, after: str, key: str, to: Scalar) -> None:
    assert not carries(before, target(key, to))


LLAMAFACTORY = "### model\nmodel_name_or_path: /m\nstage: sft\nbf16: true  # fast\n"


def test_a_key_without_levels_is_added_to_a_file_of_its_framework() -> None:
    made = apply(LLAMAFACTORY, target("gradient_checkpointing", to=True, framework="llamafactory"))
    assert made == LLAMAFACTORY + "gradient_checkpointing: true\n"


@each_row(("framework", "spelled"), [("axolotl", ""), ("verl", ""), ("llamafactory", "flag")])
def test_a_key_without_levels_is_not_added_to_another_file(framework: str, spelled: str) -> None:
    with pytest.raises(NotPatchableError):
        apply(LLAMAFACTORY, target("gradient_checkpointing", to=True, framework=framework, spelled=spelled))


OWNED = [
    (LLAMAFACTORY, "bf16", "transformers", True),
    (LLAMAFACTORY, "bf16", "llamafactory", True),
    (LLAMAFACTORY, "bf16", "megatron", False),
    (
        "compute_environment: X\nnum_processes: 2\ntensor_parallel_size: 2\n",
        "--tensor-parallel-size",
        "vllm",
        False,
    ),
    ("model: m\ntensor-parallel-size: 2\n", "--tensor-parallel-size", "vllm", True),
    ("data: {a: 1}\ntrainer: {b: 1}\nworker: {c: 1}\n", "data.a", "verl", False),
    ("data: {a: 1}\ntrainer: {b: 1}\n", "data.a", "verl", True),
]


@each_row(("text", "key", "framework", "written"), OWNED)
def test_a_file_of_one_framework_is_not_changed_for_another(
    text: str, key: str, framework: str, written: bool
) -> None:
    """The same key means another thing there, unless the one hands its settings on to the other."""
    assert carries(text, target(key, 8, framework=framework)) is written


def test_settings_of_a_json_file_are_not_written_into_yaml() -> None:
    """The trainer's own `gradient_accumulation_steps` takes no `auto`."""
    with pytest.raises(NotPatchableError, match="JSON"):
        apply(
            "gradient_accumulation_steps: 8\n",
            target("gradient_accumulation_steps", "auto", framework="deepspeed", spelled="json"),
        )


@each_row(
    ("name", "written"),
    [("rollout.yaml", True), ("dp_rollout.yaml", True), ("actor.yaml", False), ("config.yaml", False)],
)
def test_a_group_is_known_by_the_name_of_its_file(name: str, written: bool) -> None:
    """One level alone may be another role's: then the file's name must tell."""
    wanted = target(GPU, 0.5)
    assert carries("gpu_memory_utilization: 0.9\n", wanted, name) is written


# Text, key, value, words of the reason.
REFUSED: list[tuple[str, str, Scalar, str]] = [
    ("t:\n  b: ${oc.env:B}\n", "t.b", 8, "line 2 is computed"),
    ("t:\n  b: '${x.y}'\n", "t.b", 8, "computed"),
    ("t:\n  b: |\n    8\n", "t.b", 8, "line 2 holds a block"),
    ("t:\n  b: [1]\n", "t.b", 8, "line 2 holds a list"),
    ("t:\n  b: {c: 1}\n", "t.b", 8, "line 2 holds a mapping"),
    ("t:\n  b:\n  - 1  # the first\n  - 2\n", "t.b", "['x']", "by hand"),
    ("t:\n  b:\n  - c: 1\n", "t.b", "['x']", "by hand"),
    ("t:\n  b: 1\n", "t.b", "['x']", "a single value"),
    ("t:\n  b: !!int 1\n", "t.b", 8, "tag"),
    ("x: &x 1\ny: *x\n", "x", 8, "line 1 is used elsewhere"),
    ("x: &x\n  a: 1\ny: *x\n", "x.a", 8, "line 1 shares"),
    ("x: &x\n  a: 1\ny: *x\n", "y.a", 8, "line 3 shares"),
    ("x: &x\n  a: 1\ny: *x\n", "y.b", 8, "line 3 shares"),
    ("x: &x\n  t: {a: 1}\ny:\n  <<: *x\n", "y.t.a", 8, "merge key"),
    ("x: &x\n  a: 1\ny:\n  <<: *x\n", "x.a", 8, "line 1 shares"),
    ("t:\n  b: 1\n  b: 2\n", "t.b", 8, "stands twice (lines 2 and 3)"),
    ("t.b: 1\nt:\n  b: 1\n", "t.b", 8, "more than once (lines 1, 3)"),
    ("a: 1\nb: 1\n", "a|b", 8, "more than once"),
    ("t: 1\n", "t.b", 8, "line 1 is no mapping"),
    ("t:\n- b: 1\n", "t.b", 8, "line 1 is no mapping"),
    ("a: 1\n---\na: 2\n", "a", 8, "2 YAML documents"),
    ("t:\n\tb: 1\n", "t.b", 8, "line 2 is no valid YAML"),
    ("t: [1\n", "t.b", 8, "no valid YAML"),
    ("t: {{ b }}\n", "t", 8, "line 1"),
    ("- a\n- b\n", "a", 8, "no YAML mapping"),
    ("", "a", 8, "0 YAML documents"),
    ("# none\n", "a", 8, "0 YAML documents"),
    ("u: 1\n", "t.b", 8, "no `t`"),
    ("u: 1\n", "b", 8, "does not look like"),
    ("a: 1\rb: 2\n", "a", 8, "line 1 has a carriage return"),
    ("x: &x [*x]\na: 1\n", "a", 8, "contains itself"),
    ("x: !secret y\na: 1\n", "a", 8, "safe loader"),
    ("a: " + "[" * 3000, "a", 8, "more than 60 levels"),
    ("- " * 3000, "a", 8, "more than 60 levels"),
    ("".join(f"{' ' * 2 * level}k:\n" for level in range(200)), "a", 8, "more than 60 levels"),
    ("optim:\n  lr: 1\n", "critic.optim.lr", 8, "no `critic`"),
    ("a: 1\n", "a", float("nan"), "no number"),
]  # fmt: skip


@each_row(("before", "after", "to"), LISTS)
def test_that_a_list_of_words_gives_way_to_another_or_to_one_word(
    before: str, after: str, to: Scalar, tmp_path: Path
) -> None:
    """One word only where the setting takes it so."""
    asked = target("b", to)
    either = replace(asked, is_word_or_list=True)
    assert apply(before, either) == after
    assert holds(after, either)
    assert goes_back_and_forth(tmp_path, before, after, "a.yaml")
    if isinstance(to, str) and not to.startswith("["):
        with pytest.raises(NotPatchableError, match="holds a list"):
            apply(before, asked)


@each_row(("text", "key", "to", "reason"), REFUSED)
def test_what_cannot_be_changed_safely_is_refused_with_its_line(
    text: str, key: str, to: Scalar, reason: str
) -> None:
    with pytest.raises(NotPatchableError) as refused:
        apply(text, target(key, to))
    assert reason in str(refused.value)
    assert not holds(text, target(key, to))


def test_a_short_file_that_stands_for_a_huge_one_is_refused() -> None:
    """Aliases of aliases are counted before anything is compared."""
    rows = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 12)]
    with pytest.raises(NotPatchableError, match="too many values"):
        apply("\n".join(rows) + "\na: 1\n", target("a", 8))


@each_row("kind", ["env", "package", "command"])
def test_only_settings_are_written_into_a_file_of_settings(kind: ChangeKind) -> None:
    with pytest.raises(NotPatchableError):
        apply("a: 1\n", target("a", 8, kind=kind))


# Generated documents: nested, commented, in block and flow style, with whatever quotes, indentation and line
# ends.
KEYS = st.sampled_from(["lr", "n", "batch_size", "Path", "k9", "offload", "mode"])
SCALARS = st.sampled_from(
    [
        "1",
        "0.5",
        "1e-5",
        "1.0e-06",
        "true",
        "False",
        "no",
        "word",
        "two words",
        "'q'",
        "'it''s'",
        '"d"',
        '"a: # b"',
        "/a/b-c.d",
        "null",
        "~",
        "'8'",
        "量",
        "2020-01-01",
        "0x1F",
        "1_000",
    ]
)
COMMENTS = st.sampled_from(["", "", "", " # why", "   # a: 1", " # 注"])
BETWEEN = st.sampled_from(["", "", "", "\n", "# x: 1\n", "      # deep\n", "\n\n"])
NEW = st.one_of(
    st.integers(-9, 10**9),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["auto", "no", "1e-5", "bf16", "a b", "x: y", "['a']x", "it's", "#x", "", " x", "-", "=1", "量"]
    ),
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Write a YAML mapping as people do."""
    step = draw(st.sampled_from([2, 2, 3, 4]))

    def flow(depth: int) -> str:
        if depth > 1 or draw(st.booleans()):
            return draw(SCALARS)
        if draw(st.booleans()):
            return "[" + ", ".join(draw(st.lists(SCALARS, max_size=3))) + "]"
        keys = draw(st.lists(KEYS, max_size=3, unique=True))
        return (
            "{"
            + draw(st.sampled_from([", ", " ,  "])).join(f"{key}: {flow(depth + 1)}" for key in keys)
            + "}"
        )

    def block(depth: int, indent: int) -> str:
        rows = []
        for key in draw(st.lists(KEYS, min_size=1, max_size=4, unique=True)):
            head = (
                draw(BETWEEN)
                + " " * indent
                + draw(st.sampled_from(["{}:", "{}:", '"{}":', "'{}' :"])).format(key)
            )
            shape = draw(st.sampled_from(["scalar", "scalar", "flow", "block", "list", "empty", "text"]))
            if shape == "block" and depth < 3:
                rows.append(f"{head}{draw(COMMENTS)}\n{block(depth + 1, indent + step)}")
            elif shape == "list":
                dash = " " * (indent + draw(st.sampled_from([0, step])))
                rows.append(
                    head
                    + draw(COMMENTS)
                    + "\n"
                    + "".join(
                        f"{dash}- {draw(SCALARS)}{draw(COMMENTS)}\n" for _ in range(draw(st.integers(1, 2)))
                    )
                )
            elif shape == "text":
                rows.append(
                    f"{head} {draw(st.sampled_from(['|', '>', '|-', '|+']))}\n{' ' * (indent + step)}text "
                    f"# no comment\n{draw(st.sampled_from(['', chr(10)]))}"
                )
            elif shape == "empty":
                rows.append(f"{head}{draw(COMMENTS)}\n")
            else:
                rows.append(f"{head} {flow(0) if shape == 'flow' else draw(SCALARS)}{draw(COMMENTS)}\n")
        return "".join(rows)

    text = draw(st.sampled_from(["", "", "---\n", "# head\n"])) + block(0, 0)
    text = text.rstrip("\n") if draw(st.booleans()) else text
    return text.replace("\n", "\r\n") if draw(st.integers(0, 4)) == 0 else text


def paths(data: Any, above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Give all paths through mappings with their values."""
    found = [((*above, key), value) for key, value in data.items()]
    return found + [below for path, value in found if isinstance(value, dict) for below in paths(value, path)]


def with_value(data: Any, path: tuple[str, ...], value: object) -> Any:
    """Give a copy of the data with one value put in."""
    whole = copy.deepcopy(data)
    place = whole
    for key in path[:-1]:
        if place.get(key) is None:
            place[key] = {}
        place = place[key]
    place[path[-1]] = value
    return whole


QUICK = settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(documents(), NEW, st.data())
def test_exactly_the_value_differs_after_a_change(text: str, to: Scalar, data: st.DataObject) -> None:
    """Whatever the layout, the parsed file is the old one with the new value; all else stays to the byte."""
    before = yaml.safe_load(text)
    flat = [(path, value) for path, value in paths(before) if not isinstance(value, dict | list)]
    if not flat:
        return
    path, _ = data.draw(st.sampled_from(flat))
    wanted = target(".".join(path), to)
    if holds(text, wanted):
        assert apply(text, wanted) == text
        return
    try:
        after = apply(text, wanted)
    except NotPatchableError as error:
        assert "block of text" in str(error)  # noqa: PT017 - the rest of the rule follows
        return
    _check(text, after, before, path, wanted)
    assert changed_lines(text, after) == (1, 1)


@QUICK
@given(
    documents(),
    NEW,
    st.data(),
    st.lists(st.sampled_from(["new", "other_new"]), min_size=1, max_size=2, unique=True),
)
def test_exactly_the_key_is_new_after_an_addition(
    text: str, to: Scalar, data: st.DataObject, missing: list[str]
) -> None:
    """Whatever the layout of the mapping, the key stands at its end and the rest stays."""
    before = yaml.safe_load(text)
    parents = [path for path, value in paths(before) if isinstance(value, dict) or value is None]
    if not parents:
        return
    path = (*data.draw(st.sampled_from(parents)), *missing)
    wanted = target(".".join(path), to)
    try:
        after = apply(text, wanted)
    except NotPatchableError as error:
        assert any(reason in str(error) for reason in ("no mapping", "empty value", "more than this value"))  # noqa: PT017
        return
    _check(text, after, before, path, wanted)


def _check(text: str, after: str, before: Any, path: tuple[str, ...], wanted: PatchTarget) -> None:
    now = yaml.safe_load(after)
    value = now
    for key in path:
        value = value[key]
    assert now == with_value(before, path, value)
    assert (
        value == wanted.to
        or str(value) == wanted.to
        or (isinstance(value, int | float) and float(value) == float(wanted.to))
    )
    assert holds(after, wanted)
    assert apply(after, wanted) == after


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=documents(), to=st.integers(100, 999))
def test_the_diff_of_any_layout_applies_and_goes_back(
    text: str, to: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flat = [path for path, value in paths(yaml.safe_load(text)) if isinstance(value, int | float)]
    if flat:
        after = apply(text, target(".".join(flat[0]), to))
        assert goes_back_and_forth(tmp_path_factory.mktemp("git"), text, after, "config.yaml")


@each_row(
    ("text", "key", "after"),
    [
        (
            "training_args:\n  weight_decay: 0.1\n  gradient_checkpointing: false\n",
            "gradient_checkpointing",
            "training_args:\n  weight_decay: 0.1\n  gradient_checkpointing: true\n",
        ),
        # A single word may mean anything, and of two sections nobody knows which is meant.
        ("model:\n  optim: false\n", "optim", None),
        ("a:\n  save_all: false\nb:\n  save_all: false\n", "save_all", None),
        # What the file has at its top is not looked for below.
        ("save_all: false\na:\n  save_all: false\n", "save_all", "save_all: true\na:\n  save_all: false\n"),
    ],
)
def test_that_a_program_s_own_section_may_hold_a_framework_s_setting(
    text: str, key: str, after: str | None
) -> None:
    wanted = target(key, to=True, framework="transformers", spelled="yaml")
    if after is None:
        with pytest.raises(NotPatchableError):
            apply(text, wanted)
    else:
        assert apply(text, wanted) == after
        assert holds(after, wanted)
