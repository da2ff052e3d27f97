"""Where a class sets an attribute that an object lacks is told, and mended where it needs nothing else."""

from __future__ import annotations

from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.own_attributes import set_at_once, set_elsewhere
from tests.service.factories import failed, report
from tests.tables import each_row

LACKS = "AttributeError: 'Net' object has no attribute 'mix'"


def _log() -> CrashReport:
    frame = Frame("/job/train.py", 1, "forward", "return self.mix(x)")
    return report(failed(text=LACKS, body=LACKS, exception="AttributeError", frames=(frame,)))


def _class(maker: str, others: str, head: str = "") -> str:
    return f"{head}class Net(Base):\n    def __init__(self, width):\n{maker}{others}"


@each_row(
    ("others", "put"),
    [
        ("    def reverse(self):\n        self.mix = Mix(self.width)\n", "self.mix = Mix(self.width)"),
        ("    def reset(self):\n        self.mix = []\n", "self.mix = []"),
        # Of the method's own, of what it sets itself, of what is only asked for, or from elsewhere.
        ("    def reverse(self, size):\n        self.mix = Mix(size)\n", ""),
        ("    def reverse(self):\n        self.size = 3\n        self.mix = Mix(self.size)\n", ""),
        ("    def reverse(self):\n        self.mix = self.read()\n", ""),
        ("    def reverse(self):\n        if hasattr(self, 'mix'):\n            self.mix = []\n", ""),
        ("    def a(self):\n        self.mix = []\n    def b(self):\n        self.mix = [1]\n", ""),
    ],
)
def test_that_what_needs_nothing_of_its_method_is_set_as_the_object_is_made(others: str, put: str) -> None:
    text = _class("        super().__init__()\n        self.width = width\n", others, "class Mix: ...\n")
    edit = set_at_once(_log(), [JobFile("train.py", text)])
    assert (edit.after if edit is not None else "") == put
    if edit is not None:
        assert f"        self.width = width\n        {put}\n" in edit.text


@each_row(
    ("text", "told"),
    [
        (
            _class("        self.a = 1\n        if width > 3:\n            self.mix = 1\n", ""),
            "at train.py:5 only where `width > 3` holds (row 4)",
        ),
        (
            _class(
                "        self.a = 1\n",
                "    def load(self, x):\n        self.mix = x\n",
                "def main(net, args):\n    if args.both:\n        net.load(1)\n",
            ),
            "which one row alone calls (train.py:3, `if args.both`)",
        ),
        (
            _class("        self.a = 1\n", "        def mix(self, x):\n            return x\n"),
            "`mix` is defined at train.py:4 within `__init__`",
        ),
        (
            _class("        self.a = 1\n", "def mix(self, x):\n    return x\n"),
            "`mix` is defined at train.py:4 outside of the class",
        ),
        # A class that it derives from sets it on every way; another one says nothing.
        (
            _class(
                "        self.a = 1\n", "", "class Base:\n    def __init__(self):\n        self.mix = 1\n"
            ),
            "",
        ),
        (_class("        self.a = 1\n", "class Other:\n    def load(self):\n        self.mix = 1\n"), ""),
    ],
    ids=["branch", "call", "within", "outside", "base", "other"],
)
def test_that_the_place_which_sets_it_is_told(text: str, told: str) -> None:
    found = set_elsewhere(_log(), [JobFile("train.py", text)])
    assert (told in found.en) if told else found is None
