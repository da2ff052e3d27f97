"""Single triages over HTTP: handed in, looked up, asked on, judged, deleted."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from corpus.message import is_chinese
from service.app.admission import CostlyRequestSlots
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import BusyError
from tests.factories import OOM, steps, traceback
from tests.service.api.conftest import Open
from tests.tables import each_row
from tests.warm import INCIDENTS

LOG = traceback(OOM)
KILLED = (INCIDENTS / "w-easyr1-offload-host-ram" / "log.txt").read_text(encoding="utf-8")
SCRIPT = (INCIDENTS / "w-easyr1-offload-host-ram" / "run.sh").read_text(encoding="utf-8")


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read server-sent events."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n") if not block.startswith(":")]
    return [(rows[1].removeprefix("event: "), json.loads(rows[2].removeprefix("data: "))) for rows in blocks]


def triaged(client: TestClient, **fields: Any) -> Diagnosis:
    """Hand in a log and give the answer."""
    answer = client.post("/v1/triage", json={"text": LOG, **fields})
    assert answer.status_code == 200, answer.text
    return Diagnosis.model_validate_json(answer.content)


def test_that_a_pasted_text_is_answered_with_the_contract(client: TestClient) -> None:
    """JSON in, the diagnosis out, with the place where it is kept."""
    answer = client.post("/v1/triage", json={"text": LOG, "name": "train.log"})
    found = answer.json()
    assert (found["schema"], found["source"], found["cause"]) == (
        "whycrash.diagnosis/1",
        "train.log",
        "gpu-oom-training",
    )
    kept = client.get(answer.headers["location"]).json()
    assert kept["id"] == found["id"]
    assert kept["diagnosis"] == found


def test_that_a_kept_answer_is_told_in_the_other_language(client: TestClient) -> None:
    """All of its words are in that language, and all that it comes to is what was answered."""
    sent = {"text": KILLED, "configs": [{"name": "run.sh", "text": SCRIPT}], "language": "en"}
    made = client.post("/v1/triage", json=sent).json()
    path = f"/v1/triages/{made['id']}"
    told = client.get(path, params={"lang": "zh"}).json()["diagnosis"]
    again = client.get(path, params={"lang": "en"}).json()["diagnosis"]
    assert again == made == client.get(path).json()["diagnosis"]
    for name in ("id", "verdict", "cause", "confidence", "standing", "action", "patch", "limits"):
        assert told[name] == made[name], name
    assert [(item["line"], item["text"]) for item in told["evidence"]] == [
        (item["line"], item["text"]) for item in made["evidence"]
    ]
    words = [told["headline"], told["explanation"], *told["checks"]]
    words += [item["why"] for item in (*told["changes"], *told["evidence"])]
    assert [text for text in words if not is_chinese(text)] == []


def test_that_files_are_read_by_their_names_and_patched(client: TestClient) -> None:
    """Several logs are one job; a configuration beside them is patched.

    A name that leads elsewhere is only a label.
    """
    files = [
        ("log", ("rank0.log", KILLED)),
        ("log", ("../../etc/rank1.log", steps(1, 2))),
        ("config", ("run.sh", SCRIPT)),
    ]
    found = client.post("/v1/triage", files=files, data={"language": "zh", "model": "false"}).json()
    assert {item["file"] for item in found["evidence"]} <= {"rank0.log", "etc/rank1.log"}
    assert "run.sh" in found["patch"]
    assert any("一" <= char <= "鿿" for char in found["headline"])


def test_that_an_archive_is_one_job(client: TestClient) -> None:
    """A zip is unpacked within limits; a member whose name leads out of it is no path."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("logs/rank0.log", KILLED)
        archive.writestr("../../outside.log", steps(1, 2))
    found = client.post("/v1/triage", files=[("log", ("job.zip", packed.getvalue()))]).json()
    assert found["verdict"] == "diagnosed"
    assert not any("outside" in (item["file"] or "") and ".." in item["file"] for item in found["evidence"])


