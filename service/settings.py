"""Settings: `WHYCRASH_*` variables, the user's `whycrash.toml`, then the folder's, then the defaults here.

Whoever wrote a log may have written the file beside it, so a folder's file sets only what can neither send
data, open an address or a path, name a variable, nor weaken a bound: the fields marked `in_folder`. All else
in it is named and left alone until its reader allows the file as it is, and no fault of it keeps anybody from
reading the log.
"""

from __future__ import annotations

import math
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_config_path, user_data_path
from pydantic import SecretStr

from corpus.message import Message
from ingest.errors import RedactionPatternError
from ingest.logs.lines import printable
from service.allowed_files import NAME, AllowedFiles
from service.schemas.errors import SettingsError

PREFIX = "WHYCRASH_"
FILE = "whycrash.toml"
# Settings that are numbers: what reads them, and the least that makes sense.
NUMBERS: Mapping[str, tuple[type[int] | type[float], int]] = {
    "model_deadline": (float, 1),
    "model_tokens": (int, 2000),
    "model_calls": (int, 0),
    "model_calls_deadline": (float, 1),
    "model_stream": (int, 0),
    "model_batch_below": (float, 0),
    "model_day_tokens": (int, 0),
    "model_batch_tokens": (int, 0),
    "model_day_cost": (float, 0),
    "model_batch_cost": (float, 0),
    "port": (int, 0),
    "workers": (int, 0),
    "queue": (int, 0),
    "request_deadline": (float, 1),
    "max_upload_mb": (int, 1),
    "max_unpacked_mb": (int, 1),
    "max_jobs": (int, 1),
    "rate_limit": (int, 0),
    "day_quota": (int, 0),
    "retention_days": (int, 0),
    "ray_from": (int, 1),
    "slack_digest_hour": (int, -1),
    "log_json": (int, 0),
}
SECRETS = frozenset({"database", "slack_bot_token", "slack_signing_secret", "slack_app_token"})

NO_SECRET = SecretStr("")
# A file of settings is a page of text; a larger one beside a log is something else.
MAX_FILE_BYTES = 64 << 10
_LONGEST_NAME = 60

Trouble = Literal["not-allowed", "changed", "unknown", "wrong", "unreadable"]


def _setting(default: Any, says: str, *, in_folder: bool = False) -> Any:
    return field(default=default, metadata={"says": says, "in_folder": in_folder})


