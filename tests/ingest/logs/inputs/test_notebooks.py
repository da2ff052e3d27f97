"""Notebooks as logs: what their cells printed and raised, line by line of the file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.logs.inputs.notebook_order import past_cells
from ingest.logs.inputs.notebooks import LONGEST_NAME, MOST_VALUES, as_output, is_notebook
from ingest.logs.inputs.sources import LogSource
from tests.factories import ReadLog
from tests.tables import each_row


def notebook(*printed: str, raised: tuple[str, str] | None = None) -> str:
    """Write a notebook of one cell, as Jupyter does."""
    outputs: list[dict[str, object]] = [{"name": "stdout", "output_type": "stream", "text": list(printed)}]
    if raised:
        name, said = raised
        calls = ["\x1b[0;31m-----\x1b[0m", "Cell \x1b[0;32mIn[1], line 1\x1b[0m\n----> 1 train()\n"]
        told = f"\x1b[0;31m{name}\x1b[0m: {said}"
        failed: dict[str, object] = {
            "ename": name,
            "evalue": said,
            "output_type": "error",
            "traceback": [*calls, told],
        }
        outputs.append(failed)
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": outputs,
        "source": ["train()"],
    }
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_that_an_exception_of_a_cell_is_told_as_the_job_said_it(read: ReadLog) -> None:
    """Without the strings' quotes and colours, on the line of the file that has it, and once."""
    said = "CUDA out of memory. Tried to allocate 2.00 GiB"
    text = notebook("step 1 loss 2.0\n", "step 2 loss 1.9\n", raised=("OutOfMemoryError", said))
    report = read(text)
    assert report.root is not None
    # The traceback ends with what stands above it under a key of its own.
    line = max(n for n, row in enumerate(text.split("\n"), 1) if said in row)
    assert (report.root.line, report.root.text) == (line, f"OutOfMemoryError: {said}")
    assert [event.count for event in report.events] == [1]
    assert read(text.replace("traceback", "other")).root is not None, "where the traceback was not kept"


def test_that_only_a_notebook_is_read_as_one() -> None:
    assert is_notebook(notebook("a").encode())
    assert not is_notebook(b'{"level": "error", "cells": 3}\n')
    assert not is_notebook(b'Traceback (most recent call last):\n{"cells": ["cell_type"]}')


@given(printed=st.lists(st.text(max_size=30), max_size=5), size=st.integers(1, 200))
def test_that_lines_keep_their_numbers_however_the_file_is_cut(printed: list[str], size: int) -> None:
    """The same text for any size of chunks; each string stands on its own line."""
    data = notebook(*printed, raised=("ValueError", "x")).encode()
    whole = b"".join(as_output(iter([data])))
    assert b"".join(as_output(data[at : at + size] for at in range(0, len(data), size))) == whole
    rows = whole.split(b"\n")
    assert len(rows) == len(data.split(b"\n"))
    for text in printed:
        assert text.removesuffix("\n").replace("\n", "\\n").encode("utf-8", "replace") in rows


LOSS = "{'loss': 2.1, 'grad_norm': 0.4, 'epoch': 0.1}\n"
GONE = ("ValueError", "bad value")


def cell(
    count: int | None, source: str, printed: str = "", raised: tuple[str, str] | None = None
) -> dict[str, object]:
    """Make a cell of code with what it printed and raised."""
    outputs: list[dict[str, object]] = []
    if printed:
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if raised:
        name, said = raised
        head = f"{name:42}Traceback (most recent call last)"
        call = f"Cell In[{count}], line 1\n----> 1 {source}\n"
        told = [head, call, f"{name}: {said}"]
        outputs.append({"ename": name, "evalue": said, "output_type": "error", "traceback": told})
    code: dict[str, object] = {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {},
        "outputs": outputs,
    }
    return {**code, "source": source.splitlines(keepends=True)}


def page(*cells: dict[str, object]) -> str:
    """Write a notebook of cells."""
    held = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(held, indent=1) + "\n"


def of_version_3(text: str) -> str:
    """Lay a notebook out as nbformat 3 has it."""
    cells = json.loads(text.replace('"source"', '"input"').replace('"error"', '"pyerr"'))["cells"]
    old = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}
    return json.dumps(old, indent=1)


