"""Who gets in, what they may do, whose triages they see, how often they may ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from service.api import access, keys, serving
from service.api.app import create_app
from service.app.triage_service import TriageService
from service.schemas.errors import SettingsError
from service.settings import Settings
from tests.service.api.conftest import Open, bearer, opened, settings_at
from tests.service.api.serving import wait_for
from tests.service.api.test_triages import LOG
from tests.tables import each_row

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - nothing is bound here
Guarded = tuple[TestClient, Mapping[str, str], TriageService]

PATHS = [
    ("POST", "/v1/triage"),
    ("GET", "/v1/triages"),
    ("GET", "/v1/triages/01ABC"),
    ("DELETE", "/v1/triages/01ABC"),
    ("GET", "/v1/triages/01ABC/excerpt"),
    ("GET", "/v1/triages/01ABC/messages"),
    ("POST", "/v1/triages/01ABC/messages"),
    ("POST", "/v1/triages/01ABC/feedback"),
    ("GET", "/v1/crashes"),
    ("GET", "/v1/crashes/0a1b"),
    ("PUT", "/v1/crashes/0a1b"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/batches"),
    ("GET", "/v1/batches/01ABC"),
    ("GET", "/v1/batches/01ABC/jobs"),
    ("GET", "/v1/batches/01ABC/results"),
    ("GET", "/v1/batches/01ABC/summary"),
    ("POST", "/v1/batches/01ABC/cancel"),
    ("DELETE", "/v1/batches/01ABC"),
    ("DELETE", "/v1/data"),
    ("GET", "/v1/causes"),
    ("GET", "/v1/cases"),
    ("GET", "/v1/cases/ray/disk-full"),
    ("GET", "/v1/search?q=a"),
    ("GET", "/v1/schemas/diagnosis"),
    ("GET", "/metrics"),
    ("GET", "/v1/status"),
]


def test_that_every_route_is_in_the_table_above(client: TestClient) -> None:
    """A route that is new and forgotten here would be tested by nobody."""
    told = {
        (method.upper(), path)
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    open_to_all = {("GET", "/healthz"), ("GET", "/readyz")}
    assert len(told - open_to_all) == len(PATHS)


@each_row(("method", "path"), PATHS)
def test_that_without_a_key_nothing_is_given_where_there_are_keys(
    guarded: Guarded, method: str, path: str
) -> None:
    """Also to this machine; and nothing is said of what is there."""
    client, _, _ = guarded
    answer = client.request(method, path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


@each_row("path", ["/healthz", "/readyz"])
def test_that_health_needs_no_key(guarded: Guarded, path: str) -> None:
    """A load balancer has none."""
    wait_for(lambda: guarded[0].get(path).status_code == 200)


@each_row(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer whycrash_000000000000_" + "A" * 43,
        "Basic !!!",
        "Basic dXNlcjpwYXNz",
        "Token {}",
        "{}",
        "Bearer {}x",
        "Bearer \u00e9",
    ],
)
def test_that_a_bad_key_is_refused(guarded: Guarded, authorization: str) -> None:
    """Whatever is wrong with it, the answer is the same."""
    client, tokens, _ = guarded
    sent = authorization.format(tokens["admin"]).encode("latin-1")
    assert client.get("/v1/causes", headers={b"authorization": sent}).status_code == 401


@each_row(
    ("name", "method", "path", "status"),
    [
        ("triage", "GET", "/v1/causes", 200),
        ("triage", "GET", "/v1/batches", 403),
        ("batch", "GET", "/v1/batches", 200),
        ("batch", "GET", "/v1/triages", 403),
        ("batch", "POST", "/v1/triage", 403),
        ("admin", "GET", "/v1/batches", 200),
        ("admin", "GET", "/v1/triages", 200),
        ("triage", "POST", "/v1/batches", 403),
        ("triage", "GET", "/metrics", 200),
    ],
)
def test_that_a_key_may_do_what_its_scope_says(
    guarded: Guarded, name: str, method: str, path: str, status: int
) -> None:
    """And nothing else; admin may do all."""
    client, tokens, _ = guarded
    assert client.request(method, path, headers=bearer(tokens[name])).status_code == status


def test_that_a_triage_is_seen_by_its_own_key_and_by_admin(guarded: Guarded) -> None:
    """To another key, it is not there."""
    client, tokens, _ = guarded
    found = client.post("/v1/triage", json={"text": LOG}, headers=bearer(tokens["triage"])).json()["id"]
    path = f"/v1/triages/{found}"
    assert client.get(path, headers=bearer(tokens["other"])).status_code == 404
    assert client.delete(path, headers=bearer(tokens["other"])).status_code == 404
    assert (
        client.post(f"{path}/messages", json={"text": "why?"}, headers=bearer(tokens["other"])).status_code
        == 404
    )
    assert client.get("/v1/triages", headers=bearer(tokens["other"])).json()["items"] == []
    assert client.get(path, headers=bearer(tokens["admin"])).status_code == 200
    assert [
        item["id"] for item in client.get("/v1/triages", headers=bearer(tokens["triage"])).json()["items"]
    ] == [found]


def test_that_the_servers_own_machine_is_read_for_admin_alone(guarded: Guarded) -> None:
    """Live telemetry tells what runs there."""
    client, tokens, _ = guarded
    answer = client.post(
        "/v1/triage", json={"text": LOG, "telemetry": "live"}, headers=bearer(tokens["triage"])
    )
    assert answer.status_code == 403


def test_that_a_revoked_key_ends_within_a_second_or_two(guarded: Guarded) -> None:
    """A server that runs learns of it by itself."""
    client, _, triage_service = guarded
    assert access.FRESH <= 2  # what is waited for below comes with the first request behind it
    record, token = keys.make_key("gone", ["triage"], datetime.now(UTC))
    triage_service.store.keys.add(record)
    wait_for(lambda: client.get("/v1/causes", headers=bearer(token)).status_code == 200)
    triage_service.store.keys.revoke(record.id, datetime.now(UTC))
    wait_for(lambda: client.get("/v1/causes", headers=bearer(token)).status_code == 401)
    assert triage_service.store.keys.get(record.id).last_used is not None


def test_that_a_page_beside_the_api_asks_a_browser_for_a_key(guarded: Guarded) -> None:
    """The key is the password; any name will do."""
    client, tokens, _ = guarded
    asked = client.get("/some-page")
    assert (asked.status_code, asked.headers["www-authenticate"]) == (401, 'Basic realm="whycrash"')
    assert client.get("/some-page", auth=("anybody", tokens["triage"])).status_code == 404
    assert client.post("/slack/events").status_code == 404


def test_that_from_another_machine_nothing_is_given_without_a_key(triage_service: TriageService) -> None:
    """Also where there are no keys yet."""
    with opened(
        create_app(settings_at(triage_service.settings.home), triage_service), peer="10.0.0.5"
    ) as client:
        assert client.get("/v1/causes").status_code == 401


def test_that_who_asks_too_often_is_told_how_long_to_wait(open_app: Open) -> None:
    """After so many requests, 429 with Retry-After; health is never counted."""
    with open_app(rate_limit=5) as client:
        statuses = [client.get("/v1/causes").status_code for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2
        answer = client.get("/v1/causes")
        assert 1 <= int(answer.headers["retry-after"]) <= 12
        assert client.get("/healthz").status_code == 200


def test_that_guesses_are_counted_too(guarded: Guarded) -> None:
    """By their address, so that they cost nobody else."""
    _, tokens, triage_service = guarded
    with opened(
        create_app(settings_at(triage_service.settings.home, rate_limit=5), triage_service)
    ) as client:
        statuses = [client.get("/v1/causes", headers=bearer("guess")).status_code for _ in range(7)]
        assert statuses == [401] * 5 + [429] * 2
        assert client.get("/v1/causes", headers=bearer(tokens["triage"])).status_code == 200


@each_row(
    ("peers", "networks"),
    [
        (("10.0.0.1", "10.0.0.2"), 2),
        (("2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:0:1:2:3:4%eth0"), 1),
        (("2001:db8:0:1::1", "2001:db8:0:2::1"), 2),
        (("::ffff:10.0.0.1", "10.0.0.1"), 1),
        (("testclient", ""), 2),
    ],
)
def test_that_who_has_many_addresses_is_counted_once(peers: tuple[str, ...], networks: int) -> None:
    """Of IPv6 anybody has a whole network of them, enough to guess for ever and to have others forgotten."""
    assert len({access.network_of(peer) for peer in peers}) == networks


@each_row(
    ("host", "has_key", "refused"),
    [
        ("127.0.0.1", False, False),
        ("::1", False, False),
        (EVERY_ADDRESS, False, True),
        ("10.1.2.3", False, True),
        (EVERY_ADDRESS, True, False),
    ],
)
def test_that_no_other_address_is_bound_without_a_key(host: str, has_key: bool, refused: bool) -> None:
    """A sentence says what to do; a revoked key is none."""
    record, _ = keys.make_key("ci", ["triage"], datetime.now(UTC))
    found = [record] if has_key else [record.model_copy(update={"revoked": datetime.now(UTC)})]
    if not refused:
        serving.check_binding(Settings(host=host), found)
        return
    with pytest.raises(SettingsError, match="whycrash keys add"):
        serving.check_binding(Settings(host=host), found)
