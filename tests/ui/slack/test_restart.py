"""What a killed server leaves open in threads, the next one finishes: with the kept answer, or with what to
do.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from slack_sdk import WebClient

from corpus.message import Message
from service.app.admission import Caller
from service.app.triage_service import TriageService
from service.schemas.events import Accepted, FinalAnswer, LogLookedAt
from service.schemas.records import MessageRecord, TriageRecord
from service.settings import Settings
from service.workers.tasks import Submission
from tests.factories import OOM, traceback
from tests.service.llm.answering import OFFLOAD
from tests.service.llm.scripted import Turn, serving
from tests.tables import each_row
from tests.ui.slack.conftest import Opener
from tests.ui.slack.serving import Server
from tests.ui.slack.standin import Slack
from tests.ui.slack.test_streaming import GOING_ON
from tests.ui.slack.workspace import Workspace, eventually, shown
from tests.warm import INCIDENTS
from ui.slack.answering import AnswerThread, ThreadUpdates
from ui.slack.client import SlackClient, open_client
from ui.slack.question_log import OpenQuestion, QuestionLog
from ui.slack.reply import Reply
from ui.slack.request_parser import MessageContent, SlackQuestion
from ui.slack.resuming import Resumer, finished

NOW = datetime.now(UTC)
ASKED = SlackQuestion(
    team="T1", channel="C1", user="UANNA", bot="BBOT", content=MessageContent(), thread="1.0"
)


@pytest.fixture
def started(server: Slack, warm: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers over one home."""
    home = shutil.copytree(warm, tmp_path / "home")
    made = Server(home, server)

    def start(**settings: str) -> Server:
        made.settings = settings
        return made.start()

    yield start
    made.kill()


@pytest.mark.long
def test_that_a_server_killed_in_mid_answer_leaves_no_thread_open(
    started: Callable[..., Server], server: Slack
) -> None:
    """The answer that was kept stands in the end.

    A question of which nothing was said yet is told to be asked again.
    """
    with serving([Turn("{}", silent=60)]) as model:
        first = started(MODEL="openai:scripted", MODEL_BASE_URL=model.url, MODEL_DEADLINE="60")
        work = Workspace(server, first.url)
        log = (INCIDENTS / OFFLOAD / "log.txt").read_bytes()
        thread = str(work.mention("why?", (server.put("train.log", log),))["ts"])
        told = work.answer(thread)
        assert GOING_ON in shown(told)
        waiting = str(work.mention(f"为什么?\n```\n{traceback(OOM)}```")["ts"])
        # Kept with the first answer, a moment after it was shown.
        eventually(lambda: model.calls)
        first.kill()
    calls = len(server.said())
    started()
    answer = eventually(lambda: GOING_ON not in shown(found := work.answer(thread)) and found)
    assert "before the model had finished" in shown(answer)
    assert answer["text"] == told["text"]
    assert "请再问一次" in shown(work.answer(waiting, "服务器"))
    assert len(work.answers(thread)) == len(work.answers(waiting)) == 1
    assert len(server.said()) == calls + 1


# The same in one process: question logs of a process that is gone.


def left(home: Path, **fields: Any) -> OpenQuestion:
    """Leave a question open as a killed server does; its lock goes with its file."""
    question_log = QuestionLog(home)
    note = question_log.begin(ASKED)
    note.write(**fields)
    # Workers that were forked meanwhile hold the file too; of a server that is gone none lives on.
    fcntl.flock(question_log.descriptor, fcntl.LOCK_UN)
    os.close(question_log.descriptor)
    return note.item


def kept(triage_service: TriageService, name: str = "a") -> Any:
    """Triage a log; gives the final answer."""
    return next(
        event.diagnosis
        for event in triage_service.triage(Submission(name=name, text=traceback(OOM)), Caller("slack"))
        if isinstance(event, FinalAnswer)
    )


def item(**fields: Any) -> OpenQuestion:
    """Make a question that is open."""
    made = {
        "id": "1",
        "channel": "C1",
        "user": "U1",
        "thread": "1.0",
        "has_root": True,
        "language": "en",
        "begun": NOW,
        **fields,
    }
    return OpenQuestion.model_validate(made)


