"""Tracebacks: whose they are, where they end, what they name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs.scanner import Block
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.tracebacks import Frame, Traceback
from tests.factories import CRI, RAY, SLURM, STAMP, STRANGE, TORCHRUN, interleaved, prefixed, traceback
from tests.tables import each_row


def first(log: str) -> list[Traceback]:
    """Read what begins at the first 'Traceback' of a log."""
    data = log.encode()
    offset = data.index(b"Traceback")
    return tracebacks.at(Block(data, 1, 0, len(data)), offset, data.count(b"\n", 0, offset) + 1)


def summary(found: list[Traceback]) -> list[tuple[int, int, str, list[str]]]:
    """Give what tests compare."""
    return [(one.start, one.end, one.exception, [frame.function for frame in one.frames]) for one in found]


@each_row(
    ("prefix", "source"),
    [
        ("", ""),
        (RAY, "WorkerDict pid=4242 ip=10.0.0.3"),
        (TORCHRUN, "rank=3"),
        (SLURM, "rank=3"),
        (CRI, ""),
        (STAMP, ""),
        ("[default0]:", "rank=0"),
        ("[pod/job-0/main] ", "ip=job-0"),
        (f"{CRI}{RAY}", "WorkerDict pid=4242 ip=10.0.0.3"),
        ("    ", ""),
    ],
)
def test_a_traceback_is_read_behind_any_prefix(prefix: str, source: str) -> None:
    """Frames, quoted code, exception and the printing process come out the same."""
    (found,) = first("all is well\n" + prefixed(prefix, traceback(STRANGE)))
    assert found.frames == (
        Frame("/job/train.py", 30, "main", "trainer.fit()"),
        Frame("/job/trainer.py", 55, "step", "loss = self.model(batch)"),
    )
    assert (found.start, found.end, found.source) == (2, 7, source)
    assert (found.exception, found.message) == tuple(STRANGE.split(": "))


def test_tracebacks_of_two_ranks_are_kept_apart() -> None:
    """Lines of another process between two frames belong to the other traceback."""
    log = interleaved(
        prefixed("[rank0]: ", traceback("ValueError: a", "alpha")),
        prefixed("[rank1]: ", traceback("KeyError: 'b'", "beta")),
    )
    assert summary(first(log)) == [(1, 11, "ValueError", ["main", "alpha"])]
    rest = log.split("\n", 1)[1]
    assert summary(first(rest)) == [(1, 11, "KeyError", ["main", "beta"])]


@each_row(
    ("line", "exception", "message"),
    [
        ("ValueError: x", "ValueError", "x"),
        ("AssertionError", "AssertionError", ""),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError", "CUDA out of memory."),
        ("socket.timeout: timed out", "socket.timeout", "timed out"),
        (
            "socket.gaierror: [Errno -2] Name or service not known",
            "socket.gaierror",
            "[Errno -2] Name or service not known",
        ),
        (
            "ray.exceptions.RayTaskError(OSError): ray::f() (pid=1, ip=10.0.0.1)",
            "ray.exceptions.RayTaskError(OSError)",
            "ray::f() (pid=1, ip=10.0.0.1)",
        ),
        (
            "subprocess.CalledProcessError: Command '['a']' died",
            "subprocess.CalledProcessError",
            "Command '['a']' died",
        ),
    ],
)
def test_the_exceptions_line_gives_type_and_message(line: str, exception: str, message: str) -> None:
    """Dotted, lower-case and Ray's wrapped types are types."""
    (found, *_) = first(traceback(line))
    assert (found.exception, found.message, found.end) == (exception, message, 6)


REMOTE = """\
Traceback (most recent call last):
  File "/job/main.py", line 10, in <module>
    ray.get(future)
  File "/site-packages/ray/_private/worker.py", line 2623, in get
    values = worker.get_objects(refs)
ray.exceptions.RayTaskError(ZeroDivisionError): ray::TaskRunner.run() (pid=88, ip=10.0.0.2, actor_id=ab, repr=<x>)
  File "/job/runner.py", line 20, in run
    ray.get(self.group.generate())
ray.exceptions.RayTaskError(ZeroDivisionError): ray::WorkerDict.actor_rollout_generate() (pid=99, ip=10.0.0.3)
  File "/job/actor.py", line 88, in generate
    return 1 / 0
ZeroDivisionError: division by zero
"""


