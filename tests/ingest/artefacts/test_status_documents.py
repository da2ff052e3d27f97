"""The JSON of schedulers and platforms says how a job ended, and is told as lines that patterns know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.artefacts.file_heads import HEAD, artefact_kind
from ingest.artefacts.status_documents import read_status
from ingest.errors import ArtefactError
from ingest.logs.inputs.jobs import open_job
from ingest.logs.reader import Reader
from tests.tables import each_row

Value = dict[str, object]


def docker(code: int, *, killed: bool = False, error: str = "") -> list[Value]:
    state = {"Status": "exited", "Running": False, "OOMKilled": killed, "ExitCode": code, "Error": error}
    return [{"Id": "4be1", "Path": "python", "State": state, "Name": "/train", "HostConfig": {"Memory": 1}}]


def pod(container: Value, **status: object) -> Value:
    told = {"phase": "Running", "containerStatuses": [{"name": "trainer", "restartCount": 2, **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t-3"}, "status": told | status}


def sacct(state: str, code: int, signal: int) -> Value:
    ended = {"return_code": {"number": code}, "signal": {"id": {"number": signal}}}
    job = {"account": "lab", "association": {}, "job_id": 48213, "exit_code": ended}
    return {"jobs": [job | {"state": {"current": [state], "reason": "None"}}], "meta": {"slurm": {}}}


def sagemaker(status: str, secondary: str, **more: object) -> Value:
    job = {"TrainingJobName": "train-7b", "TrainingJobArn": "arn:aws:sagemaker:x:1:training-job/train-7b"}
    return job | {"TrainingJobStatus": status, "SecondaryStatus": secondary} | more


def aws_batch(why: str, **container: object) -> Value:
    job = {"jobArn": "arn:aws:batch:x:1:job/1", "jobName": "train", "jobId": "1", "jobQueue": "gpu"}
    return {
        "jobs": [job | {"status": "FAILED", "statusReason": why, "container": {"exitCode": 1} | container}]
    }


OUT = 'ExecuteUserScriptError: ExitCode 1 ErrorMessage "torch.OutOfMemoryError: CUDA out of memory."'
KILLED = "OutOfMemoryError: Container killed due to memory usage"
CAPACITY = "resources-insufficient"
ENDED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. 100Mi"}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "t-3.1"},
    "involvedObject": {"name": "t-3"},
    "reason": "NodeNotReady",
    "message": "Node is not ready",
    "type": "Warning",
}
SHOWN = {
    "account": "lab",
    "array_job_id": 0,
    "job_id": 7,
    "job_state": ["NODE_FAIL"],
    "state_reason": "NodeDown",
}


@each_row(
    ("value", "cause"),
    [
        (docker(137, killed=True), "host-oom-kill"),
        (pod({"lastState": ENDED, "state": {"running": {}}}), "host-oom-kill"),
        (pod({"state": ENDED}), "host-oom-kill"),
        ({"apiVersion": "v1", "kind": "List", "items": [pod({"state": ENDED})]}, "host-oom-kill"),
        (pod({}, **EVICTED), "scheduler-terminated"),
        (EVENT, "node-lost"),
        (sacct("OUT_OF_MEMORY", 0, 125), "host-oom-kill"),
        (sacct("TIMEOUT", 0, 0), "scheduler-terminated"),
        ({"jobs": [SHOWN]}, "node-lost"),
        (sagemaker("Stopped", "MaxRuntimeExceeded"), "scheduler-terminated"),
        (sagemaker("Failed", "Failed", FailureReason=f"AlgorithmError: {OUT}"), "gpu-oom-training"),
        (
            sagemaker("Failed", "Failed", FailureReason="CapacityError: Unable to provision requested"),
            CAPACITY,
        ),
        (aws_batch("Host EC2 (instance i-0a1b2c3d4e5f67890) terminated."), "node-lost"),
        (aws_batch("Essential container exited", reason=KILLED), "host-oom-kill"),
    ],
)
def test_how_a_job_ended_is_told(reader: Reader, value: object, cause: str, tmp_path: Path) -> None:
    """Beside a log that only stops, and alone."""
    (tmp_path / "status.json").write_text(json.dumps(value, indent=4))
    alone = reader.read(open_job(tmp_path / "status.json"))
    (tmp_path / "train.log").write_text("step 1 loss 2.5\nstep 2 loss 2.25\n")
    for report in (alone, reader.read(open_job(tmp_path))):
        assert report.root is not None
        assert report.root.cause == cause


@each_row(
    "value",
    [
        docker(0),
        sacct("COMPLETED", 0, 0),
        sagemaker("Completed", "Completed"),
        pod({"state": {"running": {}}}),
    ],
)
def test_a_job_that_lives_or_ended_well_has_no_failure(reader: Reader, value: object, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(json.dumps(value))
    assert reader.read(open_job(tmp_path / "status.json")).root is None


def test_rows_of_documents_are_read() -> None:
    """One document a row, as `kubectl get events -o json` piped through jq gives."""
    text = f"{json.dumps(EVENT)}\n{json.dumps(pod({'state': ENDED}))}\n".encode()
    assert artefact_kind(text[:HEAD]) == "status"
    assert [line.split()[1] for line in read_status(text)] == [
        "event=Warning",
        "container=trainer",
        "pod=t-3",
    ]


@each_row(
    "data",
    [
        json.dumps(docker(137)).encode()[:-9],
        b"[" * 200_000,
        b'{"apiVersion": "v1", "kind": "Pod", "metadata": {}}',
        b'{"jobs": 7, "job_id": []}',
    ],
)
def test_what_is_damaged_or_tells_nothing_is_refused(data: bytes) -> None:
    with pytest.raises(ArtefactError):
        read_status(data)


def test_a_huge_list_is_cut() -> None:
    """A million pods are no reason to read a million."""
    rows = [pod({"state": ENDED})] * 20_000
    assert len(read_status(json.dumps({"items": rows}).encode())) == 2 * 2000


def test_text_in_a_document_stays_in_its_row() -> None:
    """A message may hold line breaks and control characters."""
    (row, _) = read_status(json.dumps(docker(1, error="no\nspace \x1b[31m left")).encode())[-1:] * 2
    assert row == "docker container=/train error: no space [31m left"