def test_that_how_the_job_ended_is_weighed_in_either_form(client: TestClient) -> None:
    """Exit code, signal and state are fields of JSON and of multipart.

    What is none of them is refused and named.
    """
    ends: tuple[tuple[dict[str, Any], tuple[str, str | None]], ...] = (
        ({"exit_code": 137}, ("unknown", "insufficient-evidence")),
        ({"signal": "kill"}, ("unknown", "insufficient-evidence")),
        ({"state": "OOMKilled"}, ("diagnosed", "host-oom-kill")),
        ({"exit_code": 0, "state": "COMPLETED"}, ("no-failure", None)),
    )
    for given, expected in ends:
        for answer in (
            client.post("/v1/triage", json={"text": steps(1, 9), **given}),
            client.post(
                "/v1/triage",
                files=[("log", ("job.log", steps(1, 9)))],
                data={name: str(value) for name, value in given.items()},
            ),
        ):
            found = answer.json()
            assert (found["verdict"], found["cause"]) == expected, found
            assert found["outcome"]["exit_code"] == given.get("exit_code")
    for field, wrong in (("exit_code", "seventy"), ("signal", "SIGNOTHING"), ("state", "<script>")):
        for refused in (
            client.post("/v1/triage", json={"text": LOG, field: wrong}),
            client.post("/v1/triage", files=[("log", ("a.log", LOG))], data={field: wrong}),
        ):
            assert refused.status_code == 422
            assert field in refused.json()["detail"]
            assert wrong not in refused.json()["detail"]


@each_row(
    ("field", "value"),
    [
        ("state", ""),
        ("state", " "),
        ("state", " FAILED"),
        ("state", "FAILED" + " " * 80),
        ("state", 3),
        ("exit_code", ""),
        ("exit_code", "137"),
        ("exit_code", True),
        ("exit_code", 2**32),
        ("signal", 9),
        ("signal", False),
    ],
)
def test_that_the_end_of_a_job_is_taken_in_the_published_form_alone(
    client: TestClient, field: str, value: object
) -> None:
    """What the schema does not allow in JSON is refused, as if it meant nothing.

    A form, in which all is text, may leave a field empty.
    """
    schema = client.get("/openapi.json").json()["components"]["schemas"]["TriageRequest"]["properties"]
    assert [*Draft202012Validator(schema[field]).iter_errors(value)]
    refused = client.post("/v1/triage", json={"text": LOG, "model": False, field: value})
    assert (refused.status_code, field in refused.json()["detail"]) == (422, True)
    empty = client.post("/v1/triage", files=[("log", ("a.log", LOG))], data={field: " ", "model": "false"})
    assert empty.status_code == 200


def test_that_a_question_about_a_killed_job_is_answered(client: TestClient) -> None:
    """What is kept of it tells its end to further questions too."""
    found = client.post("/v1/triage", json={"text": steps(1, 9), "exit_code": 137}).json()
    turned = client.post(f"/v1/triages/{found['id']}/messages", json={"text": "What should I collect?"})
    assert turned.status_code == 200
    assert turned.json()["diagnosis"]["verdict"] == "unknown"


def test_that_a_telemetry_file_is_weighed(client: TestClient) -> None:
    """A snapshot decides with the log."""
    snapshot = {"schema": "whycrash.snapshot/1", "taken_at": "2026-01-01T00:00:00Z", "sources": ["nvml"]}
    found = client.post(
        "/v1/triage", files=[("log", ("a.log", LOG)), ("telemetry", ("s.json", json.dumps(snapshot)))]
    ).json()
    assert found["telemetry"]["sources"] == ["nvml"]


def test_that_events_come_in_their_order(client: TestClient) -> None:
    """Streamed, the stages are told as they happen, and the last one is the whole answer."""
    answer = client.post("/v1/triage?stream=true", json={"text": KILLED})
    kinds = [kind for kind, _ in events_of(answer.text) if kind != "progress"]
    assert kinds == ["accepted", "report", "cases", "first", "final"]
    last = events_of(answer.text)[-1][1]["diagnosis"]
    assert last["id"] == events_of(answer.text)[0][1]["id"]
    assert answer.headers["content-type"].startswith("text/event-stream")


