"""Teams: their keys share work, limits and what was learnt, and nothing of it reaches another team."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from service.api import keys
from service.api.app import create_app
from service.app.triage_service import TriageService
from service.persistence.schema import KEYS
from service.schemas.errors import InvalidRequestError
from service.schemas.records import Scope
from tests.service.api.conftest import bearer, opened, settings_at
from tests.service.api.test_crashes import LOST
from tests.tables import each_row
from ui.cli import audit

# A row of a batch of two jobs.
JOBS = "".join(json.dumps({"name": name, "log": f"ValueError: {name}"}) + "\n" for name in "ab")
SCOPES: tuple[Scope, ...] = ("triage", "batch")
# Those whose keys have both.
FULL = ("ann", "bob", "eve", "solo")


@dataclass
class Served:
    """A server with keys: two of team rl, one of team nlp, one of nobody's; one of rl for triages alone."""

    client: TestClient
    service: TriageService
    tokens: Mapping[str, str]

    def ask(self, who: str, method: str, path: str, **sent: Any) -> httpx.Response:
        """Ask with a key."""
        more = sent.pop("headers", {})
        return self.client.request(method, path, headers=bearer(self.tokens[who]) | more, **sent)

    def triage(self, who: str, error: str = "TeamsError") -> dict[str, Any]:
        """Hand a log in and give the answer."""
        text = LOST.replace("ActorDiedError", error)
        answer = self.ask(who, "POST", "/v1/triage", json={"text": text, "language": "en"})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def batch(self, who: str) -> httpx.Response:
        """Hand two jobs in at once."""
        return self.ask(
            who, "POST", "/v1/batches", content=JOBS, headers={"content-type": "application/x-ndjson"}
        )


def _served(home: Path, **fields: Any) -> Iterator[Served]:
    settings = settings_at(home, **fields)
    with TriageService(settings) as service:
        tokens = {}
        for name, team in (("ann", "rl"), ("bob", "rl"), ("eve", "nlp"), ("solo", ""), ("tess", "rl")):
            scopes = SCOPES[:1] if name == "tess" else SCOPES
            record, tokens[name] = keys.make_key(name, scopes, datetime.now(UTC), team)
            service.store.keys.add(record)
        with opened(create_app(settings, service)) as client:
            yield Served(client, service, tokens)


@pytest.fixture(scope="module")
def teams(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve without a quota."""
    yield from _served(shutil.copytree(warm, tmp_path_factory.mktemp("teams") / "home"))


@pytest.fixture
def quota(warm: Path, tmp_path: Path) -> Iterator[Served]:
    """Serve with a quota of three jobs a day."""
    yield from _served(shutil.copytree(warm, tmp_path / "quota-home"), day_quota=3)


def test_that_a_team_sees_its_own_work_and_nobody_elses(teams: Served) -> None:
    """Triages, crashes and batches, in lists and by their ids."""
    triage = teams.triage("ann")
    batch = teams.batch("ann").json()
    paths = [
        f"/v1/triages/{triage['id']}",
        f"/v1/triages/{triage['id']}/excerpt",
        f"/v1/crashes/{triage['fingerprint']}",
        f"/v1/batches/{batch['id']}",
        f"/v1/batches/{batch['id']}/jobs",
    ]
    found = {who: {teams.ask(who, "GET", path).status_code for path in paths} for who in FULL}
    assert found == {"ann": {200}, "bob": {200}, "eve": {404}, "solo": {404}}
    for path in ("/v1/triages", "/v1/crashes", "/v1/batches"):
        counts = {who: len(teams.ask(who, "GET", path).json()["items"]) for who in FULL}
        assert counts["ann"] == counts["bob"] > 0, path
        assert counts["eve"] == counts["solo"] == 0, path


def test_that_what_one_team_confirmed_changes_no_answer_of_another(teams: Served) -> None:
    """It does of a colleague's: the same log, the same crash."""
    first = teams.triage("ann", "ConfirmedError")
    said = {"right": False, "cause": "node-lost"}
    assert teams.ask("bob", "POST", f"/v1/triages/{first['id']}/feedback", json=said).status_code == 201
    assert teams.triage("bob", "ConfirmedError")["cause"] == "node-lost"
    for other in ("eve", "solo"):
        answer = teams.triage(other, "ConfirmedError")
        assert (answer["verdict"], answer["confirmed"]) == ("unknown", None)


def test_that_a_key_whose_team_was_changed_in_the_database_is_not_taken(warm: Path, tmp_path: Path) -> None:
    """Who can write to the database, and not to the list beside it, gets no further by that."""
    for served in _served(shutil.copytree(warm, tmp_path / "changed-home")):
        with served.service.store.database.write() as connection:
            connection.execute(update(KEYS).where(KEYS.c.name == "eve").values(team="rl"))
        assert served.ask("ann", "GET", "/v1/triages").status_code == 200
        assert served.ask("eve", "GET", "/v1/triages").status_code == 401


def test_that_a_teams_quota_counts_all_its_keys_and_batches(quota: Served) -> None:
    """And no other team's."""
    quota.triage("ann")
    assert quota.batch("bob").status_code == 202
    refused = [quota.batch("ann"), quota.ask("bob", "POST", "/v1/triage", json={"text": "ValueError: x"})]
    for answer in refused:
        assert (answer.status_code, answer.json()["type"]) == (429, "urn:whycrash:error:quota")
        assert "3 were" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) > 0
    assert quota.triage("eve")["id"]
    # What was handed in counts, also where it is deleted.
    assert quota.ask("bob", "DELETE", "/v1/data").status_code == 204
    assert quota.batch("ann").status_code == 429


def test_that_a_deleted_teams_data_is_gone_and_others_stay(
    quota: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one of its keys; that it was done, and by whom, stands in the audit."""
    mine, theirs = quota.triage("ann"), quota.triage("eve")
    batch = quota.batch("bob").json()["id"]
    note = f"/v1/crashes/{mine['fingerprint']}"
    assert quota.ask("ann", "PUT", note, json={"state": "fixed"}).status_code == 200
    # Who may not touch the team's batches may not delete them so.
    assert quota.ask("tess", "DELETE", "/v1/data").status_code == 403
    assert quota.ask("bob", "DELETE", "/v1/data").status_code == 204
    for path in (f"/v1/triages/{mine['id']}", f"/v1/batches/{batch}", note):
        assert quota.ask("ann", "GET", path).status_code == 404, path
    assert not [*(quota.service.settings.home / "batches").glob(f"{batch}*")]
    assert quota.ask("eve", "GET", f"/v1/triages/{theirs['id']}").status_code == 200
    monkeypatch.setenv("WHYCRASH_HOME", str(quota.service.settings.home))
    assert audit.export("1h") == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines()]
    assert rows == sorted(rows, key=lambda row: row["at"])
    (row,) = (row for row in rows if row["action"] == "delete data")
    assert (row["target"], row["detail"]) == ("team:rl", "1 triages, 1 batches, 0 feedback, 1 notes, 0 files")
    bob = next(key for key in quota.service.store.keys.all() if key.name == "bob")
    assert row["actor"] == f"api:{bob.id}"
    assert audit.forget("team:nlp") == 0
    assert "team:nlp was deleted: 1 triages" in capsys.readouterr().out
    assert quota.ask("eve", "GET", f"/v1/triages/{theirs['id']}").status_code == 404


@each_row("team", ["RL", "a b", "-a", "x" * 64, "a/b", "团队"])
def test_that_a_teams_name_is_plain(team: str) -> None:
    with pytest.raises(InvalidRequestError, match="team's name"):
        keys.make_key("ci", ["triage"], datetime.now(UTC), team)
