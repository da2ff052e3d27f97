"""A notebook's cells as code: what is read of them, and how an edit is written back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.configfiles import notebook
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.reader import read
from tests.tables import each_row

CELLS = (
    "import torch\nx = 3\ny = 'a\\nb'",
    "!pip install \\\n  peft==0.5.0\n%env NCCL_DEBUG=INFO\nif x:\n    !ls \\\n     -l\nm=LLM(\n    seed=2)\n",
    "%%bash\ntorchrun train.py --lr 3",
    "%%time\nsteps = 5",
    "not Python at all",
    "",
    "z = 1",
)
LAYOUTS = [1, 2, None]


def written(*sources: str, as_list: bool = True, is_old: bool = False, indent: int | None = None) -> str:
    """Write a notebook of code cells below one of text."""
    key, count = ("input", "prompt_number") if is_old else ("source", "execution_count")
    cells: list[dict[str, object]] = [{"cell_type": "markdown", "metadata": {}, "source": ["lr = 9"]}]
    for number, source in enumerate(sources):
        text = source.splitlines(keepends=True) if as_list else source
        cells.append({"cell_type": "code", count: number or None, "metadata": {}, "outputs": [], key: text})
    held = {"worksheets": [{"cells": cells}]} if is_old else {"cells": cells}
    return json.dumps({**held, "metadata": {}, "nbformat": 3 if is_old else 4}, indent=indent)


def code_of(text: str) -> str:
    """Give the code of a text that is a notebook."""
    code = notebook.code_of(text)
    assert code is not None
    return code


@each_row("is_old", [False, True])
def test_settings_are_read_of_code_and_of_what_is_ipythons_own(is_old: bool) -> None:
    """A magic beside it, or a cell that is no Python, takes nothing from the others; text is no code."""
    found = {item.key: item.value for item in read(code_of(written(*CELLS, is_old=is_old)), "run.ipynb")}
    assert found == {
        "x": "3", "y": "a\nb", "l": "true", "peft": "==0.5.0", "NCCL_DEBUG": "INFO", "seed": "2", "lr": "3",
        "steps": "5", "z": "1",
    }  # fmt: skip


def test_a_row_is_named_by_its_cell() -> None:
    """By the count that the traceback has, by the cell's place where it was not run."""
    code = code_of(written(*CELLS))
    rows = code.split("\n")
    assert notebook.place_of(code, rows.index("x = 3") + 1) == "cell 2:2"
    assert notebook.place_of(code, rows.index("m=LLM(") + 1) == "In [1]:7"
    assert notebook.place_in("a/b.py", code, 4) == "b.py:4"


@each_row("indent", LAYOUTS)
@each_row("as_list", [True, False])
@each_row(
    ("old", "new"),
    [
        ("x = 3", "x = 4"),
        ("x = 3", "x = 4\nw = 'ü'"),
        ("y = 'a\\nb'", "y = 'a\\tb'"),
        ("z = 1", "z = 1\nq = 2"),
        ("import torch\n", "import os\nimport torch\n"),
        ("# In[ ]: cell 2\n", "import os\n# In[ ]: cell 2\n"),
        ("x = 3\n", ""),
        ("    seed=2)", "    seed=3)"),
        ("steps = 5", "steps = 6"),
    ],
)
def test_an_edit_changes_the_rows_of_its_cell_alone(
    indent: int | None, as_list: bool, old: str, new: str
) -> None:
    """All else stays to the byte; taken back, the file is what it was."""
    text = written(*CELLS, as_list=as_list, indent=indent)
    before = code_of(text)
    after = before.replace(old, new, 1)
    made = notebook.rewritten(text, before, after)
    now = [cell.rows for cell in notebook.cells_of(code_of(made))]
    assert now == [cell.rows for cell in notebook.cells_of(after)]
    assert notebook.rewritten(made, code_of(made), before) == text
    rows, others = text.split("\n"), made.split("\n")
    if indent and as_list:
        assert len([row for row in rows if row not in others]) <= 2


@each_row("old", ["# ipython: %env NCCL_DEBUG=INFO\n", "# In[1]: cell 3\n", "# ipython: not Python at all"])
def test_what_is_no_row_of_python_is_not_edited(old: str) -> None:
    text = written(*CELLS)
    before = code_of(text)
    with pytest.raises(NotPatchableError):
        notebook.rewritten(text, before, before.replace(old, "x = 9\n"))


@given(st.lists(st.text("ab=1 \n\\\"'üé\u2028\t#(", max_size=40), max_size=4), st.booleans())
def test_any_source_keeps_its_rows(sources: list[str], as_list: bool) -> None:
    """Each row of a cell is one of the code, whatever it holds, and a file that nothing changes stays."""
    text = written(*sources, as_list=as_list, indent=1)
    code = code_of(text)
    assert [len(cell.rows) for cell in notebook.cells_of(code)] == [
        source.count("\n") + 1 for source in sources
    ]
    assert notebook.rewritten(text, code, code) == text


@each_row("text", ["", "{}", "[1]", "x = 1", '{"cells": ', '{"a": 1}'])
def test_what_is_no_notebook_has_no_code(text: str) -> None:
    assert notebook.code_of(text) is None