def test_rays_remote_tracebacks_are_read_to_the_innermost() -> None:
    """Each hop is a traceback of its own; the innermost names the remote call that failed."""
    found = first(REMOTE)
    assert summary(found) == [
        (1, 6, "ray.exceptions.RayTaskError(ZeroDivisionError)", ["<module>", "get"]),
        (6, 9, "ray.exceptions.RayTaskError(ZeroDivisionError)", ["run"]),
        (9, 12, "ZeroDivisionError", ["generate"]),
    ]
    assert [one.remote for one in found] == ["", "TaskRunner.run", "WorkerDict.actor_rollout_generate"]


@each_row(
    ("joint", "expected"),
    [
        (
            "\nDuring handling of the above exception, another exception occurred:\n\n",
            ["KeyError", "ValueError"],
        ),
        (
            "\nThe above exception was the direct cause of the following exception:\n\n",
            ["KeyError", "ValueError"],
        ),
    ],
)
def test_chained_tracebacks_begin_anew(joint: str, expected: list[str]) -> None:
    """Each traceback of a chain ends at its own exception."""
    log = traceback("KeyError: 'a'") + joint + traceback("ValueError: b")
    second = log.index("Traceback", 10)
    data = log.encode()
    found = [
        *first(log),
        *tracebacks.at(Block(data, 1, 0, len(data)), second, data.count(b"\n", 0, second) + 1),
    ]
    assert summary(found) == [(1, 6, expected[0], ["main", "step"]), (10, 15, expected[1], ["main", "step"])]


@each_row(
    ("log", "why"),
    [
        ("Traceback (most recent call last):\n", "nothing follows"),
        ("Traceback (most recent call last):\nValueError: x\n", "no frame"),
        (traceback("noise\n" * 30 + "ValueError: x"), "too much other output before the exception"),
        ('print("Traceback (most recent call last): is how it starts")\nValueError: x\n', "only a mention"),
    ],
)
def test_what_is_no_whole_traceback_gives_none(log: str, why: str) -> None:
    """A beginning alone proves nothing."""
    assert first(log) == [], why


def test_a_little_noise_between_frames_is_passed_over() -> None:
    """A progress bar of the same process may print into a traceback."""
    rows = traceback(STRANGE).splitlines()
    noisy = [*rows[:3], "  5%|x   | 1/20", "some other output", *rows[3:]]
    assert summary(first("\n".join(noisy))) == [(1, 8, "ValueError", ["main", "step"])]


def test_markers_under_a_line_of_code_are_not_the_code() -> None:
    """Python 3.11 underlines the failing part; the code stays what it was."""
    rows = traceback(STRANGE).splitlines()
    (found,) = first("\n".join([*rows[:5], "           ^^^^^^^^^^^^^^^^^", *rows[5:]]))
    assert found.frames[-1].code == "loss = self.model(batch)"


def test_a_syntax_errors_traceback_has_the_file_that_is_wrong() -> None:
    """Its last frame has no function."""
    log = (
        'Traceback (most recent call last):\n  File "/job/a.py", line 1\n    x = = 1\n        ^\n'
        "SyntaxError: invalid syntax\n"
    )
    (found,) = first(log)
    assert (found.frames, found.exception) == (
        (Frame("/job/a.py", 1, "<module>", "x = = 1", "="),),
        "SyntaxError",
    )


def test_an_exception_groups_traceback_is_read() -> None:
    """Exception groups draw a margin; frames and the first exception are still read."""
    log = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/job/a.py", line 5, in main\n'
        "  |     raise group\n"
        "  | ExceptionGroup: two things (2 sub-exceptions)\n"
    )
    assert summary(first(log)) == [(1, 4, "ExceptionGroup", ["main"])]


CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def every(log: str) -> list[Traceback]:
    """Read what begins at each header of a log."""
    data = log.encode()
    block = Block(data, 1, 0, len(data))
    offsets = [place for place in range(len(data)) if data.startswith(b"Traceback (most", place)]
    return [
        one for offset in offsets for one in tracebacks.at(block, offset, data.count(b"\n", 0, offset) + 1)
    ]


@each_row("prefix", ["", "[rank3]: ", "(W pid=1) ", "2025-03-02T10:00:00.1Z stderr F "])
@each_row(
    ("log", "expected"),
    [
        (
            traceback("KeyError: 'a'") + CAUSE + traceback("ValueError: b"),
            [(1, 6, "KeyError"), (10, 15, "ValueError")],
        ),
        (
            traceback("OSError: a") + CONTEXT + traceback("ValueError: b"),
            [(1, 6, "OSError"), (10, 15, "ValueError")],
        ),
        (
            traceback("OSError: a\nmore of it\nand more") + CAUSE + traceback("ValueError: b"),
            [(1, 6, "OSError"), (12, 17, "ValueError")],
        ),
        (
            traceback("A: a") + CAUSE + traceback("B: b") + CONTEXT + traceback("C: c"),
            [(1, 6, "A"), (10, 15, "B"), (19, 24, "C")],
        ),
        (
            traceback("OSError: a") + "\nall is well\n\n" + traceback("ValueError: b"),
            [(1, 6, "OSError"), (10, 15, "ValueError")],
        ),
    ],
    ids=["cause", "context", "long-message", "three", "strangers"],
)
def test_each_link_of_a_chain_is_a_traceback(
    prefix: str, log: str, expected: list[tuple[int, int, str]]
) -> None:
    """Whatever joins them, each begins at its own header and ends at its own exception."""
    assert [(one.start, one.end, one.exception) for one in every(prefixed(prefix, log))] == expected


GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/job/a.py", line 10, in <module>
  |     main()
  | ExceptionGroup: two things (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/job/a.py", line 2, in fit
    |     raise ValueError("x")
    | ValueError: x
    | a note on x
    +---------------- 2 ----------------
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | Traceback (most recent call last):
      |   File "/job/a.py", line 7, in load
      |     {}["k"]
      |     ~~^^^^^
      | KeyError: 'k'
      +------------------------------------
"""


@each_row("prefix", ["", "[rank3]: ", "(W pid=1) "])
def test_each_leaf_of_an_exception_group_is_a_traceback(prefix: str) -> None:
    """Nested leaves stand behind wider margins; the group itself only wraps them."""
    found = every(prefixed(prefix, GROUP))
    assert summary(found) == [
        (1, 4, "ExceptionGroup", ["<module>"]),
        (6, 9, "ValueError", ["fit"]),
        (14, 18, "KeyError", ["load"]),
    ]
    assert [frame.code for one in found for frame in one.frames] == [
        "main()",
        'raise ValueError("x")',
        '{}["k"]',
    ]


@each_row(
    "below",
    [
        "more of it\n  and more\n\nafter\n",
        "",
        "2025-03-02 10:00:00,123 another line\n",
        '"""\n',
        "\nafter\n",
        "row\n" * 40,
    ],
)
def test_what_stands_below_an_exception_is_no_part_of_its_traceback(below: str) -> None:
    """More of its message and PEP 678's notes look alike, and like any other output."""
    assert summary(first(traceback(STRANGE) + below)) == [(1, 6, "ValueError", ["main", "step"])]


