"""IPython's tracebacks: the calls of cells and of files, in each form that a version prints."""

from __future__ import annotations

from ingest.logs.scanner import Block
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.stack import Frame, Traceback
from tests.factories import ReadLog, prefixed
from tests.tables import each_row

STEP = Frame("/job/step.py", 7, "step", 'raise ValueError("x")')


def read_first(log: str, words: str = "Traceback") -> list[Traceback]:
    """Read what begins in the first line of a log that holds some words."""
    data = log.encode()
    offset = data.index(words.encode())
    return tracebacks.at(Block(data, 1, 0, len(data)), offset, data.count(b"\n", 0, offset) + 1)


def traceback_of(*calls: str, name: str = "ValueError", message: str = "x") -> str:
    """Write a traceback as IPython lays it out in a console of 75 columns."""
    head = f"{name}{'Traceback (most recent call last)':>{max(33, 75 - len(name))}}"
    return "\n".join(["-" * 75, head, *calls, f"{name}: {message}", ""])


@each_row(
    ("cell", "frame"),
    [
        ("Cell In[3], line 2\n      1 x = 0\n----> 2 fit(x)\n", Frame("In [3]", 2, "<module>", "fit(x)")),
        ("Cell In [3], line 2\n----> 2 fit(x)\n", Frame("In [3]", 2, "<module>", "fit(x)")),
        ("Input In [3], in <cell line: 2>()\n----> 2 fit(x)\n", Frame("In [3]", 2, "<module>", "fit(x)")),
        ("<ipython-input-3-5c1f> in <module>\n----> 2 fit(x)\n", Frame("In [3]", 2, "<module>", "fit(x)")),
        (
            "<ipython-input-3-5c1f> in <cell line: 1>()\n----> 1 fit(x)",
            Frame("In [3]", 1, "<module>", "fit(x)"),
        ),
        ("Cell In[3], line 9, in Job.run(self)\n----> 9 fit(x)\n", Frame("In [3]", 9, "run", "fit(x)")),
        (
            "/tmp/ipykernel_88/12345.py in <module>\n---> 12 fit(x)\n",
            Frame("/tmp/ipykernel_88/12345.py", 12, "<module>", "fit(x)"),
        ),
        ("File <command-881>:3\n----> 3 fit(x)\n", Frame("<command-881>", 3, "<module>", "fit(x)")),
        ("File <string>:28, in __init__(self, a)\n", Frame("<string>", 28, "__init__")),
        (
            "c:\\my job\\run.py in main(args)\n    140 \n--> 141     fit(x)",
            Frame("c:/my job/run.py", 141, "main", "fit(x)"),
        ),
        (
            "File ~/v/lib/a.py:1312, in A.f.<locals>.g(*args)\n   1311 def g():\n-> 1312     fit(x)",
            Frame("~/v/lib/a.py", 1312, "g", "fit(x)"),
        ),
    ],
)
@each_row("is_file", [False, True])
def test_a_call_is_read_in_each_form(cell: str, frame: Frame, is_file: bool) -> None:
    """Also where the file of a notebook has its rows on one line, with their ends escaped."""
    old = '/job/step.py in step(x)\n      6 def step(x):\n----> 7     raise ValueError("x")\n'
    new = 'File /job/step.py:7, in step(x)\n      6 def step(x):\n----> 7     raise ValueError("x")\n'
    for step in (old, new):
        calls = [text.strip("\n").replace("\n", "\\n") for text in (cell, step)] if is_file else [cell, step]
        (found,) = read_first(traceback_of(*calls))
        assert found.frames == (frame, STEP)
        assert (found.exception, found.message) == ("ValueError", "x")


@each_row("prefix", ["", "[rank3]: ", "(pid=71) "])
def test_a_prefix_changes_nothing(prefix: str) -> None:
    """papermill logs and Ray print them behind their own."""
    (found,) = read_first(prefixed(prefix, traceback_of("Cell In[3], line 1", "----> 1 step()")))
    assert found.frames == (Frame("In [3]", 1, "<module>", "step()"),)


