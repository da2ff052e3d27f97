"""What the files at hand show of samples and of values that are taken apart; what they do not is not told."""

from __future__ import annotations

import re

from corpus.message import in_both
from corpus.sample_demands import SampleDemand, known_sample_demands
from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.call_bindings import changed_since
from service.remediation.data_flow.file_findings import file_finding
from service.remediation.data_flow.origins import origins
from service.remediation.data_flow.unpacked_values import unpacked_edit
from tests.service.factories import failed, report
from tests.tables import each_row

PAD = "ValueError: supply one to this method that includes input_ids, but you provided ['y']"
SIZES = (
    "RuntimeError: stack expects each tensor to be equal size, but got [3, 8] at entry 0 "
    "and [3, 5] at entry 1"
)
DATA = "class Rows(Dataset):\n    def __getitem__(self, i):\n{body}    def __len__(self):\n        return 2\n"
LIBRARY = "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py"
FEW = "ValueError: not enough values to unpack (expected 3, got 2)"
MANY = "ValueError: too many values to unpack (expected 2)"
ONE = "TypeError: cannot unpack non-iterable float object"


def _log(message: str, text: str, *below: Frame) -> CrashReport:
    """Give the report of a file's last statement that fails, or of a call of a library below it."""
    rows = text.rstrip("\n").split("\n")
    line = max(number for number, row in enumerate(rows, 1) if row[0] != " ")
    frame = Frame("/job/train.py", line, "<module>", rows[line - 1])
    kind = message.partition(":")[0]
    return report(failed(text=message, body=message, exception=kind, frames=(frame, *below)))


def _told(message: str, text: str, *below: Frame) -> str:
    found = file_finding(_log(message, text, *below), [JobFile("train.py", text)])
    return found.en if found is not None else ""


@each_row("row", known_sample_demands(), ids=lambda row: row.id)
def test_that_a_demand_finds_its_examples_and_has_words(row: SampleDemand) -> None:
    for example in row.examples:
        found = re.search(row.expression, example)
        assert found is not None
        assert row.cue in example
        if row.demands == "key":
            assert found.groupdict().get("wanted") or row.wanted
        else:
            told = {"owner": "A", "place": "p", "values": "v", **found.groupdict()}
            assert "`A`" in in_both(f"changes.sample-{row.demands}", **told).zh


@each_row(
    ("message", "body", "told"),
    [
        (PAD, "        return {'y': 1, 'z': 2}\n", "holds `y`, `z` alone (train.py:3)"),
        (
            PAD,
            "        item = {k: v for k, v in self.x.items()}\n        item['y'] = 1\n        return item\n",
            "`y` and what `self.x` holds (train.py:5)",
        ),
        (PAD, "        return self.x[i], self.y[i]\n", "gives self.x[i], self.y[i] without names"),
        (SIZES, "        return self.x[i], 3\n", "(self.x[i], 3) to one size"),
        # A row gives it, or nothing shows what the sample is.
        (PAD, "        return {'input_ids': 1}\n", ""),
        (PAD, "        return self.rows[i]\n", ""),
    ],
)
def test_that_what_a_data_set_gives_is_held_against_what_failed(message: str, body: str, told: str) -> None:
    text = DATA.format(body=body) + "trainer.train()\n"
    found = _told(message, text, Frame(LIBRARY, 7, "collate", "return torch.stack(batch, 0, out=out)"))
    assert (told in found) if told else not found


def test_that_of_two_data_sets_none_is_told() -> None:
    both = DATA.format(body="        return {'y': 1}\n")
    both += both.replace("Rows", "Others") + "train(Rows(), Others())\n"
    assert not _told(PAD, both)


