"""What comes twice, late, forged or from the wrong people, and what Slack refuses."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from typing import Any

import httpx
import pytest

from service.app.triage_service import TriageService
from service.persistence.store import Store
from service.settings import Settings
from tests.factories import OOM, traceback
from tests.ui.slack.conftest import Opener, SettingsMaker
from tests.ui.slack.standin import BOT_ID, BOT_USER, Slack
from tests.ui.slack.workspace import Workspace, buttons, envelope, eventually, shown

LOG = traceback(OOM)
FENCED = f"why?\n```\n{LOG}```"


def quiet(work: Workspace, seconds: float = 0.6) -> bool:
    """Tell whether the bot says nothing in its channel for a while."""
    time.sleep(seconds)
    return not work.slack.said(channel=work.channel)


# Twice.


@pytest.mark.long
def test_that_an_event_that_slack_sends_again_is_answered_once(work: Workspace) -> None:
    event = work.message(FENCED)
    for number in range(4):
        retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": "http_timeout"} if number else {}
        assert work.deliver(event, "Ev-again", **retry).status_code == 200
    work.answer(event["ts"])
    assert len(work.answers(event["ts"])) == 1


@pytest.mark.long
def test_that_an_event_is_known_again_after_a_restart(
    slack_settings: SettingsMaker, open_bot: Opener
) -> None:
    settings = slack_settings()
    with TriageService(settings) as triage_service:
        work = open_bot(triage_service, settings)
        event = work.message(FENCED)
        work.deliver(event, "Ev-restart")
        work.answer(event["ts"])
    with TriageService(settings) as triage_service:
        again = open_bot(triage_service, settings)
        assert again.deliver(event, "Ev-restart", **{"X-Slack-Retry-Num": "1"}).status_code == 200
        follow = work.message("and with fewer GPUs?", thread=event["ts"])
        again.deliver(follow, "Ev-follow")
        # The thread's triage is known from Slack itself.
        first, second = eventually(
            lambda: len(found := list(filter(buttons, work.answers(event["ts"])))) == 2 and found
        )
        assert buttons(first)[0]["value"] == buttons(second)[0]["value"]


def test_that_an_event_is_not_taken_while_the_store_cannot_say_whether_it_is_new(
    slack_settings: SettingsMaker, open_bot: Opener
) -> None:
    settings = slack_settings()
    with TriageService(settings) as triage_service:
        triage_service.store.close()
        triage_service.store = Store.open(settings, timeout=0.2)
        work = open_bot(triage_service, settings)
        event = work.message(FENCED)
        file = settings.database.get_secret_value().removeprefix("sqlite:///")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            told = work.deliver(event, "Ev-locked")
        assert told.status_code == 503
        assert work.deliver(event, "Ev-locked", **{"X-Slack-Retry-Num": "1"}).status_code == 200
        work.answer(event["ts"])


# Forged, late or broken.


def test_that_a_wrong_signature_is_refused(work: Workspace) -> None:
    work.secret = "another"  # noqa: S105 - none
    assert work.deliver(work.message(FENCED)).status_code == 401
    assert quiet(work)


@pytest.mark.parametrize(
    "stamp",
    [int(time.time()) - 400, int(time.time()) + 4000, "", "now", "١٢٣٤٥", "9" * 40, "-1"],
    # Names of their own: two processes that run the tests read the clock at two moments.
    ids=["old", "ahead", "empty", "words", "other-digits", "too-large", "negative"],
)
def test_that_an_old_or_broken_time_stamp_is_refused(work: Workspace, stamp: int | str) -> None:
    body = json.dumps(envelope(work.message(FENCED)))
    try:
        told = work.post(body, stamp=stamp)
    except (UnicodeEncodeError, httpx.InvalidURL):
        pytest.skip("no client sends such a header")
    assert told.status_code == 401
    assert quiet(work, 0.2)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Signature": "v0=00"},
        {"X-Slack-Request-Timestamp": "1"},
        {
            "X-Slack-Signature": b"v0=\xe4".decode("latin-1"),
            "X-Slack-Request-Timestamp": str(int(time.time())),
        },
    ],
)
def test_that_a_request_without_a_signature_is_refused(work: Workspace, headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    assert httpx.post(work.url, content=b"{}", headers=raw).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * (1 << 20) + b"x", 413),
        (b"\xff\xfe{", 400),
        (b"{not json", (400, 401)),
        (b'"text"', (400, 401, 404)),
        (b"[]", (400, 401, 404)),
    ],
)
def test_that_a_broken_body_is_no_fault_of_the_server(
    work: Workspace, body: bytes, status: int | tuple[int, ...]
) -> None:
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": "v0=00",
    }
    told = httpx.post(work.url, content=body, headers=headers).status_code
    assert told in (status if isinstance(status, tuple) else (status,))


@pytest.mark.parametrize(
    "body",
    ["{not json", '"text"', "[]", "null", "payload=%7Bno", '{"type": "event_callback"}', '{"event": 7}'],
)
def test_that_a_signed_body_that_makes_no_sense_is_survived(work: Workspace, body: str) -> None:
    kind = "application/x-www-form-urlencoded" if body.startswith("payload") else "application/json"
    assert work.post(body, kind).status_code in (200, 400, 404)
    assert quiet(work, 0.1)


def test_that_other_ways_of_asking_are_refused(work: Workspace) -> None:
    assert httpx.get(work.url).status_code == 405


def test_that_the_address_is_verified(work: Workspace) -> None:
    told = work.post(json.dumps({"type": "url_verification", "challenge": "c-1", "token": "t"}))
    assert told.json() == {"challenge": "c-1"}


# From whom.


@pytest.mark.parametrize(
    "fields",
    [
        {"user": BOT_USER, "bot_id": BOT_ID},
        {"bot_id": BOT_ID},
        {"bot_id": "BOTHER", "subtype": "bot_message"},
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
        {"subtype": "channel_join"},
        {"hidden": True},
        {"user": None},
        {"user": BOT_USER},
    ],
)
@pytest.mark.parametrize("kind", [{"type": "app_mention"}, {"type": "message", "channel_type": "im"}])
def test_that_what_no_person_wrote_is_not_answered(
    work: Workspace, kind: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert work.deliver(work.message(FENCED) | kind | fields).status_code == 200
    assert quiet(work, 0.3)


def test_that_a_message_in_a_channel_without_a_mention_is_not_answered(work: Workspace) -> None:
    work.deliver(work.message(FENCED) | {"type": "message", "channel_type": "channel"})
    assert quiet(work)


# How fast.


def test_that_the_receipt_does_not_wait_for_the_answer(work: Workspace) -> None:
    big = ("step:1 - loss:0.1\n" * 400_000 + LOG).encode()
    event = work.message("why?", (work.slack.put("train.log", big),))
    assert work.deliver(event).status_code == 200
    assert not any("CUDA out of memory" in str(call) for call in work.slack.said(channel=work.channel))
    assert "CUDA out of memory" in shown(work.answer(event["ts"]))


def test_that_a_channel_gets_no_more_than_a_message_a_second(work: Workspace) -> None:
    for _ in range(3):
        work.mention("")
    calls = eventually(lambda: len(found := work.slack.said(channel=work.channel)) == 3 and found)
    times = sorted(call.at for call in calls)
    # Slack counts what arrives, and a busy machine delays some of it.
    assert times[-1] - times[0] > 1.5


# What Slack refuses.


def test_that_slack_is_asked_again_after_the_time_that_it_names(work: Workspace) -> None:
    work.slack.refuse("chat.postMessage", status=429, Retry_After="2")
    event = work.mention(FENCED)
    work.answer(event["ts"])
    first, second = work.slack.said(channel=work.channel)
    assert second.at - first.at > 1.9


@pytest.mark.parametrize("status", [500, 503])
def test_that_slack_is_asked_again_where_it_fails(work: Workspace, status: int) -> None:
    work.slack.refuse("chat.postMessage", "internal_error", status=status)
    assert work.answer(work.mention(FENCED)["ts"])


def test_that_an_answer_goes_without_its_layout_where_slack_does_not_take_it(work: Workspace) -> None:
    work.slack.refuse("chat.postMessage", "invalid_blocks")
    answer = work.answer(work.mention(FENCED)["ts"])
    assert "memory" in shown(answer)
    assert len(answer["blocks"]) == 2


def test_that_a_refusal_ends_one_answer_and_not_the_bot(
    work: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    work.slack.refuse("chat.postMessage", "account_inactive")
    work.mention(FENCED)
    eventually(lambda: "account_inactive" in caplog.text)
    work.channel += "b"
    assert work.answer(work.mention(FENCED)["ts"])
    assert "OutOfMemoryError" not in caplog.text


def test_that_a_bot_starts_while_slack_cannot_be_reached(
    triage_service: TriageService, settings: Settings, server: Slack, open_bot: Opener
) -> None:
    server.refuse("auth.test", "ratelimited")
    work = open_bot(triage_service, settings)
    event = work.message(FENCED)
    work.deliver(event, "Ev-early")
    work.deliver(event, "Ev-early", **{"X-Slack-Retry-Num": "1"})
    assert work.answer(event["ts"])
