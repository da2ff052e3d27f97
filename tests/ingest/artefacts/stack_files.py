"""Stacks in the forms that py-spy, faulthandler and gdb print, made of the same calls."""

from __future__ import annotations

import json
from collections.abc import Sequence

# A file, a line, a function; outermost first.
Call = tuple[str, int, str]

LOOP: list[Call] = [("train.py", 90, "<module>"), ("train.py", 61, "main")]
REDUCE: list[Call] = [
    *LOOP,
    ("train.py", 40, "train_step"),
    ("torch/distributed/c10d_logger.py", 83, "wrapper"),
    ("torch/distributed/distributed_c10d.py", 3252, "all_reduce"),
]
BARRIER: list[Call] = [
    *LOOP,
    ("train.py", 71, "save"),
    ("torch/distributed/distributed_c10d.py", 4800, "barrier"),
]
LOADS: list[Call] = [
    *LOOP,
    ("train.py", 38, "next_batch"),
    ("json/__init__.py", 346, "loads"),
    ("json/decoder.py", 353, "raw_decode"),
]
LOCK: list[Call] = [*LOOP, ("train.py", 12, "build"), ("torch/utils/file_baton.py", 49, "wait")]
DEBUGGER: list[Call] = [*LOOP, ("train.py", 33, "check"), ("bdb.py", 90, "trace_dispatch")]
LAUNCHER: list[Call] = [
    ("torch/distributed/run.py", 900, "main"),
    ("torch/distributed/elastic/agent/server/api.py", 899, "_invoke_run"),
]
INSTALLED = "/opt/env/lib/python3.11/site-packages/"


def py_spy(calls: Sequence[Call], pid: int = 4711, program: str = "python train.py", label: str = "") -> str:
    rows = [
        f"Process {pid}: {program}",
        "Python v3.11.7 (/usr/bin/python3.11)",
        "",
        f'Thread {pid} (active): "MainThread"',
        *(f"    {function} ({file}:{line})" for file, line, function in reversed(calls)),
        f'Thread {pid + 9} (idle): "Thread-1"',
        "    wait (threading.py:331)",
        "    _bootstrap (threading.py:1002)",
    ]
    return "\n".join(f"{label}: {row}" if label else row for row in rows) + "\n"


def py_spy_json(calls: Sequence[Call], pid: int = 4711) -> str:
    frames = [
        {"name": function, "filename": INSTALLED + file, "module": None, "short_filename": file, "line": line}
        for file, line, function in reversed(calls)
    ]
    thread = {"pid": pid, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": pid, "active": True}
    return json.dumps([thread | {"owns_gil": False, "frames": frames}], indent=2)


def faulthandler(calls: Sequence[Call]) -> str:
    rows = [f'  File "{_path(file)}", line {line} in {function}' for file, line, function in reversed(calls)]
    other = [
        "Thread 0x00007fa0711b96c0 [pin_memory] (most recent call first):",
        '  File "<string>", line 1 in f',
    ]
    return "\n".join([*other, "", "Thread 0x00007fa089014b80 (most recent call first):", *rows]) + "\n"


def _path(file: str) -> str:
    if file.startswith("torch/"):
        return INSTALLED + file
    return f"/job/{file}" if file == "train.py" else f"/usr/lib/python3.11/{file}"


GDB = """[New LWP 13201]
[New LWP 13202]
[Thread debugging using libthread_db enabled]
__futex_abstimed_wait_common64 (private=0, cancel=true) at ./nptl/futex-internal.c:57

Thread 2 (Thread 0x7fa0711b96c0 (LWP 13201) "pt_autograd_0"):
#0  __futex_abstimed_wait (private=0) at ./nptl/futex-internal.c:57
#1  0x00007fa0716d44a3 in ?? () from /lib/x86_64-linux-gnu/libstdc++.so.6

Thread 1 (Thread 0x7fa089014b80 (LWP 13197) "python"):
#0  0x00007fa0716a741d in std::condition_variable::wait(std::mutex&) () from /lib/libstdc++.so.6
#1  0x00007fa07816984b in c10d::Work::wait(std::chrono::duration<long>) () from /opt/torch/lib/libtorch_cpu.so
#2  0x00007fa0869d2825 in PyObject_Vectorcall (callable=0x1) at Objects/call.c:299
#3  0x0000556a81 in _start ()
[Inferior 1 (process 13197) detached]
"""
NATIVE = """Process 4711: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4711 (idle): "MainThread"
    0x7fa0888a3f16 (libc.so.6)
    c10d::Work::wait (libtorch_cpu.so)
    all_reduce (torch/distributed/distributed_c10d.py:3252)
        Arguments:
            tensor: <Tensor at 0x7f00>
    _exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)
    train_step (train.py:13)
    <module> (train.py:21)
"""
