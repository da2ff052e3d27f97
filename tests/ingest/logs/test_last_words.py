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
