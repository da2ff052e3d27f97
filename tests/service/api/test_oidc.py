"""Single sign-on, with an issuer of the tests' own that signs, changes its keys, and goes away."""

from __future__ import annotations

import asyncio
import hmac
import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from service.api import keys, oidc
from service.api.app import create_app
from service.api.oidc import TokenVerifier, groups_of
from service.app.triage_service import TriageService
from service.schemas.errors import (
    ForbiddenError,
    RequestError,
    SettingsError,
    UnauthorizedError,
    UnreachableError,
)
from service.settings import Settings
from tests.loopback import http_server
from tests.service.api.conftest import bearer, opened, settings_at
from tests.service.api.test_crashes import LOST
from tests.tables import each_row

AUDIENCE = "whycrash"
GROUPS = "rl-people=triage+batch@rl, nlp-people=triage@nlp, ops=admin"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class Issuer:
    """An issuer on loopback: `keys` are published, `others` sign all the same."""

    def __init__(self) -> None:
        self.keys: dict[str, Key] = {
            "r1": rsa.generate_private_key(public_exponent=65537, key_size=2048),
            "e1": ec.generate_private_key(ec.SECP256R1()),
        }
        self.url, self.told_issuer = "", ""
        self.is_away = False
        self.asked = 0
        # It answers once this is set.
        self.goes_on = threading.Event()
        self.goes_on.set()

    def published(self) -> list[dict[str, Any]]:
        """Give the public halves."""
        rows = []
        for kid, key in self.keys.items():
            is_rsa = isinstance(key, rsa.RSAPrivateKey)
            # Both write JSON; only the kind of key tells which takes it.
            text = RSAAlgorithm.to_jwk(key.public_key()) if is_rsa else ECAlgorithm.to_jwk(key.public_key())  # type: ignore[arg-type]
            rows.append({**json.loads(text), "kid": kid, "use": "sig"})
        return rows

    def answer(self, path: str) -> dict[str, Any]:
        """Answer a request."""
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.told_issuer or self.url, "jwks_uri": f"{self.url}/keys"}
        self.asked += 1
        return {"keys": self.published()}

    def token(self, kid: str = "r1", key: Any = None, alg: str = "", **claims: Any) -> str:
        """Sign a token for somebody of rl-people; a claim of None is left out."""
        now = int(time.time())
        made = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ann",
            "iat": now,
            "exp": now + 300,
            "groups": ["rl-people", "everybody"],
            **claims,
        }
        kept = {name: value for name, value in made.items() if value is not None}
        signs = key or self.keys[kid]
        algorithm = alg or ("RS256" if isinstance(signs, rsa.RSAPrivateKey) else "ES256")
        return jwt.encode(kept, signs, algorithm, headers={"kid": kid})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer, or be away."""
            made.goes_on.wait()
            if made.is_away:
                self.send_error(503)
                return
            body = json.dumps(made.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_said: object) -> None:
            """Print nothing."""

    with http_server(Handler) as made.url:
        yield made
        made.goes_on.set()


def settings_of(issuer: Issuer, **fields: Any) -> dict[str, Any]:
    """Give the settings of a server that takes the issuer's tokens."""
    return {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "oidc_groups": GROUPS, **fields}


class Door:
    """A verifier with a clock that is set by hand."""

    def __init__(self, issuer: Issuer, **fields: Any) -> None:
        self.now = 0.0
        self._verifier = TokenVerifier(Settings(**settings_of(issuer, **fields)), lambda: self.now)
        self._loop = asyncio.new_event_loop()

    def ask(self, token: str) -> Any:
        """Give who a token is of, or the error that refuses it."""
        try:
            return self._loop.run_until_complete(self._verifier.principal(token))
        except RequestError as error:
            return error

    def ask_beside(self, token: str, other: str) -> Any:
        """Give who a token is of while another one waits for the issuer."""

        async def both() -> Any:
            waiting = asyncio.create_task(self._verifier.principal(other))
            await asyncio.sleep(0)
            found = await self._verifier.principal(token)
            waiting.cancel()
            return found

        return self._loop.run_until_complete(both())

    def close(self) -> None:
        """Close the loop."""
        self._loop.close()


@pytest.fixture
def door(issuer: Issuer) -> Iterator[Door]:
    made = Door(issuer)
    yield made
    made.close()


