"""Changes of JSON files: indentation, separators and order stay; what is no plain JSON is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.schema import ChangeKind, Scalar
from ingest.configfiles.errors import NotPatchableError
from service.patching.json_file import apply, carries, holds
from tests.service.patching.applying import goes_back_and_forth, target
from tests.service.patching.test_yaml_patch import paths, with_value
from tests.tables import each_row

STAGE = "zero_optimization.stage"
MARKED = '{\n  "train_batch_size": 8,\n  "fp16": {"enabled": true}\n}\n'

# Before, after, key, value.
REPLACED: list[tuple[str, str, str, Scalar]] = [
    ('{"zero_optimization": {"stage": 3}}\n', '{"zero_optimization": {"stage": 2}}\n', STAGE, 2),
    (
        '{\n\t"zero_optimization" : {\n\t\t"stage" :3 }\n}',
        '{\n\t"zero_optimization" : {\n\t\t"stage" :2 }\n}',
        STAGE,
        2,
    ),
    ('{"a": "auto", "b": 1}', '{"a": 8, "b": 1}', "a", 8),
    ('{"a": 8}', '{"a": "auto"}', "a", "auto"),
    ('{"a": true}', '{"a": false}', "a", False),
    ('{"a": true}', '{"a": false}', "a", "False"),
    ('{"a": 29500}', '{"a": 29617}', "a", "29617"),
    ('{"a": 5e8, "b": 1E5}', '{"a": 5e8, "b": 0.5}', "b", 0.5),
    ('{"a": null}', '{"a": "8"}', "a", "8"),
    ('{"a": null}', '{"a": "cpu"}', "a", "cpu"),
    ('{"a": "\\u4e2d\\"x", "b": "y"}', '{"a": "\\u4e2d\\"x", "b": "z \\"量\\""}', "b", 'z "量"'),
    ('{"a": ["x"]}', '{"a": ["y", "z"]}', "a", "['y', 'z']"),
    ('\ufeff{"a": 1}', '\ufeff{"a": 8}', "a", 8),
    ('{"a": 1,\r\n "b": 2}\r\n', '{"a": 8,\r\n "b": 2}\r\n', "a", 8),
]
ADDED: list[tuple[str, str, str, Scalar]] = [
    ('{"t": {"a": 1}}', '{"t": {"a": 1, "b": 8}}', "t.b", 8),
    ('{"t":{"a":1}}', '{"t":{"a":1,"b":8}}', "t.b", 8),
    ('{"t": {"a": 1, "c": 2}}', '{"t": {"a": 1, "c": 2, "b": 8}}', "t.b", 8),
    ('{\n  "t": {\n    "a": 1\n  }\n}\n', '{\n  "t": {\n    "a": 1,\n    "b": 8\n  }\n}\n', "t.b", 8),
    (
        '{\r\n  "t": {\r\n    "a": 1\r\n  }\r\n}',
        '{\r\n  "t": {\r\n    "a": 1,\r\n    "b": 8\r\n  }\r\n}',
        "t.b",
        8,
    ),
    ('{"t": {}}', '{"t": {"b": 8}}', "t.b", 8),
    ('{\n  "t": {\n  }\n}\n', '{\n  "t": {\n    "b": 8\n  }\n}\n', "t.b", 8),
    ('{"t": {"a": 1}}', '{"t": {"a": 1, "b": {"c": 8}}}', "t.b.c", 8),
]


@each_row(("before", "after", "key", "to"), [*REPLACED, *ADDED])
def test_a_value_is_written_where_it_belongs(
    before: str, after: str, key: str, to: Scalar, tmp_path: Path
) -> None:
    wanted = target(key, to, framework="deepspeed")
    assert carries(before, wanted) is ((before, after, key, to) in REPLACED)
    assert apply(before, wanted) == after
    assert holds(after, wanted)
    assert apply(after, wanted) == after
    assert goes_back_and_forth(tmp_path, before, after, "ds.json")


def test_a_key_without_levels_is_added_to_a_configuration_of_deepspeed() -> None:
    made = apply(MARKED, target("gradient_clipping", 0.5, framework="deepspeed"))
    assert made == MARKED.replace("true}\n", 'true},\n  "gradient_clipping": 0.5\n')


def test_that_a_section_which_is_missing_is_added_to_a_configuration_of_deepspeed() -> None:
    """Of the framework whose settings the file has, and of no other."""
    made = apply(MARKED, target("checkpoint.load_universal", True, framework="deepspeed"))
    assert json.loads(made) == json.loads(MARKED) | {"checkpoint": {"load_universal": True}}
    with pytest.raises(NotPatchableError):
        apply(MARKED, target("checkpoint.load_universal", True, framework="verl"))


def test_a_variable_is_a_string_in_a_runtime_environment() -> None:
    """Ray hands `env_vars` on as they are; numbers among them are errors."""
    wanted = target("NCCL_CUMEM_ENABLE", 0, kind="env")
    made = apply('{"pip": [], "env_vars": {"A": "1"}}', wanted)
    assert made == '{"pip": [], "env_vars": {"A": "1", "NCCL_CUMEM_ENABLE": "0"}}'
    assert (
        apply('{"env_vars": {"NCCL_CUMEM_ENABLE": "1"}}', wanted)
        == '{"env_vars": {"NCCL_CUMEM_ENABLE": "0"}}'
    )
    assert holds(made, wanted)


@each_row(
    ("text", "key", "to", "kind", "reason"),
    [
        ('{\n  // why\n  "a": 1}', "a", 8, "setting", "line 2 has comments"),
        ('{"a": 1, /* x */ "b": 2}', "a", 8, "setting", "comments"),
        ('{"a": 1,}', "a", 8, "setting", "line 1 has no valid JSON"),
        ("", "a", 8, "setting", "no valid JSON"),
        ("{", "a", 8, "setting", "no valid JSON"),
        ("[1]", "a", 8, "setting", "no JSON object"),
        ('{"a": 1}\n{"a": 2}', "a", 8, "setting", "line 2"),
        ('{"a": 1, "b": {"c": 1,\n"c": 2}}', "a", 8, "setting", "twice (lines 1 and 2)"),
        ('{"a": {"b": 1}}', "a", 8, "setting", "line 1 holds an object"),
        ('{"a": [1]}', "a", 8, "setting", "another kind"),
        ('{"a": "${X}"}', "a", 8, "setting", "computed"),
        ('{"u": 1}', "t.b", 8, "setting", "no `t`"),
        ('{"u": 1}', "b", 8, "setting", "does not look like"),
        ('{"t": 1}', "t.b", 8, "setting", "no mapping"),
        ('{"a": 1}', "A", 8, "env", "env_vars"),
        ('{"a": 1}', "a", ">=2", "package", "package"),
        ('{"a": 1}', "a", float("inf"), "setting", "no number"),
        ('{"b": 1, "a": ' + "[" * 400 + "]" * 400 + "}", "b", 8, "setting", "more than 100 levels"),
        ('{"a": ' + "[" * 100_000, "a", 8, "setting", "no "),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(
    text: str, key: str, to: Scalar, kind: ChangeKind, reason: str
) -> None:
    with pytest.raises(NotPatchableError) as refused:
        apply(text, target(key, to, kind=kind))
    assert reason in str(refused.value)
    assert not holds(text, target(key, to, kind=kind))


def test_that_one_word_takes_the_place_of_a_list_where_the_setting_says_so() -> None:
    either = replace(target("a", "all-linear"), is_word_or_list=True)
    assert apply('{"a": ["q", "k"], "b": 1}', either) == '{"a": "all-linear", "b": 1}'
    with pytest.raises(NotPatchableError, match="another kind"):
        apply('{"a": [{"q": 1}]}', either)


KEYS = st.sampled_from(["lr", "stage", "Path", "k 9", 'q"', "量"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
)
OBJECTS = st.recursive(
    st.dictionaries(KEYS, VALUES, max_size=3),
    lambda inner: st.dictionaries(KEYS, st.one_of(VALUES, inner, st.lists(inner, max_size=2)), max_size=4),
)
LAYOUTS = st.fixed_dictionaries({
    "indent": st.sampled_from([None, None, 1, 2, 4, "\t"]), "ensure_ascii": st.booleans(),
    "separators": st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]),
})  # fmt: skip


@settings(max_examples=200, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(OBJECTS, LAYOUTS, VALUES.filter(lambda value: value is not None), st.data())
def test_exactly_one_value_differs_after_a_change(
    whole: dict[str, Any], layout: dict[str, Any], to: Scalar, data: st.DataObject
) -> None:
    """Old and new keys of any object in any layout: the rest stays as parsed, and to the byte around the
    edit.
    """
    text = json.dumps(whole, **layout)
    parents = [(), *(path for path, value in paths(whole) if isinstance(value, dict))]
    spots = [path for path, value in paths(whole) if not isinstance(value, dict | list)] + [
        (*path, "new") for path in parents if path
    ]
    if not spots:
        return
    path = data.draw(st.sampled_from(spots))
    wanted = target(".".join(path), to)
    if "${" in text or (isinstance(to, str) and to.startswith("[")):
        return
    after = apply(text, wanted)
    value = json.loads(after)
    for key in path:
        value = value[key]
    assert json.loads(after) == with_value(whole, path, value)
    assert holds(after, wanted)
    assert apply(after, wanted) == after


@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(whole=OBJECTS, layout=LAYOUTS, to=st.integers(100, 999))
def test_the_diff_of_any_layout_applies_and_goes_back(
    whole: dict[str, Any], layout: dict[str, Any], to: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = json.dumps({"t": whole}, **layout)
    after = apply(text, target("t.new", to))
    assert goes_back_and_forth(tmp_path_factory.mktemp("git"), text, after, "ds.json")
