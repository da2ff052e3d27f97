"""Commands that run until they are told to stop: a SIGTERM ends them in order, and nothing of theirs
stays.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from service.pipeline.triage import no_progress
from service.schemas.errors import SettingsError
from service.settings import Settings
from tests import processes
from tests.tables import each_row
from tests.ui.shell import COMMAND, surroundings
from tests.waiting import PATIENCE
from tests.warm import ROOT


def started(
    words: list[str], home: Path, said: bytes, **environment: str
) -> tuple[subprocess.Popen[bytes], str]:
    """Start a command, and wait until it says something; gives that line."""
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=ROOT, env=surroundings(home, **environment), stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    while said not in (line := process.stderr.readline()):
        assert line, "it ended"
    return process, line.decode()


def stopped(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Send a SIGTERM; gives the exit code and what was said until then."""
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    told = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(timeout=PATIENCE), told


def children(process: int) -> list[Path]:
    """Give the processes that a process has started, by their folders under /proc."""
    return [Path("/proc", str(number)) for number in processes.children(process)]


def runs(process: Path) -> bool:
    """Tell whether a process runs; one that waits to be reaped does not."""
    try:
        return (process / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.long
def test_that_a_watch_that_is_told_to_stop_ends_in_order(warm: Path, tmp_path: Path) -> None:
    process, _ = started(["watch", str(tmp_path)], warm, b"watching")
    assert stopped(process) == (0, "")


@pytest.mark.long
def test_that_a_server_that_is_told_to_stop_puts_its_processes_away(warm: Path, tmp_path: Path) -> None:
    process, line = started(
        ["serve", "--port", "0"],
        warm,
        b"whycrash is at",
        WHYCRASH_WORKERS="1",
        WHYCRASH_DATABASE=f"sqlite:///{tmp_path}/own.db",
    )
    url = line.split()[3]
    until = time.monotonic() + PATIENCE
    while httpx.get(f"{url}/readyz").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.2)
    workers = children(process.pid)
    assert workers
    code, told = stopped(process)
    assert (code, "Traceback" in told) == (0, False)
    # One that counts what they share ends itself a moment later.
    until = time.monotonic() + PATIENCE
    while any(map(runs, workers)):
        assert time.monotonic() < until
        time.sleep(0.05)


@each_row(
    ("host", "port", "said"), [("127.0.0.1", 70_000, "65535"), ("no.such.host.invalid", 0, "cannot be bound")]
)
def test_that_an_address_that_is_none_is_told_in_a_sentence(
    tmp_path: Path, host: str, port: int, said: str
) -> None:
    # Imported here: it takes gradio along, which takes seconds that no other test needs.
    from ui import server

    with pytest.raises(SettingsError, match=said):
        server.serve(Settings(home=tmp_path, host=host, port=port), no_progress, lambda _url: None)
