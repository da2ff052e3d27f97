"""A real server of the bot for tests: a process of its own that can be killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.ports import free_port
from tests.ui.slack.standin import BOT_TOKEN, SECRET, Slack
from tests.waiting import PATIENCE
from tests.warm import ROOT


@dataclass
class Server:
    """A bot over a home, which asks a stand-in for Slack.

    `settings` are `WHYCRASH_*` variables without their prefix.
    """

    home: Path
    slack: Slack
    settings: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where Slack's requests go."""
        return f"http://127.0.0.1:{self.port}/slack/events"

    def start(self) -> Server:
        """Start it and wait until it takes requests."""
        self.port = free_port()
        own = {
            "HOME": str(self.home),
            "EMBEDDING_MODEL": "hash",
            "WORKERS": "1",
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SECRET,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WHYCRASH_")}
        environment |= {f"WHYCRASH_{name}": value for name, value in (own | self.settings).items()} | {
            "PYTHONPATH": str(ROOT)
        }
        command = [sys.executable, "-m", "tests.ui.slack.serving", str(self.port), f"{self.slack.url}/api/"]
        with (self.home.parent / "slack.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.home.parent, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                httpx.post(self.url, timeout=5)
            except httpx.TransportError:
                time.sleep(0.1)
            else:
                return self
        raise AssertionError((self.home.parent / "slack.log").read_text(encoding="utf-8")[-4000:])

    def kill(self) -> None:
        """End it and its workers at once, as a power cut would."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


def main(port: int, base_url: str) -> None:
    """Serve the bot."""
    import uvicorn
    from starlette.applications import Starlette

    from service.app.triage_service import TriageService
    from service.settings import load_settings
    from ui.slack import http

    settings, app = load_settings(), Starlette()
    with TriageService(settings) as triage_service, http.mount(app, triage_service, settings, base_url):
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
