"""Planted secrets, put into every field of every request: none is stored, logged or sent back."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ingest.redaction.redactor import Redactor
from tests.ingest.redaction import planted
from tests.ingest.redaction.planted import SHOWN, Planted
from tests.service.api.test_batches import accepted, over
from tests.service.api.test_triages import LOG

Telling = tuple[TestClient, list[str]]


@cache
def _runs() -> dict[str, Planted]:
    """Give each run of a secret's characters that nobody may see."""
    return {
        piece[place : place + SHOWN]: item
        for item in planted.secrets()
        for piece in item.secret.split("\n")
        for place in range(len(piece) - SHOWN + 1)
    }


def seen(text: str) -> list[str]:
    """Give the kinds and forms of secrets that a text shows a part of."""
    runs = _runs()
    found = {
        runs[text[place : place + SHOWN]]
        for place in range(len(text) - SHOWN + 1)
        if text[place : place + SHOWN] in runs
    }
    return sorted(f"{item.kind}/{item.form}" for item in found)


def chunks(most: int) -> Iterator[str]:
    """Give all planted texts, so many characters at once, with blank lines between them."""
    held: list[str] = []
    for item in planted.secrets():
        if len(item.text) > most:
            continue
        if sum(map(len, held)) + len(item.text) + 2 * len(held) > most:
            yield "\n\n".join(held)
            held = []
        held.append(item.text)
    yield "\n\n".join(held)


EVERYTHING = "\n\n".join(item.text for item in planted.secrets())


def kept(home: Path) -> str:
    """Give all text of the database, and all files of batches."""
    told: list[str] = []
    with sqlite3.connect(f"file:{home / 'whycrash.db'}?mode=ro", uri=True) as database:
        tables = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            told += [str(cell) for row in database.execute(f"select * from {table}") for cell in row]
    database.close()
    told += [path.read_text(errors="replace") for path in (home / "batches").rglob("*") if path.is_file()]
    return "\n".join(told)


@pytest.fixture
def telling(client: TestClient, caplog: pytest.LogCaptureFixture) -> Telling:
    """The API, and what it answers."""
    caplog.set_level(logging.DEBUG)
    return client, []


def _asked(telling: Telling, method: str, path: str, **sent: Any) -> dict[str, Any]:
    client, told = telling
    answer = client.request(method, path, **sent)
    told.append(answer.text + "\n".join(f"{name}: {value}" for name, value in answer.headers.items()))
    assert answer.status_code < 500, answer.text
    return answer.json() if answer.headers.get("content-type", "").startswith("application/json") else {}


def _ours(caplog: pytest.LogCaptureFixture) -> str:
    """Give what the server logged; the client in the same process logs its own requests."""
    return "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("httpx"))


def test_that_the_search_finds_what_is_not_masked() -> None:
    """The test's own eyes: an unmasked text is seen."""
    assert len(seen(EVERYTHING)) > 500
    assert seen(LOG) == []


@pytest.mark.long
def test_that_no_secret_of_a_triage_is_kept_told_or_sent_back(
    telling: Telling, api_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log, its name, configurations, telemetry, questions, feedback, paths, queries, headers and forms
    of errors.
    """
    found = _asked(
        telling,
        "POST",
        "/v1/triage",
        json={"text": f"{EVERYTHING}\n{LOG}", "configs": [{"name": "run.sh", "text": EVERYTHING}]},
    )
    files = [
        ("log", ("rank0.log", f"{LOG}\n{EVERYTHING}")),
        ("log", ("rank1.log", EVERYTHING)),
        ("config", ("a.yaml", EVERYTHING)),
    ]
    _asked(telling, "POST", "/v1/triage", files=files)
    _asked(telling, "POST", "/v1/triage?stream=true", json={"text": f"{EVERYTHING}\n{LOG}"})
    path = f"/v1/triages/{found['id']}"
    for text in chunks(7900):
        _asked(telling, "POST", f"{path}/messages", json={"text": text})
    for text in chunks(1900):
        _asked(telling, "POST", f"{path}/feedback", json={"right": False, "fix": text, "comment": text})
    for part in ("", "/messages", "/excerpt"):
        _asked(telling, "GET", path + part)
    _asked(telling, "GET", "/v1/triages")
    told = "\n".join(telling[1])
    assert seen(told) == []
    assert seen(kept(api_home)) == []
    assert seen(_ours(caplog)) == []


@pytest.mark.long
def test_that_no_secret_in_a_name_or_a_wrong_request_is_kept_or_told(
    telling: Telling, api_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One of each kind, as the name of a log, a file, a field, a path, a query, a key."""
    for item in {
        item.kind: item for item in planted.secrets() if item.form == "whole" and len(item.text) < 250
    }.values():
        text = item.text
        _asked(telling, "POST", "/v1/triage", json={"text": LOG, "name": text})
        _asked(telling, "POST", "/v1/triage", files=[("log", (text, LOG)), ("config", (text, "a=1"))])
        _asked(telling, "POST", "/v1/triage", json={"text": LOG, text: 1})
        _asked(telling, "POST", "/v1/triage", json={"text": LOG, "language": text})
        _asked(telling, "POST", "/v1/triage", files=[(text, ("a.log", LOG))])
        _asked(telling, "GET", "/v1/triages", params={"after": text, "q": text})
        _asked(telling, "GET", "/v1/search", params={"q": text})
        # A bare word in a path is not to be known for a secret; one that is known by its form is not told.
        if "/" not in item.secret and not seen(Redactor().clean(item.secret)):
            _asked(telling, "GET", f"/v1/triages/{item.secret}")
            _asked(telling, "GET", f"/nothing/{item.secret}")
        _asked(telling, "POST", "/v1/batches", json={"source": "folder", "where": text, "name": text})
        _asked(
            telling,
            "GET",
            "/v1/causes",
            headers={"x-note": "".join(char for char in text if " " <= char <= "~"), "idempotency-key": "a"},
        )
    # A page's link repeats the query that the client itself sent; nothing of it is kept.
    told = "\n".join(row for row in "\n".join(telling[1]).split("\n") if not row.startswith("link: "))
    assert seen(told) == []
    assert seen(kept(api_home)) == []
    assert seen(_ours(caplog)) == []


@pytest.mark.long
def test_that_no_secret_of_a_batch_is_kept_or_told(
    telling: Telling, api_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a log, a name, a configuration; while it runs, and after."""
    client, told = telling
    texts = [*chunks(100_000)]
    lines = "".join(
        json.dumps(
            {"name": planted.secrets()[7 * number].text[:900], "log": f"{text}\n{LOG}", "config": text}
        )
        + "\n"
        for number, text in enumerate(texts)
    )
    batch = accepted(
        client,
        content=lines,
        headers={"content-type": "application/x-ndjson"},
        params={"name": planted.secrets()[3].text[:300]},
    )
    assert seen(kept(api_home)) == []
    over(client, batch)
    for part in ("", "/jobs", "/results", "/results?format=csv", "/summary", "/summary?format=html"):
        told.append(client.get(f"/v1/batches/{batch.id}{part}").text)
    assert seen("\n".join(told)) == []
    assert seen(kept(api_home)) == []
    assert seen(_ours(caplog)) == []