def test_that_an_answer_that_was_whole_is_shown_without_a_word_of_the_stop(
    triage_service: TriageService, settings: Settings
) -> None:
    done = kept(triage_service)
    assert "stopped" not in str(finished(item(triage=done.id), triage_service, settings).blocks)
    assert done.headline in str(finished(item(triage=done.id), triage_service, settings).blocks)


@each_row(("language", "said"), [("en", "ask again"), ("zh", "请再问一次")])
def test_that_what_was_cut_before_an_answer_says_so(
    triage_service: TriageService, settings: Settings, language: str, said: str
) -> None:
    """Before the triage began, while it read, and where it was deleted meanwhile."""
    running = TriageRecord(
        id=f"01R{language}",
        state="running",
        origin="slack",
        caller="c",
        source="s",
        created=NOW,
        deadline=NOW + timedelta(hours=1),
    )
    triage_service.store.triages.add(running)
    for triage in ("", running.id, "01NONE"):
        assert said in finished(item(triage=triage, language=language), triage_service, settings).text


def test_that_a_triage_that_failed_says_why(triage_service: TriageService, settings: Settings) -> None:
    record = TriageRecord(
        id="01FAILED",
        state="running",
        origin="slack",
        caller="c",
        source="s",
        created=NOW,
        deadline=NOW + timedelta(hours=1),
    )
    triage_service.store.triages.add(record)
    triage_service.store.triages.answer(
        record.id,
        None,
        final=True,
        now=NOW,
        error=Message("errors.empty-nothing-written-wrong", name="a.log"),
    )
    assert "a.log 是空的" in finished(item(triage=record.id, language="zh"), triage_service, settings).text


def test_that_the_kept_answer_to_a_question_is_shown_and_no_other(
    triage_service: TriageService, settings: Settings
) -> None:
    """An earlier answer to the same words is not the one that was waited for."""
    done, early = kept(triage_service, "b"), NOW - timedelta(hours=1)
    for created, text in ((early, "Old."), (NOW + timedelta(seconds=1), "New.")):
        triage_service.store.triages.add_messages(
            done.id,
            MessageRecord(role="user", text="why?", created=created),
            MessageRecord(role="assistant", text=text, created=created),
        )
    assert finished(item(triage=done.id, question="why?"), triage_service, settings).text == "New."
    assert (
        "ask again"
        in finished(
            item(triage=done.id, question="why?", begun=NOW + timedelta(minutes=1)), triage_service, settings
        ).text
    )
    assert "ask again" in finished(item(triage=done.id, question="how?"), triage_service, settings).text


def test_that_a_message_is_edited_and_a_question_without_one_is_answered_once(
    triage_service: TriageService, settings: Settings, open_bot: Opener, server: Slack, bot_home: Path
) -> None:
    """However many bots look at what was left."""
    server.messages["C1", "2.0"] = {"ts": "2.0", "thread_ts": "1.0", "bot_id": "B", "text": "still"}
    left(bot_home, at=("C1", "2.0"))
    left(bot_home)
    left(bot_home, begun=NOW - timedelta(days=2))
    for _ in range(2):
        open_bot(triage_service, settings)
    eventually(lambda: server.said("chat.update") and server.said())
    assert "ask again" in server.messages["C1", "2.0"]["text"]
    eventually(lambda: not any(path.stat().st_size for path in (bot_home / "slack").iterdir()))
    assert (len(server.said("chat.update")), len(server.said())) == (1, 1)


def test_that_what_slack_did_not_take_stays_for_later(tmp_path: Path) -> None:
    """A server that starts while Slack is away leaves the file for the next one."""
    one = left(tmp_path)
    (found,) = QuestionLog(tmp_path).left()
    found.close()
    (again,) = QuestionLog(tmp_path).left()
    assert [entry.id for entry in again.items] == [one.id]
    again.drop(one)
    again.close()
    assert list(QuestionLog(tmp_path).left()) == []
    assert list((tmp_path / "slack").iterdir()) == []


