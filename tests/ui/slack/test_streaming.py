"""Answers as they come: the first one at once, edits while a model writes, and a triage service that is busy
or loses a worker.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from service.app.admission import Caller
from service.app.triage_service import TriageService
from service.pipeline.triage import Triage
from service.workers.tasks import Submission
from tests.factories import OOM, traceback
from tests.service.llm.answering import OFFLOAD, asked, faithful
from tests.service.llm.scripted import Turn, serving
from tests.ui.slack.conftest import Opener, SettingsMaker
from tests.ui.slack.workspace import Workspace, eventually, shown
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS
from ui.slack import answering

FENCED = f"why?\n```\n{traceback(OOM)}```"
GOING_ON = "still explaining"


@dataclass
class Model:
    """What the model does next."""

    turn: Turn = field(default_factory=Turn)

    def __call__(self, _body: dict[str, Any]) -> Turn:
        return self.turn


@pytest.fixture(scope="module")
def model() -> Model:
    """A model whose turns the tests choose."""
    return Model()


@pytest.fixture(scope="module")
def speaking(slack_settings: SettingsMaker, model: Model) -> Iterator[TriageService]:
    """A desk of one worker with a model, at which nobody may wait."""
    with serving(model) as server:
        settings = slack_settings(
            model="openai:scripted", model_base_url=server.url, model_deadline=PATIENCE, queue=0
        )
        with TriageService(settings) as triage_service:
            # A worker takes a while to load; how long is none of these tests' matter.
            list(triage_service.triage(Submission(name="first", text=FENCED, model=False), Caller("slack")))
            yield triage_service


@pytest.fixture
def work(speaking: TriageService, open_bot: Opener) -> Workspace:
    """A workspace whose bot has a model, which nobody else asks."""
    eventually(lambda: not speaking.pool.waiting)
    return open_bot(speaking, speaking.settings)


def mention(work: Workspace) -> str:
    """Ask about an incident; gives the thread."""
    log = (INCIDENTS / OFFLOAD / "log.txt").read_bytes()
    return str(work.mention("why?", (work.slack.put("train.log", log),))["ts"])


def told(triage: Triage, paragraphs: int) -> str:
    """Write a faithful answer of so many paragraphs."""
    answer = faithful(asked(triage, patched=False))
    more = [f"Step {number}: the node had no memory left for it. [L384]" for number in range(paragraphs)]
    return json.dumps({**answer, "explanation": "\n\n".join([answer["explanation"], *more])})


@pytest.mark.long
def test_that_the_first_answer_is_edited_as_the_model_writes(
    work: Workspace, model: Model, triage: Triage
) -> None:
    def hold() -> None:
        # An edit needs time and a piece that comes after it: the model is slow until two are there.
        if len(work.slack.said("chat.update")) < 2:
            time.sleep(0.1)

    model.turn = Turn(told(triage, 30), hold=hold, stride=8)
    thread = mention(work)
    first = eventually(lambda: work.slack.said(channel=work.channel))[0]
    assert GOING_ON in shown(first.values)
    eventually(lambda: GOING_ON not in shown(work.answer(thread)))
    edits = work.slack.said("chat.update")
    assert len(edits) >= 3
    assert "What the model (openai:" in shown(edits[0].values)
    assert all(after.at - before.at > 0.8 for before, after in pairwise(edits))
    assert "Step 3" in shown(work.answer(thread))
    assert len(work.answers(thread)) == 1


def test_that_the_first_answer_stands_where_the_model_fails(work: Workspace, model: Model) -> None:
    model.turn = Turn(status=401)
    thread = mention(work)
    answer = eventually(lambda: GOING_ON not in shown(found := work.answer(thread)) and found)
    assert "fill the host RAM" in shown(answer)


@pytest.mark.long
def test_that_a_deleted_message_is_posted_anew(work: Workspace, model: Model, triage: Triage) -> None:
    model.turn = Turn(told(triage, 1), silent=1.5)
    work.slack.refuse("chat.update", "message_not_found")
    thread = mention(work)
    eventually(lambda: len(work.answers(thread)) == 2)
    # A machine that is slow shows what is written so far in the new message first.
    eventually(lambda: GOING_ON not in shown(work.answers(thread)[1]))


@pytest.mark.long
def test_that_an_edit_that_slack_refuses_loses_no_answer(
    work: Workspace, model: Model, triage: Triage
) -> None:
    model.turn = Turn(told(triage, 20), pause=0.05)
    work.slack.refuse("chat.update", "fatal_error")
    thread = mention(work)
    eventually(lambda: GOING_ON not in shown(work.answer(thread)))


def test_that_a_worker_that_dies_leaves_the_first_answer(
    work: Workspace, model: Model, speaking: TriageService
) -> None:
    model.turn = Turn("{}", silent=20)
    thread = mention(work)
    work.answer(thread)
    for worker in multiprocessing.active_children():
        worker.kill()
    assert "fill the host RAM" in shown(work.answer(thread, "ended early"))
    eventually(lambda: not speaking.pool.failure)


@pytest.mark.long
def test_that_the_bot_waits_where_the_desk_is_busy(
    work: Workspace, model: Model, speaking: TriageService
) -> None:
    model.turn = Turn(status=401, silent=1.2)
    thread = mention(work)
    work.answer(thread)
    second = work.mention(FENCED)["ts"]
    assert "try again in" in shown(work.answer(second, "Many jobs"))
    assert "CUDA out of memory" in shown(work.answer(second, "CUDA"))
    assert len(work.answers(second)) == 1


@pytest.mark.long
def test_that_a_desk_that_stays_busy_is_said_to_be_so(
    work: Workspace, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "WAITS", (0.2,))
    model.turn = Turn(status=401, silent=4)
    thread = mention(work)
    work.answer(thread)
    second = work.mention(FENCED)["ts"]
    assert work.answer(second, "Too many jobs")
    eventually(lambda: GOING_ON not in shown(work.answer(thread)))
