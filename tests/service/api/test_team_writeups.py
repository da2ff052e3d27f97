"""A team's own write-ups and past crashes over HTTP: in its answers, batches and searches, in no other's."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ingest import pipeline
from ingest.embedder import HashEmbedder
from ingest.index import current
from service.api import keys
from service.api.app import create_app
from service.app.triage_service import TriageService
from service.pipeline.triage import Triage
from tests.factories import OOM, silent, traceback
from tests.service.api.conftest import bearer, opened, settings_at
from tests.waiting import PATIENCE

LOG = traceback(OOM, "quokka_step")
FIX = "set the quokka switch to off"
# A write-up of it: found by the failing line's own words.
NOTE = f"# Quokka memory\n{OOM} We cured it with a wombat.\n"
SCOPES = ("triage", "batch")


@dataclass
class TwoTeams:
    """A server whose team rl has a write-up and a past crash, and a key of rl, of nlp, and of no team."""

    client: TestClient
    service: TriageService
    tokens: dict[str, str]

    def ask(self, who: str, method: str, path: str, **sent: Any) -> Any:
        """Ask with a key, and give the answer's JSON."""
        answer = self.client.request(method, path, headers=bearer(self.tokens[who]), **sent)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def search(self, who: str) -> str:
        """Give all that a search tells."""
        return repr(self.ask(who, "GET", "/v1/search", params={"q": f"quokka wombat {OOM}", "count": 50}))

    def triage(self, who: str) -> str:
        """Hand the log in, and give all that its answer tells, follow-ups included."""
        made = self.ask(who, "POST", "/v1/triage", json={"text": LOG, "language": "en"})
        prompt = self.client.get(f"/v1/triages/{made['id']}/prompt", headers=bearer(self.tokens[who]))
        told = self.ask(who, "GET", f"/v1/triages/{made['id']}", params={"lang": "zh"})
        return repr((made, prompt.text, told))

    def batch(self, who: str) -> str:
        """Hand the log in as a batch of one, and give all that its results tell."""
        row = json.dumps({"name": "a", "log": LOG}) + "\n"
        handed = self.client.post(
            "/v1/batches",
            content=row,
            headers=bearer(self.tokens[who]) | {"content-type": "application/x-ndjson"},
        )
        made = handed.json()
        deadline = time.monotonic() + PATIENCE
        while self.ask(who, "GET", f"/v1/batches/{made['id']}")["state"] == "running":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        path = f"/v1/batches/{made['id']}/results"
        answer = self.client.get(path, headers=bearer(self.tokens[who]))
        assert answer.is_success, answer.text
        return answer.text


@pytest.fixture(scope="module")
def teams(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoTeams]:
    home = shutil.copytree(warm, tmp_path_factory.mktemp("writeups") / "home")
    settings = settings_at(home)
    own = tmp_path_factory.mktemp("own")
    (own / "quokka.md").write_text(NOTE)
    (own / "quokka.log").write_text(LOG)
    (own / "quokka.label.yaml").write_text(f"cause: gpu-oom-training\nfix: {FIX}\njob: quokka-night\n")
    with TriageService(settings) as service:
        made = {
            team: keys.make_key(f"of-{team}", SCOPES, datetime.now(UTC), team) for team in ("rl", "nlp", "")
        }
        for record, _ in made.values():
            service.store.keys.add(record)
        tokens = {team or "solo": token for team, (_, token) in made.items()}
        with opened(create_app(settings, service)) as client:
            # Taken in while the server runs, which finds the new index by itself.
            pipeline.ingest(
                home,
                HashEmbedder(),
                silent,
                notes=[own / "quokka.md"],
                logs=[own / "quokka.log"],
                reader=Triage(settings).reader,
                team="rl",
            )
            yield TwoTeams(client, service, tokens)


@pytest.mark.parametrize("way", [TwoTeams.search, TwoTeams.triage, TwoTeams.batch])
def test_that_a_teams_write_ups_reach_its_answers_and_no_others(
    teams: TwoTeams, way: Callable[[TwoTeams, str], str]
) -> None:
    """Who asks second is as the first: nothing of one team's answer is remembered for another's."""
    for who in ("rl", "nlp", "solo", "rl"):
        told = way(teams, who)
        assert ("quokka-night" in told, "Quokka memory" in told) == ((who == "rl",) * 2), (who, told)
        assert (FIX in told) == (who == "rl"), who


def test_that_a_team_that_deletes_its_data_deletes_its_write_ups(teams: TwoTeams) -> None:
    """Of another team they stay; this stands last, as it takes them away."""
    teams.ask("nlp", "DELETE", "/v1/data")
    assert "Quokka memory" in teams.search("rl")
    teams.ask("rl", "DELETE", "/v1/data")
    assert "Quokka memory" not in teams.search("rl")
    left = current(teams.service.settings.home)
    assert left is not None
    assert "rl" not in {one.team for one in left.documents}
    assert [row.detail for row in teams.service.store.audit.entries() if row.target == "team:rl"][
        -1
    ].endswith("2 files")
