"""Any bytes at all: the reader gives a report whose parts agree with each other, or says why it cannot."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus import log_patterns
from eval.fuzz.invariants import violations
from ingest.errors import InputError
from ingest.logs import scanner
from ingest.logs.inputs import jobs
from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from tests import factories
from tests.factories import OOM, STRANGE, interleaved, prefixed, steps, traceback

# The patterns take time to load: only where examples are drawn.
EXAMPLES = st.deferred(
    lambda: st.sampled_from([line for row in log_patterns.load().rows for line in row.examples])
)
PREFIXES = [
    factories.RAY,
    factories.TORCHRUN,
    factories.SLURM,
    factories.CRI,
    factories.STAMP,
    "(a pid=1) ",
    "\x1b[36m(b pid=2)\x1b[0m ",
    "[1,2]<stderr>:",
    "  | ",
    "> ",
]
PIECES = [
    *traceback(STRANGE).splitlines(),
    *traceback(OOM).splitlines(),
    *steps(1, 2, 3).splitlines(),
    "The above exception was the direct cause of the following exception:",
    "  | ExceptionGroup: two (2 sub-exceptions)",
    "+-+---------------- 1 ----------------",
    "Fatal Python error: Segmentation fault",
    "Thread 0x00007f (most recent call first):",
    "goroutine 1 [running]:",
    "*** SIGSEGV received at time=1 ***",
    "config: {",
    "Namespace(",
    "model:",
    "actor:",
    "  lr: 1e-6",
    "{'a': [",
    "python train.py --lr 1 \\",
    "+ torchrun --nproc_per_node 8 a.py a.b=1 \\",
    "[repeated 9x across cluster]",
    '{"log":"',
    "\\n",
    '","stream":"stderr"}',
]
ODDITIES = [
    b"\n",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"\0",
    b"\0" * 5000,
    b"\xff",
    b"\xfe",
    b"\xc3\x28",
    b"\xe2\x80\xae",
    b"\x1b",
    b"\x1b[",
    b"\x1b[0m",
    b"\x1b]8;;",
    b"\x1b]0;t\x07",
    "显存不足".encode(),
    "显存".encode("gb18030"),
    b"\xe2\x80\xa8",
    b"\x0c",
    b"\x85",
    b"9" * 5000,
    b"a" * 9000,
    b"(" * 500,
    b"\\" * 900,
    b"'" * 99,
    b'"' * 99,
    b"{" * 99,
    b"[" * 99,
    b"  5%|",
    b"\x1b[2K",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"BZh9",
    b"ustar",
]


def _cut(line: str, begin: int, size: int) -> bytes:
    return line[begin : begin + size].encode("utf-8", "surrogateescape")


CUT = st.builds(_cut, EXAMPLES, st.integers(0, 40), st.integers(1, 400))
LINE = st.builds(
    lambda prefixes, text, end: "".join(prefixes).encode() + text + end,
    st.lists(st.sampled_from(PREFIXES), max_size=4),
    st.one_of(CUT, st.sampled_from(PIECES).map(str.encode), EXAMPLES.map(str.encode)),
    st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r", b"", b"\x1b[0m\n"]),
)
STACKS = [
    traceback(STRANGE),
    traceback(OOM, "generate"),
    traceback(STRANGE)
    + "\nDuring handling of the above exception, another exception occurred:\n\n"
    + traceback(OOM),
    traceback(STRANGE).replace("\n", "\n  | "),
    f"ray::Worker.step() (pid=3, ip=10.0.0.3)\n{traceback(OOM)}",
    traceback('ValueError: \\u0000 "' + "x" * 7000),
]
STACK = st.builds(
    lambda text, prefix, begin, size: prefixed(prefix, text).encode()[begin : begin + size],
    st.sampled_from(STACKS),
    st.sampled_from(["", *PREFIXES]),
    st.sampled_from([0, 0, 0, 50]),
    st.sampled_from([9000, 9000, 300, 90]),
)
INTERLEAVED = st.builds(
    lambda text, first, second: interleaved(prefixed(first, text), prefixed(second, text)).encode(),
    st.sampled_from(STACKS),
    st.sampled_from(PREFIXES),
    st.sampled_from(PREFIXES),
)
FRAGMENT = st.one_of(LINE, LINE, CUT, STACK, INTERLEAVED, st.sampled_from(ODDITIES), st.binary(max_size=40))
RAW = st.lists(FRAGMENT, max_size=30).map(b"".join)
ENCODED = st.builds(
    lambda data, encoding: data.decode("utf-8", "replace").encode(encoding, "replace"),
    RAW,
    st.sampled_from(["utf-16", "utf-8-sig", "gb18030"]),
)
ANY = st.one_of(RAW, RAW, ENCODED, st.binary(max_size=300))
FEW = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Dripping:
    """A stream that gives its bytes in pieces of given sizes, the first one long enough to tell the encoding
    by.
    """

    def __init__(self, data: bytes, size: int) -> None:
        self._stream = io.BytesIO(data)
        self._size = size

    def read(self, size: int, /) -> bytes:
        """Give the next piece."""
        return self._stream.read(min(size, self._size))

    def close(self) -> None:
        """Close."""


def report_of(reader: Reader, data: bytes) -> CrashReport | None:
    """Read a log; None where it is refused."""
    try:
        return reader.read(LogSource("log", io.BytesIO(data)))
    except InputError:
        return None


def what_is_read(data: bytes) -> bytes:
    """Give the text of a log as the reader is handed it: decoded, without a hole at its beginning."""
    return b"".join(LogSource("log", io.BytesIO(data)).chunks())


def count_of_lines(text: bytes) -> int:
    """Count lines as an editor shows them; a colour's reset behind the last newline makes none."""
    plain = scanner.ESCAPES.sub(b"", text)
    return plain.count(b"\n") + (bool(plain) and not plain.endswith(b"\n"))