BOX = """\
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /job/a_folder_whose_name_goes_on_and_on_until_the_box_is_full_of_it_and_more │
│ /train.py:10 in fit                                                          │
│                                                                              │
│    9 │   try:                                                                │
│ ❱ 10 │   │   step(batch)                                                     │
│   11 │   except OSError:                                                     │
│                                                                              │
│ ╭─ locals ─╮                                                                 │
│ │ x = 0    │                                                                 │
│ ╰──────────╯                                                                 │
│                                                                              │
│ /job/step.py:7 in step                                                       │
│                                                                              │
│ ❱ 7 │   raise ValueError("x")                                                │
╰──────────────────────────────────────────────────────────────────────────────╯
ValueError: x
"""
ASCII_BOX = BOX.translate(str.maketrans("╭╮╰╯─│❱", "++++-|>"))
CELL = """\
ValueError                                Traceback (most recent call last)
Cell In[3], line 2
      1 x = 0
----> 2 fit(x)

File /job/step.py:7, in step(x)
      6 def step(x):
----> 7     raise ValueError("x")

ValueError: x
"""
OLD_CELL = """\
ValueError                                Traceback (most recent call last)
<ipython-input-3-abc> in <module>
----> 2 fit(x)

/job/step.py in step(x)
----> 7     raise ValueError("x")

ValueError: x
"""


@each_row("prefix", ["", "[rank3]: ", "(W pid=1) "])
@each_row(
    ("log", "end", "outer"),
    [
        (
            BOX,
            17,
            Frame(
                "/job/a_folder_whose_name_goes_on_and_on_until_the_box_is_full_of_it_and_more/train.py",
                10,
                "fit",
                "step(batch)",
            ),
        ),
        (
            ASCII_BOX,
            17,
            Frame(
                "/job/a_folder_whose_name_goes_on_and_on_until_the_box_is_full_of_it_and_more/train.py",
                10,
                "fit",
                "step(batch)",
            ),
        ),
        (CELL, 10, Frame("In [3]", 2, "<module>", "fit(x)")),
        (OLD_CELL, 8, Frame("In [3]", 2, "<module>", "fit(x)")),
    ],
    ids=["rich", "rich-ascii", "ipython", "ipython-old"],
)
def test_a_traceback_that_is_drawn_is_read_as_if_printed(
    prefix: str, log: str, end: int, outer: Frame
) -> None:
    """Boxes fold long paths and show locals; cells point at the line with an arrow."""
    (found,) = every(prefixed(prefix, log))
    assert (found.start, found.end, found.exception, found.message) == (1, end, "ValueError", "x")
    assert found.frames == (outer, Frame("/job/step.py", 7, "step", 'raise ValueError("x")'))


def test_a_function_that_a_box_put_into_its_next_row_is_read() -> None:
    """Of a path that fills the row with `in`, the blank behind it is where the row was broken."""
    full = "/job/a_folder_whose_name_leaves_no_room_for_what_comes_after/train.py:10 in"
    box = BOX.split("\n")
    box[1], box[2] = f"│ {full:<76} │", f"│ {'word_repetition':<76} │"
    (found,) = every("\n".join(box))
    assert [frame.function for frame in found.frames] == ["word_repetition", "step"]


def test_boxes_chain_too() -> None:
    """The words between two of rich's boxes are Python's own."""
    assert [(one.exception, one.message) for one in every(BOX + CAUSE + BOX)] == [
        ("ValueError", "x"),
        ("ValueError", "x"),
    ]


@each_row(
    ("body", "expected"),
    [
        ("    code", True),
        ("│ ❱ 10 │ code", True),
        ("| > 10   code", True),
        ("----> 7 raise X", True),
        ("ValueError: x", False),
        ("---", False),
    ],
)
def test_shown_code_is_told_from_messages(body: str, expected: bool) -> None:
    """What a traceback shows of the source is no failure's message."""
    assert tracebacks.quotes(body) is expected


CALLSTACK = (
    'Traceback (most recent call last):\n  File "/job/a.py", line 41, in main\n    fit("a")\nValueError: '
    'bad "x"\n'
)


