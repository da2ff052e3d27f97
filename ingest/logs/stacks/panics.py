"""Panics of Rust and Go, and Java's stacks: tokenizers and data libraries, cluster tools, Spark and HDFS.

Grammar: library/std/src/panicking.rs (both layouts of the message), Go's runtime/panic.go and traceback.go,
java.lang.Throwable.printStackTrace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise, takewhile

from ingest.logs.lines import Line
from ingest.logs.stacks import stack
from ingest.logs.stacks.stack import Frame, Traceback

# Lines of a panic's message, and calls of its stack, that are read.
MAX_MESSAGE = 8
MAX_CALLS = 200

_RUST = re.compile(r"thread '[^']*'(?: \(\d+\))? panicked at (?P<rest>.*)")
_RUST_PLACE = re.compile(
    r"(?:'(?P<message>.*)', )?(?P<file>[^\s']+\.\w+):(?P<line>\d{1,9}):\d{1,9}:?\s*$", re.DOTALL
)
_RUST_END = re.compile(r"note: |stack backtrace:|\s*$")
_RUST_CALL = re.compile(r"\s*\d{1,4}: +(?:0x[0-9a-f]+ - )?(?P<function>\S.*)")
_RUST_AT = re.compile(r"\s+at (?P<file>\S+?):(?P<line>\d{1,9})(?::\d+)?\s*$")
_RUST_OWN = re.compile(
    r"rust_begin_unwind|(?:core|std)::(?:panicking|sys|rt|result|option|ops|thread|panic)|"
    r"__rust|_?rust_panic|<?(?:alloc|std)::"
)

_GO = re.compile(r"(?:panic: |fatal error: )(?P<message>.+)")
_GO_STACK = re.compile(r"goroutine \d+ .*\[[^\]]*\]:")
_GO_CALL = re.compile(r"(?P<function>[\w./*()\[\]{}-]{1,300})\(.*\)$")
_GO_AT = re.compile(r"\s+(?P<file>/?\S+\.(?:go|s)):(?P<line>\d{1,9})")

_JAVA = re.compile(r"Exception in thread \"[^\"]*\" (?P<type>[\w.$]+)(?:: (?P<message>.*))?$")
_JAVA_CAUSE = re.compile(r"Caused by: (?P<type>[\w.$]+)(?:: (?P<message>.*))?$")
_JAVA_CALL = re.compile(r"\s*at (?P<function>[\w.$<>/]+)\((?P<file>[^:)]+)(?::(?P<line>\d{1,9}))?\)")
_JAVA_ROW = re.compile(r"\s*(?:at [\w.$<>/]+\(|\.\.\. \d+ |Suppressed: )")


def read_panic(first: Line, lines: Iterator[Line], _earlier: Iterator[Line]) -> list[Traceback] | None:
    """Read the panic that a line announces; None where it announces none."""
    if rust := _RUST.search(first.body):
        return _rust(first, rust["rest"], lines)
    if go := _GO.match(first.body):
        return _go(first, go["message"], lines)
    java = _JAVA.search(first.body)
    return _java(first, java, lines) if java else None


def _rust(first: Line, rest: str, lines: Iterator[Line]) -> list[Traceback]:
    # A call's number in the backtrace looks like Slurm's label: where the panic has no label, it is none.
    own = (
        line for line in lines if line.source == first.source or line._replace(rank="").source == first.source
    )
    rows = list(
        islice(
            (
                line.text[(len(first.text) - len(first.body)) :] if line.rank != first.rank else line.body
                for line in own
            ),
            MAX_CALLS,
        )
    )
    place = _RUST_PLACE.match(rest)
    for row in rows[:MAX_MESSAGE] if place is None else []:
        rest += f"\n{row}"
        place = place or _RUST_PLACE.match(rest)
    if place is None:
        return []
    said = takewhile(lambda row: not _RUST_END.match(row), rows[:MAX_MESSAGE])
    message = place["message"] or "\n".join(said)
    frames = (*reversed(list(_rust_calls(rows))), Frame(place["file"], int(place["line"]), "panic"))
    return [
        Traceback(
            first.number, first.number, first.source, frames, "panic", message, first.text, language="rust"
        )
    ]


def _rust_calls(rows: list[str]) -> Iterator[Frame]:
    """Read a backtrace, the innermost call first, without the panic's own machinery."""
    start = next(
        (place for place, row in enumerate(rows, 1) if row.startswith("stack backtrace:")), len(rows)
    )
    for row, under in pairwise([*rows[start:], ""]):
        call = _RUST_CALL.match(row)
        if call is None and not _RUST_AT.match(row):
            return
        if call and not _RUST_OWN.match(call["function"]):
            at = _RUST_AT.match(under)
            yield Frame(at["file"] if at else "", int(at["line"]) if at else 0, call["function"].strip())


def _go(first: Line, message: str, lines: Iterator[Line]) -> list[Traceback]:
    own = stack.of(first, lines, MAX_CALLS)
    if not any(_GO_STACK.match(line.body) for line in islice(own, MAX_MESSAGE)):
        return []
    frames: list[Frame] = []
    function = ""
    for line in own:
        if not line.body.strip():
            break
        if at := _GO_AT.match(line.body):
            frames.append(Frame(at["file"], int(at["line"]), function))
        elif call := _GO_CALL.match(line.body):
            function = call["function"]
    return [
        Traceback(
            first.number,
            first.number,
            first.source,
            tuple(reversed(frames)),
            "panic",
            message,
            first.text,
            language="go",
        )
    ]


def _java(first: Line, head: re.Match[str], lines: Iterator[Line]) -> list[Traceback]:
    """Read a Java stack; its last `Caused by` was raised first, and is what the links above it wrap."""
    end, link = first, head
    frames: list[Frame] = []
    for line in stack.of(first, lines):
        if cause := _JAVA_CAUSE.match(line.body):
            end, link, frames = line, cause, []
        elif call := _JAVA_CALL.match(line.body):
            frames.append(Frame(call["file"], int(call["line"] or 0), call["function"]))
        elif not _JAVA_ROW.match(line.body):
            break
    return [
        Traceback(
            first.number,
            end.number,
            first.source,
            tuple(reversed(frames)),
            link["type"],
            link["message"] or "",
            end.text,
            language="java",
        )
    ]
