"""How a command that runs until it is told to stop takes a SIGTERM (systemd, Docker, Kubernetes send it)."""

from __future__ import annotations

import signal
import sys
import threading

from ui.cli.codes import EXPLAINED


def orderly() -> None:
    """Let the next SIGTERM end this process in order, as at its end; by default nothing is put away."""

    def stop(_number: int, _frame: object) -> None:
        # A second one would break off what the first one began.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(EXPLAINED)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)
