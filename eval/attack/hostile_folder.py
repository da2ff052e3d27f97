"""A folder that somebody else filled for whoever runs a command in it, and the address that it leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection, create_server
from threading import Thread

# What a program of ours, or Python itself while it starts another, imports by name.
MODULES = ("json", "pickle", "socket", "service/__init__", "ui/__init__", "ingest/__init__", "sitecustomize")
LOG = "job.log"
# The file that a module of the folder leaves there when it is run.
RAN = "was-run"
_END = b"the end"


@dataclass
class Trap:
    """The attacker's address, and the first bytes of each call that came there."""

    address: str
    calls: list[bytes] = field(default_factory=list)


@contextmanager
def listening() -> Iterator[Trap]:
    """Listen at the attacker's address; at the end all calls that were made are in the trap."""
    with create_server(("127.0.0.1", 0)) as server:
        trap = Trap(f"http://127.0.0.1:{server.getsockname()[1]}")

        def listen() -> None:
            while True:
                caller, _ = server.accept()
                first = b""
                with caller, suppress(OSError):  # who says nothing has called all the same
                    caller.settimeout(1)
                    first = caller.recv(65536)
                if first == _END:
                    return
                trap.calls.append(first)

        thread = Thread(target=listen, daemon=True)
        thread.start()
        yield trap
        # A call of our own behind the others: once it has been taken, so have they.
        with create_connection(server.getsockname()) as own:
            own.sendall(_END)
        thread.join()


def fill_folder(folder: Path, address: str, log: str) -> Path:
    """Fill a folder with a log and all that could lead its reader astray; gives the log."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = [f"{name} = {json.dumps(value)}\n" for name, value in _settings(folder, address).items()]
    variables = [f"{name}={value}\n" for name, value in _variables(address).items()]
    contents = {
        "whycrash.toml": "".join(settings),
        ".env": "".join(variables),
        ".netrc": "machine 127.0.0.1 login x password y\n",
        "pip.conf": f"[global]\nindex-url = {address}\n",
        LOG: log,
    }
    for name in MODULES:
        mark = f"open({str(folder / RAN)!r}, 'a').write({name!r})\nraise SystemExit('run')\n"
        contents[f"{name}.py"] = mark
    for name, text in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / LOG


def _settings(folder: Path, address: str) -> dict[str, str]:
    """Give settings that would send something to the address, read a key, or write beside the log."""
    return {
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
        "slack_webhook": address,
        "knowledge": str(folder),
        "public_url": address,
        "batch_roots": "/",
        "port": "1",
    }


def _variables(address: str) -> dict[str, str]:
    """Give variables that would send something to the address, of ours and of packages that we import."""
    return {
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
