"""Stacks of compiled code: C++ exceptions, signal handlers, glibc's aborts, Python's faulthandler.

Such a stack says first what happened, then the calls with the innermost first. Grammar:
c10/util/Backtrace.cpp and Exception.cpp, absl's and glog's failure handlers, glibc's backtrace_symbols, Open
MPI's and UCX's signal handlers, compiler-rt's AddressSanitizer, gdb, CPython's Python/traceback.c
(_Py_DumpTraceback).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from ingest.logs.lines import Line
from ingest.logs.stacks import stack
from ingest.logs.stacks.stack import Frame, Traceback

# Lines between the banner and the calls, or among them, that are none: registers, notes, other output.
MAX_NOISE = 12
# Calls of one stack that are kept.
MAX_FRAMES = 200

_BANNERS = tuple(
    re.compile(row)
    for row in (
        r"terminate called after throwing an instance of '(?P<name>[^']+)'",
        r"terminate called (?P<name>without an active exception|recursively)",
        r"libc\+\+abi: terminating due to (?P<name>[\w ]+?) exception(?: of type (?P<message>\S+))?",
        r"Fatal Python error: (?P<name>[^:]{1,80})(?:: (?P<message>.*))?$",
        r"(?P<name>Timeout) \((?P<message>\d+:\d\d:\d\d(?:\.\d+)?)\)!\s*$",
        r"\*\*\* (?P<name>SIG[A-Z]+) (?:received at time|\(@0x[0-9a-f]+\) received by PID)",
        (
            r"\*\*\* Error in `(?P<program>[^']*)': (?P<name>[^:]+(?:\(\))?(?:: [^:]+?)?)(?: \([^)]*\))?: "
            r"0x[0-9a-f]+ \*\*\*"
        ),
        r"(?P<name>Check failed): (?P<message>.*)",
        r"\*\*\* (?P<name>Process received signal) \*\*\*",
        r"Caught signal \d+ \((?P<name>[^:)]+)(?:: (?P<message>[^)]+))?\)",
        r"==\d+==\s?ERROR: AddressSanitizer: (?P<name>[\w-]+)(?: on (?P<message>.*))?",
        r"(?:Thread \d+ \"[^\"]*\"|Program) received signal (?P<name>SIG[A-Z]+), (?P<message>[\w ]+)",
        r"!!!!!!! (?:\w+ encountered a )?(?P<name>Segfault|Segmentation fault)(?: encountered)? !!!!!!!",
        r"(?P<name>Exception raised) from (?P<message>[^\s(]+ at [^\s:]+:\d+) \(most recent call first\)",
    )
)
_SIGNAL = re.compile(r"Signal: (?P<name>[\w ]+) \(\d+\)")
_WHAT = re.compile(r"\s*what\(\):\s+(?P<message>.*)")
_ORIGIN = re.compile(r"Exception raised from (?P<function>[^\s(]+) at (?P<file>[^\s:]+):(?P<line>\d{1,9}) ")
_FRAMES = tuple(
    re.compile(row)
    for row in (
        r'\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9}),? in (?P<function>.+)',
        r"frame #\d+: (?P<function>.+?)(?: \+ 0x[0-9a-f]+)? \(0x[0-9a-f]+ in (?P<file>[^)]+)\)",
        r"(?:frame )?#\d+:? (?P<function>\S.*) from (?P<file>[^\s:]+):(?P<line>\d{1,9})$",
        r"\s*(?:PC: )?@\s+0x[0-9a-f]+\s+(?:\d+\s+(?:bytes\s+)?|\(unknown\)\s+)?(?P<function>.+)",
        r"(?:\[ ?\d+\] )?(?P<file>[^\s()]+)\((?P<function>[^()+]*)(?:\+0x[0-9a-f]+)?\) ?\[0x[0-9a-f]+\]",
        (
            r"\s*#\d+ 0x[0-9a-f]+ in (?P<function>.+?) "
            r"\(?(?P<file>/[^\s:()]+?)(?:\+0x[0-9a-f]+\)|:(?P<line>\d{1,9}).*)?(?: \(BuildId: \w+\))?$"
        ),
        (
            r"#\d+ +(?:0x[0-9a-f]+ in )?(?P<function>[^\s(][^(]*?) ?\(.*\) (?:at|from) "
            r"(?P<file>[^\s:]+)(?::(?P<line>\d{1,9}))?$"
        ),
        r"\s*\d+ +(?:0x[0-9a-f]+ +)?(?P<function>\S.*\)) +(?P<file>[^\s:]+):(?P<line>\d{1,9})$",
    )
)
_THREAD = re.compile(
    r"(?P<which>Current thread|Thread|Stack)(?: 0x[0-9a-f]+)?(?: \[[^\]]*\])? \(most recent call first\):"
)
# An address that no symbol is known for.
_UNKNOWN = re.compile(r"@\s+0x[0-9a-f]+\s+(?:\d+\s+)?(?:\(unknown\)\s*)+$")
_END = re.compile(r"Extension modules: |\*\*\* End of error message|=+ ?Memory map|SUMMARY: \w+Sanitizer")


def read_native(first: Line, lines: Iterator[Line], _earlier: Iterator[Line]) -> list[Traceback] | None:
    """Read the stack that a line's banner announces.

    None where it announces none, empty where no call is shown.
    """
    banner = next((match for expression in _BANNERS if (match := expression.search(first.body))), None)
    if banner is None:
        return None
    told = {key: (value or "").strip() for key, value in banner.groupdict().items()}
    rows = list(_rows(first, lines))
    frames = _threads(rows) or _calls(chain([first], rows))
    message = told.get("message") or _first(_WHAT, rows, "message")
    name = _first(_SIGNAL, rows, "name") or told["name"]
    if not frames:
        return []
    return [
        Traceback(
            first.number, first.number, first.source, frames, name, message, first.text, language="native"
        )
    ]


def _rows(first: Line, lines: Iterator[Line]) -> Iterator[Line]:
    """Give the stack's lines: calls, and what little stands between them."""
    noise = 0
    for line in stack.of(first, lines):
        if _END.match(line.body) or noise > MAX_NOISE:
            return
        is_part = any(
            test for test in (_frame(line.body), _THREAD.match(line.body), _UNKNOWN.search(line.body))
        )
        noise = 0 if is_part else noise + 1
        yield line


def _first(expression: re.Pattern[str], rows: list[Line], name: str) -> str:
    return next(
        (match[name].strip() for line in rows[:MAX_NOISE] if (match := expression.match(line.body))), ""
    )


def _calls(rows: Iterable[Line]) -> tuple[Frame, ...]:
    found = (frame for line in rows if (frame := _frame(line.body)))
    return tuple(reversed(list(islice(found, MAX_FRAMES))))


def _threads(rows: list[Line]) -> tuple[Frame, ...]:
    """Give the calls of the thread that failed.

    Where Python knows none, of the last one, which is the main thread.
    """
    heads = [place for place, line in enumerate(rows) if _THREAD.match(line.body)]
    if not heads:
        return ()
    current = next((place for place in heads if rows[place].body.startswith(("Current", "Stack"))), heads[-1])
    end = next((place for place in heads if place > current), len(rows))
    return _calls(rows[current + 1 : end])


def _frame(body: str) -> Frame | None:
    if _UNKNOWN.search(body):
        return None
    for expression in (_ORIGIN, *_FRAMES):
        if match := expression.match(body):
            told = match.groupdict()
            # A C++ function's parameters are no part of its name.
            function = told["function"].strip().split("(")[0] or told["function"].strip()
            return Frame(told.get("file") or "", int(told.get("line") or 0), function)
    return None
