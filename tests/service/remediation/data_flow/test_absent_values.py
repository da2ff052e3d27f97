"""What the files at hand show of a value that is not there is told; what they do not show is not."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.absent_values import absent_value
from tests.service.factories import failed, report
from tests.tables import each_row

NONE = "AttributeError: 'NoneType' object has no attribute 'sum'"
LACKS = "AttributeError: 'Fit' object has no attribute 'best'"
GRAPHLESS = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"


def _told(message: str, text: str) -> str:
    """Give what is told of the file's last row."""
    rows = text.rstrip("\n").split("\n")
    frame = Frame("/job/train.py", len(rows), "<module>", rows[-1].strip())
    log = report(failed(text=message, body=message, exception=message.partition(":")[0], frames=(frame,)))
    found = absent_value(log, [JobFile("train.py", text)])
    return found.en if found is not None else ""


@each_row(
    ("text", "told"),
    [
        (
            "def made(x):\n    x.add(1)\nz = made(a)\nz.sum()\n",
            "`made` (train.py:1), which train.py:3 calls, has no",
        ),
        (
            "def made(x):\n    if x:\n        return x\nz = made(a)\nz.sum()\n",
            "some of its ways alone (row 3)",
        ),
        (
            "def made(x):\n    if x:\n        return x\n    return None\nz = made(a)\nz.sum()\n",
            "alone (row 3)",
        ),
        ("z = options.get('rate')\nz.sum()\n", "`options.get('rate')` at train.py:1 finds no 'rate'"),
        ("z = re.search('a', b)\nz.sum()\n", "at train.py:1 matches nothing"),
        # Nothing is told of what may give anything, or has a value for its absence.
        ("def made(x):\n    return x\nz = made(a)\nz.sum()\n", ""),
        ("def made(x):\n    yield x\nz = made(a)\nz.sum()\n", ""),
        ("z = options.get('rate', 1)\nz.sum()\n", ""),
        ("z = elsewhere(a)\nz.sum()\n", ""),
    ],
)
def test_that_the_call_that_gave_none_is_told_with_the_reason(text: str, told: str) -> None:
    found = _told(NONE, text)
    assert (told in found) if told else not found


@each_row(
    ("body", "told"),
    [
        ("        if resume:\n            self.best = 0\n", "train.py:4 only where `resume` holds (row 3)"),
        (
            "        if resume:\n            pass\n        else:\n            self.best = 0\n",
            "not hold (row 3)",
        ),
        (
            "        self.a = 0\n    def load(self):\n        self.best = 0\n",
            "only at train.py:5 (in `load`)",
        ),
        ("        self.best = 0\n", ""),
        ("        self.a = 0\n", ""),
    ],
)
def test_that_the_way_which_sets_an_attribute_is_told(body: str, told: str) -> None:
    text = f"class Fit:\n    def __init__(self, resume):\n{body}fit = Fit(False)\nfit.best\n"
    found = _told(LACKS, text)
    assert (told in found) if told else not found


@each_row(
    ("text", "told"),
    [
        (
            "with torch.no_grad():\n    loss = net(x)\nloss.backward()\n",
            "train.py:1 computes under `torch.no_grad()`",
        ),
        (
            (
                "class Net:\n    def forward(self, x):\n        with torch.inference_mode():\n"
                "            return x\nloss = net(x)\nloss.backward()\n"
            ),
            "train.py:3 computes under `torch.inference_mode()`",
        ),
        ("with torch.no_grad():\n    score = net(x)\nloss = net(y)\nloss.backward()\n", ""),
    ],
    ids=["around", "in-the-model", "of-another"],
)
def test_that_the_block_without_a_graph_is_told(text: str, told: str) -> None:
    found = _told(GRAPHLESS, text)
    assert (told in found) if told else not found
