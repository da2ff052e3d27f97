"""What is attacked: a server of the whole product with keys of several kinds, in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from eval.attack.patience import Watch, run_to_its_end
from eval.errors import EvalError
from ingest.workers.process import die_with_parent

# Requests a minute that one key or address may make.
RATE = 600
# The keys that are made, and the scope of each; `revoked` is revoked at once.
KEYS: Mapping[str, str] = {
    "triage": "triage",
    "other": "triage",
    "batch": "batch",
    "admin": "admin",
    "revoked": "admin",
}
# A word of the log below that only its owner may see.
CANARY = "dataset-for-nobody-else-4417"
LOG = (
    "step 41 loss 1.93\n"
    f"reading {CANARY}\n"
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 88, in <module>\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.15 GiB of which 1.25 GiB is free.\n"
)


@dataclass(frozen=True)
class Attack:
    """One attack; `run` gives what fell, in a few words, and nothing where the attack was held."""

    name: str
    run: Callable[[Target], str]


@dataclass
class Target:
    """A server under attack; `folder` holds its home, its log and whatever an attack needs."""

    folder: Path
    port: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """The server's home."""
        return self.folder / "home"

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self, **settings: str) -> dict[str, str]:
        """Give the surroundings of a process: none of the user's own settings, keys or proxies."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        own = {"HOME": str(self.home), "EMBEDDING_MODEL": "hash", "WORKERS": "1", **settings}
        return kept | {"HOME": str(self.folder)} | {f"WHYCRASH_{name}": value for name, value in own.items()}

    def command(
        self, *words: str, cwd: Path | None = None, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of ours to its end; a busy machine is no attack, a command that hangs is one."""
        return run_to_its_end(
            [sys.executable, "-P", "-m", "ui.cli.main", *words],
            env=self.environment(**settings),
            cwd=cwd or self.folder,
            output=self.folder,
        )

    def prepare(self, home: Path | None = None) -> None:
        """Build the index, or copy that of a home, and make the keys."""
        if home is not None:
            shutil.copytree(home, self.home)
        elif (built := self.command("ingest")).returncode:
            raise EvalError(f"The index cannot be built: {built.stderr[-400:]}")
        self.make_keys()

    def make_keys(self) -> None:
        """Make a key of each kind."""
        for name, scope in KEYS.items():
            self.tokens[name] = self.command("keys", "add", name, "--scope", scope).stdout.strip()
        self.command("keys", "revoke", self.tokens["revoked"].split("_")[1])

    def start(self, until: str = "/readyz") -> None:
        """Start the server, and wait until a path of it answers 200."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ui.cli.main", "serve"],
                env=self.environment(PORT=str(self.port), RATE_LIMIT=str(RATE)),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # However the attacks are ended, no server is left behind them.
                preexec_fn=die_with_parent,
            )
        watch, fault = Watch(self.process.pid), ""
        while not fault and self.process.poll() is None:
            fault = watch.fault()
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}{until}", timeout=5, trust_env=False).status_code == 200:
                    return
            time.sleep(0.3)
        raise EvalError(f"The server did not start ({fault or 'it ended'}): {self.log()[-400:]}")

    def stop(self) -> None:
        """End the server and its workers."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def log(self) -> str:
        """Give what the server wrote."""
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def sent(self, key: str) -> dict[str, str]:
        """Give the header of a key; none for a name that has no key."""
        return {"authorization": f"Bearer {self.tokens[key]}"} if key in self.tokens else {}

    @contextmanager
    def client(self, key: str = "") -> Iterator[httpx.Client]:
        """Talk to the server with a key, or without one."""
        with httpx.Client(base_url=self.url, headers=self.sent(key), timeout=60, trust_env=False) as made:
            yield made

    def triage(self, key: str = "triage", **fields: Any) -> str:
        """Hand in a log; gives the triage's id."""
        with self.client(key) as client:
            answer = client.post("/v1/triage", json={"text": LOG, "model": False, **fields})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def exchange(self, raw: bytes, seconds: float = 20.0) -> bytes:
        """Send bytes as they are; gives what comes back until the server closes or is silent for so long."""
        told = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with suppress(OSError):
                connection.sendall(raw)
            with suppress(OSError):
                while piece := connection.recv(65_536):
                    told += piece
        return told

    def status_of(self, raw: bytes, seconds: float = 20.0) -> int:
        """Give the status of the first answer to bytes that are sent; 0 where there is none."""
        told = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with suppress(OSError):
                connection.sendall(raw)
            with suppress(OSError):
                while b"\r\n" not in told and (piece := connection.recv(65_536)):
                    told += piece
        match = re.match(rb"HTTP/1\.1 (\d{3})", told)
        return int(match[1]) if match else 0

    def memory(self) -> int:
        """Give how many bytes of memory the server's own process holds."""
        process = self.process.pid if self.process else 0
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(match[1]) * 1024 if match else 0
