"""A file that Python cannot read gets the one edit after which it can, and words where no edit is certain."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.source_text import fault
from service.remediation.code_edits.unparsed import unparsed_edit
from tests.service.factories import failed, report
from tests.tables import each_row
from tests.warm import explained


def _frame(line: int, row: str) -> Frame:
    return Frame("/job/net.py", line, "<module>", row)


def _log(message: str, line: int, row: str) -> str:
    said = f'  File "/job/net.py", line {line}\n    {row.strip()}\n    ^\n{message}\n'
    return f"Traceback (most recent call last):\n{said}"


@each_row(
    ("text", "after"),
    [
        ("class Net:\n    def f(self):\n        a = 1\n\tb = 2\n        return a + b\n", "········b = 2"),
        ("def f(x)\n    return x\n", "def f(x):"),
        ("if a:  # first\n    b = 1\nelse if c:  # then\n    b = 2\n", "elif c:  # then"),
        ('def f(x):\n    print "loss", x\n    print "done",\n', 'print("loss", x)'),
        ("try:\n    f()\nexcept ValueError, e:\n    pass\n", "except ValueError as e:"),
        ("a = f(1\uff0c 2)\n", "a = f(1, 2)"),
        ("a = \u201crun\u201d\n", 'a = "run"'),
        ("a\u00a0= 1\n", "a = 1"),
        ("if mode = 'train':\n    pass\n", "if mode == 'train':"),
        ("x = 1\nx++\n", "x += 1"),
        ("a = {\n    'lr': 1e-4\n    'epochs': 3,\n}\n", "'lr': 1e-4,"),
        ("f(a b)\n", "f(a, b)"),
        ("a = f(\n    b=1,\n    c=2\nd = 3\n", "c=2)"),
        ("a = dict(\n    c=[1, 2,\n)\n", "c=[1, 2],"),
        ("print(len(a))))\n", None),
        ("print(len(a)))\n", "print(len(a))"),
        ("print('done)\n", "print('done')"),
        ('root = "C:\\Users\\me"\n', 'root = r"C:\\Users\\me"'),
        ("a = 1\n  b = 2\n  c = 3\n", "b = 2"),
        # As near to one block as to the other: which is meant cannot be told.
        ("def f(x):\n    if x:\n        y = 1\n      z = 2\n    return y\n", None),
        ("for i in a:\n    # print(i)\nb = 1\n", "pass"),
        ("for i in a:\nprint(i)\nb = 1\n", None),
        ("a = 1\nreturn a\n", None),
        ("a = 1\n", None),
    ],
)
def test_that_a_slip_is_mended_where_the_whole_file_then_parses(text: str, after: str | None) -> None:
    stops = fault(text)
    line, message = (stops.line, stops.message) if stops is not None else (1, "invalid syntax")
    row = text.split("\n")[line - 1].strip()
    failure = failed(text=f"SyntaxError: {message}", exception="SyntaxError", frames=(_frame(line, row),))
    found = unparsed_edit(report(failure), [JobFile("net.py", text)])
    assert (found and found.after) == after
    if found is not None:
        assert fault(found.text) is None


def test_that_a_file_with_a_slip_of_another_kind_besides_is_left_alone() -> None:
    """An edit after which the parser stops elsewhere proves nothing."""
    text = "def f(x)\n    return x\n\ndef g(x):\nreturn x\n"
    said = "SyntaxError: expected ':'"
    failure = failed(text=said, exception="SyntaxError", frames=(_frame(1, "def f(x)"),))
    assert unparsed_edit(report(failure), [JobFile("net.py", text)]) is None


def test_that_the_edit_is_first_and_the_words_speak_of_the_form(triage: Triage) -> None:
    """Nothing of such a file ran: there is nothing to print."""
    text = "import os\ndef f(x)\n    return x\n"
    answer = explained(triage, _log("SyntaxError: expected ':'", 2, "def f(x)"), ConfigFile("net.py", text))
    assert str(answer.changes[0].to) == "def f(x) -> def f(x):"
    assert answer.suggestion is not None
    assert "does not parse" in answer.headline


@each_row(
    ("text", "told"),
    [
        ("import os\ndef f(x):\n    return x\n", "as it is now parses; start the job again"),
        ("import os\n<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> mine\n", "(rows 2 to 6)"),
    ],
    ids=["mended", "a-merge"],
)
def test_that_what_a_file_at_hand_is_by_now_is_told(text: str, told: str, triage: Triage) -> None:
    row = text.split("\n")[1]
    answer = explained(triage, _log("SyntaxError: invalid syntax", 2, row), ConfigFile("net.py", text))
    assert told in str(answer.changes[0].to)
    assert answer.suggestion is None
