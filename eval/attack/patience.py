"""Tell a process that works, however slowly its machine lets it, from one that hangs or never ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ingest.workers.process import die_with_parent

# Seconds of a core that no command takes, and seconds without any work that none waits. Time by the clock
# says nothing of a command where twenty others want the same core.
MOST_CPU = 240.0
MOST_IDLE = 90.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Watch:
    """Whether the processes of a group still do what they are meant to."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._spent = 0.0
        self._moved = time.monotonic()

    def fault(self) -> str:
        """Say what is wrong with the processes; nothing while they work."""
        spent = cpu_seconds(self._group)
        if spent > self._spent:
            self._spent, self._moved = spent, time.monotonic()
        if spent > MOST_CPU:
            return f"took more than {MOST_CPU:.0f} seconds of a core"
        if time.monotonic() - self._moved > MOST_IDLE:
            return f"did nothing for {MOST_IDLE:.0f} seconds"
        return ""


def cpu_seconds(group: int) -> float:
    """Give the seconds of a core that the processes of a group, and the ended ones they waited for, took."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may hold anything.
            fields = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def run_to_its_end(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, output: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command as long as it works; its output goes through files in a folder.

    Raises:
        subprocess.TimeoutExpired: it hangs, or takes more of a core than any command of ours does.

    """
    out, err = output / "command.out", output / "command.err"
    with out.open("wb") as told, err.open("wb") as complained:
        process = subprocess.Popen(  # noqa: S603 - our own module
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=complained,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        watch, begin = Watch(process.pid), time.monotonic()
        try:
            while process.poll() is None:
                if fault := watch.fault():
                    raise subprocess.TimeoutExpired([*words, fault], time.monotonic() - begin)
                time.sleep(0.05)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
    return subprocess.CompletedProcess(list(words), process.returncode, *texts)
