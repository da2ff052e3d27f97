"""Read dumps of the stacks of living processes: who stood where when somebody looked.

Formats: py-spy's text and JSON (src/dump.rs), also as `ray stack` prints it, with native calls, with local
values, and with the label that srun or pdsh puts before each line; CPython's faulthandler on demand
(Python/traceback.c, _Py_DumpTracebackThreads); gdb's `thread apply all bt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from corpus.message import Message
from ingest.errors import ArtefactError
from ingest.logs.lines import printable
from ingest.logs.stacks.stack import Frame

MOST_BYTES = 32 << 20
MOST_JSON_BYTES = 16 << 20
MOST_PROCESSES, MOST_THREADS, MOST_CALLS = 4096, 512, 200
_LONGEST_LINE, _LONGEST = 4096, 300

# What stands before each line where one command asked many: a task's number (srun --label) or a host (pdsh).
_LABEL = r"(?:(?P<label>\[?[\w.-]{1,64}\]?): ?)?"
_PROCESS = re.compile(_LABEL + r"Process (?P<pid>\d{1,10}): (?P<program>.*)")
_THREAD = re.compile(r"Thread (?P<id>\w+) \((?P<state>[\w+]+)\)(?:: \"(?P<name>[^\"]*)\")?\s*$")
_CALL = re.compile(r" {4}(?P<function>\S.*) \((?P<file>[^()]+?)(?::(?P<line>\d{1,9}))?\)\s*$")
_FAULT_THREAD = re.compile(
    r"(?P<which>Current thread|Thread) 0x[0-9a-f]+(?: \[(?P<name>[^\]]*)\])? \(most recent call first\):"
)
_FAULT_CALL = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d{1,9}) in (?P<function>.+)')
_GDB_THREAD = re.compile(
    r'Thread (?P<id>\d+) \((?:Thread 0x[0-9a-f]+ )?\(?(?:LWP (?P<lwp>\d+))?\)?(?: "(?P<name>[^"]*)")?'
)
_GDB_CALL = re.compile(
    r"#\d+ +(?:0x[0-9a-f]+ in )?(?P<function>[^\s(][^(]*?) ?\(.*?(?:\) (?:at|from) (?P<file>\S+?)"
    r"(?::(?P<line>\d{1,9}))?)?$"
)
_JSON = re.compile(rb"\s*\[\s*[{\]]")
_RANK_NAME = re.compile(r"rank[_.-]?(\d{1,6})(?!.*rank[_.-]?\d)", re.IGNORECASE)
_RANK_ARGUMENT = re.compile(r"--(?:(?:node|local)[_-])?rank[= ](\d{1,6})\b")
_GLOBAL_ARGUMENT = re.compile(r"--rank[= ](\d{1,6})\b")


@dataclass(slots=True)
class ThreadStack:
    """One thread: its name, its calls with the outermost first, and whether Python calls it the main one."""

    name: str
    calls: tuple[Frame, ...] = ()
    is_main: bool = False


@dataclass(slots=True)
class ProcessStacks:
    """One process when it was looked at. `rank` is -1 where neither the file's name nor a label tells it."""

    pid: int
    rank: int
    source: str
    program: str = ""
    host: str = ""
    threads: list[ThreadStack] = field(default_factory=list)

    @property
    def main(self) -> ThreadStack | None:
        """The main thread; without a word of it, the last one, where faulthandler and gdb print it."""
        whole = [thread for thread in self.threads if thread.calls]
        return next((thread for thread in whole if thread.is_main), whole[-1] if whole else None)


def read_stacks(data: bytes, name: str) -> list[ProcessStacks]:
    """Read a dump of stacks; raises ArtefactError where it is none, is damaged or is too large."""
    # gdb's own remarks begin with a bracket, too.
    is_json = _JSON.match(data) is not None
    most = MOST_JSON_BYTES if is_json else MOST_BYTES
    if len(data) > most:
        raise ArtefactError(Message("artefacts.too-large", megabytes=most >> 20))
    source = printable(name)[:_LONGEST]
    found = list(_json(data, source) if is_json else _Text(source).read(data))
    found = [process for process in found if process.main]
    if not found:
        raise ArtefactError(Message("artefacts.no-stacks"))
    if len(found) == 1 and found[0].rank < 0 and (told := _RANK_NAME.search(source)):
        found[0].rank = int(told[1])
    return found