@each_row(
    "log",
    [
        json.dumps(
            {
                "message": {
                    "message": "ValueError",
                    "extraInfo": {"py_callstack": CALLSTACK, "timestamp": "1763460000"},
                }
            }
        ),
        json.dumps({"level": "error", "event": "boom", "exc_info": CALLSTACK}),
        json.dumps(
            {"log": json.dumps({"message": "boom", "exception": CALLSTACK}) + "\n", "stream": "stderr"}
        ),
        f"reply was {CALLSTACK!r}",
    ],
    ids=["error-file", "structured", "nested", "repr"],
)
def test_a_traceback_on_one_line_is_read(log: str) -> None:
    """An error file and a structured logger escape the line ends."""
    (found,) = every(log)
    assert (found.start, found.end, found.exception, found.message) == (1, 1, "ValueError", 'bad "x"')
    assert found.frames == (Frame("/job/a.py", 41, "main", 'fit("a")'),)


REMOTE_CHAIN = """\
Traceback (most recent call last):
  File "/job/main.py", line 10, in <module>
    ray.get(future)
ray.exceptions.RayTaskError(ValueError): ray::Runner.run() (pid=88, ip=10.0.0.2)
  File "/job/parse.py", line 20, in parse
KeyError: 'k'

The above exception was the direct cause of the following exception:

ray::Runner.run() (pid=88, ip=10.0.0.2)
  File "/job/runner.py", line 30, in run
ValueError: cannot parse
"""


def test_a_chain_inside_rays_remote_part_is_read_to_its_end() -> None:
    """There the second link begins with the remote call instead of a header."""
    found = first(REMOTE_CHAIN)
    assert [(one.end, one.exception, one.remote) for one in found] == [
        (4, "ray.exceptions.RayTaskError(ValueError)", ""),
        (6, "KeyError", "Runner.run"),
        (12, "ValueError", "Runner.run"),
    ]
    assert [one.linked for one in found] == [False] * (len(found) - 1) + [True]


SPAWNED = """\
-- Process 3 terminated with the following error:
Traceback (most recent call last):
  File "/job/a.py", line 2, in work
    go()
ValueError: x
"""


def test_a_spawned_processs_traceback_names_the_process() -> None:
    """torch.multiprocessing quotes it below its own exception."""
    (outer, inner) = every(traceback("torch.multiprocessing.spawn.ProcessRaisedException: ") + "\n" + SPAWNED)
    assert (outer.exception, outer.remote) == ("torch.multiprocessing.spawn.ProcessRaisedException", "")
    assert (inner.exception, inner.remote) == ("ValueError", "Process 3")


QUOTED = (
    'multiprocessing.pool.RemoteTraceback: \n"""\n'
    + traceback("KeyError: 'x'")
    + '"""\n'
    + CAUSE
    + traceback("KeyError: 'x'")
)


def test_a_quoted_traceback_and_the_one_below_are_told_apart() -> None:
    """A pool quotes what its process raised."""
    assert [(one.start, one.end) for one in every(QUOTED)] == [(3, 8), (13, 18)]


ELASTIC = """\
  error_file: /tmp/x/error.json
  traceback : Traceback (most recent call last):
    File "/job/train.py", line 41, in main
      fit()
  ValueError: bad thing

============================================================
"""
LOGURU = """\
Traceback (most recent call last):

  File "/job/a.py", line 12, in <module>
    f(0)
    └ <function f at 0x7f>

> File "/job/a.py", line 8, in f
    return 1 / x
               └ 0

ZeroDivisionError: division by zero
"""
SGLANG = """\
[2025-03-02 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/job/a.py", line 1, in f
    g()
ValueError: x
"""
REPEATED = """\
Traceback (most recent call last):
  File "/job/a.py", line 4, in f
  [Previous line repeated 996 more times]
__main__.main.<locals>.Odd
"""


@each_row(
    ("log", "expected"),
    [
        (ELASTIC, [(2, 5, "ValueError", ["main"])]),
        (LOGURU, [(1, 11, "ZeroDivisionError", ["<module>", "f"])]),
        (SGLANG, [(1, 4, "ValueError", ["f"])]),
        (REPEATED, [(1, 4, "__main__.main.<locals>.Odd", ["f"])]),
    ],
    ids=["elastic", "loguru", "sglang", "repeated"],
)
def test_tracebacks_that_others_set_are_read(
    log: str, expected: list[tuple[int, int, str, list[str]]]
) -> None:
    """Indented into a summary, spread with values, begun in the middle of a logger's line."""
    assert summary(every(log)) == expected