@pytest.mark.long
@given(data=ANY)
@FEW
def test_that_any_bytes_give_a_report_that_agrees_with_itself(reader: Reader, data: bytes) -> None:
    """Nothing but InputError is raised, and every line, text and role of the report fits the others."""
    report = report_of(reader, data)
    if report is None:
        return
    assert violations(report) == []
    text = what_is_read(data)
    assert (report.limits.bytes, report.limits.lines) == (len(text), count_of_lines(text))
    assert (report.fingerprint == "") == (report.root is None)
    assert isinstance(report.phase, str)


@pytest.mark.long
@given(
    data=st.lists(
        st.one_of(LINE, CUT, STACK, st.sampled_from([b"\r", b"\n", b"\r\n", b"\x1b[0m", b"\x1b]0;t\x07"])),
        max_size=30,
    ).map(b"".join),
    size=st.integers(1, 300),
)
@FEW
def test_that_the_sizes_of_chunks_change_nothing(reader: Reader, data: bytes, size: int) -> None:
    """However few bytes a read gives, the report is the same as of all at once."""
    data = b"job 1 begins\n" + data
    once = reader.read(LogSource("log", io.BytesIO(data)))
    assert reader.read(LogSource("log", Dripping(data, size))) == once


@given(parts=st.lists(RAW, min_size=2, max_size=3))
@settings(FEW, max_examples=30)
def test_that_places_in_a_folder_are_those_in_its_files(reader: Reader, parts: list[bytes]) -> None:
    """What stands at a file's line when it is read as part of a job, stands there when it is read alone."""
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(parts):
            (Path(folder) / f"rank{number}.log").write_bytes(data)
        try:
            report = reader.read(jobs.open_job(Path(folder)))
        except InputError:
            return
    alone = {f"rank{number}.log": report_of(reader, data) for number, data in enumerate(parts)}
    read = {name: found for name, found in alone.items() if found is not None}
    if report.timeline.has_parts:
        assert {report.place(event.line).file for event in report.events} <= set(read)
        assert _told(report, "") <= {told for name, found in read.items() for told in _told(found, name)}
    assert report.limits.lines == sum(found.limits.lines for found in read.values())
    assert violations(report) == []


def _told(report: CrashReport, name: str) -> set[tuple[str, str, int]]:
    places = [(event.pattern, report.place(event.line)) for event in report.events]
    return {(pattern, place.file or name, place.line) for pattern, place in places}
