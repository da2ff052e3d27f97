"""Settings: `WHYCRASH_*` variables first, then `whycrash.toml`, then the defaults here."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from pydantic import SecretStr

from service.errors import SettingsError

PREFIX = "WHYCRASH_"
FILE = "whycrash.toml"
# Settings that are numbers: what reads them, and the least that makes sense.
NUMBERS: Mapping[str, tuple[type[int] | type[float], int]] = {
    "model_deadline": (float, 1), "model_tokens": (int, 2000), "port": (int, 0), "workers": (int, 0), "queue": (int, 0),
    "request_deadline": (float, 1), "max_upload_mb": (int, 1), "max_unpacked_mb": (int, 1), "max_jobs": (int, 1), "rate_limit": (int, 0),
    "retention_days": (int, 0), "ray_from": (int, 1),
}
SECRETS = frozenset({"database", "slack_bot_token", "slack_signing_secret", "slack_app_token"})

NO_SECRET = SecretStr("")


def _setting(default: Any, says: str) -> Any:
    return field(default=default, metadata={"says": says})


@dataclass(frozen=True)
class Settings:
    """Everything that can be set; each field's sentence is what the README's table shows."""

    home: Path = field(
        default_factory=lambda: user_data_path("whycrash", appauthor=False),
        metadata={"says": "Folder of the index, the exported model and caches."},
    )
    embedding_model: str = _setting(
        "", "A sentence-transformers model or folder; empty is all-MiniLM-L6-v2 as installed; `hash` needs no model."
    )
    lang: str = _setting("", "Language of answers, `en` or `zh`; empty follows the log's text, then the locale.")
    prometheus_hosts: str = _setting("", "Hosts, or host:port, that `--telemetry prometheus://...` may ask, by commas; empty is none.")
    metrics_pages: str = _setting(
        "", "Pages of metrics on this machine that a snapshot reads, by commas: a DCGM exporter's, an inference server's."
    )
    ray_dashboard: str = _setting("", "Address of Ray's dashboard that a snapshot asks, such as http://127.0.0.1:8265; empty is none.")
    model: str = _setting(
        "", "Chat model that explains beside the rules, as `provider:name` (`openai:...`, `anthropic:...`, `ollama:...`); empty is none."
    )
    model_base_url: str = _setting("", "Base URL of the model's server, such as that of vLLM; empty is the provider's own.")
    model_key_env: str = _setting(
        "", "Name of the variable that holds the model's key; empty is the provider's own, such as `OPENAI_API_KEY`."
    )
    model_deadline: float = _setting(60.0, "Seconds for everything that a model is asked of one answer; then the first answer stands.")
    model_tokens: int = _setting(8000, "Most tokens of a prompt, 2000 or more; what ranks lowest is left out, and the answer says so.")
    host: str = _setting("127.0.0.1", "Address that the server binds to; any but a loopback one needs an API key first (`whycrash keys add`).")
    port: int = _setting(8642, "Port of the server; 0 is any free one.")
    public_url: str = _setting("", "Address at which people reach the server, for links in Slack and shared triages; empty is where it listens.")
    database: SecretStr = _setting(NO_SECRET, "SQLAlchemy URL of the database, such as `postgresql+psycopg://...`; empty is SQLite under the home folder.")  # noqa: RUF009 - a field, as all of these
    workers: int = _setting(0, "Processes that triage beside the server; 0 is one for each core.")
    queue: int = _setting(32, "Most triages that wait for a process; one more is answered 429 with the time to wait.")
    request_deadline: float = _setting(120.0, "Seconds after which a triage that is not finished is ended.")
    max_upload_mb: int = _setting(1024, "Largest body of a request, MiB.")
    max_unpacked_mb: int = _setting(16_384, "Most that the files of one request unpack to, MiB.")
    max_jobs: int = _setting(100_000, "Most jobs of one batch.")
    rate_limit: int = _setting(600, "Requests that one key, or one address without a key, may make in a minute; 0 is any number.")
    retention_days: int = _setting(90, "Days that triages, batches and the audit are kept; 0 is for ever.")
    batch_roots: str = _setting("", "Folders of the server, by commas, from which a batch may take its logs; empty is none.")
    ray_address: str = _setting("", "Ray cluster that works on batches, such as `ray://head:10001` or `head:6379`; empty is this machine.")
    ray_from: int = _setting(500, "Batches of at least so many jobs run on Ray; smaller ones on the server's own processes.")
    ray_dashboards: str = _setting("", "Addresses of Ray dashboards whose failed jobs a batch may ask for, by commas; empty is none.")
    chroma_url: str = _setting("", "Chroma server that holds the vectors, such as `http://127.0.0.1:8000`; empty keeps them under the home folder.")
    slack_bot_token: SecretStr = _setting(NO_SECRET, "Slack's bot token (`xoxb-...`); empty switches Slack off.")  # noqa: RUF009 - a field, as all of these
    slack_signing_secret: SecretStr = _setting(NO_SECRET, "Slack's signing secret, for events over HTTP.")  # noqa: RUF009 - a field, as all of these
    slack_app_token: SecretStr = _setting(NO_SECRET, "Slack's app-level token (`xapp-...`), for Socket Mode instead of HTTP.")  # noqa: RUF009 - a field, as all of these


def without_secrets(settings: Settings) -> Settings:
    """Give what a worker process needs of the settings, which is none of the secrets."""
    nothing: dict[str, Any] = dict.fromkeys(SECRETS, NO_SECRET)
    return replace(settings, **nothing)


def load(environment: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """Load the settings; raises SettingsError naming the variable or key that is wrong."""
    environment = os.environ if environment is None else environment
    table = _table(file or Path(FILE))
    known = {item.name for item in fields(Settings)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise SettingsError(f"{FILE}: there is no setting {unknown[0]!r}; there are {', '.join(sorted(known))}.")
    wrong = [name for name, value in table.items() if not isinstance(value, str) and (isinstance(value, bool) or name not in NUMBERS)]
    if wrong:
        raise SettingsError(f"{FILE}: {wrong[0]} takes a text in quotes, not {table[wrong[0]]!r}.")
    values: dict[str, Any] = dict(table)
    values |= {name: environment[PREFIX + name.upper()] for name in known if environment.get(PREFIX + name.upper())}
    if "home" in values:
        values["home"] = Path(str(values["home"])).expanduser()
    if values.get("lang") not in (None, "", "en", "zh"):
        raise SettingsError(f"{PREFIX}LANG is {values['lang']!r}; it takes en or zh.")
    values |= {name: _number(name, values[name]) for name in NUMBERS if name in values}
    values |= {name: SecretStr(str(values[name])) for name in SECRETS if name in values}
    return Settings(**values)


def _number(name: str, value: Any) -> float:
    kind, least = NUMBERS[name]
    try:
        number = kind(value)
    except ValueError as error:
        raise SettingsError(f"{PREFIX}{name.upper()} is {value!r}; it takes a number.") from error
    if not least <= number < math.inf:
        raise SettingsError(f"{PREFIX}{name.upper()} is {value!r}; it takes {least} or more.")
    return number


def _table(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is no valid TOML: {error}.") from error