@dataclass(frozen=True)
class Settings:
    """Everything that can be set; each field's sentence is what the table in docs/settings.md shows."""

    home: Path = field(
        default_factory=lambda: user_data_path("whycrash", appauthor=False),
        metadata={"says": "Folder of the index, the exported model and caches.", "in_folder": False},
    )
    embedding_model: str = _setting(
        "",
        "A sentence-transformers model or folder; empty is all-MiniLM-L6-v2 as installed; `hash` needs no "
        "model.",
    )
    lang: str = _setting(
        "",
        "Language of answers, `en` or `zh`; empty follows the log's text, then the locale.",
        in_folder=True,
    )
    prometheus_hosts: str = _setting(
        "", "Hosts, or host:port, that `--telemetry prometheus://...` may ask, by commas; empty is none."
    )
    metrics_pages: str = _setting(
        "",
        "Pages of metrics on this machine that a snapshot reads, by commas: a DCGM exporter's, an "
        "inference server's.",
    )
    ray_dashboard: str = _setting(
        "", "Address of Ray's dashboard that a snapshot asks, such as http://127.0.0.1:8265; empty is none."
    )
    redact_extra: str = _setting(
        "",
        "What else is secret where you work, by commas or rows: names of values (`crew badge`), and "
        "expressions in slashes (`/ACME-[0-9A-F]{32}/`), see below.",
    )
    model: str = _setting(
        "",
        "Chat model that explains beside the rules, as `provider:name` (`openai:...`, `anthropic:...`, "
        "`ollama:...`, `vllm:...`, see below); empty is none.",
    )
    model_base_url: str = _setting(
        "", "Base URL of the model's server, such as that of vLLM; empty is the provider's own."
    )
    model_key_env: str = _setting(
        "",
        "Name of the variable that holds the model's key; empty is the provider's own, such as "
        "`OPENAI_API_KEY`.",
    )
    model_stream: int = _setting(
        1, "Whether a model's answer is streamed: 1, or 0 for gateways that give it in one piece only."
    )
    model_deadline: float = _setting(
        60.0, "Seconds for everything that a model is asked of one answer; then the first answer stands."
    )
    model_tokens: int = _setting(
        12000, "Most tokens of a prompt, 2000 or more; what ranks lowest is left out, and the answer says so."
    )
    model_calls: int = _setting(
        8,
        "How often a model may look further into the log and what is known, before it answers; 0 is never. "
        "What it is shown comes to at most `model_tokens` on top of its prompt.",
    )
    model_calls_deadline: float = _setting(
        45.0, "Seconds within which it may do so; after them it has to answer."
    )
    model_fallback: str = _setting(
        "",
        "A second model, as `provider:name`, that is asked where the first fails or is silent for two "
        "thirds of `model_deadline`; empty is none.",
    )
    model_fallback_base_url: str = _setting(
        "", "Base URL of the second model's server; empty is the provider's own."
    )
    model_fallback_key_env: str = _setting(
        "", "Name of the variable that holds the second model's key; empty is the provider's own."
    )
    model_batch_below: float = _setting(
        0.9,
        "In a batch a model is asked only about crashes whose cause the rules hold for less probable than "
        "this, and never about a proved one; 1 is about all others, 0 is about none that has a cause.",
    )
    model_day_tokens: int = _setting(
        0, "Most tokens that models may take in a day (UTC), in and out together; 0 is any number."
    )
    model_batch_tokens: int = _setting(0, "Most tokens that models may take in one batch; 0 is any number.")
    model_day_cost: float = _setting(
        0.0, "Most that models may cost in a day (UTC), in the currency of `model_prices`; 0 is any sum."
    )
    model_batch_cost: float = _setting(
        0.0, "Most that models may cost in one batch, in the currency of `model_prices`; 0 is any sum."
    )
    model_prices: str = _setting(
        "",
        "What a million tokens cost, in/out, by commas: `openai:NAME=1.25/10, ollama:NAME=0/0`; a budget of "
        "money needs the price of each model that is set.",
    )
    host: str = _setting(
        "127.0.0.1",
        "Address that the server binds to; any but a loopback one needs an API key first (`whycrash keys "
        "add`).",
    )
    log_json: int = _setting(
        0, "Form of the server's log: 1 is a JSON object a line, with trace ids; 0 is text."
    )
    port: int = _setting(8642, "Port of the server; 0 is any free one.")
    public_url: str = _setting(
        "",
        "Address at which people reach the server, for links in Slack and shared triages; empty is where "
        "it listens.",
    )
    database: SecretStr = _setting(  # noqa: RUF009
        NO_SECRET,
        "SQLAlchemy URL of the database, such as `postgresql+psycopg://...`; empty is SQLite under the "
        "home folder.",
    )
    workers: int = _setting(0, "Processes that triage beside the server; 0 is one for each core.")
    queue: int = _setting(
        32, "Most triages that wait for a process; one more is answered 429 with the time to wait."
    )
    request_deadline: float = _setting(120.0, "Seconds after which a triage that is not finished is ended.")
    max_upload_mb: int = _setting(1024, "Largest body of a request, MiB.")
    max_unpacked_mb: int = _setting(16_384, "Most that the files of one request unpack to, MiB.")
    max_jobs: int = _setting(100_000, "Most jobs of one batch.")
    rate_limit: int = _setting(
        600,
        "Requests that one team, one key without a team, or one address without a key, may make in a minute; "
        "0 is any number.",
    )
    day_quota: int = _setting(
        0,
        "Jobs that one team, or one key or Slack user without a team, may hand in within 24 hours, those of "
        "batches included; 0 is any number.",
    )
    oidc_issuer: str = _setting(
        "",
        "Issuer of OpenID Connect whose tokens are taken as keys are, by its https address; empty is none.",
    )
    oidc_audience: str = _setting("", "What a token's `aud` has to name: this server to the issuer.")
    oidc_groups: str = _setting(
        "",
        "What members of the issuer's groups may do, and of which team they are, by commas: "
        "`ml-rl=triage+batch@rl, ml-ops=admin`.",
    )
    oidc_claim: str = _setting("groups", "The claim that holds the groups, such as `realm_access.roles`.")
    retention_days: int = _setting(90, "Days that triages, batches and the audit are kept; 0 is for ever.")
    batch_roots: str = _setting(
        "", "Folders of the server, by commas, from which a batch may take its logs; empty is none."
    )
    ray_address: str = _setting(
        "",
        "Ray cluster that works on batches, such as `ray://head:10001` or `head:6379`; empty is this "
        "machine.",
    )
    ray_from: int = _setting(
        500, "Batches of at least so many jobs run on Ray; smaller ones on the server's own processes."
    )
    ray_dashboards: str = _setting(
        "", "Addresses of Ray dashboards whose failed jobs a batch may ask for, by commas; empty is none."
    )
    chroma_url: str = _setting(
        "",
        "Chroma server that holds the vectors, such as `http://127.0.0.1:8000`; empty keeps them under "
        "the home folder.",
    )
    slack_bot_token: SecretStr = _setting(  # noqa: RUF009
        NO_SECRET, "Slack's bot token (`xoxb-...`); empty switches Slack off."
    )
    slack_signing_secret: SecretStr = _setting(  # noqa: RUF009
        NO_SECRET, "Slack's signing secret, for events over HTTP."
    )
    slack_app_token: SecretStr = _setting(  # noqa: RUF009
        NO_SECRET, "Slack's app-level token (`xapp-...`), for Socket Mode instead of HTTP."
    )
    slack_digest_hour: int = _setting(
        -1, "Hour (UTC) at which each channel is told what crashed in it in the last day; -1 is never."
    )