@each_row(
    ("rows", "line", "code"),
    [
        # From Python 3.8 on the arrow stands at the first row, before at the last.
        (["----> 4 fit(x,", "      5     y)", "      6 z = 1"], 4, "fit(x, y)"),
        (["      4 fit(x,", "----> 5     y)", "      6 z = 1"], 4, "fit(x, y)"),
        (["      4 # (", "----> 5 fit(')')", "      6 z = 1"], 5, "fit(')')"),
        # What is not shown to its end is told by its row.
        (["----> 4 fit(x,", "      5     y,"], 4, "fit(x,"),
        (["----> 4 fit([" + "1, " * 200, "      5 ])"], 4, "fit([" + ("1, " * 200).strip()),
    ],
)
def test_a_statement_of_several_rows_is_one(rows: list[str], line: int, code: str) -> None:
    """What is in brackets belongs to the statement at the arrow."""
    (found,) = read_first(traceback_of("Cell In[3], line 5, in f()", *rows))
    assert (found.frames[0].line, found.frames[0].code) == (line, code)


def test_a_string_of_a_statement_is_no_end_of_a_row() -> None:
    """An escaped line end in code stands there in the file of a notebook as well."""
    (found,) = read_first(traceback_of("Cell In[3], line 1\\n----> 1 print('a\\nb', c)\\n      2 d"))
    assert found.frames[0].code == "print('a\\nb', c)"


@each_row(
    "link",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_a_chain_is_linked(link: str, read: ReadLog) -> None:
    """The words between two are Python's own, and in a notebook's file a string of their own."""
    inner = traceback_of("Cell In[3], line 2", "----> 2 load()", name="KeyError", message="'x'")
    outer = traceback_of("Cell In[3], line 4", "----> 4 raise Mine() from e", name="Mine", message="gone")
    report = read(f"{inner}\n{link}\n\n{outer}")
    assert [event.linked for event in report.events] == [False, True]


@each_row(
    "head",
    [
        "  Cell In[5], line 3",
        "  Input In [5], line 3",
        "  File <ipython-input-5-1f2a>:3",
        '  File "<ipython-input-5-1f2a>", line 3',
    ],
)
def test_a_cell_that_is_no_python_is_read_without_a_head(head: str, read: ReadLog) -> None:
    """Nothing was called yet: the row and the error stand alone."""
    rows = [head, "    print x", "          ^", "SyntaxError: Missing parentheses in call to 'print'"]
    for log in ("\n".join(rows), "\\n".join(rows)):
        root = read(log).root
        assert root is not None
        assert root.exception == "SyntaxError"
        (frame,) = root.frames
        assert (frame.file, frame.line, frame.code) == ("In [5]", 3, "print x")


def test_the_own_call_of_a_cell_is_known(read: ReadLog) -> None:
    """What a package raised was called by a cell, which is the job's own code."""
    package = "File /v/lib/python3.11/site-packages/torch/nn/modules/module.py:9, in Module.f(self)"
    log = traceback_of(
        "Cell In[3], line 2", "----> 2 model(x)", package, "----> 9 raise ValueError('x')", message="odd x"
    )
    root = read(log).root
    assert root is not None
    assert own_call(root.frames) == Frame("In [3]", 2, "<module>", "model(x)")


def test_code_that_a_call_shows_is_no_message(read: ReadLog) -> None:
    """A row around the arrow, or the whole call on one line, only quotes what may be raised."""
    call = "File /v/lib/python3.11/site-packages/a/b.py:9, in f()"
    quoted = "      8     raise ImportError(\"No module named 'deepspeed'\")"
    for rows in ([call, quoted, "----> 9 g()"], ["\\n".join([call, quoted, "----> 9 g()"])]):
        report = read(traceback_of("Cell In[3], line 2", "----> 2 f()", *rows, message="bad value"))
        assert len(report.events) == 1


def test_entered_code_is_no_output(read: ReadLog) -> None:
    """A transcript of IPython's shell shows what was typed; what it printed counts."""
    rows = ["In [4]: raise ValueError('CUDA out of memory')", "   ...: print('CUDA error')"]
    assert read("\n".join(rows)).events == ()
    assert read("\n".join([*rows, "ValueError: CUDA out of memory"])).root is not None