def of_databricks(text: str) -> str:
    """Put the exception where Databricks exports it: one string, in the metadata of an output."""
    held = json.loads(text)
    for output in (output for each in held["cells"] for output in each["outputs"]):
        if rows := output.pop("traceback", None):
            told = {"data": "\n".join(rows), "errorSummary": rows[-1], "type": "ipynbError"}
            output.update(output_type="display_data", metadata={"application/vnd.databricks.v1+output": told})
            del output["ename"], output["evalue"]
    return json.dumps(held, indent=4)


def of_one_string(text: str) -> str:
    """Write what a cell holds as one string, and the file on a single line, as Kaggle does."""
    held = json.loads(text)
    for each in held["cells"]:
        each["source"] = "".join(each["source"])
        for output in (output for output in each["outputs"] if "text" in output):
            output["text"] = "".join(output["text"])
    return json.dumps(held)


def of_colab(text: str) -> str:
    """Put the source and the kind above the count, as Colab does."""
    held = json.loads(text)
    first = ("cell_type", "source", "metadata", "execution_count", "outputs")
    cells = [{key: each[key] for key in first} for each in held["cells"]]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}, indent=2)


@each_row("write", [str, of_version_3, of_databricks, of_one_string, of_colab])
def test_an_exception_is_read_of_each_writer(write: Callable[[str], str], read: ReadLog) -> None:
    """Whatever the version, the layout and the order of the keys."""
    text = page(cell(1, "x = 1", "hello\n"), cell(2, "fit(x)", LOSS, GONE))
    root = read(write(text)).root
    assert root is not None
    assert root.body == "ValueError: bad value"
    assert [(frame.file, frame.line, frame.code) for frame in root.frames] == [("In [2]", 1, "fit(x)")]


@each_row("write", [str, of_version_3, of_databricks, of_one_string, of_colab])
def test_code_and_text_of_cells_are_no_output(write: Callable[[str], str], read: ReadLog) -> None:
    """Code may raise or print the very words of a failure, and a text beside it tell of one."""
    words = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    sources = [f"raise RuntimeError('{words}')", f'# {words}\nprint("""\n{words}\n""")']
    text = {**cell(None, f"I had this:\n\n{words}"), "cell_type": "markdown"}
    report = read(write(page(text, *(cell(n, source, "fine\n") for n, source in enumerate(sources, 1)))))
    assert report.events == ()


@each_row(
    ("cells", "fails"),
    [
        # A copy of the cell ran to its end later, with another value; or before, and fails now.
        ([cell(1, "fit(size=16)", "", GONE), cell(2, "fit(size=8)", LOSS)], False),
        ([cell(2, "fit(size=16)", "", GONE), cell(1, "fit(size=8)", LOSS)], True),
        ([cell(None, "fit(size=16)", "", GONE), cell(None, "fit(size=8)", LOSS)], False),
        ([cell(1, "fit(size=16)", "", GONE), cell(2, "fit(size=8)", "", GONE)], True),
        ([cell(1, "fit(size=16)", "", GONE), cell(None, "fit(size=8)")], True),
        ([cell(1, "fit(size=16)", "", GONE), cell(2, "other()", "x\n")], True),
        # Steps below the failure were made before it.
        ([cell(9, "fit(size=16)", "", GONE), cell(3, "warm_up()", LOSS * 9)], True),
        ([cell(1, "fit(size=16)", "", GONE), cell(3, "warm_up()", LOSS * 9)], False),
    ],
)
def test_the_state_of_the_last_run_counts(cells: list[dict[str, object]], fails: bool, read: ReadLog) -> None:
    """The counts tell the order in which cells were run, which is not that of the page."""
    assert (read(page(*cells)).root is not None) is fails


@each_row(
    "cells",
    [
        # What a text names is other work, whatever function does it.
        [cell(3, 'run_stage("train")', "", GONE), cell(4, 'run_stage("report")', "Training completed\n")],
        # A kernel that was started anew counts from one again.
        [cell(50, "old_name", "", ("NameError", "no")), cell(3, "fit(size=16)", "", GONE)],
    ],
)
def test_a_failure_that_nothing_cured_stays(cells: list[dict[str, object]], read: ReadLog) -> None:
    """Neither another call of one function nor a cell of an earlier kernel takes it away."""
    assert any(event.body == "ValueError: bad value" for event in read(page(*cells)).standing)


