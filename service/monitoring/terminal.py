"""A pseudo-terminal between ours and a job's, so that the job prints as if it were at ours."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
import tty
from contextlib import suppress
from typing import Any


class Terminal:
    """Opened where our output is a terminal; ours is put back as it was at the end."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.reads = os.isatty(0)
        self._before: list[Any] | None = None
        # As ours is now: colours and line lengths depend on it.
        with suppress(termios.error):
            termios.tcsetattr(self.theirs, termios.TCSANOW, termios.tcgetattr(1))
        self.resize()

    def resize(self) -> None:
        """Give the job's terminal the size of ours."""
        with suppress(OSError):
            size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
            fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)

    def adopt(self) -> None:
        """Run in the child: make this its controlling terminal, so that ctrl-C and ctrl-Z reach it."""
        os.setsid()
        with suppress(OSError):
            fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)
        if self.reads:
            os.dup2(self.theirs, 0)

    def started(self) -> None:
        """Let go of the job's end, and pass on each key as it is typed."""
        os.close(self.theirs)
        self.theirs = -1
        self._raw()

    def _raw(self) -> None:
        if not self.reads:
            return
        # In the background a change of the terminal would stop us.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(termios.error):
            self._before = termios.tcgetattr(0)
            tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead stays
        signal.signal(signal.SIGTTOU, before)

    def _restore(self) -> None:
        if self._before is not None:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def suspend(self) -> None:
        """Stop this process until it is continued, with our terminal as it was before."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._raw()
        self.resize()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_error: object) -> None:
        self._restore()
        for end in (self.ours, self.theirs):
            with suppress(OSError):
                os.close(end)