def _json(data: bytes, source: str) -> Iterator[ProcessStacks]:
    """Read what `py-spy dump --json` writes: threads of one process or several, one after another."""
    try:
        threads = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArtefactError(Message("artefacts.json-damaged")) from error
    processes: dict[int, ProcessStacks] = {}
    for thread in threads if isinstance(threads, list) else ():
        if not isinstance(thread, dict) or not isinstance(pid := thread.get("pid"), int):
            continue
        if pid not in processes and len(processes) >= MOST_PROCESSES:
            break
        process = processes.setdefault(pid, ProcessStacks(pid, -1, source))
        name = thread.get("thread_name")
        name = name[:_LONGEST] if isinstance(name, str) else ""
        frames = thread.get("frames")
        calls = [
            call
            for frame in (frames if isinstance(frames, list) else [])[:MOST_CALLS]
            if (call := _of(frame))
        ]
        is_main = name == "MainThread" or thread.get("os_thread_id") == pid
        if len(process.threads) < MOST_THREADS:
            process.threads.append(ThreadStack(printable(name), tuple(reversed(calls)), is_main))
    yield from processes.values()


def _of(frame: object) -> Frame | None:
    if not isinstance(frame, dict):
        return None
    file = frame.get("short_filename") or frame.get("filename")
    function, line = frame.get("name"), frame.get("line")
    if not isinstance(file, str) or not isinstance(function, str):
        return None
    return _call({"file": file, "function": function, "line": str(line) if isinstance(line, int) else ""})


def _call(told: Mapping[str, str | None]) -> Frame:
    """Make a frame of a match; py-spy names a function with its class and what it is defined in."""
    function = (told.get("function") or "").rpartition("<locals>.")[2]
    line = told.get("line") or ""
    return Frame(
        printable((told.get("file") or "")[:_LONGEST]),
        int(line) if line.isdecimal() else 0,
        printable(function[:_LONGEST]),
    )


class _Text:
    """The lines of one file, which may hold several processes, each under a label of its own."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._processes: list[ProcessStacks] = []
        self._by_label: dict[str, ProcessStacks] = {}

    def read(self, data: bytes) -> Iterable[ProcessStacks]:
        for raw in data.split(b"\n"):
            line = raw[:_LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
            if match := _PROCESS.match(line):
                self._begin(match)
            else:
                self._read_line(line)
            if len(self._processes) > MOST_PROCESSES:
                break
        for process in self._processes:
            for thread in process.threads:
                thread.calls = tuple(reversed(thread.calls))
        return self._processes[:MOST_PROCESSES]

    def _begin(self, match: re.Match[str]) -> None:
        label, program = (match["label"] or "").strip("[]"), match["program"]
        told = _RANK_ARGUMENT.search(program)
        if told and "node" in told[0]:
            told = _GLOBAL_ARGUMENT.search(program)
        rank = int(label) if label.isdecimal() else int(told[1]) if told and not label else -1
        process = ProcessStacks(
            int(match["pid"]),
            rank,
            self._source,
            printable(program)[:_LONGEST],
            "" if label.isdecimal() else label,
        )
        self._by_label[label] = process
        self._processes.append(process)

    def _read_line(self, line: str) -> None:
        label, separator, body = line.partition(":")
        process = self._by_label.get(label.strip("[]")) if separator else None
        if process:
            line = body.removeprefix(" ")
        else:
            process = self._by_label.get("")
        if thread := self._thread(line, process):
            if process is None:
                # faulthandler and gdb do not say which process it is.
                process = self._by_label[""] = ProcessStacks(0, -1, self._source)
                self._processes.append(process)
            if len(process.threads) < MOST_THREADS:
                process.threads.append(thread)
        elif process and process.threads:
            found = (expression.match(line) for expression in (_CALL, _FAULT_CALL, _GDB_CALL))
            match, last = next(filter(None, found), None), process.threads[-1]
            if match and len(last.calls) < MOST_CALLS:
                last.calls = (*last.calls, _call(match.groupdict()))

    def _thread(self, line: str, process: ProcessStacks | None) -> ThreadStack | None:
        if match := _THREAD.match(line):
            name = match["name"] or ""
            is_main = name == "MainThread" or (process is not None and match["id"] == str(process.pid))
            return ThreadStack(printable(name)[:_LONGEST], (), is_main)
        if match := _FAULT_THREAD.match(line):
            return ThreadStack(printable(match["name"] or "")[:_LONGEST])
        if (match := _GDB_THREAD.match(line)) and line.rstrip().endswith(":"):
            return ThreadStack(printable(match["name"] or "")[:_LONGEST], (), match["id"] == "1")
        return None
