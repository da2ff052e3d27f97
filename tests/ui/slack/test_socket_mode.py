"""Socket Mode: the same exchange over a connection that the bot opens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from service.app.triage_service import TriageService
from service.schemas.errors import SettingsError
from service.settings import Settings
from tests.factories import OOM, traceback
from tests.tables import each_row
from tests.ui.slack.standin import Slack, linked
from tests.ui.slack.workspace import Workspace, envelope, eventually, shown
from ui.slack import socket_mode


def test_that_a_mention_is_answered_over_socket_mode(
    triage_service: TriageService, settings: Settings, server: Slack
) -> None:
    work = Workspace(server, "")
    event = work.message(f"why?\n```\n{traceback(OOM)}```")
    request = {
        "type": "events_api",
        "envelope_id": "E1",
        "accepts_response_payload": False,
        "payload": envelope(event, "Ev-socket"),
    }
    with linked(server):
        line = socket_mode.connect(triage_service, settings, f"{server.url}/api/")
        try:
            eventually(lambda: server.links)
            server.send(request)
            assert "CUDA out of memory" in shown(work.answer(event["ts"]))
            eventually(lambda: {"envelope_id": "E1"} in server.receipts)
            server.send({**request, "envelope_id": "E2", "retry_attempt": 1, "retry_reason": "timeout"})
            eventually(lambda: {"envelope_id": "E2"} in server.receipts)
            assert len(work.answers(event["ts"])) == 1
        finally:
            line.close()


@each_row(
    ("fields", "named"),
    [
        ({"slack_app_token": SecretStr("")}, "WHYCRASH_SLACK_APP_TOKEN"),
        ({"slack_bot_token": SecretStr("xapp-no")}, "WHYCRASH_SLACK_BOT_TOKEN"),
    ],
)
def test_that_socket_mode_says_which_token_is_missing(
    settings: Settings, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(SettingsError, match=named):
        socket_mode.serve(replace(settings, **fields))