def without_secrets(settings: Settings) -> Settings:
    """Give what a worker process needs of the settings, which is none of the secrets."""
    nothing: dict[str, Any] = dict.fromkeys(SECRETS, NO_SECRET)
    return replace(settings, **nothing)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something in a folder's file that was left alone.

    `name` is a setting's, or empty for the file as a whole.
    """

    trouble: Trouble
    file: Path
    name: str = ""


@dataclass(frozen=True)
class LoadedSettings:
    """The settings, and what a folder's file says that takes no effect, with the reason."""

    settings: Settings
    ignored: tuple[Ignored, ...] = ()


def own_file() -> Path:
    """Name the file in which the user's own settings stand."""
    try:
        return user_config_path("whycrash", appauthor=False) / FILE
    except RuntimeError:  # there is no home folder
        return Path("~/.config/whycrash", FILE)


def allowed_files(own: Path | None = None) -> AllowedFiles:
    """Give the list, beside the user's own file, of folders' files that the user has allowed."""
    return AllowedFiles((own_file() if own is None else own).with_name(NAME))


def load_settings(
    environment: Mapping[str, str] | None = None, own: Path | None = None, folder: Path | None = None
) -> Settings:
    """Load the settings as `read` does, and pass over what it ignored."""
    return read(environment, own, folder).settings


def read(
    environment: Mapping[str, str] | None = None, own: Path | None = None, folder: Path | None = None
) -> LoadedSettings:
    """Load the settings; raises SettingsError naming the variable or key that is wrong.

    `own` is the user's own file, `folder` the folder whose file may be anybody's (default: the current one).
    """
    environment = os.environ if environment is None else environment
    own = own_file() if own is None else own
    values: dict[str, Any] = {}
    ignored: tuple[Ignored, ...] = ()
    found = (folder or Path()) / FILE
    try:
        is_own = found.samefile(own)
    except OSError:
        is_own = False
    if not is_own:
        values, ignored = _of_folder(found, allowed_files(own))
    values |= _of_user(own)
    values |= {name: value for name in _names() if (value := environment.get(PREFIX + name.upper()))}
    return LoadedSettings(_made(values), ignored)


def _made(values: Mapping[str, Any]) -> Settings:
    try:
        made = Settings(**_checked(values))
    except RuntimeError:
        made = None
    # A relative default would be a path in whatever folder a log lies in.
    if made is None or not (made.home.is_absolute() or "home" in values):
        raise SettingsError(Message("errors.no-home-folder-keep"))
    return made


def _names() -> list[str]:
    return sorted(item.name for item in fields(Settings))


