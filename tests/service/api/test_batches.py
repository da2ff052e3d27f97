"""Batches over HTTP: handed in in each form, watched, read, cancelled, deleted."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.app.triage_service import TriageService
from service.schemas.diagnosis import Diagnosis
from service.schemas.records import BatchRecord
from tests.service.api.conftest import Open, bearer
from tests.service.api.serving import wait_for
from tests.service.api.test_triages import KILLED, LOG
from tests.tables import each_row

LINES = "".join(
    json.dumps({"name": f"job-{number}", "log": LOG, "nodes": 2, "gpu_hours": 4.5}) + "\n"
    for number in range(4)
)
LINES += json.dumps({"name": "killed", "log": KILLED, "nodes": 1, "gpu_hours": 100.0}) + "\n"


def accepted(client: TestClient, **sent: Any) -> BatchRecord:
    """Hand in a batch."""
    answer = client.post("/v1/batches", **sent)
    assert answer.status_code == 202, answer.text
    record = BatchRecord.model_validate_json(answer.content)
    assert answer.headers["location"] == f"/v1/batches/{record.id}"
    return record


def over(client: TestClient, batch: BatchRecord) -> BatchRecord:
    """Wait until a batch is over."""

    def now() -> BatchRecord:
        return BatchRecord.model_validate_json(client.get(f"/v1/batches/{batch.id}").content)

    wait_for(lambda: now().state != "running")
    return now()


@pytest.fixture(scope="module")
def done(client: TestClient) -> BatchRecord:
    """A batch of JSON lines that is over."""
    return over(
        client,
        accepted(
            client, content=LINES, headers={"content-type": "application/x-ndjson"}, params={"name": "lines"}
        ),
    )


def test_that_each_job_is_counted(done: BatchRecord) -> None:
    """All are done, under the name that was given."""
    assert (done.name, done.source, done.counts) == ("lines", "lines", {"done": 5})


def test_that_results_come_as_json_lines(client: TestClient, done: BatchRecord) -> None:
    """One answer by the contract for each job; the same crash is answered once."""
    answer = client.get(f"/v1/batches/{done.id}/results")
    found = [Diagnosis.model_validate_json(row) for row in answer.text.splitlines()]
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [item.job.name for item in found if item.job] == ["job-0", "job-1", "job-2", "job-3", "killed"]
    assert len([item for item in found if item.job and item.job.same_as]) == 3


@each_row("asked", [{"params": {"format": "csv"}}, {"headers": {"accept": "text/csv"}}])
def test_that_results_come_as_csv(client: TestClient, done: BatchRecord, asked: dict[str, Any]) -> None:
    """By the Accept header or a parameter."""
    answer = client.get(f"/v1/batches/{done.id}/results", **asked)
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["job"] for row in rows] == ["job-0", "job-1", "job-2", "job-3", "killed"]
    assert "attachment" in answer.headers["content-disposition"]


def test_that_a_summary_says_what_it_cost(client: TestClient, done: BatchRecord) -> None:
    """As JSON, and as a page that loads nothing from elsewhere."""
    made = client.get(f"/v1/batches/{done.id}/summary").json()
    assert made["died"]["gpu_hours"] == 118.0
    page = client.get(f"/v1/batches/{done.id}/summary", headers={"accept": "text/html,application/json"})
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.text.lstrip().lower().startswith("<!doctype html>")


def test_that_jobs_come_in_pages_and_by_state(client: TestClient, done: BatchRecord) -> None:
    """In their order."""
    path = f"/v1/batches/{done.id}/jobs"
    first = client.get(path, params={"limit": 3}).json()
    second = client.get(path, params={"limit": 3, "after": first["next"]}).json()
    assert [item["number"] for item in first["items"] + second["items"]] == sorted(
        item["number"] for item in first["items"] + second["items"]
    )
    assert (len(first["items"]), len(second["items"]), second["next"]) == (3, 2, None)
    assert client.get(path, params={"state": "failed"}).json()["items"] == []


def test_that_an_archive_and_many_files_are_taken(client: TestClient) -> None:
    """Each folder or file is a job; a name that leads elsewhere is left out and told."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("one/rank0.log", "two/rank0.log", "../../three/rank0.log"):
            member = tarfile.TarInfo(name)
            member.size = len(LOG)
            archive.addfile(member, io.BytesIO(LOG.encode()))
    first = accepted(
        client, files=[("log", ("night.tar.gz", packed.getvalue()))], data={"name": "night", "language": "zh"}
    )
    assert (first.total, first.source, first.options.language) == (2, "upload", "zh")
    assert "unsafe_name" in first.left_out
    second = accepted(client, files=[("log", (f"job{number}.log", LOG)) for number in range(3)])
    assert second.total == 3
    for batch in (first, second):
        assert over(client, batch).counts == {"done": batch.total}