@each_row(
    ("sent", "status", "word"),
    [
        ({"json": {"text": ""}}, 422, "text"),
        ({"json": {"text": LOG, "txt": 1}}, 422, "txt"),
        ({"json": {"text": LOG, "language": "fr"}}, 422, "language"),
        ({"json": {"text": LOG, "telemetry": {"a": 1}}}, 422, "telemetry"),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 422, ""),
        ({"content": b'{"text": "\\ud800"}', "headers": {"content-type": "application/json"}}, 422, ""),
        ({"content": b"a=b", "headers": {"content-type": "text/plain"}}, 415, "multipart/form-data"),
        ({"files": [("lag", ("a.log", LOG))]}, 422, "lag"),
        ({"files": [("log", ("a.log", LOG))], "data": {"model": "perhaps"}}, 422, "model"),
        ({"files": [("log", ("a.log", b""))]}, 422, ""),
        ({"files": [("log", ("a.bin", bytes(range(256)) * 64))]}, 422, ""),
        ({"files": [("log", ("a.zip", b"PK\x03\x04garbage"))]}, 422, ""),
        ({"files": [("log", ("a.log", LOG)), ("telemetry", ("s.json", b"{}"))]}, 422, "taken_at"),
    ],
)
def test_that_what_cannot_be_read_is_refused_with_a_reason(
    client: TestClient, sent: dict[str, Any], status: int, word: str
) -> None:
    """A problem names what is wrong, and never what was sent."""
    answer = client.post("/v1/triage", **sent)
    problem = answer.json()
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert word in problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_that_a_truth_value_is_true_or_false_and_nothing_like_it(client: TestClient) -> None:
    """In JSON, in a query and in a form: what else a validator might read as one is a client's mistake."""
    triage = f"/v1/triages/{client.post('/v1/triage', json={'text': LOG, 'model': False}).json()['id']}"
    words = ("1", "0", "yes", "no", "on", "off", "t", "True", "FALSE", " true", "", "null")
    rows: list[tuple[str, dict[str, Any]]] = [
        (path, {"json": {**sent, field: value}})
        for path, field, sent in (
            ("/v1/triage", "model", {"text": LOG}),
            ("/v1/triage", "stream", {"text": LOG}),
            (f"{triage}/messages", "stream", {"text": "why?"}),
            (f"{triage}/feedback", "right", {}),
            ("/v1/batches", "options", {"source": "slurm"}),
        )
        for value in (*words, "true", "false", 1, 0, 1.0, None, [], {"model": 1})
        # Options are an object; what is lax is within.
        if field != "options" or isinstance(value, dict)
    ]
    rows += [(f"/v1/triage?stream={word}", {"json": {"text": LOG}}) for word in words]
    rows += [(f"{triage}/messages?stream={word}", {"json": {"text": "why?"}}) for word in words]
    rows += [
        (path, {"files": [("log", ("a.log", LOG))], "data": {"model": word}})
        for path in ("/v1/triage", "/v1/batches")
        for word in words
    ]
    taken = [(path, sent) for path, sent in rows if client.post(path, **sent).status_code != 422]
    assert taken == []
    right = [
        client.post(f"/v1/triage?stream={word}", files=[("log", ("a.log", LOG))], data={"model": "false"})
        for word in ("true", "false")
    ]
    assert [answer.headers["content-type"].partition(";")[0] for answer in right] == [
        "text/event-stream",
        "application/json",
    ]


def test_that_a_request_sent_again_is_answered_as_the_first_time(client: TestClient) -> None:
    """One key, one triage; the same key for something else is refused.

    A deleted answer is not given again.
    """
    headers = {"idempotency-key": "retry-1"}
    first = client.post("/v1/triage", json={"text": LOG}, headers=headers)
    again = client.post("/v1/triage", json={"text": LOG}, headers=headers)
    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (first.json()["id"], "true")
    assert client.post("/v1/triage", json={"text": KILLED}, headers=headers).status_code == 409
    client.delete(f"/v1/triages/{first.json()['id']}")
    assert client.post("/v1/triage", json={"text": LOG}, headers=headers).status_code == 404