SYNTAX = '  File "/job/a.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n'


def test_a_script_that_does_not_compile_has_no_header() -> None:
    """The file's own line begins it; the same line inside a traceback begins nothing."""
    data = SYNTAX.encode()
    (found,) = tracebacks.at(Block(data, 1, 0, len(data)), 3, 1)
    assert (found.end, found.exception, found.frames) == (
        4,
        "SyntaxError",
        (Frame("/job/a.py", 1, "<module>", "x = = 1", "="),),
    )
    data = f"Traceback (most recent call last):\n{SYNTAX}".encode()
    assert tracebacks.at(Block(data, 1, 0, len(data)), data.index(b"File"), 2) == []


ROWS = tuple(
    {
        row
        for log in (GROUP, BOX, CELL, REMOTE_CHAIN, QUOTED, LOGURU, ELASTIC, SYNTAX)
        for row in log.splitlines()
    }
)


@pytest.mark.long
@settings(max_examples=200, derandomize=True, deadline=None)
@given(rows=st.lists(st.sampled_from(ROWS) | st.text(max_size=20), max_size=40))
def test_any_mixture_of_rows_is_read_without_error(rows: list[str]) -> None:
    """Cut, mixed or made up: what is found lies inside the log, its end not before its start."""
    log = "\n".join(rows)
    for one in every(log):
        assert 1 <= one.start <= one.end <= log.count("\n") + 1
        assert one.frames or one.remote or one.exception


def test_a_traceback_without_its_last_line_keeps_its_frames() -> None:
    """The log was cut before the exception: the calls still tell where."""
    found = first(traceback("").rstrip() + "\n")
    assert summary(found) == [(1, 5, "", ["main", "step"])]


@each_row(
    ("noise", "end"),
    [
        ("", 5),
        ("some words\n" * 3, 5),
        ("    more code\n", 6),
        ("\n\n", 5),
        # Rows of a table look like an exception with its message.
        ("### Environment\n\nPlatform: Linux-6.1.0-x86_64\nPython: 3.11\n", 5),
    ],
)
def test_that_a_cut_traceback_ends_with_its_last_call(noise: str, end: int) -> None:
    """What others print below it is not its own: work that goes on there is work after it."""
    assert summary(first(traceback("").rstrip() + "\n" + noise)) == [(1, end, "", ["main", "step"])]


@each_row(
    ("link", "expected"),
    [
        ("\nThe above exception was the direct cause of the following exception:\n\n", True),
        ("\nDuring handling of the above exception, another exception occurred:\n\n", True),
        ("all is well\n", False),
        ("", False),
    ],
)
def test_that_a_traceback_says_whether_it_came_of_the_one_above(link: str, expected: bool) -> None:
    log = traceback("KeyError: 'x'") + link
    data = (log + traceback(STRANGE)).encode()
    (found,) = tracebacks.at(Block(data, 1, 0, len(data)), len(log), log.count("\n") + 1)
    assert found.linked is expected
    assert not first(log)[0].linked


@each_row(
    ("statement", "marks", "failing"),
    [
        ("    rows = table[name] + read(path)", "                         ^^^^^^^^^^", "read(path)"),
        ("    t, held[name], scale=cs,", "       ~~~~^^^^^^", "held[name]"),
        ("    return model(x)", "", ""),
        ("    return model(x)", "  ^^", ""),
    ],
)
def test_the_part_that_is_marked_below_a_statement_is_known(statement: str, marks: str, failing: str) -> None:
    """What Python 3.11 and later underline is the frame's failing part; marks before the statement are none."""
    rows = ["Traceback (most recent call last):", '  File "/job/a.py", line 3, in main', statement, marks]
    (found,) = first("\n".join([*filter(None, rows), "KeyError: 'x'"]) + "\n")
    assert found.frames[0].failing == failing
