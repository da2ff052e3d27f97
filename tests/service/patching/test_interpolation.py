"""A value that a configuration takes from another key is changed at that key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from service.patching.interpolation import followed
from service.patching.patches import ConfigFile, patch_files
from tests.service.patching.applying import goes_back_and_forth, target
from tests.tables import each_row

RUN = "rows: 64\n"
ROWS = replace(target("model.rows", 32, framework="python", spelled=""), present="64")


@each_row(
    ("texts", "key"),
    [
        ({"a.yaml": "model:\n  rows: ${..run.rows}\n", "run/debug.yaml": RUN}, "run.rows"),
        ({"a.yaml": "model:\n  rows: ${run.rows}\nrun:\n  rows: 64\n"}, "run.rows"),
        ({"a.yaml": "size: 64\nmodel:\n  rows: ${.size}\n  size: 64\n"}, "model.size"),
        ({"a.yaml": "b: 64\na: ${b}\nmodel:\n  rows: ${a}\n"}, "b"),
        # The run had another value, two keys take it, two files have it, or it is worked out.
        ({"a.yaml": "model:\n  rows: ${run.rows}\nrun:\n  rows: 16\n"}, "model.rows"),
        ({"a.yaml": "model:\n  rows: ${run.rows}\n  n: ${run.rows}\nrun:\n  rows: 64\n"}, "model.rows"),
        ({"a.yaml": "model:\n  rows: ${b}\nb: 64\n", "c.yaml": "b: 64\n"}, "model.rows"),
        ({"a.yaml": "model:\n  rows: ${oc.env:ROWS}\n"}, "model.rows"),
        ({"a.yaml": "model:\n  rows: ${model.rows}\n"}, "model.rows"),
        ({"a.yaml": "model:\n  rows: 64\n"}, "model.rows"),
        ({"run.sh": "python a.py model.rows=${ROWS}\n"}, "model.rows"),
    ],
)
def test_that_a_reference_is_followed_to_the_one_place_of_the_value(texts: dict[str, str], key: str) -> None:
    files = [ConfigFile(name, text) for name, text in texts.items()]
    assert followed(files, ROWS).names == (key,)


def test_that_the_file_which_holds_the_value_is_patched(tmp_path: Path) -> None:
    files = [ConfigFile("a.yaml", "model:\n  rows: ${..run.rows}\n"), ConfigFile("run/debug.yaml", RUN)]
    (edit,) = patch_files(files, [followed(files, ROWS)]).edits
    assert (edit.file.name, edit.after) == ("run/debug.yaml", "rows: 32\n")
    assert goes_back_and_forth(tmp_path, RUN, edit.after, "debug.yaml")


@each_row(
    ("texts", "after"),
    [
        # Another file may hold the group that the key is of.
        ({"a.yaml": "model:\n  width: 1\n", "net.yaml": "text:\n  rows: null\n"}, []),
        ({"a.yaml": "model:\n  width: 1\n", "b.yaml": "rows: 1\n"}, ["a.yaml"]),
        # The program works out what its configuration leaves empty.
        ({"a.yaml": "model:\n  text:\n    rows:\n"}, []),
        ({"a.yaml": "model:\n  text:\n    rows: 64\n"}, ["a.yaml"]),
    ],
)
def test_that_no_key_is_added_beside_the_file_that_may_hold_it(
    texts: dict[str, str], after: list[str]
) -> None:
    wanted = replace(ROWS, names=("model.text.rows",))
    made = patch_files([ConfigFile(name, text) for name, text in texts.items()], [wanted])
    assert [edit.file.name for edit in made.edits] == after
    assert bool(made.left_out) is not bool(after)
