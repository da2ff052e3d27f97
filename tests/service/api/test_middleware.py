"""The gate: where requests come from, what headers answers have, what the log says."""

from __future__ import annotations

import logging

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from service.api.app import create_app
from service.app.triage_service import TriageService
from tests.service.api.conftest import Open, opened, settings_at
from tests.service.api.test_triages import LOG
from tests.tables import each_row


def test_that_a_name_made_to_resolve_here_reaches_nothing(client: TestClient) -> None:
    """DNS rebinding: the Host header names the attacker's site."""
    for path in ("/v1/triages", "/healthz", "/"):
        assert client.get(path, headers={"host": "evil.example:8642"}).status_code == 421


def test_that_another_sites_page_can_change_nothing(client: TestClient) -> None:
    """Forms and scripts of other origins are refused before their bodies are read, and none is allowed to
    read answers.
    """
    answer = client.post("/v1/triage", json={"text": LOG}, headers={"origin": "https://evil.example"})
    assert answer.status_code == 403
    asked = client.options(
        "/v1/triage", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
    )
    assert not [name for name in (*answer.headers, *asked.headers) if name.startswith("access-control")]


@each_row("path", ["/v1/causes", "/healthz", "/nothing", "/v1/triages/NONE", "/openapi.json"])
def test_that_every_answer_has_the_headers_that_bind_a_browser(client: TestClient, path: str) -> None:
    """Also errors and pages that are not there."""
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-request-id"]
    assert path == "/nothing" or headers["cache-control"] == "no-store"


def test_that_a_page_beside_the_api_has_the_policy_it_needs(triage_service: TriageService) -> None:
    """By the beginning of its path; the API's own is not to be had."""
    app = create_app(
        settings_at(triage_service.settings.home),
        triage_service,
        policies={"/": "default-src 'self'", "/chat": "default-src data:", "/v1/": "default-src *"},
    )
    app.add_route("/chat", lambda _request: PlainTextResponse("hello"))
    with opened(app) as client:
        assert client.get("/chat").headers["content-security-policy"] == "default-src data:"
        assert client.get("/other").headers["content-security-policy"] == "default-src 'self'"
        assert client.get("/v1/causes").headers["content-security-policy"].startswith("default-src 'none'")


def test_that_a_mistake_of_ours_is_a_problem_and_a_line_in_the_log(
    triage_service: TriageService, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither its words nor its stack go to the client."""

    def broken(_request: object) -> PlainTextResponse:
        raise ZeroDivisionError("inner words")

    app = create_app(settings_at(triage_service.settings.home), triage_service)
    app.add_route("/v1/broken", broken)
    with opened(app) as client:
        answer = client.get("/v1/broken")
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:whycrash:error:unexpected")
    assert "inner words" not in answer.text
    assert "ZeroDivisionError: inner words" in caplog.text
    assert answer.headers["x-request-id"] in caplog.text


def test_that_the_log_has_the_path_and_nothing_else_of_a_request(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """No query, no header, no body; a path is cleaned as well."""
    # Another library's set-up of logging may have put aside the loggers that there were.
    logging.getLogger("whycrash.requests").disabled = False
    caplog.set_level(logging.INFO, logger="whycrash.requests")
    client.get("/v1/search", params={"q": "querysecret"}, headers={"x-note": "headersecret"})
    client.post("/v1/triage", json={"text": f"bodysecret\n{LOG}"})
    client.get("/v1/triages/sk-ant-" + "a1B2" * 10)
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("whycrash"))
    assert "GET /v1/search 200" in ours
    assert not [word for word in ("querysecret", "headersecret", "bodysecret", "a1B2a1B2") if word in ours]


def test_that_metrics_count_by_route_and_cause(open_app: Open) -> None:
    """Ids make no series of their own."""
    with open_app() as client:
        answer = client.post("/v1/triage", json={"text": LOG}).json()
        for number in range(3):
            client.get(f"/v1/triages/NONE{number}")
        told = client.get("/metrics").text
    assert 'whycrash_requests_total{method="GET",route="/v1/triages/{triage_id}",status="404"} 3.0' in told
    # The store is shared: what a test before confirmed of the same crash may have moved the cause.
    counted = f'whycrash_triages_total{{cause="{answer["cause"]}",verdict="{answer["verdict"]}"}} 1.0'
    assert counted in told
    assert 'whycrash_pool{kind="workers"} 1.0' in told


def test_that_an_unknown_path_or_method_is_a_problem(client: TestClient) -> None:
    """In the form of all others."""
    rows = (
        ("GET", "/v1/nothing", 404, None),
        ("PUT", "/v1/triages", 405, "GET"),
        ("TRACE", "/v1/triage", 405, "POST"),
        # Two routes of one path: the header names the methods of both.
        ("PATCH", "/v1/triages/01ABC", 405, "GET, DELETE"),
        ("OPTIONS", "/v1/batches", 405, "GET, POST"),
        ("DELETE", "/healthz", 405, "GET"),
    )
    wrong = []
    for method, path, *expected in rows:
        answer = client.request(method, path)
        told = [answer.status_code, answer.headers.get("allow")]
        if told != expected or answer.headers["content-type"] != "application/problem+json":
            wrong.append((method, path, told))
    assert wrong == []


def test_that_a_wrong_method_is_told_those_that_the_path_takes(client: TestClient) -> None:
    """In one sentence each of title and detail."""
    told = client.request("PATCH", "/v1/triages/01ABC").json()
    assert told["title"] == "The path is there, and takes other methods"
    assert told["detail"] == "This path takes GET, DELETE, not PATCH."