@each_row("kid", ["r1", "e1"])
def test_that_a_token_of_either_algorithm_tells_who_asks(kid: str, issuer: Issuer, door: Door) -> None:
    """Groups become scopes and a team."""
    found = door.ask(issuer.token(kid))
    assert (found.caller.name, found.caller.team, found.scopes) == ("sso:ann", "rl", ("triage", "batch"))


NOW = int(time.time())
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@each_row(
    ("claims", "kind"),
    [
        ({"aud": "another"}, UnauthorizedError),
        ({"aud": None}, UnauthorizedError),
        ({"iss": "https://evil.example"}, UnauthorizedError),
        ({"exp": NOW - 3600}, UnauthorizedError),
        ({"exp": None}, UnauthorizedError),
        ({"nbf": NOW + 10 * 3600}, UnauthorizedError),
        ({"iat": NOW + 10 * 3600}, UnauthorizedError),
        ({"sub": None}, UnauthorizedError),
        ({"kid": "r1", "key": OTHER}, UnauthorizedError),
        ({"groups": ["everybody"]}, ForbiddenError),
        ({"groups": None}, ForbiddenError),
        ({"groups": {"rl-people": True}}, ForbiddenError),
    ],
)
def test_that_a_wrong_token_is_refused(
    claims: Mapping[str, Any], kind: type[RequestError], issuer: Issuer, door: Door
) -> None:
    assert type(door.ask(issuer.token(**claims))) is kind