def _of_user(file: Path) -> dict[str, Any]:
    """Read the user's own file.

    Raises SettingsError where it is wrong, or somebody else could have written it.
    """
    # Where there is no home folder, the path is relative, and leads into the folder of a log.
    if not file.is_absolute():
        return {}
    try:
        about = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(Message("errors.cannot-read", file=file, reason=error.strerror)) from error
    if about.st_uid not in (os.geteuid(), 0) or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingsError(Message("errors.not-used-yours-no", file=file))
    try:
        table = _toml(_content(file))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(Message("errors.no-valid-toml", file=file, reason=error)) from error
    known = _names()
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise SettingsError(
            Message("errors.no-setting", file=file, unknown=repr(unknown[0]), known=", ".join(known))
        )
    wrong = next((name for name, value in table.items() if not _is_typed(name, value)), "")
    if wrong:
        raise SettingsError(
            Message("errors.takes-text-quotes-not", file=file, wrong=wrong, table=repr(table[wrong]))
        )
    return table


def _of_folder(file: Path, allowed: AllowedFiles) -> tuple[dict[str, Any], tuple[Ignored, ...]]:
    """Read a file that may be anybody's: what it may set, and all that it sets beside it."""
    try:
        if not os.path.lexists(file):
            return {}, ()
        raw = folder_content(file)
        table = _toml(raw)
    except (OSError, ValueError, RecursionError):
        return {}, (Ignored("unreadable", file),)
    state = allowed.state(file, raw)
    ignored = {
        name: trouble
        for name, value in table.items()
        if (trouble := refused(name, value, state == "allowed"))
    }
    told = [Ignored(why, file, printable(name)[:_LONGEST_NAME]) for name, why in sorted(ignored.items())]
    if state == "changed" and "not-allowed" in ignored.values():
        told.insert(0, Ignored("changed", file))
    return {name: value for name, value in table.items() if name not in ignored}, tuple(told)


def folder_content(file: Path) -> bytes:
    """Give the bytes of a file that may be anybody's; raises OSError or ValueError."""
    # A pipe or a device would be waited for; only a plain file is settings.
    if not file.is_file():
        raise ValueError("it is no plain file")
    return _content(file)


def folder_table(raw: bytes) -> dict[str, str]:
    """Give what a folder's file would set if it were allowed, as text; raises ValueError."""
    return {name: str(value) for name, value in _toml(raw).items() if refused(name, value, True) is None}


def refused(name: str, value: Any, allowed: bool) -> Trouble | None:
    """Tell why a folder's file may not set this; default deny, unless the user has allowed the file."""
    settable = {item.name: allowed or bool(item.metadata.get("in_folder")) for item in fields(Settings)}
    if name not in settable:
        return "unknown"
    if not settable[name]:
        return "not-allowed"
    if not _is_typed(name, value):
        return "wrong"
    try:
        _checked({name: value})
    except (SettingsError, RuntimeError):  # the second one of a home folder of nobody's
        return "wrong"
    return None


def _content(file: Path) -> bytes:
    with file.open("rb") as stream:
        raw = stream.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    return raw


def _toml(raw: bytes) -> dict[str, Any]:
    return tomllib.loads(raw.decode())


def _is_typed(name: str, value: Any) -> bool:
    return isinstance(value, str) or (
        name in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool)
    )


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Give values in the types of their fields; raises SettingsError."""
    values = dict(given)
    if "home" in values:
        values["home"] = Path(str(values["home"])).expanduser()
    if values.get("lang", "") not in ("", "en", "zh"):
        raise SettingsError(Message("errors.variable-takes-language", value=repr(values["lang"])))
    if extra := values.get("redact_extra"):
        _check_extra(extra)
    values |= {name: _number(name, values[name]) for name in NUMBERS if name in values}
    values |= {name: SecretStr(str(values[name])) for name in SECRETS if name in values}
    return values


def _check_extra(text: str) -> None:
    """Raise SettingsError where an entry is no name, and no expression that takes linear time."""
    # Imported here: the table of secrets is of no use to most who read settings.
    from ingest.redaction.extra import extra_kinds

    try:
        extra_kinds(text)
    except RedactionPatternError as error:
        raise SettingsError(error.args[0]) from error


def _number(name: str, value: Any) -> float:
    kind, least = NUMBERS[name]
    try:
        number = kind(value)
    except ValueError as error:
        raise SettingsError(
            Message("errors.variable-takes-number", variable=PREFIX + name.upper(), value=repr(value))
        ) from error
    if not least <= number < math.inf:
        raise SettingsError(
            Message(
                "errors.variable-takes-least", variable=PREFIX + name.upper(), value=repr(value), least=least
            )
        )
    return number
