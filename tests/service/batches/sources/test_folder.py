"""Jobs out of folders: of logs, and of pods' logs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from service.batches.sources import folder, kubernetes
from service.batches.sources.found import FoundJobs
from service.schemas.diagnosis import Outcome
from service.schemas.errors import ForbiddenError, InvalidRequestError, TooLargeError
from service.settings import Settings
from tests.service.batches.sources.handing import held, tarred


def _written(home: Path, *names: str) -> Path:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{name}\n")
    return home


def _names(found: FoundJobs) -> dict[str, set[str]]:
    return {name: set(texts) for name, texts in held(found).items()}


def test_that_files_of_a_folder_are_read_where_they_lie(
    tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """No copy is made; a job of its own folder is that folder, with its configuration."""
    home = _written(
        tmp_path / "logs", "j1/rank0.log", "j1/rank1.log", "j1/run.sh", "two.out", "two.err", "two.yaml"
    )
    found = folder.find_jobs(home, make_settings())
    assert _names(found) == {"j1": {"rank0.log", "rank1.log", "run.sh"}, "two": {"two.out", "two.err"}}
    one, two = found.specs
    assert one.place.paths == (str(home / "j1"),)
    assert two.place.configs == (str(home / "two.yaml"),)
    assert not one.place.spooled


def test_that_an_archive_in_a_folder_is_a_job(tmp_path: Path, make_settings: Callable[..., Settings]) -> None:
    """An archive is one job's output."""
    home = _written(tmp_path / "logs", "b.log")
    (home / "a.tgz").write_bytes(tarred({"rank0.log": "0\n"}))
    assert _names(folder.find_jobs(home, make_settings())) == {"a": {"rank0.log"}, "b": {"b.log"}}


def test_that_what_batches_wrote_is_no_job(tmp_path: Path, make_settings: Callable[..., Settings]) -> None:
    """Results, whole or in the making, may stand beside the logs, in a job's folder too."""
    home = _written(tmp_path / "logs", "a.log", "j1/rank0.log", "j1/rank1.log")
    result = '{"schema":"whycrash.diagnosis/1","id":"01J"}\n'
    for name in ("results.jsonl", "old.txt", "j1/results.jsonl"):
        (home / name).write_text(result)
    (home / "results.jsonl.part").write_text("01M82T05B5Q7NCPBW5R7AVTQ2V\n")
    found = folder.find_jobs(home, make_settings())
    assert _names(found) == {"a": {"a.log"}, "j1": {"rank0.log", "rank1.log"}}
    assert str(found.left_out["output_of_a_batch"]).startswith("4: ")
    (home / "told.log").write_text("01M82T05B5Q7NCPBW5R7AVTQ2V began\n")
    assert "told" in _names(folder.find_jobs(home, make_settings()))


def test_that_links_are_not_followed_out(tmp_path: Path, make_settings: Callable[..., Settings]) -> None:
    """A link that leads out of the folder is left out and told.

    A server reads nothing beyond what it was given.
    """
    _written(tmp_path, "secret.log")
    home = _written(tmp_path / "logs", "a.log")
    (home / "b.log").symlink_to(tmp_path / "secret.log")
    (home / "deep").symlink_to(tmp_path)
    found = folder.find_jobs(home, make_settings())
    assert _names(found) == {"a": {"a.log"}}
    assert str(found.left_out["link_out_of_the_folder"]).startswith("2: ")


ALLOWED = [
    ("logs", True),
    ("logs/deep", True),
    ("logs/../logs", True),
    ("other", False),
    ("logsmore", False),
    ("logs/..", False),
    ("link", False),
    ("", False),
]


