"""Notebooks as logs: what their cells printed and raised, line by line of the file."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ingest.logs.inputs.notebooks import as_output, is_notebook
from tests.factories import ReadLog


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
    line = next(n for n, row in enumerate(text.split("\n"), 1) if said in row)
    assert (report.root.line, report.root.text) == (line, f"OutOfMemoryError: {said}")
    assert len(report.events) == 1
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