@each_row(
    ("message", "text", "told"),
    [
        (
            FEW,
            "def f(x):\n    return x, 1\na, b, c = f(2)\n",
            "gives x, 1 at row 2, and this row takes 3 values",
        ),
        (
            ONE,
            "def f(x):\n    if x:\n        return best\n    return x, 1\na, b = f(2)\n",
            "gives best on one of its ways (row 3), and 2 values on the others",
        ),
        (ONE, "a, b = f(2)\n", "`f()` gives one value, a `float`, and this row takes 2 (a, b)"),
        (
            MANY,
            DATA.format(body="        return x, y, 1\n") + "for x, y in loader:\n    pass\n",
            "`Rows.__getitem__` (train.py:2) gives x, y, 1 at row 3",
        ),
        (FEW, "def f(x):\n    return g(x)\na, b, c = f(2)\n", ""),
        (FEW, "def f(x):\n    return x, 1, 2\na, b, c = f(2)\n", ""),
        (FEW, "a, b, c = f(2)\n", ""),
        (FEW, "a, *b, c = f(2)\n", ""),
    ],
)
def test_that_both_sides_of_what_is_taken_apart_are_told(message: str, text: str, told: str) -> None:
    found = _told(message, text)
    assert (told in found) if told else not found


@each_row(
    ("text", "after"),
    [
        ("def f(x):\n    return loss, mid, acc\nloss, acc = f(2)\n", "loss, _, acc = f(2)"),
        (
            DATA.format(body="        return x, w, y\n") + "for i, (x, y) in enumerate(loader):\n    pass\n",
            "for i, (x, _, y) in enumerate(loader):",
        ),
        # Other names, another order, or several ways.
        ("def f(x):\n    return a, b, c\nloss, acc = f(2)\n", ""),
        ("def f(x):\n    return acc, mid, loss\nloss, acc = f(2)\n", ""),
        ("def f(x):\n    if x:\n        return 1\n    return loss, mid, acc\nloss, acc = f(2)\n", ""),
    ],
)
def test_that_values_are_taken_by_the_names_they_are_given_under(text: str, after: str) -> None:
    edit = unpacked_edit(_log(MANY, text), [JobFile("train.py", text)])
    assert (edit.after if edit is not None else "") == after


@each_row(
    ("head", "told"),
    [
        (
            "class Rows:\n    def __init__(self, a, b, c=1):\n        ...\n",
            "is given 1 arguments where it takes 2",
        ),
        ("def Rows():\n    ...\n", "is given 1 arguments where it takes 0"),
        ("class Rows:\n    def __init__(self, a, b=1):\n        ...\n", ""),
        ("class Rows:\n    def __init__(self, *a):\n        ...\n", ""),
        ("class Rows(Base):\n    ...\n", ""),
        ("@wrapped\ndef Rows():\n    ...\n", ""),
        ("from other import Rows\n", ""),
    ],
)
def test_that_a_call_which_cannot_have_run_tells_of_another_file(head: str, told: str) -> None:
    text = f"{head}def main():\n    rows = Rows(1)\n    train(rows)\n"
    rows = text.rstrip("\n").split("\n")
    frame = Frame("/job/train.py", len(rows), "main", "train(rows)")
    log = report(failed(text=PAD, body=PAD, exception="ValueError", frames=(frame,)))
    found = changed_since(log, [JobFile("train.py", text)])
    assert (told in found.en) if told and found is not None else found is None


def test_that_what_partial_bound_fills_a_parameter() -> None:
    """Called by another name, a function has what was bound to it, and the rest by the call's own places."""
    text = (
        "def rows(split, folder):\n    return open(folder)\n"
        "get = partial(rows, folder=args.data)\nget('train')\n"
    )
    frames = (
        Frame("/job/train.py", 4, "<module>", "get('train')"),
        Frame("/job/train.py", 2, "rows", "return open(folder)"),
    )
    said = "FileNotFoundError: [Errno 2] No such file or directory: 'a'"
    log = report(failed(text=said, body=said, exception="FileNotFoundError", frames=frames))
    steps = origins(log, [JobFile("train.py", text)])
    assert [(step.name, step.place) for step in steps or ()] == [("folder", "train.py:3")]
