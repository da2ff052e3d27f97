"""Tracebacks: whose they are, where they end, what they name."""

from __future__ import annotations

import pytest

from ingest.logs import tracebacks
from ingest.logs.scanner import Block
from ingest.logs.tracebacks import Frame, Traceback
from tests.factories import CRI, RAY, SLURM, STAMP, STRANGE, TORCHRUN, interleaved, prefixed, traceback


def first(log: str) -> list[Traceback]:
    """Read what begins at the first 'Traceback' of a log."""
    data = log.encode()
    offset = data.index(b"Traceback")
    return tracebacks.at(Block(data, 1, 0, len(data)), offset, data.count(b"\n", 0, offset) + 1)


def summary(found: list[Traceback]) -> list[tuple[int, int, str, list[str]]]:
    """Give what tests compare."""
    return [(one.start, one.end, one.exception, [frame.function for frame in one.frames]) for one in found]


@pytest.mark.parametrize(
    ("prefix", "source"),
    [("", ""), (RAY, "WorkerDict pid=4242 ip=10.0.0.3"), (TORCHRUN, "rank=3"), (SLURM, "rank=3"), (CRI, ""), (STAMP, ""),
     ("[default0]:", "rank=0"), ("[pod/job-0/main] ", "ip=job-0"), (f"{CRI}{RAY}", "WorkerDict pid=4242 ip=10.0.0.3"), ("    ", "")],
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
        prefixed("[rank0]: ", traceback("ValueError: a", "alpha")), prefixed("[rank1]: ", traceback("KeyError: 'b'", "beta"))
    )
    assert summary(first(log)) == [(1, 11, "ValueError", ["main", "alpha"])]
    rest = log.split("\n", 1)[1]
    assert summary(first(rest)) == [(1, 11, "KeyError", ["main", "beta"])]


@pytest.mark.parametrize(
    ("line", "exception", "message"),
    [
        ("ValueError: x", "ValueError", "x"),
        ("AssertionError", "AssertionError", ""),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError", "CUDA out of memory."),
        ("socket.timeout: timed out", "socket.timeout", "timed out"),
        ("socket.gaierror: [Errno -2] Name or service not known", "socket.gaierror", "[Errno -2] Name or service not known"),
        ("ray.exceptions.RayTaskError(OSError): ray::f() (pid=1, ip=10.0.0.1)", "ray.exceptions.RayTaskError(OSError)",
         "ray::f() (pid=1, ip=10.0.0.1)"),
        ("subprocess.CalledProcessError: Command '['a']' died", "subprocess.CalledProcessError", "Command '['a']' died"),
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


@pytest.mark.parametrize(
    ("joint", "expected"),
    [
        ("\nDuring handling of the above exception, another exception occurred:\n\n", ["KeyError", "ValueError"]),
        ("\nThe above exception was the direct cause of the following exception:\n\n", ["KeyError", "ValueError"]),
    ],
)
def test_chained_tracebacks_begin_anew(joint: str, expected: list[str]) -> None:
    """Each traceback of a chain ends at its own exception."""
    log = traceback("KeyError: 'a'") + joint + traceback("ValueError: b")
    second = log.index("Traceback", 10)
    data = log.encode()
    found = [*first(log), *tracebacks.at(Block(data, 1, 0, len(data)), second, data.count(b"\n", 0, second) + 1)]
    assert summary(found) == [(1, 6, expected[0], ["main", "step"]), (10, 15, expected[1], ["main", "step"])]


@pytest.mark.parametrize(
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
    log = 'Traceback (most recent call last):\n  File "/job/a.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n'
    (found,) = first(log)
    assert (found.frames, found.exception) == ((Frame("/job/a.py", 1, "<module>", "x = = 1"),), "SyntaxError")


def test_an_exception_groups_traceback_is_read() -> None:
    """Exception groups draw a margin; frames and the first exception are still read."""
    log = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/job/a.py", line 5, in main\n'
        "  |     raise group\n"
        "  | ExceptionGroup: two things (2 sub-exceptions)\n"
    )
    assert summary(first(log)) == [(1, 4, "ExceptionGroup", ["main"])]


def test_a_traceback_without_its_last_line_keeps_its_frames() -> None:
    """The log was cut before the exception: the calls still tell where."""
    found = first(traceback("").rstrip() + "\n")
    assert summary(found) == [(1, 5, "", ["main", "step"])]
