"""Crashes over HTTP: counted, noted, and a confirmed cause in the next answer of its kind."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from tests.tables import each_row
from tests.warm import INCIDENTS

# A job whose log tells that an actor died, and not why.
LOST = (INCIDENTS / "ferry-tide" / "log.txt").read_text(encoding="utf-8")


def answered(client: TestClient, name: str = "night-7", error: str = "ActorDiedError") -> dict[str, Any]:
    """Hand the log in and give the answer."""
    found: dict[str, Any] = client.post(
        "/v1/triage", json={"text": LOST.replace("ActorDiedError", error), "name": name, "language": "en"}
    ).json()
    return found


def test_that_a_confirmed_cause_changes_the_next_answer_of_the_same_crash(client: TestClient) -> None:
    """Unknown the first time; once a person named the cause, a hypothesis that says who it is from."""
    first = answered(client)
    assert (first["verdict"], first["confirmed"]) == ("unknown", None)
    client.post(f"/v1/triages/{first['id']}/feedback", json={"right": False, "cause": "node-lost"})
    second = answered(client)
    assert (second["verdict"], second["cause"], second["standing"]) == (
        "diagnosed",
        "node-lost",
        "hypothesis",
    )
    assert second["confidence"] < 0.7
    assert second["confirmed"]["counted"]
    assert "a person confirmed" in second["explanation"]
    told = client.get(f"/v1/triages/{second['id']}", params={"lang": "zh"}).json()["diagnosis"]
    assert "有人确认同一崩溃的原因" in told["explanation"]


def test_that_crashes_are_listed_with_their_jobs_and_what_was_noted(client: TestClient) -> None:
    """One that is called fixed and comes again is back."""
    crash = answered(client, error="NightlyError")["fingerprint"]
    path = f"/v1/crashes/{crash}"
    body = {"state": "fixed", "owner": "ann", "fixed_by": "pull request 812"}
    noted = client.put(path, json=body).json()
    assert {name: noted["note"][name] for name in body} == body
    assert (noted["times"], noted["is_back"], noted["jobs"]) == (1, False, ["night-7"])
    answered(client, "night-8", error="NightlyError")
    listed = client.get("/v1/crashes").json()["items"][0]
    assert (listed["times"], listed["is_back"], listed["jobs"]) == (2, True, ["night-8", "night-7"])
    assert client.get(path).json() == listed


@each_row(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/crashes/abc123", None, 404),
        ("PUT", "/v1/crashes/abc123", {"state": "open"}, 404),
        ("PUT", "/v1/crashes/abc123", {"state": "done"}, 422),
        ("PUT", "/v1/crashes/abc123", {"state": "open", "who": "ann"}, 422),
        ("GET", "/v1/crashes/NO!", None, 422),
    ],
)
def test_that_what_is_no_crash_or_no_note_is_refused(
    method: str, path: str, body: dict[str, str] | None, status: int, client: TestClient
) -> None:
    answer = client.request(method, path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
