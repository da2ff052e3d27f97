"""Single sign-on with a certified provider of OpenID Connect, node-oidc-provider, in a process of its own.

It is installed into a folder of the test's own, by its lock; where no registry of npm is reached, it is not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from service.api import oidc
from service.api.app import create_app
from service.app.triage_service import TriageService
from tests import npm
from tests.ports import free_port
from tests.service.api.conftest import bearer, opened, settings_at
from tests.service.api.test_crashes import LOST
from tests.service.api.test_oidc import AUDIENCE, GROUPS
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.long

MEMBERS = {"ann": ["rl-people"], "bob": ["rl-people"], "eve": ["nlp-people"], "nobody": ["everybody"]}
BACK = "http://127.0.0.1/signed-in"


class Provider:
    """A provider that runs, and those who get tokens of it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def of_program(self, name: str, resource: str = "urn:rsa") -> str:
        """Give the token that a program gets for its secret."""
        return self._token({"grant_type": "client_credentials", "resource": resource}, name)

    def of_person(self, name: str) -> str:
        """Sign somebody in by the provider's pages, and give the token that the page which sent them gets."""
        verifier = "v" * 64
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "client_id": "page",
            "response_type": "code",
            "redirect_uri": BACK,
            "scope": "openid triage",
            "resource": "urn:rsa",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        with httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE) as browser:
            answer = browser.get("/auth", params=asked)
            for form in ({"prompt": "login", "login": name, "password": "any"}, {"prompt": "consent"}):
                page = urljoin(self.url, answer.headers["location"])
                answer = browser.post(page, data=form)
                answer = browser.get(answer.headers["location"])
        code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
        given = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
        return self._token({**given, "code_verifier": verifier, "resource": "urn:rsa"}, "page")

    def _token(self, form: dict[str, str], client: str) -> str:
        answer = httpx.post(
            f"{self.url}/token", data=form, auth=(client, f"secret-of-{client}"), trust_env=False
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the provider by its lock; the test is skipped where it cannot be."""
    return npm.installed(Path(__file__).parent / "oidc_provider", tmp_path_factory.mktemp("provider"))


@contextmanager
def _running(folder: Path, port: int) -> Iterator[Provider]:
    command = ["node", "provider.mjs", str(port), AUDIENCE, json.dumps(MEMBERS)]
    with (folder / "said").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    try:
        until(lambda: b"ready" in (folder / "said").read_bytes() or process.poll() is not None, "it is ready")
        yield Provider(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


def _status(client: TestClient, token: str, path: str = "/v1/triages") -> int:
    return int(client.get(path, headers=bearer(token)).status_code)


def test_that_a_providers_tokens_let_its_people_and_programs_in(
    installed: Path, warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both algorithms, by their groups; after new keys only those that they sign, and none while it is
    away.
    """
    port = free_port()
    settings = settings_at(
        shutil.copytree(warm, tmp_path / "home"),
        oidc_issuer=f"http://127.0.0.1:{port}",
        oidc_audience=AUDIENCE,
        oidc_groups=GROUPS,
    )
    # What is not known is asked for at once, and what is known counts for no time.
    monkeypatch.setattr(oidc, "AGAIN", 0.0)
    with TriageService(settings) as service, opened(create_app(settings, service)) as client:
        with _running(installed, port) as provider:
            ann = provider.of_person("ann")
            made = client.post("/v1/triage", json={"text": LOST}, headers=bearer(ann))
            assert made.status_code == 200, made.text
            path = f"/v1/triages/{made.json()['id']}"
            assert _status(client, provider.of_program("bob", "urn:ec"), path) == 200
            assert _status(client, provider.of_program("bob"), path) == 200
            assert _status(client, provider.of_person("eve"), path) == 404
            assert _status(client, provider.of_person("nobody")) == 403
            assert _status(client, ann[:-6] + "AAAAAA") == 401
            assert {record.caller for record in service.store.triages.page()[0]} == {"team:rl"}
        with _running(installed, port) as provider:
            assert _status(client, provider.of_person("ann"), path) == 200
            assert _status(client, ann) == 401
            monkeypatch.setattr(oidc, "STALE", 0.0)
        assert _status(client, ann) == 503
