"""What users hold for secret is masked by every command, and by the server, wherever a text goes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ingest.redaction import extra
from service.api.app import create_app
from service.app.triage_service import TriageService
from tests.factories import traceback
from tests.service.api import conftest as api
from tests.service.api.test_batches import accepted, over
from tests.service.batches.jobs import home_at
from tests.ui.shell import EXPLAINED, MISUSE, whycrash

# Servers and processes of their own: `make test-all` runs them.
pytestmark = pytest.mark.long

EXTRA = r"crew badge, /\bACME-[0-9A-F]{8,40}\b/"
SECRETS = ("slate-tide", "ACME-00FFAA1122")
LOG = (
    f"step:1 - loss:0.1 crew_badge={SECRETS[0]}\n"
    + traceback(f"ValueError: no reel {SECRETS[1]} for crew_badge: {SECRETS[0]}")
    + "\n"
)


def shown(text: str) -> list[str]:
    """Give the secrets that a text shows."""
    return [secret for secret in SECRETS if secret in text]


def kept(home: Path) -> str:
    """Give what lies below a home, and all cells of its databases."""
    told = []
    for path in (each for each in home.rglob("*") if each.is_file() and not each.is_symlink()):
        raw = path.read_bytes()
        told.append(raw.decode(errors="replace"))
        if raw.startswith(b"SQLite format 3"):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
                tables = database.execute("select name from sqlite_master where type = 'table'").fetchall()
                rows = (row for (name,) in tables for row in database.execute(f'select * from "{name}"'))
                told += [str(cell) for row in rows for cell in row]
            database.close()
    return "\n".join(told)


@pytest.fixture
def home(tmp_path: Path, warm: Path) -> Path:
    """A home that is ready."""
    return home_at(tmp_path / "home", warm)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A job's log."""
    path = tmp_path / f"{SECRETS[1]}.log"
    path.write_text(LOG)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "{log}"),
        ("explain", "{log}", "--json"),
        ("explain", "{log}", "--full"),
        ("explain", "{log}", "--show-prompt"),
        pytest.param(
            ("run", "--out", "{out}/a.json", "--", "bash", "-c", "cat '{log}'; exit 1"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            ("batch", "{logs}", "--workers", "1", "--out", "{out}/r.jsonl", "--html", "{out}/r.html"),
            marks=pytest.mark.long,
        ),
        pytest.param(("ingest", "--logs", "{logs}"), marks=pytest.mark.long),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["variable", "file"])
def test_every_command_masks_what_its_user_holds_for_secret(
    words: tuple[str, ...], place: str, home: Path, log: Path, tmp_path: Path
) -> None:
    """Set by the variable or in the user's own file; neither shown, nor written, nor kept."""
    (out := tmp_path / "out").mkdir()
    (logs := tmp_path / "logs" / "job").mkdir(parents=True)
    (logs / "train.log").write_text(LOG)
    if words[0] == "ingest":
        (home / "index").unlink()
    filled = [each.format(log=log, out=out, logs=tmp_path / "logs") for each in words]
    if place == "variable":
        ended = whycrash(home, *filled, WHYCRASH_REDACT_EXTRA=EXTRA)
    else:
        (own := home / ".config" / "whycrash").mkdir(parents=True)
        (own / "whycrash.toml").write_text(f"redact_extra = '{EXTRA}'\n")
        (own / "whycrash.toml").chmod(0o600)
        ended = whycrash(home, *filled)
    # A job's own output goes through `run` as it is.
    told = (ended.out.replace(LOG, "") if words[0] == "run" else ended.out) + ended.err
    assert shown(told) == []
    assert shown("".join(path.read_text() for path in out.iterdir())) == []
    assert shown(kept(home)) == []
    # Were nothing told, nothing would be shown either.
    if words[0] != "ingest":
        assert "[redacted:extra" in told + "".join(path.read_text() for path in out.iterdir()), ended


def test_a_pattern_that_cannot_be_used_is_told(home: Path, log: Path) -> None:
    """And nothing is read without it."""
    ended = whycrash(home, "explain", log, WHYCRASH_REDACT_EXTRA="/(a)\\1/", LANG="zh_CN.UTF-8")
    assert (ended.code, ended.out) == (MISUSE, "")
    assert "WHYCRASH_REDACT_EXTRA：`(a)\\1` 无法由 Hyperscan" in ended.err
    assert whycrash(home, "explain", log, WHYCRASH_REDACT_EXTRA="").code == EXPLAINED


@pytest.fixture
def server(tmp_path: Path, warm: Path) -> Iterator[TestClient]:
    """The API of a server whose user set patterns."""
    settings = api.settings_at(home_at(tmp_path / "served", warm), redact_extra=EXTRA)
    try:
        with TriageService(settings) as service, api.opened(create_app(settings, service)) as client:
            yield client
    finally:
        extra.use_extra("")


def test_a_server_masks_what_its_user_holds_for_secret(
    server: TestClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In answers, excerpts, messages, batches, names, its log and its database."""
    told = []
    body = {"text": LOG, "name": SECRETS[1], "configs": [{"name": "run.sh", "text": LOG}]}
    answer = server.post("/v1/triage", json=body)
    told.append(answer.text)
    path = f"/v1/triages/{answer.json()['id']}"
    told.append(server.post(f"{path}/messages", json={"text": f"Is crew_badge={SECRETS[0]} wrong?"}).text)
    told.append(server.post(f"{path}/feedback", json={"right": False, "comment": LOG}).text)
    told += [server.get(path + part).text for part in ("", "/messages", "/excerpt")]
    told.append(server.get(f"/v1/triages/{SECRETS[1]}").text)
    lines = json.dumps({"name": SECRETS[1], "log": LOG, "config": LOG}) + "\n"
    batch = accepted(server, content=lines, headers={"content-type": "application/x-ndjson"})
    over(server, batch)
    told += [
        server.get(f"/v1/batches/{batch.id}{part}").text
        for part in ("", "/jobs", "/results", "/results?format=csv", "/summary?format=html")
    ]
    assert answer.status_code == 200, answer.text
    assert "[redacted:extra]" in answer.text
    assert [shown(text) for text in told] == [[] for _ in told]
    assert shown(kept(tmp_path / "served")) == []
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("httpx")]
    assert shown("\n".join(ours)) == []
