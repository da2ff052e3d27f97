"""The attacks tell what fell, and an open server falls."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.attack import access, patience, wire
from eval.attack.__main__ import attack
from eval.attack.target import Attack, Target
from tests.processes import command, descendants
from tests.waiting import PATIENCE, until


@pytest.fixture
def target(warm: Path, tmp_path: Path) -> Iterator[Target]:
    """A server over an index that is there; it has no keys."""
    made = Target(tmp_path)
    shutil.copytree(warm, made.home)
    try:
        yield made
    finally:
        made.stop()


def test_an_attack_that_cannot_be_carried_out_is_not_held(tmp_path: Path) -> None:
    """A table of attacks that were never made would look like one of attacks that were held."""

    def broken(_target: Target) -> str:
        raise ConnectionResetError("gone")

    told = attack(Target(tmp_path), Attack("a broken one", broken))
    assert told == "not carried out: ConnectionResetError: gone"


@pytest.mark.parametrize(
    ("program", "fault", "core", "idle"),
    [
        ("import time; time.sleep(600)", "did nothing", 60.0, 1.0),
        ("while True: pass", "seconds of a core", 1.0, 60.0),
    ],
    ids=["hangs", "never ends"],
)
def test_a_command_that_hangs_or_never_ends_is_ended(
    program: str, fault: str, core: float, idle: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And with it what it has started: an attack is told of, and no other one waits behind it."""
    monkeypatch.setattr(patience, "MOST_CPU", core)
    monkeypatch.setattr(patience, "MOST_IDLE", idle)
    with pytest.raises(subprocess.TimeoutExpired, match=fault):
        patience.run_to_its_end([sys.executable, "-c", program], os.environ, tmp_path, tmp_path)


def test_a_command_that_works_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However long its machine lets it take: what counts is that it does something."""
    monkeypatch.setattr(patience, "MOST_IDLE", 2.0)
    slow = "import time\nfor _ in range(7):\n    time.sleep(0.4); sum(range(2_000_000))\nprint('ended')"
    ended = patience.run_to_its_end([sys.executable, "-c", slow], os.environ, tmp_path, tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


@pytest.mark.long
def test_a_server_without_keys_falls_where_one_with_keys_holds(target: Target) -> None:
    """And what does not depend on keys is held by both."""
    chosen = {one.name: one for one in (*access.ATTACKS, *wire.ATTACKS)}
    of_keys = [chosen["API without a key, or with what is none"], chosen["Page without a key"]]
    of_names = chosen["Other names, two Hosts, other origins"]
    nobodys = dict.fromkeys(("admin", "revoked"), f"whycrash_{'0' * 12}_{'x' * 43}")
    target.tokens |= nobodys
    target.start()
    fell = [attack(target, one) for one in of_keys]
    assert "200" in fell[0], fell
    assert "/ 200" in fell[1], fell
    assert attack(target, of_names) == ""
    target.make_keys()
    target.stop()
    target.start()
    assert [attack(target, one) for one in (*of_keys, of_names)] == ["", "", ""]


@pytest.mark.long
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda each: each.name
)
def test_attacks_that_are_ended_leave_no_server(number: signal.Signals, warm: Path, tmp_path: Path) -> None:
    """A server with known keys that nobody ends any more would be a way in of our own making."""
    made = subprocess.Popen(
        [sys.executable, "-m", "eval.attack", "--home", str(warm), "connections"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: _serving(made.pid) or made.poll() is not None, "the server's start")
        found = _serving(made.pid)
        assert found, made.stderr.read() if made.stderr else ""
        made.send_signal(number)
        told = made.communicate(timeout=PATIENCE)[1]
    finally:
        made.kill()
    until(lambda: not any(command(process) for process in found), "the end of the server")
    if number != signal.SIGKILL:
        assert (made.returncode, b"stopped" in told, list(tmp_path.iterdir())) == (128 + number, True, [])


def _serving(process: int) -> list[int]:
    """Give the server and all below it, once it has started a worker."""
    for child in descendants(process):
        if command(child).endswith(b"\0serve\0") and (below := list(descendants(child))):
            return [child, *below]
    return []
