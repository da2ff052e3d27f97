"""Run a job transparently: its output, colours, exit code and signals pass through unchanged."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fcntl import F_SETPIPE_SZ, fcntl
from time import monotonic, sleep
from typing import TYPE_CHECKING, TextIO

from service.monitoring.terminal import Terminal

if TYPE_CHECKING:
    from service.schemas.diagnosis import Outcome

BLOCK = 1 << 20
# A grandchild may keep the pipe open for ever; after the job's own end this long a silence is the end.
QUIET = 0.3
# Where much comes at once, the pipe is let fill up a little, in seconds: fewer wake-ups leave the job more of
# the processor.
GATHER = 0.004
MUCH = 4096
# Sent to us alone by a scheduler or a container's runtime, they are meant for the job.
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
NOT_FOUND, NOT_EXECUTABLE = 127, 126

Take = Callable[[int, bytes], None]


@dataclass(frozen=True)
class JobExit:
    """How a job ended: its exit code, or the signal that killed it; `seconds` is how long it ran.

    `problem` says why it could not be started at all.
    """

    code: int
    seconds: float
    problem: str = ""

    @property
    def signal(self) -> int:
        """The signal that killed it, 0 where none did."""
        return max(0, -self.code)

    @property
    def failed(self) -> bool:
        """Tell whether it did not end well."""
        return self.code != 0

    @property
    def outcome(self) -> Outcome:
        """How it ended, for its answer."""
        # Imported here: a job that ends well is not to wait for what reads its end.
        from service.schemas.diagnosis import Outcome

        return Outcome.told(None, self.signal) if self.signal else Outcome(exit_code=self.code)

    @property
    def describe(self) -> str:
        """Say how it ended."""
        if self.problem:
            return self.problem
        if not self.signal:
            return f"exit code {self.code}"
        return (
            f"killed by {signal.Signals(self.signal).name}"
            if self.signal in set(signal.Signals)
            else f"killed by signal {self.signal}"
        )


def run_job(command: Sequence[str], take: Take) -> JobExit:
    """Run a command to its end, pass on what it prints unchanged, and give a copy of it to `take`."""
    began = monotonic()
    with ExitStack() as stack:
        channels = _Channels(stack)
        try:
            process = subprocess.Popen(  # noqa: S603 - the command that its user typed
                command, stdout=channels.out, stderr=channels.err, preexec_fn=channels.prepare
            )
        except FileNotFoundError:
            return JobExit(NOT_FOUND, 0.0, f"{command[0]}: there is no such command")
        except OSError as error:
            return JobExit(NOT_EXECUTABLE, 0.0, f"{command[0]}: {error.strerror}")
        channels.started()
        stack.enter_context(_forwarding(process, channels.terminal))
        pump = _OutputPump(process, channels, take)
        pump.run()
        code = process.wait()
        if pump.is_open:
            pump.leave_behind()
    return JobExit(code, monotonic() - began)


class _Channels:
    """Where the job prints to: a pseudo-terminal where we are at one, else pipes.

    One where ours are the same.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.routes: dict[int, int] = {}
        self._ours: list[int] = []
        at_terminal = os.isatty(1)
        self.terminal = stack.enter_context(Terminal()) if at_terminal else None
        # Without a terminal nothing is to be prepared, and the job starts the fast way.
        self.prepare = self.terminal.adopt if self.terminal else None
        self.out = self._terminal_end() if at_terminal else self._pipe(1)
        try:
            is_same = os.path.sameopenfile(1, 2)
        except OSError:
            is_same = False
        if is_same:
            self.err = self.out
        elif os.isatty(2) and self.terminal:
            self.err = self._terminal_end()
        else:
            self.err = self._pipe(2)
        stack.callback(self._close)

    def _terminal_end(self) -> int:
        assert self.terminal is not None  # noqa: S101 - asked only where there is one
        self.routes[self.terminal.ours] = 1
        return self.terminal.theirs

    def _pipe(self, target: int) -> int:
        read, write = os.pipe()
        with suppress(OSError):
            fcntl(write, F_SETPIPE_SZ, BLOCK)  # fewer wake-ups; a container may forbid it
        self.routes[read] = target
        self._ours.append(write)
        return write

    def started(self) -> None:
        """Close the job's ends."""
        for end in self._ours:
            os.close(end)
        self._ours = []
        if self.terminal:
            self.terminal.started()

    def _close(self) -> None:
        for end in (
            *self._ours,
            *(end for end in self.routes if not self.terminal or end != self.terminal.ours),
        ):
            with suppress(OSError):
                os.close(end)


