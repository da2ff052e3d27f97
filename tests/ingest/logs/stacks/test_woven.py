"""Tracebacks of several processes among each other, with nothing before their rows to tell them apart."""

from __future__ import annotations

from itertools import zip_longest

from ingest.logs.report import CrashReport
from tests.factories import ReadLog
from tests.tables import each_row

LOADS = """Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    run(cfg)
  File "/job/train.py", line 40, in run
    rows = load(cfg.path)
           ^^^^^^^^^^^^^^
  File "/job/rows.py", line 9, in load
    return json.load(open(path))
FileNotFoundError: [Errno 2] No such file or directory: '/data/a.json'
"""
SERVES = """Traceback (most recent call last):
  File "/job/serve.py", line 30, in <module>
    serve(port)
  File "/job/serve.py", line 22, in serve
    sock.bind(("", port))
OSError: [Errno 98] Address already in use
"""
CHECKS = """Traceback (most recent call last):
  File "/job/check.py", line 7, in <module>
    check(rows)
  File "/job/check.py", line 3, in check
    raise OddError("seven")
OddError: seven
"""


def woven(*texts: str) -> str:
    """Mix texts of any length line by line."""
    rows = zip_longest(*(text.splitlines(keepends=True) for text in texts), fillvalue="")
    return "".join(row for turn in rows for row in turn)


def calls(report: CrashReport) -> dict[str, list[str]]:
    """Give each failure's calls as file and line, by its exception."""
    return {
        event.exception.rpartition(".")[2]: [f"{frame.file}:{frame.line}" for frame in event.frames]
        for event in report.events
    }


LOADED = ["/job/train.py:12", "/job/train.py:40", "/job/rows.py:9"]
SERVED = ["/job/serve.py:30", "/job/serve.py:22"]
CHECKED = ["/job/check.py:7", "/job/check.py:3"]


@each_row(
    "text, wanted",
    [
        (woven(LOADS, SERVES), {"FileNotFoundError": LOADED, "OSError": SERVED}),
        (woven(SERVES, LOADS), {"FileNotFoundError": LOADED, "OSError": SERVED}),
        (woven(SERVES, CHECKS), {"OSError": SERVED, "OddError": CHECKED}),
        (woven(CHECKS, LOADS, SERVES), {"FileNotFoundError": LOADED, "OSError": SERVED, "OddError": CHECKED}),
        (woven(LOADS, LOADS), {"FileNotFoundError": LOADED}),
        # One behind the other they are read as ever, also where the first one is cut.
        (LOADS + SERVES, {"FileNotFoundError": LOADED, "OSError": SERVED}),
        ("".join(LOADS.splitlines(keepends=True)[:5]) + SERVES + "\nbye\n", {"OSError": SERVED}),
    ],
)
def test_that_each_exception_has_the_calls_of_its_own_process(
    text: str, wanted: dict[str, list[str]], read: ReadLog
) -> None:
    found = calls(read("loading\n" + text))
    assert {name: found.get(name) for name in wanted} == wanted
