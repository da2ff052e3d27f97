"""Whole logs whose last words are other languages', or drawn, or escaped: the report has their calls."""

from __future__ import annotations

import json

from tests.factories import RAY, STRANGE, ReadLog, prefixed, steps, traceback
from tests.tables import each_row

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FAULT = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f47a1b94740 (most recent call first):
  File "/opt/env/vllm/worker/worker.py", line 4 in execute_model
  File "/job/x.py", line 9 in <module>
"""
TERMINATE = """\
terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: an illegal memory access was encountered
Exception raised from check at ../c10/cuda/CUDAException.cpp:43 (most recent call first):
frame #0: c10::Error::Error(std::string) + 0x96 (0x7f1 in /env/torch/lib/libc10.so)
"""
BOX = f"""\
+------------- Traceback (most recent call last) --------------+
| /job/train.py:10 in fit                                      |
|                                                              |
| > 10   raise RuntimeError("{OOM[:40]}") |
+--------------------------------------------------------------+
{STRANGE}
"""
ASSERT = (
    "/src/Indexing.cu:1255: indexSelectLargeIndex: block: [{0},0,0], thread: [{1},0,0] Assertion "
    "`srcIndex < srcSelectDimSize` failed."
)


@each_row("prefix", ["", RAY, "[rank3]: "])
def test_a_dead_interpreters_calls_are_the_roots(read: ReadLog, prefix: str) -> None:
    """The banner is the event; the calls below it tell whose code and which phase it was."""
    report = read(prefixed(prefix, steps(1, 2).rstrip() + "\n" + FAULT))
    assert report.root is not None
    assert (report.root.pattern, report.root.line, report.root.exception) == (
        "native.fatal-python",
        3,
        "Segmentation fault",
    )
    assert [frame.function for frame in report.root.frames] == ["<module>", "execute_model"]
    assert report.phase == "rollout"


def test_a_dump_of_all_threads_alone_is_no_failure(read: ReadLog) -> None:
    """Python prints one on request, too."""
    log = FAULT.replace("Fatal Python error: Segmentation fault", "Timeout (0:05:00)!")
    assert read(log).events == ()


def test_a_c_plus_plus_exceptions_message_has_its_calls(read: ReadLog) -> None:
    """What `what()` says is the event, with the stack that follows."""
    root = read(TERMINATE).root
    assert root is not None
    assert (root.line, root.cause) == (2, "cuda-illegal-access")
    assert [frame.function for frame in root.frames] == ["c10::Error::Error", "check"]


def test_code_that_a_box_shows_is_no_event(read: ReadLog) -> None:
    """Only the exception below the box is."""
    assert [(event.line, event.exception) for event in read(BOX).events] == [(6, "ValueError")]


def test_a_stack_inside_an_exceptions_message_does_not_take_its_place(read: ReadLog) -> None:
    """An extension's failed check is quoted by the Python exception: the frames are Python's."""
    log = (
        traceback("RuntimeError: Check failed: a moon is in the house")
        + "    @     0x7f0011223344  moon::Rise()\n"
    )
    (event,) = read(log).events
    assert [frame.function for frame in event.frames] == ["main", "step"]


def test_a_structured_loggers_traceback_is_an_event(read: ReadLog) -> None:
    """Its lines stand escaped on one."""
    log = json.dumps({"level": "error", "event": "it broke", "exc_info": traceback(STRANGE)}) + "\n"
    (event,) = read(log).events
    assert (event.line, event.exception, [frame.function for frame in event.frames]) == (
        1,
        "ValueError",
        ["main", "step"],
    )


def test_thousands_of_threads_that_assert_are_one_event(read: ReadLog) -> None:
    """The first thread's line, with a count of all."""
    log = "".join(ASSERT.format(number // 128, number % 128) + "\n" for number in range(5000))
    assert [(event.pattern, event.line, event.count) for event in read(log).events] == [
        ("torch.kernel-assert", 1, 5000)
    ]


NARROW = """\
+------- Traceback (most recent call last) --------+
| /job/train.py:10 in fit                          |
|                                                  |
| > 10   score = ranker(rows)                      |
+--------------------------------------------------+
UnboundLocalError: cannot access local variable
'ranker' where it is not associated with a value
"""


WHOLE = "UnboundLocalError: cannot access local variable 'ranker' where it is not associated with a value"


@each_row(
    "below",
    ["", "and\n", "Traceback (most recent call last):\n", "2025-03-02 10:00:00,123 INFO the job is done\n"],
)
def test_that_a_message_is_whole_which_the_boxs_console_broke(read: ReadLog, below: str) -> None:
    """Where the next word had room in the box's width, or a logger begins a row, the message has ended."""
    # More than is read as a paste, which is joined by other means.
    root = read(steps(*range(3000)) + NARROW + below).root
    assert root is not None
    assert root.body == WHOLE
    assert root.text == "UnboundLocalError: cannot access local variable"


PANEL = """\
+- Error -----------------------------------------+
| torch.OutOfMemoryError: CUDA out of              |
| memory. Tried to allocate 2.00 GiB. GPU 0 has    |
| a total capacity of 79.10 GiB of which 1.19 GiB  |
| is free.                                         |
+--------------------------------------------------+
"""


def test_that_the_rows_of_a_panel_are_the_message_that_they_were(read: ReadLog) -> None:
    """The pattern of the whole message knows it, with its numbers; a table's rows are none."""
    report = read(f"loading\n{PANEL}")
    assert report.root is not None
    assert report.root.line == 3
    assert "gpu_oom" in [fact.kind for fact in report.facts]
    table = PANEL.replace("CUDA out of ", "CUDA | out of").replace("memory. ", "memory.|")
    assert "gpu_oom" not in [fact.kind for fact in read(f"loading\n{table}").facts]


def test_that_a_shells_last_word_is_read_behind_an_open_progress_bar(read: ReadLog) -> None:
    """A bar leaves its row open, and the shell writes on: no such log is of a job that ran well."""
    bar = "\r".join(
        f" {step}%|##        | {step}/100 [00:0{step}<01:40,  1.02s/it, loss=0.3]" for step in (7, 8, 9)
    )
    words = ("Killed", "Terminated", "Segmentation fault (core dumped)", "已杀死")
    found = {word: read(f"{steps(1, 2)}{bar}{word}\n").root for word in words}
    assert [word for word, root in found.items() if root is None] == []
    assert read(f"{steps(1, 2)}{bar}\n").root is None
