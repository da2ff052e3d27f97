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

from eval.attack import access, wire
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