def test_that_no_algorithm_but_that_of_the_key_is_taken(issuer: Issuer, door: Door) -> None:
    """Neither none, nor a shared secret that is the public key, nor a key of the other kind or unknown."""
    public = issuer.keys["r1"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    now = int(time.time())
    claims = {
        "iss": issuer.url,
        "aud": AUDIENCE,
        "sub": "ann",
        "iat": now,
        "exp": now + 300,
        "groups": ["ops"],
    }
    unsigned = jwt.encode(claims, None, "none", headers={"kid": "r1"})
    # By hand: the package itself refuses to sign so.
    head, _, rest = jwt.encode(claims, "x" * 64, "HS256", headers={"kid": "r1"}).partition(".")
    body = rest.partition(".")[0]
    mac = jwt.utils.base64url_encode(hmac.digest(pem, f"{head}.{body}".encode(), "sha256")).decode()
    tokens = [
        unsigned,
        f"{head}.{body}.{mac}",
        issuer.token("e1", key=issuer.keys["r1"]),
        issuer.token("r1", key=issuer.keys["e1"]),
        issuer.token("r1", alg="RS512"),
        issuer.token("none-such", key=OTHER),
        issuer.token() + "x" * (oidc.LONGEST_TOKEN + 1),
        "eyJ.x.y",
    ]
    assert [type(door.ask(token)) for token in tokens] == [UnauthorizedError] * len(tokens)


def test_that_keys_that_were_changed_are_asked_for_and_not_for_each_wrong_token(
    issuer: Issuer, door: Door
) -> None:
    """A key that was taken back counts no more once the keys are asked for again."""
    old = issuer.token("r1")
    assert door.ask(old).caller.name == "sso:ann"
    issuer.keys = {"r2": rsa.generate_private_key(public_exponent=65537, key_size=2048)}
    for _ in range(20):
        assert isinstance(door.ask(issuer.token("r9", key=OTHER)), UnauthorizedError)
    assert issuer.asked == 1
    door.now += oidc.AGAIN
    assert door.ask(issuer.token("r2")).caller.name == "sso:ann"
    assert (issuer.asked, type(door.ask(old))) == (2, UnauthorizedError)


def test_that_an_issuer_that_is_away_lets_nobody_in_beyond_its_keys_age(issuer: Issuer, door: Door) -> None:
    """Until then its keys count; when it is back, tokens do again."""
    assert door.ask(issuer.token()).caller.name == "sso:ann"
    issuer.is_away = True
    door.now = oidc.STALE - 1
    assert door.ask(issuer.token()).caller.name == "sso:ann"
    door.now = oidc.STALE
    assert isinstance(door.ask(issuer.token()), UnreachableError)
    issuer.is_away = False
    door.now += oidc.AGAIN
    assert door.ask(issuer.token()).caller.name == "sso:ann"


def test_that_a_slow_issuer_holds_up_nobody_whose_key_is_known(issuer: Issuer, door: Door) -> None:
    """Anybody can send a token with a key that nobody knows."""
    token = issuer.token()
    assert door.ask(token).caller.name == "sso:ann"
    issuer.goes_on.clear()
    door.now += oidc.AGAIN
    assert door.ask_beside(token, issuer.token("r9", key=OTHER)).caller.name == "sso:ann"
    issuer.goes_on.set()


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
def test_that_a_short_key_is_none(issuer: Issuer, door: Door) -> None:
    """RFC 7518 asks for 2048 bits."""
    issuer.keys["short"] = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505
    assert isinstance(door.ask(issuer.token("short")), UnauthorizedError)
    assert door.ask(issuer.token()).caller.name == "sso:ann"


def test_that_an_issuer_that_calls_itself_otherwise_is_not_believed(issuer: Issuer, door: Door) -> None:
    issuer.told_issuer = "https://evil.example"
    assert isinstance(door.ask(issuer.token()), UnreachableError)


@each_row(
    "fields",
    [
        {"oidc_audience": ""},
        {"oidc_groups": ""},
        {"oidc_groups": "a=root"},
        {"oidc_groups": "a"},
        {"oidc_groups": "a=triage@A B"},
        {"oidc_issuer": "http://issuer.example"},
        {"oidc_issuer": "https://user@issuer.example"},
    ],
)
def test_that_settings_that_leave_it_open_are_refused(fields: dict[str, str], issuer: Issuer) -> None:
    with pytest.raises(SettingsError):
        TokenVerifier(Settings(**settings_of(issuer, **fields)))


def test_that_groups_may_stand_deeper_and_several_add_up(issuer: Issuer) -> None:
    """The team is that of the first of the settings' groups which has one."""
    door = Door(issuer, oidc_claim="realm_access.roles")
    roles = {"roles": ["ops", "nlp-people"]}
    found = door.ask(issuer.token(groups=None, realm_access=roles, sub="a b/团"))
    door.close()
    assert (found.caller.team, found.scopes) == ("nlp", ("triage", "admin"))
    assert len(found.caller.name) == len("sso:") + 32
    assert groups_of(" a=admin ,b=batch@x")[1].team == "x"


@each_row(
    ("is_away", "groups", "status"),
    [(True, ["rl-people"], 503), (False, ["everybody"], 403), (False, None, 403)],
)
def test_that_tokens_that_let_nobody_in_are_counted(
    is_away: bool, groups: list[str] | None, status: int, issuer: Issuer, warm: Path, tmp_path: Path
) -> None:
    """By their address, also where the issuer is not there to tell; a key from there goes on working."""
    issuer.is_away = is_away
    settings = settings_at(shutil.copytree(warm, tmp_path / "home"), **settings_of(issuer, rate_limit=3))
    with TriageService(settings) as service, opened(create_app(settings, service)) as client:
        record, key = keys.make_key("ci", ["triage"], datetime.now(UTC))
        service.store.keys.add(record)
        token = issuer.token(groups=groups)
        answers = [client.get("/v1/triages", headers=bearer(token)) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [*[status] * 3, 429, 429]
        assert int(answers[-1].headers["retry-after"]) > 0
        assert client.get("/v1/triages", headers=bearer(key)).status_code == 200


def test_that_a_server_takes_tokens_beside_keys_and_lets_nobody_else_in(
    issuer: Issuer, warm: Path, tmp_path: Path
) -> None:
    """Teams hold for persons as for keys; this machine itself needs a token too."""
    settings = settings_at(shutil.copytree(warm, tmp_path / "home"), **settings_of(issuer))
    ann, eve = issuer.token(), issuer.token(sub="eve", groups=["nlp-people"])
    with TriageService(settings) as service, opened(create_app(settings, service)) as client:
        assert client.get("/v1/triages").status_code == 401
        made = client.post("/v1/triage", json={"text": LOST}, headers=bearer(ann))
        assert made.status_code == 200, made.text
        path = f"/v1/triages/{made.json()['id']}"
        bob = issuer.token(sub="bob")
        assert [client.get(path, headers=bearer(who)).status_code for who in (bob, eve)] == [200, 404]
        batch = client.post("/v1/batches", content=b"{}", headers=bearer(eve))
        assert batch.status_code == 403
        assert client.get("/v1/triages", headers=bearer(ann[:-4])).status_code == 401
        issuer.is_away = True
        assert client.get(path, headers=bearer(ann)).status_code == 200