class _OutputPump:
    """Passes on bytes until the job is over and silent."""

    def __init__(self, process: subprocess.Popen[bytes], channels: _Channels, take: Take) -> None:
        self._process = process
        self._take = take
        self._terminal = channels.terminal
        self._selector = selectors.DefaultSelector()
        self._deaf: set[int] = set()
        self._much = False
        self._is_over = False
        for end, target in channels.routes.items():
            self._selector.register(end, selectors.EVENT_READ, target)
        if self._terminal and self._terminal.reads:
            self._selector.register(0, selectors.EVENT_READ, None)

    @property
    def is_open(self) -> bool:
        """Tell whether somebody may still write."""
        return any(key.data is not None for key in self._selector.get_map().values())

    def run(self) -> None:
        """Pass on everything."""
        with _ExitWatcher(self._process) as over:
            self._selector.register(over.fileno(), selectors.EVENT_READ, None)
            self._pass_until_silent(over.fileno())
            with suppress(KeyError, ValueError):
                self._selector.unregister(over.fileno())

    def _pass_until_silent(self, over: int) -> None:
        """Pass on until nobody can write any more, or until the job is over and nothing came for a while."""
        until = float("inf")
        while self.is_open and monotonic() < until:
            if self._much:
                sleep(GATHER)
            ready = self._selector.select(QUIET if self._is_over else None)
            news = [self._is_news(key, over) for key, _ in ready]
            if self._is_over and any(news):
                until = monotonic() + QUIET

    def _is_news(self, key: selectors.SelectorKey, over: int) -> bool:
        """Serve what is ready; tells whether the job printed something, or is over now."""
        if key.fd == over:
            self._selector.unregister(over)
            self._is_over = True
            return True
        if key.fd == 0 and key.data is None:
            self._typed()
            return False
        return self._pass(key.fd, key.data)

    def _pass(self, end: int, target: int) -> bool:
        try:
            data = os.read(end, BLOCK)
        except OSError:
            data = b""  # a pseudo-terminal whose other end is closed
        if not data:
            self._selector.unregister(end)
            return False
        self._much = len(data) >= MUCH
        self._write(target, data)
        self._take(target, data)
        return True

    def _write(self, target: int, data: bytes) -> None:
        if target in self._deaf:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(target, view) :]
        except BrokenPipeError:
            # The reader of our output is gone: the job gets SIGPIPE, as it would without us.
            self._deaf.add(target)
            self._process.send_signal(signal.SIGPIPE)
        except BlockingIOError:
            os.set_blocking(target, True)
            self._write(target, bytes(view))
        except OSError:
            self._deaf.add(target)

    def _typed(self) -> None:
        data = os.read(0, 4096)
        assert self._terminal is not None  # noqa: S101 - registered only with one
        if data:
            os.write(self._terminal.ours, data)
        else:
            self._selector.unregister(0)

    def leave_behind(self) -> None:
        """Leave a process that goes on passing what the job's own children print after its end."""
        if os.fork():
            return
        with suppress(BaseException):
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with suppress(KeyError, ValueError):
                self._selector.unregister(0)
            self._close_other_files()
            self._take = lambda _target, _data: None
            while self.is_open:
                for key, _ in self._selector.select():
                    self._pass(key.fd, key.data)
        os._exit(0)

    def _close_other_files(self) -> None:
        """Close all files but those of the job's output: the buffer's would keep their room on the disk."""
        assert isinstance(self._selector, selectors.EpollSelector)  # noqa: S101 - Linux has no other default
        kept = {self._selector.fileno(), *self._selector.get_map(), 1, 2}
        # Path.iterdir would hold a descriptor of its own open meanwhile.
        for descriptor in {*map(int, os.listdir("/proc/self/fd"))} - kept:  # noqa: PTH208
            with suppress(OSError):
                os.close(descriptor)


class _ExitWatcher:
    """A file that becomes readable when a process ends."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._descriptor = os.pidfd_open(process.pid)

    def fileno(self) -> int:
        """Give the descriptor."""
        return self._descriptor

    def __enter__(self) -> _ExitWatcher:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)


class _forwarding:  # noqa: N801 - used as the context manager that it is
    """Pass signals that are sent to us on to the job, and outlive those that the terminal sends to both."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: Terminal | None) -> None:
        self._process = process
        self._terminal = terminal
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        for number in FORWARDED:
            self._before[number] = signal.signal(number, self._forward)
        # The terminal sends these to the job as well; we must outlive them to explain its end.
        for number in (signal.SIGINT, signal.SIGQUIT):
            self._before[number] = signal.signal(number, lambda _number, _frame: None)
        if self._terminal:
            self._before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._at_terminal)
            self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, self._at_terminal)

    def _forward(self, number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _at_terminal(self, number: int, _frame: object) -> None:
        if self._terminal and number == signal.SIGWINCH:
            self._terminal.resize()
        elif self._terminal and self._is_stopped():
            # ctrl-Z reached the job alone; our parent must see us stopped as well.
            self._terminal.suspend()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT)

    def _is_stopped(self) -> bool:
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG) is not None
        except ChildProcessError:
            return False  # it is over

    def __exit__(self, *_error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]  # as `signal.signal` gave it


def exit_like(ended: JobExit) -> int:
    """End this process as the job ended: give its exit code, or die of its signal."""
    # From here on nothing may change how it ends: neither a ctrl-C nor a closed standard output.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    if not ended.signal:
        return ended.code
    import resource

    # A second core file, of us, would hide the job's own.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(ended.signal, signal.SIG_DFL)
    os.kill(os.getpid(), ended.signal)
    return 128 + ended.signal


def _flush(stream: TextIO | None) -> None:
    """Write out what is held back.

    What cannot be written is dropped, or Python would end with an exit code of its own.
    """
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
