"""A triage service, a bot on a server of its own, and the stand-in for Slack that it talks to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette

from service.app.triage_service import TriageService
from service.settings import Settings
from tests.ui.slack.standin import APP_TOKEN, BOT_TOKEN, SECRET, Slack, slack
from tests.ui.slack.workspace import Workspace
from ui.slack import http

SettingsMaker = Callable[..., Settings]
Opener = Callable[..., Workspace]


@pytest.fixture(scope="session")
def slack_settings(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> SettingsMaker:
    """Make settings with the bot's tokens, over the index that is there already and a database of their
    own.
    """

    def make(**fields: Any) -> Settings:
        database = tmp_path_factory.mktemp("slack") / "whycrash.db"
        made = Settings(
            home=warm,
            embedding_model="hash",
            database=SecretStr(f"sqlite:///{database}"),
            workers=1,
            public_url="https://w.example",
            slack_bot_token=SecretStr(BOT_TOKEN),
            slack_signing_secret=SecretStr(SECRET),
            slack_app_token=SecretStr(APP_TOKEN),
        )
        return replace(made, **fields)

    return make


@pytest.fixture(scope="session")
def settings(slack_settings: SettingsMaker) -> Settings:
    """The settings of the triage service that most tests ask."""
    return slack_settings()


@pytest.fixture(scope="session")
def triage_service(settings: Settings) -> Iterator[TriageService]:
    """A real triage service with one worker."""
    with TriageService(settings) as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[Slack]:
    """The stand-in for Slack."""
    with slack() as running:
        yield running


@pytest.fixture
def bot_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the bots of a test keep their open questions.

    Not the warm home, which all workers share: their bots would finish one another's questions.
    """
    return tmp_path_factory.mktemp("bot")


@pytest.fixture
def open_bot(server: Slack, bot_home: Path) -> Iterator[Opener]:
    """Start a bot over a triage service, on a real server."""
    with ExitStack() as stack:

        def start(triage_service: TriageService, settings: Settings) -> Workspace:
            return Workspace(
                server, stack.enter_context(served(triage_service, replace(settings, home=bot_home), server))
            )

        yield start


@contextmanager
def served(triage_service: TriageService, settings: Settings, server: Slack) -> Iterator[str]:
    """Serve a bot on loopback; gives its address."""
    app = Starlette()
    with http.mount(app, triage_service, settings, f"{server.url}/api/"), socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        running = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not running.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/slack/events"
        running.should_exit = True
        thread.join(timeout=5)


@pytest.fixture
def work(triage_service: TriageService, settings: Settings, open_bot: Opener) -> Workspace:
    """A workspace whose bot asks the triage service."""
    return open_bot(triage_service, settings)