def test_that_a_folder_of_the_server_is_taken_under_its_roots_alone(open_app: Open, tmp_path: Path) -> None:
    """Also not through a link that leads out, and nothing is said of what is elsewhere."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    for number in range(2):
        (jobs / f"job{number}.log").write_text(LOG)
    (jobs / "out").symlink_to("/etc")
    with open_app(batch_roots=str(jobs)) as client:
        assert accepted(client, json={"source": "folder", "where": str(jobs)}).total == 2
        for where in ("/etc", str(jobs / "out"), str(jobs / ".." / ".."), "/nothing/there", ""):
            answer = client.post("/v1/batches", json={"source": "folder", "where": where})
            assert answer.status_code == 403, where
        for where in ("http://169.254.169.254/latest/meta-data", "http://127.0.0.1:8265"):
            assert client.post("/v1/batches", json={"source": "ray", "where": where}).status_code == 403


def test_that_a_batch_sent_again_is_the_same(client: TestClient) -> None:
    """One key, one batch."""
    sent = {
        "content": LINES,
        "headers": {"content-type": "application/x-ndjson", "idempotency-key": "night-1"},
    }
    assert accepted(client, **sent).id == accepted(client, **sent).id


@each_row(
    ("sent", "status"),
    [
        ({"json": {"source": "moon"}}, 422),
        ({"json": {"source": "folder", "where": "/", "extra": 1}}, 422),
        ({"content": b"nonsense", "headers": {"content-type": "application/x-ndjson"}}, 422),
        ({"content": b"", "headers": {"content-type": "application/zip"}}, 422),
        ({"content": b"x", "headers": {"content-type": "image/png"}}, 415),
        ({"files": [("lag", ("a.log", LOG))]}, 422),
        ({"files": [("log", ("a.log", LOG))], "data": {"where": "/"}}, 422),
    ],
)
def test_that_what_is_no_batch_is_refused(client: TestClient, sent: dict[str, Any], status: int) -> None:
    """Nothing of it stays."""
    answer = client.post("/v1/batches", **sent)
    assert answer.status_code == status, answer.text


def test_that_a_batch_is_cancelled_and_deleted(client: TestClient, api_home: Path) -> None:
    """What was done stays until it is deleted; then nothing of it is on the disk."""
    many = "".join(
        json.dumps({"name": f"job-{number}", "log": LOG.replace("2.00", f"{number}.25")}) + "\n"
        for number in range(200)
    )
    batch = accepted(client, content=many, headers={"content-type": "application/x-ndjson"})
    assert client.post(f"/v1/batches/{batch.id}/cancel").json()["state"] == "cancelled"
    assert batch.id in [
        item["id"] for item in client.get("/v1/batches", params={"limit": 50}).json()["items"]
    ]
    assert client.delete(f"/v1/batches/{batch.id}").status_code == 204
    assert client.get(f"/v1/batches/{batch.id}").status_code == 404
    assert not (api_home / "batches" / batch.id).exists()


def test_that_a_batch_is_seen_by_its_own_key_and_by_admin(
    guarded: tuple[TestClient, Mapping[str, str], TriageService],
) -> None:
    """To another key, it is not there."""
    client, tokens, triage_service = guarded
    batch = accepted(
        client, content=LINES, headers={"content-type": "application/x-ndjson", **bearer(tokens["admin"])}
    )
    for path in ("", "/jobs", "/results", "/summary"):
        assert client.get(f"/v1/batches/{batch.id}{path}", headers=bearer(tokens["batch"])).status_code == 404
        assert client.get(f"/v1/batches/{batch.id}{path}", headers=bearer(tokens["admin"])).status_code == 200
    assert [
        record.action for record in triage_service.store.audit.page()[0] if record.target == batch.id
    ] == ["batch"]
