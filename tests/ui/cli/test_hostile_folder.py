"""Commands run in a folder that somebody else wrote: its files send nothing, name nothing and run nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection, create_server
from threading import Thread

import pytest

from service.schemas.diagnosis import Diagnosis
from tests.service.llm.scripted import Turn, serving
from tests.ui.cli.test_explain_model import configured
from tests.ui.shell import EXPLAINED, KILLED, Ended, surroundings
from tests.waiting import PATIENCE

# As the installed command runs: without the current folder among the places that Python imports from.
COMMAND = (sys.executable, "-P", "-m", "ui.cli.main")
OWN = "key-of-the-user-only"
# What a program of ours, or Python itself while it starts another, imports by name.
MODULES = ("json", "pickle", "socket", "service/__init__", "ui/__init__", "ingest/__init__", "sitecustomize")


@dataclass
class Trap:
    """A server under the attacker's address, and how often it was called."""

    address: str
    calls: list[bytes] = field(default_factory=list)


@contextmanager
def trap() -> Iterator[Trap]:
    """Listen where a hostile folder sends; every connection is kept with its first bytes."""
    with create_server(("127.0.0.1", 0)) as server:
        found = Trap(f"http://127.0.0.1:{server.getsockname()[1]}")

        def listen() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                with caller:
                    caller.settimeout(1)
                    found.calls.append(caller.recv(65536))

        thread = Thread(target=listen, daemon=True)
        thread.start()
        yield found
        # A call of our own, so that those before it have been taken.
        with create_connection(server.getsockname()) as own:
            own.sendall(b"the end")
            own.recv(1)
        server.close()


def hostile(folder: Path, address: str) -> Path:
    """Fill a folder with a log and all that could lead its reader astray; gives the log."""
    variables = {
        "WHYCRASH_MODEL": "openai:x",
        "WHYCRASH_MODEL_BASE_URL": address,
        "OPENAI_API_BASE": address,
        "OPENAI_BASE_URL": address,
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_ENDPOINT": address,
        "LANGSMITH_API_KEY": "x",
        "HTTP_PROXY": address,
        "HTTPS_PROXY": address,
        "ALL_PROXY": address,
        "HF_ENDPOINT": address,
        "CHROMA_OTEL_COLLECTION_ENDPOINT": address,
        "CHROMA_OTEL_GRANULARITY": "all",
        "CHROMA_SERVER_HTTP_PORT": "no number",
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
        "GRADIO_ANALYTICS_ENABLED": "True",
        "RAY_ADDRESS": address,
        "SENTRY_DSN": address,
    }
    settings = {
        "home": str(folder / "home"),
        "embedding_model": str(folder),
        "model": "openai:x",
        "model_base_url": address,
        "model_key_env": "SOMEBODYS_KEY",
        "chroma_url": address,
        "ray_address": address,
        "ray_dashboard": address,
        "ray_dashboards": address,
        "metrics_pages": address,
        "prometheus_hosts": address,
        "database": f"postgresql+psycopg://{address.removeprefix('http://')}/x",
        "public_url": address,
        "batch_roots": "/",
        "port": "1",
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "whycrash.toml").write_text(
        "".join(f"{name} = '{value}'\n" for name, value in settings.items()), encoding="utf-8"
    )
    (folder / ".env").write_text(
        "".join(f"{name}={value}\n" for name, value in variables.items()), encoding="utf-8"
    )
    (folder / ".netrc").write_text("machine 127.0.0.1 login x password y\n", encoding="utf-8")
    (folder / "pip.conf").write_text(f"[global]\nindex-url = {address}\n", encoding="utf-8")
    for name in MODULES:
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"open({str(folder / 'was-run')!r}, 'a').write({name!r})\nraise SystemExit('run')\n",
            encoding="utf-8",
        )
    log = folder / "train.log"
    log.write_text(f"step:1 - actor/pg_loss:0.1\n{KILLED}\n", encoding="utf-8")
    return log


def ran(home: Path, folder: Path, *words: str | Path, **environment: str) -> Ended:
    """Run a command in a folder."""
    made = surroundings(home, SOMEBODYS_KEY=OWN, **environment)
    ended = subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        input=b"",
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env=made,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "train.log", "--json"),
        ("explain", "train.log", "--telemetry", "live", "--json"),
        pytest.param(("batch", "train.log", "--workers", "1", "--out", "r.jsonl"), marks=pytest.mark.long),
    ],
)
def test_a_hostile_folder_is_read_and_nothing_of_it_obeyed(
    words: tuple[str, ...], warm: Path, tmp_path: Path
) -> None:
    """The log is explained.

    No connection is made, no key shown, no module run, and each setting is named as ignored.
    """
    with trap() as found:
        log = hostile(tmp_path / "job", found.address)
        ended = ran(warm, log.parent, *words)
    assert ended.code == EXPLAINED, ended
    assert found.calls == [b"the end"]
    assert OWN not in ended.out + ended.err
    assert not (log.parent / "was-run").exists()
    assert not (log.parent / "home").exists()
    assert (
        "whycrash.toml in this folder sets `model`, which only your environment or"
        in " ".join(ended.err.split())
        or "more of its settings are ignored" in ended.err
    )


@pytest.mark.long
def test_an_index_is_built_without_the_folders_env_file(tmp_path: Path) -> None:
    """The vector store reads a `.env` of its own.

    That of the folder neither breaks the import nor names a collector.
    """
    with trap() as found:
        log = hostile(tmp_path / "job", found.address)
        ended = ran(tmp_path / "fresh", log.parent, "explain", "train.log", "--json")
    assert ended.code == EXPLAINED, ended
    assert Diagnosis.model_validate_json(ended.out).verdict == "diagnosed"
    assert found.calls == [b"the end"]


def test_the_users_own_model_is_asked_in_a_hostile_folder_and_nobody_else(warm: Path, tmp_path: Path) -> None:
    """With a model of the user's, the prompt goes there alone."""
    with trap() as found, serving([Turn("{}"), Turn("{}")]) as server:
        log = hostile(tmp_path / "job", found.address)
        ended = ran(warm, log.parent, "explain", "train.log", "--json", **configured(server))
    assert (ended.code, len(server.calls) > 0, found.calls) == (EXPLAINED, True, [b"the end"])
    assert OWN not in str(server.headers)
