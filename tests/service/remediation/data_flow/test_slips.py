"""Slips on the way of a failing value that one edit of one row mends."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.remediation.data_flow.slips import flow_edit
from service.remediation.offered_edits import offered_edit
from tests.service.factories import failed, report
from tests.tables import each_row

COMMA = """
    def run(rows):
        width = rows.width,
        table = Table(width)
        print(table.rows)
        return width.bit_length()
"""
SEVERAL = """
    class Coder:
        def encode(self, image):
            if image is None:
                return None, None
            return image * 2, {}

        def run(self, image, fast):
            if fast:
                code = self.encode(image)
            else:
                code = self.encode(image)
            return code.shape
"""
LAYERS = """
    class Net(nn.Module):
        def __init__(self):
            self.first = nn.Linear(8, 32)
            self.second = nn.Linear(32, 4)

        def forward(self, x):
            h = torch.relu(self.first(x))
            h = torch.relu(self.second(x))
            return h
"""
BRANCHES = """
    class Net(nn.Module):
        def forward(self, x):
            a = self.first(x)
            b = self.second(x)
            return a + b
"""
ONE = """
    def load(path):
        return read(path)
    def run():
        rows = load("a")
        return rows.shape
"""
METRIC = """
    def train(model, loader, device):
        score = Dice(classes=2)
        for rows in loader:
            rows = rows.to(device)
            score(model(rows), rows)
"""
HELD = """
    class Run:
        def __init__(self, model):
            self.device = torch.device("cuda")
            self.score = metrics.Dice()

        def step(self, rows):
            rows = rows.to(self.device)
            return self.score(rows)
"""
MOVED = """
    def train(model, loader, device):
        score = Dice(classes=2)
        score = score.to(device)
        for rows in loader:
            rows = rows.to(device)
            score(model(rows), rows)
"""
LATER = """
    def train(model, loader):
        score = Dice(classes=2)
        device = model.device
        for rows in loader:
            rows = rows.to(device)
            score(model(rows), rows)
"""
DEVICES = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices"
WIDTH = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x8 and 32x4)"


def crashed(code: str, statement: str, body: str, function: str = "run") -> CrashReport:
    """Make a report of a statement that failed in the job's file."""
    text = textwrap.dedent(code)
    line = next(row for row, each in enumerate(text.split("\n"), 1) if each.strip() == statement)
    frames = (Frame("/job/net.py", line, function, statement),)
    name = body.partition(":")[0]
    return report(failed(frames=frames, body=body, exception=name), launches=(f"{text}\nnet.py",))


@each_row(
    ("code", "statement", "body", "place", "after"),
    [
        (
            COMMA,
            "return width.bit_length()",
            "AttributeError: 'tuple' object has no attribute 'bit_length'",
            "net.py:3",
            "width = rows.width",
        ),
        (
            SEVERAL,
            "return code.shape",
            "AttributeError: 'tuple' object has no attribute 'shape'",
            "net.py:12",
            "code, *_ = self.encode(image)",
        ),
        (LAYERS, "h = torch.relu(self.second(x))", WIDTH, "net.py:9", "h = torch.relu(self.second(h))"),
    ],
)
def test_a_slip_is_mended_where_it_was_made(
    code: str, statement: str, body: str, place: str, after: str
) -> None:
    """The edit stands at the row of the slip, not at the one that failed."""
    edit = offered_edit(crashed(code, statement, body))
    assert edit is not None
    assert (edit.place, edit.after) == (place, after)
    compile(edit.text, "net.py", "exec")


def test_every_branch_that_keeps_the_values_as_one_is_mended() -> None:
    """The branch that did not run this time fails in the next run."""
    body = "AttributeError: 'tuple' object has no attribute 'shape'"
    edit = offered_edit(crashed(SEVERAL, "return code.shape", body))
    assert edit is not None
    assert edit.text.count("code, *_ = self.encode(image)") == 2


def test_a_function_that_takes_the_values_apart_stays_as_it_is() -> None:
    """The same call under the same name is kept whole there, and read as the tuple that it is."""
    taken = """
    def pair(n):
        return n, n + 1

    def other():
        got = pair(1)
        first, second = got
        return first

    def run():
        got = pair(2)
        return got.real
    """
    edit = flow_edit(
        crashed(taken, "return got.real", "AttributeError: 'tuple' object has no attribute 'real'")
    )
    assert edit is not None
    assert edit.text.count("got, *_ = pair(2)") == 1
    assert "got = pair(1)" in edit.text


@each_row(
    ("code", "statement", "body"),
    [
        # Both outcomes are read.
        (BRANCHES, "b = self.second(x)", WIDTH),
        # One value is given back.
        (ONE, "return rows.shape", "AttributeError: 'tuple' object has no attribute 'shape'"),
        # The message is of another kind of value.
        (COMMA, "return width.bit_length()", "AttributeError: 'int' object has no attribute 'bit_length'"),
    ],
)
def test_what_is_no_slip_is_left_alone(code: str, statement: str, body: str) -> None:
    """Nothing is guessed."""
    assert flow_edit(crashed(code, statement, body)) is None


@each_row(
    ("code", "statement", "after"),
    [
        (METRIC, "score(model(rows), rows)", "score = Dice(classes=2).to(device)"),
        (HELD, "return self.score(rows)", "self.score = metrics.Dice().to(self.device)"),
        # It is moved, and the device is not known yet where it is made.
        (MOVED, "score(model(rows), rows)", ""),
        (LATER, "score(model(rows), rows)", ""),
    ],
)
def test_an_object_that_keeps_tensors_is_moved_where_it_is_made(
    code: str, statement: str, after: str
) -> None:
    """The library failed below the call: what it adds to stayed on the CPU."""
    told = crashed(code, statement, DEVICES)
    assert told.root is not None
    below = Frame("/usr/lib/python3/site-packages/metrics/dice.py", 4, "update", "self.hits += rows")
    root = replace(told.root, frames=(*told.root.frames, below))
    edit = flow_edit(replace(told, root=root, events=(root,)))
    assert (edit.after if edit is not None else "") == after
