"""What a soak does to a server and hears of it: harms in turn, stand-ins, a clock that is set wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from eval.soak import harms
from eval.soak.harms import ClockLeap, Harm, HarmSchedule, ModelMood
from eval.soak.load import Load, LoadContext, LoadKind
from eval.soak.slack_load import SlackLoad
from eval.soak.standin import ModelStandIn, Mood, SlackStandIn
from eval.soak.surroundings import CLOCK
from eval.soak.target import SoakTarget
from service.schemas.errors import BusyError, ServiceError, UnexpectedError
from tests.tables import each_row


@dataclass
class Recorded(Harm):
    """A harm that notes what is done to it, and what it finds."""

    name: str
    found: tuple[str, ...] = ()
    done: list[str] = field(default_factory=list)

    def strike(self) -> str:
        self.done.append("strike")
        return self.name

    def mend(self) -> None:
        self.done.append("mend")

    def look(self, target: SoakTarget) -> tuple[str, ...]:
        del target
        self.done.append("look")
        return self.found


@dataclass
class Recovering(SoakTarget):
    """A server that is ready again after so many looks."""

    looks: int = 2

    def is_ready(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[float]:
    """Let each look at the clock take a second, and each log be answered."""
    monkeypatch.setattr(harms, "answered", lambda _target: [])
    return iter(map(float, range(1_000_000)))


def schedule(target: SoakTarget, clock: Iterator[float], *happens: Harm) -> HarmSchedule:
    return HarmSchedule(target, happens, 5.0, lambda: next(clock))


def target(folder: Path, looks: int) -> Recovering:
    return Recovering(folder, folder / "log", 1, looks=looks)


def test_that_harms_come_in_turn_and_the_next_waits_for_the_recovery(
    tmp_path: Path, seconds: Iterator[float]
) -> None:
    """What one finds is told under its name."""
    first, second = Recorded("first", ("said nothing",)), Recorded("second")
    made = schedule(target(tmp_path, 3), seconds, first, second)
    while not second.done:
        made.step()
    assert first.done == ["strike", "look", "mend"]
    assert not made.is_quiet
    made.finish()
    assert second.done == first.done
    assert made.wrong == ["first: said nothing"]
    assert [name for name, _ in made.recoveries] == ["first", "second"]
    assert made.recoveries[0][1] > made.recoveries[1][1]


def test_that_a_server_that_takes_no_work_again_is_told(tmp_path: Path, seconds: Iterator[float]) -> None:
    made = schedule(target(tmp_path, 1_000_000), seconds, Recorded("first"))
    while not made.wrong:
        made.step()
    assert made.wrong == ["first: no work is taken 120 seconds after its end"]
    assert made.recoveries == []


class _Refused(LoadKind):
    """Is refused, each time with the next error."""

    name = "refused"
    pause = 0.0
    errors: tuple[ServiceError, ...] = (BusyError("busy"), UnexpectedError("a fault"))

    def ask(self, draws: random.Random, turn: int) -> None:
        del draws
        if turn > len(self.errors):
            self.context.over.set()
            return
        raise self.errors[turn - 1]


def test_that_a_fault_of_the_servers_own_is_no_excuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that is away, or a server that is busy, is."""
    monkeypatch.setattr("eval.soak.load.AGAIN", 0.0)
    context = LoadContext("http://127.0.0.1:1", tmp_path)
    load = Load(context, [_Refused(context)], 1)
    load.start()
    assert context.over.wait(30)
    load.stop()
    assert context.asked.refused == {"refused: BusyError": 1, "refused: UnexpectedError": 1}
    assert load.wrong() == ["a fault of the server's own: refused: a fault"]


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn() as made:
        yield made


def said(slack: SlackStandIn, method: str, **values: Any) -> dict[str, Any]:
    """Call the stand-in as the bot does."""
    told: dict[str, Any] = httpx.post(f"{slack.url}/api/{method}", json={"channel": "C1", **values}).json()
    return told


BUTTONS = [{"type": "actions", "elements": []}]


@each_row(
    ("messages", "edit", "wrong"),
    [
        ([{"text": "It ran out of memory.", "blocks": BUTTONS}], None, ""),
        ([{"text": "Ask again."}], None, ""),
        ([{"text": "Looking into it."}], {"text": "It failed.", "blocks": BUTTONS}, ""),
        ([{"text": "Looking into it."}], None, "ends with 'Looking into it.'"),
        ([{"text": "x"}, {"text": "x"}], None, "has 2 messages"),
        ([], None, "has 0 messages"),
    ],
)
def test_that_a_thread_needs_one_message_and_a_last_word(
    messages: list[dict[str, Any]],
    edit: dict[str, Any] | None,
    wrong: str,
    slack: SlackStandIn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("eval.soak.slack_load.SETTLES", 0.0)
    load = SlackLoad(LoadContext("http://127.0.0.1:1", tmp_path), slack)
    root = slack.stamp()
    load._taken.append(root)
    for message in messages:
        stamp = said(slack, "chat.postMessage", thread_ts=root, **message)["ts"]
    if edit:
        said(slack, "chat.update", ts=stamp, **edit)
    found = load.wrong()
    assert (len(found), wrong in "".join(found)) == (bool(wrong), True)
    is_answered = any("blocks" in each for each in [*messages, edit or {}])
    assert load.counts().get("threads answered") == int(is_answered)


@each_row(("mood", "status"), [("quick", 200), ("failing", 500), ("cut", 200)])
def test_that_a_model_behaves_as_it_is_told(mood: Mood, status: int) -> None:
    with ModelStandIn() as model:
        model.mood = mood
        answer = httpx.post(f"{model.url}/v1/chat/completions", json={"stream": True})
        assert answer.status_code == status
        assert (b"[DONE]" in answer.content) == (mood == "quick")
        assert ModelMood(model).strike() == "model late"


def test_that_a_clock_is_set_wrong_and_right_again_while_a_program_runs(tmp_path: Path) -> None:
    """Neither the time since the start nor a wait goes by it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run(
        [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", tmp_path / "clock.so", CLOCK], check=True
    )
    leap = ClockLeap(tmp_path / "clock")
    leap.mend()
    program = (
        "import datetime, json, sys, threading, time\n"
        "for _ in sys.stdin:\n"
        "    began = time.monotonic()\n"
        "    threading.Event().wait(1.1)\n"
        "    waited, now = time.monotonic() - began, datetime.datetime.now().timestamp()\n"
        "    print(json.dumps([waited, time.time(), now]), flush=True)"
    )
    made = os.environ | {"LD_PRELOAD": str(tmp_path / "clock.so"), "SOAK_CLOCK": str(tmp_path / "clock")}
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=made, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def times() -> list[float]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        found: list[float] = json.loads(process.stdout.readline())
        return found

    _, right, _ = times()
    leap.strike()
    waited, wrong, now = times()
    leap.mend()
    _, after, _ = times()
    process.communicate()
    assert 1.0 < waited < 3600
    assert 3 * 3600 <= wrong - right < 4 * 3600
    assert now == pytest.approx(wrong, abs=60)
    assert 0 < after - right < 3600