def test_that_a_request_that_failed_may_be_sent_again(client: TestClient) -> None:
    """A failure is not kept under the key."""
    headers = {"idempotency-key": "retry-2"}
    for _ in range(2):
        assert (
            client.post(
                "/v1/triage", files=[("log", ("a.bin", bytes(range(256)) * 64))], headers=headers
            ).status_code
            == 422
        )


def test_that_a_request_that_was_refused_for_want_of_places_may_be_sent_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is free at once."""
    headers = {"idempotency-key": "retry-4"}
    app_state = client.app.state.app_state  # type: ignore[attr-defined]  # the app is FastAPI's
    with monkeypatch.context() as full:
        full.setattr(app_state.threads, "most", 0)
        assert client.post("/v1/triage", json={"text": LOG}, headers=headers).status_code == 429
    assert client.post("/v1/triage", json={"text": LOG}, headers=headers).status_code == 200


def test_that_one_caller_cannot_take_all_places() -> None:
    """Half of them stay for others; who is done gives theirs back."""
    places = CostlyRequestSlots(4)
    with places.slot("a"), places.slot("a"):
        with pytest.raises(BusyError), places.slot("a"):
            pass
        with places.slot("b"), places.slot("c"), pytest.raises(BusyError), places.slot("d"):
            pass
    with places.slot("a"), places.slot("a"):
        pass
    assert not places.taken


def test_that_a_file_sent_again_is_known_whatever_its_boundary(client: TestClient) -> None:
    """Multipart bodies are told apart by what they hold."""
    headers = {"idempotency-key": "retry-3"}
    ids = {
        client.post("/v1/triage", files=[("log", ("a.log", LOG))], headers=headers).json()["id"]
        for _ in range(2)
    }
    assert len(ids) == 1


def test_that_past_triages_come_in_pages(open_app: Open) -> None:
    """Newest first, found by words; a page links to the next one."""
    with open_app() as client:
        ids = [triaged(client, name=f"pages-{number}.log").id for number in range(3)]
        first = client.get("/v1/triages", params={"q": "PAGES-", "limit": 2})
        assert [item["id"] for item in first.json()["items"]] == ids[:0:-1]
        following = first.headers["link"].partition(";")[0].strip("<>")
        second = client.get(following).json()
        assert [item["id"] for item in second["items"]] == ids[:1]
        assert second["next"] is None


def test_that_a_conversation_goes_on(client: TestClient) -> None:
    """A question is answered, streamed or whole, and both sides are kept."""
    found = triaged(client)
    path = f"/v1/triages/{found.id}/messages"
    answer = client.post(path, json={"text": "Why is this the cause?"}).json()
    assert answer["kind"] == "turn"
    streamed = events_of(
        client.post(f"{path}?stream=true", json={"text": "What if I cannot change the batch size?"}).text
    )
    assert streamed[-1][0] == "turn"
    assert [item["role"] for item in client.get(path).json()["items"]] == ["user", "assistant"] * 2


def test_that_the_log_can_be_looked_at_again(client: TestClient) -> None:
    """What is kept of a log is given by line numbers."""
    found = triaged(client)
    excerpt = client.get(f"/v1/triages/{found.id}/excerpt").json()
    assert OOM in excerpt["stretches"][0]["lines"]


def test_that_feedback_is_kept_and_its_cause_is_one_of_ours(client: TestClient) -> None:
    """A cause that nobody knows is refused."""
    path = f"/v1/triages/{triaged(client).id}/feedback"
    kept = client.post(path, json={"right": False, "cause": "host-oom-kill", "fix": "more memory"})
    assert (kept.status_code, kept.json()["cause"]) == (201, "host-oom-kill")
    assert client.post(path, json={"right": False, "cause": "gremlins"}).status_code == 422


def test_that_a_deleted_triage_is_gone(client: TestClient) -> None:
    """Nothing of it is given any more."""
    path = f"/v1/triages/{triaged(client).id}"
    assert client.delete(path).status_code == 204
    for part in ("", "/messages", "/excerpt"):
        assert client.get(path + part).status_code == 404
    assert client.delete(path).status_code == 404
