"""Stacks of compiled code and of other languages: what they name, and the calls, outermost first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.logs.scanner import Block
from ingest.logs.stacks import tracebacks
from ingest.logs.stacks.stack import Traceback
from tests.factories import CRI, RAY, TORCHRUN, interleaved, prefixed
from tests.tables import each_row


def read(log: str, start: int = 1) -> list[Traceback]:
    """Read what begins in a line of a log."""
    data = log.encode()
    offset = len("".join(log.splitlines(keepends=True)[: start - 1]).encode())
    return tracebacks.at(Block(data, 1, 0, len(data)), offset, start)


TERMINATE = """\
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  CUDA error: unspecified launch failure
Exception raised from check at ../c10/cuda/CUDAException.cpp:43 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f1 in /env/torch/lib/libc10.so)
frame #1: c10d::Work::wait() const + 0x56 (0x7f2 in /env/torch/lib/libtorch_cuda.so)

goes on
"""
CAPTURED = """\
terminate called after throwing an instance of 'c10::Error'
  what():  bad stride
frame #0: at::check(int) from /src/aten/Check.cpp:41
frame #1: at::view(int, int) from /src/aten/View.cpp:12
"""
GLOG = """\
F0302 10:00:00.123456  1234 store.cc:77] Check failed: size > 0 (0 vs. 0) empty store
*** Check failure stack trace: ***
    @     0x7f0011223344  google::LogMessage::Fail()
    @     0x55aa11223344  plasma::Store::Create()
    @              (nil)  (unknown)
"""
ABSL = """\
*** SIGSEGV received at time=1763460000 on cpu 41 ***
PC: @     0x7f0bd14a6a2d  (unknown)  ncclProxyService()
    @     0x7f1277e8f520       1234  (unknown)
    @     0x7f0bd1aaf0c8       3120  ncclProxyProgress()
"""
ABSL_AND_PYTHON = (
    ABSL
    + """\
Fatal Python error: Segmentation fault

Stack (most recent call first):
  File "/job/x.py", line 4 in gather
  File "/job/x.py", line 9 in <module>
"""
)
SIGNAL = """\
*** SIGSEGV (@0x0) received by PID 888 (TID 0x7f) from PID 0; stack trace: ***
    @     0x7f0011223344 (unknown)
    @     0x7f0011223355 moe::dispatch()
