"""The failed jobs of a Kubernetes cluster, by a stand-in of its API.

What it gives is written by the models of Kubernetes' own client, which are made of the API's published
description, and what it is asked is held against that client's requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from kubernetes import client as published

from ingest.logs.inputs.jobs import open_jobs
from service.batches.sources import http_client, kubernetes_api
from service.batches.sources.found import FoundJobs
from service.batches.sources.kubernetes_api import KubernetesQuery
from service.batches.sources.spool import open_spool
from service.monitoring import ended_jobs
from service.schemas.errors import InvalidRequestError, TooLargeError
from service.settings import Settings
from tests.loopback import http_server
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED, SECRET, held
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, whycrash
from tests.warm import ROOT

BEGAN = datetime(2026, 11, 20, 8, tzinfo=UTC)
ENDED = BEGAN + timedelta(hours=2)
KUBEFLOW = "training.kubeflow.org/job-name"
EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi."
LIST, LOG = "/api/v1/namespaces/jobs/pods", "/api/v1/namespaces/jobs/pods/{}/log"

Asked = tuple[str, tuple[tuple[str, str], ...]]
Find = Callable[..., FoundJobs]


def _terminated(code: int, reason: str = "Error") -> published.V1ContainerState:
    ended = published.V1ContainerStateTerminated(
        exit_code=code, reason=reason, finished_at=ENDED, started_at=BEGAN
    )
    return published.V1ContainerState(terminated=ended)


def _pod(
    name: str,
    phase: str = "Failed",
    code: int | None = 1,
    label: str = "",
    namespace: str = "jobs",
    previous: int | None = None,
    reason: str = "",
) -> published.V1Pod:
    """Make a pod of one container with two GPUs; `previous` is how it ended before it was started anew."""
    running = published.V1ContainerState(running=published.V1ContainerStateRunning(started_at=BEGAN))
    status = published.V1ContainerStatus(
        name="main",
        image="trainer:1",
        image_id="",
        ready=False,
        restart_count=0 if previous is None else 1,
        state=running if code is None else _terminated(code),
        last_state=None if previous is None else _terminated(previous, "OOMKilled"),
    )
    limits = published.V1ResourceRequirements(limits={"nvidia.com/gpu": "2", "memory": "1Gi"})
    return published.V1Pod(
        metadata=published.V1ObjectMeta(
            name=name, namespace=namespace, labels={KUBEFLOW: label} if label else None
        ),
        spec=published.V1PodSpec(
            node_name=f"node-{name[-1]}",
            containers=[published.V1Container(name="main", image="trainer:1", resources=limits)],
        ),
        status=published.V1PodStatus(
            phase=phase,
            reason=reason or None,
            message=EVICTED if reason else None,
            start_time=BEGAN,
            container_statuses=None if reason else [status],
        ),
    )


PODS = [
    _pod("llama-master-0", label="llama"),
    _pod("llama-worker-0", label="llama", phase="Running", code=None),
    _pod("server-7d9f8c5b6d-x2x9z", phase="Running", code=None, previous=137),
    _pod("lost-3", reason="Evicted"),
    _pod("fine-0", phase="Succeeded", code=0),
    _pod("coredns-0", namespace="kube-system"),
]
LOGS = {
    ("llama-master-0", "false"): f"2026-11-20T10:00:00.1Z {DIED}",
    ("llama-worker-0", "false"): f"2026-11-20T09:59:59.1Z step 7\n2026-11-20T09:59:59.2Z {SECRET}\n",
    ("server-7d9f8c5b6d-x2x9z", "true"): f"2026-11-20T10:00:00.1Z {DIED}",
    ("server-7d9f8c5b6d-x2x9z", "false"): "2026-11-20T10:01:00.1Z starting\n",
}


class StandIn:
    """Pods with their logs and events behind the API's paths; `failures` are answered first."""

    def __init__(self) -> None:
        self.pods = list(PODS)
        self.failures: list[tuple[int, dict[str, str], dict[str, Any]]] = []
        self.asked: list[Asked] = []
        self.agents: set[str] = set()
        self._write = published.ApiClient().sanitize_for_serialization

    def answer(self, path: str, given: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Answer a request."""
        if self.failures:
            status, headers, body = self.failures.pop(0)
            return status, headers, json.dumps({"kind": "Status", **body}).encode()
        parts = path.removeprefix("/api/v1/").split("/")
        namespace = parts[1] if parts[0] == "namespaces" else ""
        if parts[-1] == "log":
            text = LOGS.get((parts[-2], given["previous"]))
            refused = {"kind": "Status", "message": f'container "{given["container"]}" is waiting to start'}
            return (200, {}, text.encode()) if text else (400, {}, json.dumps(refused).encode())
        rows = [pod for pod in self.pods if namespace in ("", pod.metadata.namespace)]
        if parts[-1] == "events":
            return 200, {}, json.dumps({"items": self._events(namespace), "metadata": {}}).encode()
        begin, limit = int(given.get("continue", "0")), int(given["limit"])
        more = str(begin + limit) if begin + limit < len(rows) else None
        listing = published.V1PodList(
            items=rows[begin : begin + limit], metadata=published.V1ListMeta(_continue=more)
        )
        return 200, {}, json.dumps(self._write(listing)).encode()

    def _events(self, namespace: str) -> list[Any]:
        return [
            self._write(
                published.CoreV1Event(
                    metadata=published.V1ObjectMeta(name=f"{pod}.1", namespace="jobs"),
                    involved_object=published.V1ObjectReference(kind="Pod", name=pod, namespace="jobs"),
                    type="Warning",
                    reason="Evicted",
                    message=EVICTED,
                    last_timestamp=ENDED,
                )
            )
            for pod in ("lost-3", "fine-0")
            if namespace in ("", "jobs")
        ]


@pytest.fixture
def cluster() -> StandIn:
    return StandIn()


@pytest.fixture
def url(cluster: StandIn) -> Iterator[str]:
    """Serve the stand-in on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer, and remember what was asked."""
            parts = urlsplit(self.path)
            pairs = parse_qsl(parts.query)
            cluster.asked.append((parts.path, tuple(sorted(pairs))))
            status, headers, body = cluster.answer(parts.path, dict(pairs))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_said: object) -> None:
            """Print nothing."""

    with http_server(Handler) as address:
        yield address


@pytest.fixture
def find(tmp_path: Path, make_settings: Callable[..., Settings]) -> Find:
    """Take the failed jobs of an address."""

    def of(url: str, since: datetime | None = None, **settings: int) -> FoundJobs:
        made, times = make_settings(**settings), len(list(tmp_path.glob("copies*")))
        spool = open_spool(tmp_path / f"copies{times}", made)
        return kubernetes_api.find_jobs(KubernetesQuery(url, since), spool, made)

    return of


@each_row("page", [500, 2])
def test_that_jobs_with_a_failed_pod_are_taken_with_all_their_pods(
    page: int, url: str, find: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any size of a list's pages; those that ended well, and Kubernetes' own, are left."""
    monkeypatch.setattr(kubernetes_api, "PAGE", page)
    found = find(url)
    jobs = {spec.name for spec in found.specs}
    assert jobs == {"jobs/llama", "jobs/server-7d9f8c5b6d-x2x9z", "jobs/lost-3"}
    (llama,) = (spec for spec in found.specs if spec.name == "jobs/llama")
    assert (llama.nodes, llama.gpus, llama.gpu_hours) == (1, 4, 8.0)
    assert llama.outcome
    assert (llama.outcome.exit_code, llama.started, llama.ended) == (1, BEGAN, ENDED)
    with open_jobs([Path(path) for path in llama.place.paths]) as source:
        texts = {part.name: b"".join(part.chunks()).decode() for part in source.parts()}
    assert {name.removesuffix(".zst") for name in texts} == {
        "llama-master-0/main.log",
        "llama-master-0/status.log",
        "llama-worker-0/main.log",
    }
    assert DIED in "".join(texts.values())
    assert "step 7" in "".join(texts.values())
    assert "hf_abc" not in "".join(texts.values())
    assert "of_kubernetes_itself" in found.left_out


def test_that_what_a_container_printed_before_it_was_started_anew_is_taken(url: str, find: Find) -> None:
    """And how it ended then."""
    found = find(url)
    (server,) = (spec for spec in found.specs if "server" in spec.name)
    texts = held(found)[server.name]
    assert DIED in texts["main.previous.log"]
    assert "starting" in texts["main.log"]
    assert "OOMKilled" in texts["status.log"]
    assert server.outcome
    assert server.outcome.exit_code == 137


def test_that_a_pod_without_a_log_is_told_by_its_status_and_events(url: str, find: Find) -> None:
    """An evicted pod has none that a node still keeps."""
    (texts,) = (texts for name, texts in held(find(url)).items() if "lost" in name)
    assert set(texts) == {"status.log"}
    assert "Reason: Evicted" in texts["status.log"]
    assert f"2026-11-20T10:00:00Z Warning Evicted pod/lost-3 {EVICTED}" in texts["status.log"]


def test_that_it_is_asked_as_kubernetes_own_client_asks(url: str, find: Find, cluster: StandIn) -> None:
    """Paths and parameters are those of the published API, and only of what a role of ours may read."""
    find(f"{url}/api/v1/namespaces/jobs")
    ours, cluster.asked = set(cluster.asked), []
    core = published.CoreV1Api(published.ApiClient(published.Configuration(host=url)))
    core.list_namespaced_pod("jobs", limit=kubernetes_api.PAGE)
    core.list_namespaced_event(
        "jobs", limit=kubernetes_api.PAGE, field_selector="involvedObject.kind=Pod", _preload_content=False
    )
    for pod, previous in LOGS:
        given = {"container": "main", "timestamps": True, "previous": previous == "true"}
        core.read_namespaced_pod_log(pod, "jobs", _preload_content=False, **given)
    theirs = {
        (path, tuple((name, value.lower() if name != "fieldSelector" else value) for name, value in pairs))
        for path, pairs in cluster.asked
    }
    assert theirs <= ours
    (role,) = (
        made
        for made in yaml.safe_load_all((ROOT / "deploy/kubernetes/watch.yaml").read_text(encoding="utf-8"))
        if made["kind"] == "Role"
    )
    allowed = {(kind, verb) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
    asked = {
        ("pods/log", "get") if path.endswith("/log") else (path.split("/")[-1], "list") for path, _ in ours
    }
    assert asked == allowed


def test_that_only_jobs_that_failed_since_are_taken(url: str, find: Find) -> None:
    """An evicted pod does not say when, and is taken."""
    assert [spec.name for spec in find(url, ENDED + timedelta(minutes=1)).specs] == ["jobs/lost-3"]


@each_row(
    "failures",
    [
        [(429, {"Retry-After": "0"}, {"message": "too many"}), (503, {}, {"message": "starting"})],
        [(500, {}, {"message": "etcdserver: request timed out"})] * 3,
        # A list that took too long; the API gives another mark to go on from.
        [(410, {}, {"message": "expired", "metadata": {"continue": "0"}})],
    ],
)
def test_that_what_fails_for_now_is_asked_again(
    failures: list[Any], url: str, find: Find, cluster: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "PAUSES", (0.0, 0.0, 0.0))
    cluster.failures = list(failures)
    assert find(url).count == 3


def test_that_a_missing_right_is_told_in_the_apis_words(url: str, find: Find, cluster: StandIn) -> None:
    cluster.failures = [(403, {}, {"message": 'pods is forbidden: User "x" cannot list resource "pods"'})]
    with pytest.raises(InvalidRequestError, match="could not be asked: pods is forbidden"):
        find(url)


@each_row(
    ("failure", "told"),
    [
        ((403, {}, {"message": "x" * (2 * http_client.MAX_REFUSAL)}), "HTTP 403"),
        ((302, {"Location": "http://127.0.0.1:9/stolen"}, {}), "HTTP 302"),
    ],
)
def test_that_a_refusal_fills_no_memory_and_leads_nowhere(
    failure: Any, told: str, url: str, find: Find, cluster: StandIn
) -> None:
    """Of its reason no more than the beginning is read, and no other address is asked."""
    cluster.failures = [failure]
    cluster.asked.clear()
    with pytest.raises(InvalidRequestError, match=told):
        find(url)
    assert len(cluster.asked) == 1


def test_that_a_list_without_an_end_is_given_up(
    url: str, find: Find, cluster: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark for more may be the same for ever."""
    monkeypatch.setattr(kubernetes_api, "MAX_PAGES", 5)
    cluster.failures = [(200, {}, {"items": [], "metadata": {"continue": "more"}})] * 9
    with pytest.raises(InvalidRequestError, match="has no end"):
        find(url)
    assert len(cluster.asked) == 5


@each_row("name", ["../../../nodes", "a/log?x=1#", "..", "x\x1b]0;y\x07\r\n"])
def test_that_a_pods_name_is_one_part_of_a_path(name: str, url: str, find: Find, cluster: StandIn) -> None:
    """Whatever an API gives for one: the log that is asked for is that of a pod."""
    cluster.pods = [_pod("lost-3", reason=""), _pod("lost-4")]
    for pod in cluster.pods:
        pod.metadata.name = name
    find(url)
    paths = [path for path, _ in cluster.asked if path.endswith("/log")]
    assert paths
    for path in paths:
        assert re.fullmatch(r"/api/v1/namespaces/jobs/pods/[^/]+/log", path), path
        assert not re.fullmatch(r"[.]+", path.split("/")[-2])


def test_that_a_log_that_is_refused_is_told(url: str, find: Find, cluster: StandIn) -> None:
    cluster.pods = [_pod("gone-0")]
    found = find(url)
    assert "gone-0/main.log" in str(found.left_out["logs_not_given"])
    assert [*held(found)["jobs/gone-0"]] == ["status.log"]


def test_that_more_jobs_than_a_batch_holds_are_refused(url: str, find: Find, tmp_path: Path) -> None:
    """Before any log is fetched; no copy stays."""
    with pytest.raises(TooLargeError):
        find(url, max_jobs=1)
    assert not [*tmp_path.glob("copies*")]


@each_row(
    "address",
    [
        "http://",
        "http://user:word@127.0.0.1:8001",
        "http://127.0.0.1:8001/api/v1/nodes",
        "http://127.0.0.1:8001/?watch=1",
        "http://127.0.0.1:8001/api/v1/namespaces/../secrets",
    ],
)
def test_that_other_addresses_are_refused(address: str, find: Find) -> None:
    with pytest.raises(InvalidRequestError, match="no address of Kubernetes"):
        find(address)


def test_that_the_pods_own_token_goes_to_its_own_cluster_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to another host, and never in the clear."""
    (tmp_path / "token").write_text("secret-of-the-pod\n", encoding="ascii")
    monkeypatch.setattr(kubernetes_api, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setattr(kubernetes_api.ssl, "create_default_context", lambda cafile: cafile)
    sent = {
        (scheme, host): kubernetes_api.account(scheme, host)[0].get("Authorization")
        for scheme in ("http", "https")
        for host in ("kubernetes.default.svc", "10.96.0.1", "kubernetes.default.svc.evil.org", "127.0.0.1")
    }
    told = {place for place, token in sent.items() if token}
    assert told == {("https", "kubernetes.default.svc"), ("https", "10.96.0.1")}
    assert sent[("https", "10.96.0.1")] == "Bearer secret-of-the-pod"


def test_that_a_watch_tells_a_pod_that_starts_anew_for_ever_once(
    url: str, cluster: StandIn, make_settings: Callable[..., Settings]
) -> None:
    """Its key stays, however often its container ends."""
    place = ended_jobs.find_in_kubernetes(url, make_settings())
    keys = []
    for code in (137, 139):
        cluster.pods = [_pod("server-0", phase="Running", code=None, previous=code)]
        cluster.pods[0].status.container_statuses[0].last_state.terminated.finished_at = ENDED + timedelta(
            seconds=code
        )
        keys += [job.key for job in place.find(ENDED)]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_that_a_watch_fetches_no_log_of_a_job_before_it_asks_for_it(
    url: str, cluster: StandIn, make_settings: Callable[..., Settings]
) -> None:
    """What is known to be answered, and what is well, costs a list and no log."""
    ended = list(ended_jobs.find_in_kubernetes(url, make_settings()).find(BEGAN))
    assert {path for path, _ in cluster.asked} == {"/api/v1/pods"}
    assert {job.name for job in ended} == {"jobs/llama", "jobs/lost-3", "jobs/server-7d9f8c5b6d-x2x9z"}
    cluster.asked.clear()
    for job in ended_jobs.find_in_kubernetes(url, make_settings()).find(BEGAN):
        if job.name == "jobs/llama":
            spec = job.fetch()
            assert spec
            assert all(Path(path).exists() for path in spec.place.paths)
    logs = {path for path, _ in cluster.asked if path.endswith("/log")}
    assert logs == {LOG.format("llama-master-0"), LOG.format("llama-worker-0")}


@pytest.mark.long
def test_that_one_command_triages_them(url: str, tmp_path: Path, warm: Path) -> None:
    """From the address to an answer for each job."""
    home = home_at(tmp_path / "home", warm)
    words = ["batch", "--kubernetes", f"{url}/api/v1/namespaces/jobs", "--out", "r.jsonl", "--workers", "1"]
    ended = whycrash(home, *words, folder=tmp_path)
    assert ended.code == EXPLAINED, ended.err
    rows = [json.loads(row) for row in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    causes = {row["source"]: row["cause"] for row in rows}
    assert causes["jobs/llama"] == "gpu-oom-training"
    # What Kubernetes' own reason of an eviction for memory stands for.
    assert causes["jobs/lost-3"] == "scheduler-terminated"


@pytest.mark.long
def test_that_a_watch_triages_them_once(url: str, tmp_path: Path, warm: Path) -> None:
    """The second look at the same cluster tells nothing."""
    home = home_at(tmp_path / "home", warm)
    words = ["watch", "kubernetes", "--api", url, "--once", "--json", "--since-hours", "100000"]
    first = whycrash(home, *words, folder=tmp_path)
    assert first.code == EXPLAINED, first.err
    causes = [json.loads(row)["cause"] for row in first.out.splitlines()]
    # Of a container that was OOMKilled, Kubernetes' word counts for more than what it printed before.
    assert sorted(causes) == ["gpu-oom-training", "host-oom-kill", "scheduler-terminated"]
    second = whycrash(home, *words, folder=tmp_path)
    assert (second.code, second.out) == (EXPLAINED, "")
