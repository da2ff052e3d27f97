"""A real server of the page for tests: a process of its own that can be stopped and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.ports import free_port
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]


@dataclass
class Server:
    """A server over a home; `settings` are `WHYCRASH_*` variables without their prefix."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> Server:
        """Start it and wait until it takes work."""
        own = {
            "HOME": str(self.home),
            "EMBEDDING_MODEL": "hash",
            "WORKERS": "1",
            "PORT": str(self.port),
            "RATE_LIMIT": "0",
            **self.settings,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WHYCRASH_")}
        environment |= {f"WHYCRASH_{name}": value for name, value in own.items()} | {"PYTHONPATH": str(ROOT)}
        with (self.home.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.ui.chat.serving"],
                cwd=self.home.parent,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait()
        return self

    def kill(self) -> None:
        """End it and its workers at once, as a power cut would."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """End it as an administrator does."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def log(self) -> str:
        """Give what it wrote."""
        return (self.home.parent / "server.log").read_text(encoding="utf-8", errors="replace")

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.process is not None and self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}readyz", timeout=5) as answer:  # noqa: S310 - loopback
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise AssertionError(f"The server did not start:\n{self.log()[-4000:]}")


def _started(address: str) -> None:
    """Hear where the server is; tests know."""


def main() -> None:
    """Serve the page and the API in one process."""
    from service.pipeline.triage import no_progress
    from service.settings import load_settings
    from ui.server import serve

    serve(load_settings(), no_progress, _started)


if __name__ == "__main__":
    main()