def test_an_output_of_json_is_no_cell(read: ReadLog) -> None:
    """Its keys may be those of a notebook; the cells behind it keep their places."""
    shown: dict[str, object] = {"data": {"application/json": {"cells": [{"cell_type": "code"}]}}}
    first = {**cell(1, "show()"), "outputs": [{"output_type": "display_data", **shown}]}
    cells = [cell(5, "fit(size=16)", "", GONE), cell(2, "f(1)", "", GONE), cell(3, "f(2)", "fine\n")]
    root = read(page(first, *cells)).root
    assert root is not None
    assert root.frames[0].file == "In [5]"


def test_the_failure_that_came_last_is_the_root(read: ReadLog) -> None:
    """One that stands below it and came before is past."""
    first, last = ("KeyError", "'first'"), ("KeyError", "'last'")
    root = read(page(cell(7, "fit()", "", last), cell(4, "load()", "", first))).root
    assert root is not None
    assert root.body == "KeyError: 'last'"


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(read: ReadLog) -> None:
    """Its cells are not known as a whole, but their rows are."""
    text = page(cell(1, "fit(x)", LOSS, GONE), cell(2, "y", LOSS))
    root = read(text[: text.index('"traceback"')]).root
    assert root is not None
    assert root.body == "ValueError: bad value"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_that_a_notebook_is_one_in_any_encoding(encoding: str) -> None:
    """Its outputs are read as text also where a mark of the encoding stands before it."""
    rows = ['{"cells": [{"cell_type": "code", "outputs": [{', '"text": [', '"RuntimeError: no\\n"', "]}]}]}"]
    log = LogSource("a.ipynb", io.BytesIO("\n".join(rows).encode(encoding)))
    assert b"RuntimeError: no" in b"".join(log.chunks()).split(b"\n")


@pytest.mark.parametrize("nested", ["[" * 100_000, '{"a":' * 100_000, '[{"a":[' * 30_000])
def test_that_nested_json_in_an_output_ends_nothing(nested: str) -> None:
    """A row that is no string is left as it is, however deep it is nested."""
    text = f'{{"cells": [\n"text": [\n{nested}\n"a\\n"\n]\n"evalue": "{nested.replace(chr(34), "")}"\n'
    made = b"".join(as_output(iter([text.encode()]))).split(b"\n")
    assert made[2:4] == [nested.encode(), b"a"]


def test_that_what_was_raised_is_told_once_and_never_at_length() -> None:
    """The text is not much longer than the file, whatever names and messages stand in it."""
    rows = ['{"cells": [', f'"ename": "{"A" * 100_000}"', *['"evalue": "x"'] * 1000]
    made = b"".join(as_output(iter(["\n".join(rows).encode()]))).split(b"\n")
    assert max(map(len, made)) <= LONGEST_NAME + len(": x")
    assert sum(b"A" in row for row in made) == 1


def test_that_a_file_of_very_many_values_is_not_parsed_as_a_whole() -> None:
    """It is read row by row, and a file of one row is left as it is."""
    data = b'{"cells": [' + b"[]," * MOST_VALUES + b"[]]}"
    assert b"".join(as_output(iter([data]))) == data


def run(count: int | None, *, failed: bool, code: str = "train(x)") -> dict[str, object]:
    """Write a cell that was run, with the count that the kernel gave it."""
    kind = {"output_type": "error" if failed else "stream"}
    return {"cell_type": "code", "execution_count": count, "outputs": [kind], "source": code}


@given(
    runs=st.lists(
        st.tuples(st.one_of(st.none(), st.integers(1, 9)), st.booleans(), st.sampled_from(["a", "b"])),
        max_size=8,
    )
)
def test_that_a_failure_is_past_where_the_same_code_ran_well_later(
    runs: list[tuple[int | None, bool, str]],
) -> None:
    """By the kernel's counts, and by the file's order where a cell has none."""
    cells = [run(count, failed=failed, code=f"train({name * 8})") for count, failed, name in runs]
    past = past_cells({"cells": cells})
    for place, (count, failed, name) in enumerate(runs):
        later = (
            (count < other if count and other else place < at)
            for at, (other, bad, same) in enumerate(runs)
            if not bad and same == name
        )
        if failed and any(later):
            assert place in past


def test_that_very_many_cells_of_one_code_are_ordered() -> None:
    """In time that grows with their number: each is held against few others."""
    cells = [run(30_000 - place, failed=place > 0) for place in range(30_000)]
    assert len(past_cells({"cells": cells})) == len(cells) - 1