"""
GLIBC = """\
*** Error in `python': double free or corruption (!prev): 0x0000000001c5d060 ***
======= Backtrace: =========
/lib64/libc.so.6(+0x7c619)[0x7f8a2c9f8619]
/opt/lib/libfoo.so(foo_release+0x12)[0x7f8a1c9f8612]
======= Memory map: ========
00400000-00401000 r-xp 00000000 08:01 123
"""
MPI = """\
[node7:00888] *** Process received signal ***
[node7:00888] Signal: Bus error (7)
[node7:00888] Failing at address: 0x10
[node7:00888] [ 0] /lib/libc.so.6(+0x42520)[0x7f1c8a242520]
[node7:00888] [ 1] /opt/libucp.so.0(ucp_worker_progress+0x6a)[0x7f1c1a24252a]
[node7:00888] *** End of error message ***
"""
UCX = """\
[node7:888  :0:1201] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x10)
==== backtrace (tid:   1201) ====
 0 0x0000000000042520 __sigaction()  ???:0
 1 0x000000000005a3c0 ucp_progress()  /src/ucp/proto.c:77
=================================
"""
ASAN = """\
==888==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010
READ of size 4 at 0x602000000010 thread T0
    #0 0x55d7 in Kernel::launch(int) /src/kernel.cc:41:7
    #1 0x7f1c in __libc_start_main (/lib/libc.so.6+0x29d90)
SUMMARY: AddressSanitizer: heap-use-after-free /src/kernel.cc:41:7 in Kernel::launch(int)
"""
GDB = """\
Thread 1 "python" received signal SIGSEGV, Segmentation fault.
#0  0x00007ffff7a42520 in raise () from /lib/libc.so.6
#1  main (argc=1, argv=0x7f) at main.c:5
"""
FAULT = """\
Fatal Python error: Bus error

Thread 0x00007f2f0bfff640 [pin_memory] (most recent call first):
  File "/lib/threading.py", line 331 in wait

Current thread 0x00007f47a1b94740 (most recent call first):
  File "/job/x.py", line 4 in load
  File "/job/x.py", line 9 in <module>

Thread 0x00007f2f0bfff641 (most recent call first):
  File "/lib/socket.py", line 3 in recv

Extension modules: torch._C (total: 1)
"""
FATAL = """\
Fatal Python error: none_dealloc: deallocating None
Python runtime state: initialized

Current thread 0x00007f47a1b94740 (most recent call first):
  File "/job/x.py", line 4 in wake_up
"""
LATER = """\
Timeout (0:05:00)!
Thread 0x00007f2f0bfff640 (most recent call first):
  File "/lib/threading.py", line 331 in wait

Thread 0x00007f2f0bfff740 (most recent call first):
  File "/job/x.py", line 4 in allreduce
"""
RUST = """\
thread '<unnamed>' panicked at src/lib.rs:88:9:
index out of bounds: the len is 3 but the index is 7
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
RUST_OLD = """\
thread 'tokio-runtime-worker' panicked at 'assertion failed: `(left == right)`
  left: `1`,
 right: `2`', src/store.rs:41:13
"""
RUST_BACKTRACE = """\
thread 'main' (4242) panicked at crates/frame/src/lib.rs:12:5:
called `Option::unwrap()` on a `None` value
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:697:5
   1: core::panicking::panic_fmt
   2: frame::DataFrame::column
             at ./src/frame.rs:12:5
   3: app::main
             at ./src/main.rs:3:5
note: some details are left out
"""
GO = """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x45]

goroutine 1 [running]:
main.(*Agent).Sync(0xc000010000)
\t/src/agent/sync.go:41 +0x1d
main.main()
\t/src/agent/main.go:12 +0x25
exit status 2
"""
JAVA = """\
Exception in thread "main" org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Scheduler.abort(Scheduler.scala:12)
Caused by: java.io.IOException: no such block
\tat org.apache.hadoop.Input.read(Input.java:77)
\tat org.apache.hadoop.Run.call(Run.java:7)
\t... 12 more
"""
# Log, exception, message, and each call as file, line, function.
STACKS = {
    "terminate": (
        TERMINATE,
        "c10::DistBackendError",
        "CUDA error: unspecified launch failure",
        [
            ("/env/torch/lib/libtorch_cuda.so", 0, "c10d::Work::wait"),
            ("/env/torch/lib/libc10.so", 0, "c10::Error::Error"),
            ("../c10/cuda/CUDAException.cpp", 43, "check"),
        ],
    ),
    "captured": (
        CAPTURED,
        "c10::Error",
        "bad stride",
        [("/src/aten/View.cpp", 12, "at::view"), ("/src/aten/Check.cpp", 41, "at::check")],
    ),
    "glog": (
        GLOG,
        "Check failed",
        "size > 0 (0 vs. 0) empty store",
        [("", 0, "plasma::Store::Create"), ("", 0, "google::LogMessage::Fail")],
    ),
    "absl": (ABSL, "SIGSEGV", "", [("", 0, "ncclProxyProgress"), ("", 0, "ncclProxyService")]),
    "absl-python": (
        ABSL_AND_PYTHON,
        "SIGSEGV",
        "",
        [("/job/x.py", 9, "<module>"), ("/job/x.py", 4, "gather")],
    ),
    "signal": (SIGNAL, "SIGSEGV", "", [("", 0, "moe::dispatch")]),
    "glibc": (
        GLIBC,
        "double free or corruption (!prev)",
        "",
        [("/opt/lib/libfoo.so", 0, "foo_release"), ("/lib64/libc.so.6", 0, "")],
    ),
    "mpi": (
        MPI,
        "Bus error",
        "",
        [("/opt/libucp.so.0", 0, "ucp_worker_progress"), ("/lib/libc.so.6", 0, "")],
    ),
    "ucx": (
        UCX,
        "Segmentation fault",
        "address not mapped to object at address 0x10",
        [("/src/ucp/proto.c", 77, "ucp_progress"), ("???", 0, "__sigaction")],
    ),
    "asan": (
        ASAN,
        "heap-use-after-free",
        "address 0x602000000010",
        [("/lib/libc.so.6", 0, "__libc_start_main"), ("/src/kernel.cc", 41, "Kernel::launch")],
    ),
    "gdb": (GDB, "SIGSEGV", "Segmentation fault", [("main.c", 5, "main"), ("/lib/libc.so.6", 0, "raise")]),
    "faulthandler": (FAULT, "Bus error", "", [("/job/x.py", 9, "<module>"), ("/job/x.py", 4, "load")]),
    "fatal": (FATAL, "none_dealloc", "deallocating None", [("/job/x.py", 4, "wake_up")]),
    "dump-later": (LATER, "Timeout", "0:05:00", [("/job/x.py", 4, "allreduce")]),
    "rust": (
        RUST,
        "panic",
        "index out of bounds: the len is 3 but the index is 7",
        [("src/lib.rs", 88, "panic")],
    ),
    "rust-old": (
        RUST_OLD,
        "panic",
        "assertion failed: `(left == right)`\n  left: `1`,\n right: `2`",
        [("src/store.rs", 41, "panic")],
    ),
    "rust-backtrace": (
        RUST_BACKTRACE,
        "panic",
        "called `Option::unwrap()` on a `None` value",
        [
            ("./src/main.rs", 3, "app::main"),
            ("./src/frame.rs", 12, "frame::DataFrame::column"),
            ("crates/frame/src/lib.rs", 12, "panic"),
        ],
    ),
    "go": (
        GO,
        "panic",
        "runtime error: invalid memory address or nil pointer dereference",
        [("/src/agent/main.go", 12, "main.main"), ("/src/agent/sync.go", 41, "main.(*Agent).Sync")],
    ),
    "java": (
        JAVA,
        "java.io.IOException",
        "no such block",
        [("Run.java", 7, "org.apache.hadoop.Run.call"), ("Input.java", 77, "org.apache.hadoop.Input.read")],
    ),
}


@each_row("prefix", ["", RAY, TORCHRUN, CRI], ids=["bare", "ray", "torchrun", "cri"])
@each_row("name", STACKS)
def test_a_stack_names_what_happened_and_its_calls(name: str, prefix: str) -> None:
    """Every handler's layout gives exception, message and calls, outermost first, behind any prefix."""
    log, exception, message, calls = STACKS[name]
    (found,) = read(prefixed(prefix, log))
    assert (found.exception, found.message) == (exception, message)
    assert [(frame.file, frame.line, frame.function) for frame in found.frames] == calls
    assert found.start == 1


@each_row("name", STACKS)
def test_stacks_of_two_processes_are_kept_apart(name: str) -> None:
    """Rows that alternate belong each to its own."""
    log = STACKS[name][0]
    (found,) = read(
        interleaved(prefixed("[rank0]: ", log), prefixed("[rank1]: ", log.replace("/", "/other/")))
    )
    assert found.source.startswith("rank=0")
    assert not any("/other/" in frame.file for frame in found.frames)


@each_row(
    ("name", "alone"),
    [("terminate", False), ("faulthandler", False), ("rust", False), ("go", True), ("java", True)],
)
def test_only_what_ends_a_program_by_itself_is_an_event(name: str, alone: bool) -> None:
    """A dump of calls is evidence; what happened is told by the banner's own pattern."""
    (found,) = read(STACKS[name][0])
    assert found.is_event is alone


@each_row(
    "log",
    [
        "terminate called without an active exception\nall is well\n",
        "Fatal Python error: Aborted\n",
        "Check failed: no stack below it\nall is well\n",
        "panic: at the disco\nall is well\n",
        "thread 'main' panicked at the disco\n",
        "Timeout (0:05:00)!\n",
        "",
    ],
)
def test_a_banner_without_calls_is_no_stack(log: str) -> None:
    """The line alone is for the patterns."""
    assert read(log) == []


HEADS = tuple(log.splitlines()[0] for log, *_ in STACKS.values())
ROWS = tuple({row for log, *_ in STACKS.values() for row in log.splitlines()})


@settings(max_examples=150, derandomize=True, deadline=None)
@given(head=st.sampled_from(HEADS), rows=st.lists(st.sampled_from(ROWS) | st.text(max_size=20), max_size=30))
def test_any_rows_below_a_banner_are_read_without_error(head: str, rows: list[str]) -> None:
    """Stacks that are cut, mixed or made up give at most one, within the log."""
    log = "\n".join([head, *rows])
    found = read(log)
    assert len(found) <= 1
    assert all(one.start == 1 <= one.end <= log.count("\n") + 1 for one in found)
