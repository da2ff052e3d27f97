"""The OpenAPI as a contract: requests made from it, right and wrong ones, never break the server."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator, ValidationError
from starlette.testclient import TestClient

from service.api import reference
from tests.service.api.conftest import Serve
from tests.tables import each_row
from tests.warm import INCIDENTS

# For so long requests are made, in seconds, over all routes together.
LONGEST = 45.0


def test_that_every_route_has_a_sentence_and_tells_its_errors(client: TestClient) -> None:
    """Each error is a problem+json; each parameter and answer is described."""
    told = client.get("/openapi.json").json()
    for path, methods in told["paths"].items():
        for method, route in methods.items():
            assert route.get("description"), (method, path)
            errors = {
                status: answer
                for status, answer in route["responses"].items()
                if status >= "400" and path not in ("/readyz", "/healthz")
            }
            assert path in ("/readyz", "/healthz") or {"401", "403", "422", "429"} <= set(errors), (
                method,
                path,
            )
            assert all("application/problem+json" in answer["content"] for answer in errors.values()), (
                method,
                path,
            )


def test_that_every_reference_leads_somewhere(client: TestClient) -> None:
    """A generator of clients would fail on one that does not."""
    told = client.get("/openapi.json").json()
    names = set(told["components"]["schemas"])
    assert {reference.rpartition("/")[2] for reference in _references(told)} <= names


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    return [found for item in value for found in _references(item)] if isinstance(value, list) else []


def test_that_each_event_of_a_stream_is_as_its_schema_says(client: TestClient) -> None:
    """A stream's schema is that of its events: number, name and data, whose `kind` is the name."""
    paths = client.get("/openapi.json").json()["paths"]
    triage = client.post("/v1/triage?stream=true", json={"text": "ValueError: no\n", "model": False})
    name = triage.text.partition('"id":"')[2].partition('"')[0]
    turn = client.post(f"/v1/triages/{name}/messages?stream=true", json={"text": "why?"})
    for path, answer in (("/v1/triage", triage), ("/v1/triages/{triage_id}/messages", turn)):
        media = paths[path]["post"]["responses"]["200"]["content"]["text/event-stream"]
        events = [
            dict(row.partition(": ")[::2] for row in part.split("\n"))
            for part in answer.text.strip().split("\n\n")
        ]
        assert len(events) > 1
        for event in events:
            Draft202012Validator(media["schema"]).validate(event)
            assert json.loads(event["data"])["kind"] == event["event"]
            with pytest.raises(ValidationError):
                Draft202012Validator(media["schema"]).validate({**event, "event": "other"})


def test_that_the_examples_are_answered(client: TestClient) -> None:
    """What the documentation shows works as it stands."""
    told = client.get("/openapi.json").json()["components"]["schemas"]
    answer = client.post("/v1/triage", json=told["TriageRequest"]["examples"][0])
    assert answer.status_code == 200
    path = f"/v1/triages/{answer.json()['id']}/feedback"
    assert client.post(path, json=told["Judgement"]["examples"][0]).status_code == 201


def test_that_a_body_that_is_no_text_is_told_as_any_wrong_one_is(client: TestClient) -> None:
    """It was answered 400, which nothing documents, with a sentence about the path."""
    paths = [f"/v1/{name}" for name in ("triage", "batches", "triages/x/messages", "triages/x/feedback")]
    sent = {"content": b"\x19\xff\xfe\x0e", "headers": {"content-type": "application/json"}}
    told = [client.post(path, **sent).json() for path in paths]
    assert [problem["status"] for problem in told] == [422] * len(paths)
    assert [problem for problem in told if "path" in problem["detail"]] == []


@each_row("incident", ["w-easyr1-offload-host-ram", "openrlhf-save-host-peak"])
def test_that_an_answer_fits_the_published_schema(client: TestClient, incident: str) -> None:
    """Every field that is served is told, with its type, and every field that is told is served."""
    schema = client.get("/v1/schemas/diagnosis").json()
    text = (INCIDENTS / incident / "log.txt").read_text(encoding="utf-8")
    answer = client.post("/v1/triage", json={"text": text}).json()
    check = Draft202012Validator(schema)
    check.check_schema(schema)
    assert [error.message for error in check.iter_errors(answer)] == []
    assert set(answer) == set(schema["properties"]) == set(schema["required"])
    assert [*check.iter_errors(answer | {"later": 1})] == []
    assert [*check.iter_errors(answer | {"verdict": "maybe"})]


def test_that_the_reference_loads_nothing_and_tells_every_route(client: TestClient) -> None:
    """Its policy lets no script run and nothing come from elsewhere; each link within it leads somewhere."""
    told = client.get("/openapi.json").json()
    page = client.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<(?:script|link|img|iframe)|(?:src|href)=.https?:|url\(", page.text)
    assert [path for path in told["paths"] if f"<code>{path}</code>" not in page.text] == []
    names = set(re.findall(r' id="([^"]+)"', page.text))
    assert set(re.findall(r'href="#([^"]+)"', page.text)) <= names
    assert {f"schema-{name}" for name in told["components"]["schemas"]} <= names


@pytest.mark.long
def test_that_no_request_breaks_the_server(serve: Serve) -> None:
    """Requests by the schema and against it: no 5xx, no undocumented status or type, and what is right
    is answered right.
    """
    # Imported here: it takes a second, which every worker would spend on collecting the tests.
    import schemathesis
    from schemathesis.core.result import Ok

    with serve() as address:
        schema = schemathesis.openapi.from_url(f"{address.url}/openapi.json")
        ends = time.monotonic() + LONGEST
        statuses: set[int] = set()
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            for mode in (schemathesis.GenerationMode.NEGATIVE, schemathesis.GenerationMode.POSITIVE):
                statuses |= _tried(found.ok(), mode, ends)
    assert {200, 404, 422} <= statuses


def _tried(operation: Any, mode: Any, ends: float) -> set[int]:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

    checks = [not_a_server_error, status_code_conformance, content_type_conformance]
    statuses: set[int] = set()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def attempt(case: Any) -> None:
        if time.monotonic() > ends:
            return
        answer = case.call()
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=checks)

    try:
        attempt()
    except Unsatisfiable:
        # There is no wrong request for a route that takes nothing.
        assert mode is GenerationMode.NEGATIVE
    return statuses


def test_that_the_reference_is_written_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes long enough to keep a server busy that is asked for it again and again."""
    first = client.get("/docs").text
    monkeypatch.setattr(reference, "page", None)
    assert client.get("/docs").text == first