def test_that_what_could_not_be_said_while_slack_was_away_is_said_later(
    triage_service: TriageService, settings: Settings, server: Slack, tmp_path: Path
) -> None:
    """By the server that lives on: else the thread would say for ever that the model still explains."""
    slack_client = open_client(settings, f"{server.url}/api/")
    away, question_log = (
        WebClient("none", base_url="http://127.0.0.1:9/api/", timeout=1),
        QuestionLog(tmp_path),
    )
    note = question_log.begin(ASKED)
    server.messages["C1", "2.0"] = {"ts": "2.0", "thread_ts": "1.0", "bot_id": "B", "text": GOING_ON}
    telling = ThreadUpdates(
        AnswerThread(Reply(SlackClient(away, slack_client.pace), ASKED, ("C1", "2.0"), note.posted), note),
        settings,
        "en",
    )
    note.posted(("C1", "2.0"))
    final = kept(triage_service, "c")
    for event in (Accepted(id=final.id), FinalAnswer(diagnosis=final)):
        telling.hear(event)
    note.close()
    Resumer(question_log, triage_service, slack_client, settings).round()
    assert server.messages["C1", "2.0"]["text"] == final.headline
    assert list(question_log.unsaid()) == []
    question_log.close()


def test_that_a_thread_says_what_a_model_looks_at(settings: Settings, server: Slack, tmp_path: Path) -> None:
    """While a question is being answered there is nothing else to show; a model's words are text in Slack."""
    slack_client = open_client(settings, f"{server.url}/api/")
    question_log = QuestionLog(tmp_path)
    note = question_log.begin(ASKED)
    server.messages["C1", "2.0"] = {"ts": "2.0", "thread_ts": "1.0", "bot_id": "B", "text": "..."}
    telling = ThreadUpdates(
        AnswerThread(Reply(slack_client, ASKED, ("C1", "2.0"), note.posted), note), settings, "en"
    )
    says = Message("model.looked-words", words="<!channel> quota", count=3)
    telling.hear(LogLookedAt(tool="search_log", says=says))
    assert server.messages["C1", "2.0"]["text"] == "Searched for “&lt;!channel&gt; quota”: 3 lines"
    note.close()
    question_log.close()


def test_that_a_living_process_is_left_alone(tmp_path: Path) -> None:
    question_log = QuestionLog(tmp_path)
    note = question_log.begin(ASKED)
    assert list(QuestionLog(tmp_path).left()) == []
    note.close()
    question_log.close()
    assert list((tmp_path / "slack").iterdir()) == []


def test_that_a_line_that_was_cut_costs_only_itself(tmp_path: Path) -> None:
    one = left(tmp_path)
    (path,) = (tmp_path / "slack").iterdir()
    path.write_text(
        path.read_text(encoding="utf-8") + '{"over": 7}\n[1]\nnull\n{"id": "x", "chan', encoding="utf-8"
    )
    (found,) = QuestionLog(tmp_path).left()
    assert [entry.id for entry in found.items] == [one.id]
    found.close()


def test_that_no_text_of_a_log_is_written_down(
    triage_service: TriageService, settings: Settings, open_bot: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only which message answers which triage."""
    written: list[str] = []
    monkeypatch.setattr(QuestionLog, "append", lambda _self, line: written.append(line))
    work = open_bot(triage_service, settings)
    work.answer(str(work.mention(f"why did\n```\n{traceback(OOM)}```")["ts"]))
    eventually(lambda: len(written) >= 3)
    assert "CUDA" not in "".join(written)
    assert json.loads(written[-1]).get("triage")


def test_that_a_disk_that_fails_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "slack").write_text("no folder", encoding="utf-8")
    question_log = QuestionLog(tmp_path)
    note = question_log.begin(ASKED)
    note.close()
    question_log.close()


def test_that_what_a_full_disk_did_not_take_is_written_once_it_has_room(tmp_path: Path) -> None:
    """A server that is killed later leaves no thread open, and no line stands there in part."""
    question_log = QuestionLog(tmp_path)
    note = question_log.begin(ASKED)
    (path,) = (tmp_path / "slack").iterdir()
    size = path.stat().st_size
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, most))
    try:
        note.posted(("C1", "2.0"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    assert path.stat().st_size == size
    question_log.write_owed()
    shutil.copy(path, path.with_stem("of-the-dead"))
    (found,) = QuestionLog(tmp_path).left()
    assert [entry.at for entry in found.items] == [("C1", "2.0")]
    found.close()
    note.close()
    question_log.close()