@pytest.mark.parametrize(("path", "allowed"), ALLOWED)
def test_that_a_request_names_folders_under_the_roots_alone(
    tmp_path: Path, make_settings: Callable[..., Settings], path: str, allowed: bool
) -> None:
    """What counts is where a path really leads; nothing is allowed until the settings say so."""
    for name in ("logs/deep", "other", "logsmore"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "other")
    settings = make_settings(batch_roots=f" {tmp_path}/logs , {tmp_path}/none")
    if allowed:
        assert folder.allowed(str(tmp_path / path), settings) == Path(os.path.realpath(tmp_path / path))
    else:
        with pytest.raises(ForbiddenError):
            folder.allowed(str(tmp_path / path), settings)
    with pytest.raises(ForbiddenError):
        folder.allowed(str(tmp_path / path), make_settings())


def test_that_too_many_jobs_and_none_are_refused(
    tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """A folder without logs, or with more than a batch takes, is told so."""
    home = _written(tmp_path / "logs", "a.log", "b.log", "c.log")
    with pytest.raises(TooLargeError, match="2"):
        folder.find_jobs(home, make_settings(max_jobs=2))
    with pytest.raises(InvalidRequestError, match=r"checkpoint 1: a\.pt"):
        folder.find_jobs(_written(tmp_path / "none", "a.pt"), make_settings())
    with pytest.raises(InvalidRequestError, match="no folder"):
        folder.find_jobs(tmp_path / "absent", make_settings())


def test_that_files_named_one_by_one_are_grouped(
    tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """Files and folders side by side: each file is a job with its twin, each folder a collection."""
    home = _written(tmp_path, "x.out", "x.err", "y.log", "runs/a.log", "runs/b.log")
    found = folder.find_all_jobs(
        [home / "x.out", home / "x.err", home / "y.log", home / "runs"], make_settings()
    )
    assert _names(found) == {
        "x": {"x.out", "x.err"},
        "y": {"y.log"},
        "runs/a": {"a.log"},
        "runs/b": {"b.log"},
    }


PODS = {
    "containers and restarts are one job": (
        ["ml_train-x_1-2/main/0.log", "ml_train-x_1-2/main/1.log", "ml_train-x_1-2/sidecar/0.log"],
        {"ml/train-x": 1},
    ),
    "a pod that was made anew is the same job": (
        ["ml_a-worker-0_11/m/0.log", "ml_a-worker-0_22/m/0.log"],
        {"ml/a": 2},
    ),
    "an operator's pods are one job": (
        ["ml_llama-master-0_1/p/0.log", "ml_llama-worker-0_2/p/0.log", "ml_llama-worker-1_3/p/0.log"],
        {"ml/llama": 3},
    ),
    "a Ray cluster's pods are one job": (
        ["ml_rc-x7-head-b2c4d_1/r/0.log", "ml_rc-x7-gpus-worker-f5g6h_2/r/0.log"],
        {"ml/rc-x7": 2},
    ),
    "replicas of a server are jobs of their own": (
        ["ml_vllm-7c9f-b2c4d_1/v/0.log", "ml_vllm-7c9f-f5g6h_2/v/0.log"],
        {"ml/vllm-7c9f-b2c4d": 1, "ml/vllm-7c9f-f5g6h": 1},
    ),
    "names are no roles": (["ml_attention-head-experiment_1/v/0.log"], {"ml/attention-head-experiment": 1}),
    "namespaces are apart": (["a_j-worker-0_1/p/0.log", "b_j-worker-0_2/p/0.log"], {"a/j": 1, "b/j": 1}),
    "Kubernetes' own pods are left out": (["kube-system_coredns_1/c/0.log", "ml_j_2/p/0.log"], {"ml/j": 1}),
    "rotated logs are read": (["ml_j_2/p/0.log", "ml_j_2/p/0.log.20261120-101010.gz"], {"ml/j": 1}),
    "a dump of the cluster": (
        ["ml/j-0/logs.txt", "ml/j-0/x.json", "kube-system/dns/logs.txt"],
        {"ml/j-0": 1},
    ),
    "files of kubectl logs": (
        ["j-worker-0.log", "j-worker-0-previous.log", "j-worker-1.log", "k.log"],
        {"j": 3, "k": 1},
    ),
}


@pytest.mark.parametrize(("names", "expected"), PODS.values(), ids=PODS)
def test_that_pods_make_jobs(
    tmp_path: Path, make_settings: Callable[..., Settings], names: list[str], expected: dict[str, int]
) -> None:
    """The kubelet's names tell which pods are one job's."""
    found = kubernetes.find_jobs(_written(tmp_path / "pods", *names), make_settings())
    assert {spec.name: len(spec.place.paths) for spec in found.specs} == expected
    assert found.count == len(expected)


def test_that_restarts_are_read_in_order(tmp_path: Path, make_settings: Callable[..., Settings]) -> None:
    """What the container said before its restart comes first."""
    home = _written(tmp_path / "pods", "ml_j_2/p/1.log", "ml_j_2/p/0.log", "ml_j_2/p/10.log")
    texts = held(kubernetes.find_jobs(home, make_settings()))["ml/j"]
    assert list(texts) == ["0.log", "1.log", "10.log"]


def test_that_pods_come_with_how_they_ended(tmp_path: Path, make_settings: Callable[..., Settings]) -> None:
    """A container's reason and exit code, or the pod's own reason; of a job's pods the one that says most.

    A description that is broken tells nothing.
    """

    def pod(name: str, status: dict[str, object]) -> dict[str, object]:
        return {"metadata": {"name": name, "namespace": "ml"}, "spec": {}, "status": status}

    def container(field: str, **terminated: object) -> dict[str, object]:
        return {"containerStatuses": [{"name": "main", field: {"terminated": terminated}}]}

    home = _written(
        tmp_path / "dump",
        *(
            f"ml/{name}/logs.txt"
            for name in ("sft-master-0", "sft-worker-0", "gone", "ok", "again", "silent")
        ),
    )
    pods = [
        pod("sft-master-0", {"phase": "Failed", **container("state", reason="Error", exitCode=1)}),
        pod("sft-worker-0", {"phase": "Failed", **container("state", reason="OOMKilled", exitCode=137)}),
        pod("gone", {"phase": "Failed", "reason": "Evicted"}),
        pod("ok", {"phase": "Succeeded", **container("state", reason="Completed", exitCode=0)}),
        pod("again", {"phase": "Running", **container("lastState", reason="Error", exitCode=139)}),
        pod("silent", {}),
    ]
    (home / "ml" / "pods.json").write_text(json.dumps({"kind": "PodList", "items": pods}))
    assert {spec.name: spec.outcome for spec in kubernetes.find_jobs(home, make_settings()).specs} == {
        "ml/sft": Outcome(exit_code=137, state="OOMKilled"),
        "ml/gone": Outcome(state="Evicted"),
        "ml/ok": Outcome(exit_code=0, state="Completed"),
        "ml/again": Outcome(exit_code=139, state="Error"),
        "ml/silent": None,
    }
    (home / "ml" / "pods.json").write_text('{"items": [')
    assert {spec.outcome for spec in kubernetes.find_jobs(home, make_settings()).specs} == {None}


def test_that_a_name_that_is_no_utf8_is_shown_escaped(
    tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    """The job is found by its bytes; what is shown of it can be written as JSON, what is left out too."""
    home = tmp_path / "logs"
    home.mkdir()
    for name in (b"caf\xe9.log", b"r\xe9sultats.log"):
        (home / os.fsdecode(name)).write_text("a\n")
    (home / os.fsdecode(b"r\xe9sultats.log")).write_text('{"schema":"whycrash.diagnosis/1","id":"01J"}\n')
    found = folder.find_jobs(home, make_settings())
    (spec,) = found.specs
    assert (spec.name, os.fsencode(spec.place.paths[0])) == (
        "caf\\udce9",
        os.fsencode(home) + b"/caf\xe9.log",
    )
    assert json.dumps(found.left_out, ensure_ascii=False).encode()
