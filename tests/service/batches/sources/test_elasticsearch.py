"""The jobs of Elasticsearch and OpenSearch, by a stand-in of what both answer.

It refuses what they refuse: an unknown question, a composite aggregation without its order, a scroll that
was given back. What it is asked is held against the types of Elastic's published specification.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.logs.inputs.jobs import open_jobs
from service.batches.sources import elasticsearch
from service.batches.sources.elasticsearch import ElasticsearchQuery
from service.batches.sources.found import FoundJobs
from service.batches.sources.spool import open_spool
from service.monitoring import ended_jobs
from service.schemas.errors import InvalidRequestError
from service.settings import Settings
from tests import npm
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED, SECRET, held
from tests.service.batches.sources.serving import Asked, serving
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, whycrash

NOW = datetime.now(UTC).replace(microsecond=0)
# What Filebeat, and what Fluent Bit calls the same.
FILEBEAT = {
    "space": "kubernetes.namespace",
    "pod": "kubernetes.pod.name",
    "node": "kubernetes.node.name",
    "container": "kubernetes.container.name",
    "text": "message",
    "label": "kubernetes.labels.training_kubeflow_org/job-name",
}
FLUENT_BIT = {
    "space": "kubernetes.namespace_name",
    "pod": "kubernetes.pod_name",
    "node": "kubernetes.host",
    "container": "kubernetes.container_name",
    "text": "log",
    "label": "kubernetes.labels.training_kubeflow_org/job-name",
}

Find = Callable[..., FoundJobs]


class StandIn:
    """Documents by their fields; dynamic mappings have texts, and below each a keyword."""

    def __init__(self, names: dict[str, str], dynamic: bool = False) -> None:
        self.names = names
        self.suffix = ".keyword" if dynamic else ""
        self.documents: list[dict[str, Any]] = []
        self.scrolls: dict[str, list[Any]] = {}
        self.failures: list[tuple[int, Any]] = []
        self.asked: list[Asked] = []

    def add(
        self, pod: str, text: str, ago: timedelta, label: str = "", space: str = "train", **more: Any
    ) -> None:
        """Take a line in."""
        told = {"space": space, "pod": pod, "container": "main", "node": f"node-{pod[-1]}", "text": text}
        fields = {self.names[key]: value for key, value in told.items()}
        if label:
            fields[self.names["label"]] = label
        at = int((NOW - ago).timestamp() * 1000)
        self.documents.append({"@timestamp": at, **fields, **more})

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Answer a request."""
        self.asked.append(asked)
        if self.failures:
            return self.failures.pop(0)
        if asked.path == "/_search/scroll":
            return self._scrolled(asked)
        assert asked.path.startswith("/logs-*/"), asked.path
        if asked.path.endswith("/_field_caps"):
            return 200, {"indices": ["logs-1"], "fields": dict(self._capabilities())}
        return 200, self._searched(asked)

    def _capabilities(self) -> Iterator[tuple[str, Any]]:
        for name in {name for document in self.documents for name in document}:
            kind = "text" if self.suffix or name == self.names["text"] else "keyword"
            yield name, {kind: {"type": kind, "searchable": True, "aggregatable": kind == "keyword"}}
            if self.suffix:
                yield name + self.suffix, {"keyword": {"type": "keyword", "aggregatable": True}}

    def _searched(self, asked: Asked) -> Any:
        body = asked.body
        found = [document for document in self.documents if self._matches(body["query"], document)]
        if "aggs" in body:
            assert body["size"] == 0
            return {"aggregations": {"series": self._composite(body["aggs"]["series"], found)}}
        first, second, third = (next(iter(each.items())) for each in body["sort"])
        assert (first[0], second[0], third[0]) == ("@timestamp", "log.offset", "_doc")
        ordered = sorted(
            found, key=lambda d: (d["@timestamp"], d.get("log.offset", 0), self.documents.index(d))
        )
        if first[1]["order"] == "desc":
            ordered.reverse()
        name = f"scroll-{len(self.scrolls)}"
        hits = [
            {
                "_source": {key: d[key] for key in body["_source"]["includes"] if key in d},
                "sort": [d["@timestamp"], 0, 1],
            }
            for d in ordered
        ]
        size = body["size"]
        self.scrolls[name] = [hits[at : at + size] for at in range(size, len(hits), size)]
        return {"_scroll_id": name, "hits": {"hits": hits[:size]}}

    def _scrolled(self, asked: Asked) -> tuple[int, Any]:
        if asked.method == "DELETE":
            for name in asked.body["scroll_id"]:
                self.scrolls[name] = []
            return 200, {"succeeded": True, "num_freed": 1}
        pages = self.scrolls[asked.body["scroll_id"]]
        return 200, {"_scroll_id": asked.body["scroll_id"], "hits": {"hits": pages.pop(0) if pages else []}}

    def _value(self, document: dict[str, Any], field: str) -> Any:
        return document.get(field.removesuffix(self.suffix) if self.suffix else field)

    def _composite(self, asked: Any, found: list[dict[str, Any]]) -> Any:
        """Give buckets in the order of their keys, nulls first, after the one that was told."""
        given = asked["composite"]
        fields = {key: each["terms"] for source in given["sources"] for key, each in source.items()}
        assert all(each["missing_bucket"] for each in fields.values())
        groups: dict[tuple[Any, ...], list[int]] = {}
        for document in found:
            key = tuple(self._value(document, each["field"]) for each in fields.values())
            groups.setdefault(key, []).append(document["@timestamp"])
        keys = sorted(groups, key=lambda key: tuple((value is not None, value or "") for value in key))
        if "after" in given:
            keys = keys[keys.index(tuple(given["after"].values())) + 1 :]
        keys = keys[: given["size"]]
        buckets = [
            {
                "key": dict(zip(fields, key, strict=True)),
                "doc_count": len(groups[key]),
                "began": {"value": float(min(groups[key]))},
                "ended": {"value": float(max(groups[key]))},
            }
            for key in keys
        ]
        return {"buckets": buckets, **({"after_key": buckets[-1]["key"]} if buckets else {})}

    def _matches(self, query: Any, document: dict[str, Any]) -> bool:
        ((kind, given),) = query.items()
        if kind == "bool":
            should = given.get("should", [])
            return (
                all(self._matches(each, document) for each in given.get("filter", []))
                and not any(self._matches(each, document) for each in given.get("must_not", []))
                and (not should or any(self._matches(each, document) for each in should))
            )
        if kind == "query_string":
            return any(given["query"] in str(value) for value in document.values())
        ((field, value),) = given.items()
        if kind == "range":
            assert value["format"] == "epoch_millis"
            return int(value["gte"]) <= document[field] <= int(value["lte"])
        if kind == "exists":
            return self._value(document, str(value)) is not None
        assert kind == "term", kind
        return bool(self._value(document, field) == value["value"])


@pytest.fixture(params=["filebeat", "fluent-bit"])
def server(request: pytest.FixtureRequest) -> StandIn:
    """Hold a job of two pods of which one failed, a job that ended well, and one of Kubernetes' own."""
    made = StandIn(FILEBEAT) if request.param == "filebeat" else StandIn(FLUENT_BIT, dynamic=True)
    made.add("llama-master-0", "step 1", timedelta(hours=2), "llama")
    made.add("llama-master-0", SECRET, timedelta(hours=2), "llama")
    made.add("llama-worker-1", "step 1 of the worker", timedelta(hours=2), "llama")
    made.add("llama-master-0", DIED, timedelta(hours=1), "llama")
    made.add("fine-0", "Training completed successfully", timedelta(hours=1))
    made.add("coredns-x", "ready", timedelta(hours=1), space="kube-system")
    return made


@pytest.fixture
def url(server: StandIn) -> Iterator[str]:
    with serving(server.answer) as address:
        yield f"{address}/logs-*"


@pytest.fixture
def find(tmp_path: Path, make_settings: Callable[..., Settings]) -> Find:
    """Take the jobs of an index."""

    def of(url: str, words: str = "", job_field: str = "") -> FoundJobs:
        made = make_settings()
        spool = open_spool(tmp_path / f"copies{len(list(tmp_path.glob('copies*')))}", made)
        asked = ElasticsearchQuery(url, NOW - timedelta(days=1), words, job_field)
        return elasticsearch.find_jobs(asked, spool, made)

    return of


@each_row("page", [1, 1000])
def test_that_lines_become_jobs_with_a_file_for_each_container(
    page: int, url: str, find: Find, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the fields of either collector, of pages of any size; each scroll is given back."""
    monkeypatch.setattr(elasticsearch, "PAGE", page)
    monkeypatch.setattr(elasticsearch, "SERIES", page)
    server.asked.clear()
    server.scrolls.clear()
    found = find(url)
    assert {spec.name for spec in found.specs} == {"train/llama", "train/fine-0"}
    (llama,) = (spec for spec in found.specs if spec.name == "train/llama")
    assert (llama.started, llama.ended) == (NOW - timedelta(hours=2), NOW - timedelta(hours=1))
    assert set(llama.node_names) == {"node-0", "node-1"}
    with open_jobs([Path(path) for path in llama.place.paths]) as source:
        texts = {part.name.removesuffix(".zst"): b"".join(part.chunks()).decode() for part in source.parts()}
    assert set(texts) == {"llama-master-0/main.log", "llama-worker-1/main.log"}
    master = texts["llama-master-0/main.log"]
    assert (master.splitlines()[0], master.splitlines()[-1]) == ("step 1", DIED.strip())
    assert "hf_abc" not in master
    freed = {name for asked in server.asked if asked.method == "DELETE" for name in asked.body["scroll_id"]}
    assert freed == set(server.scrolls)


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of TypeScript, and of the types that Elastic makes of its published specification."""
    return npm.installed(Path(__file__).parent / "elasticsearch_types", tmp_path_factory.mktemp("types"))


def _type_errors(types: Path, requests: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """Tell what the published types find wrong with requests, each with the name of its type."""
    rows = ['import type { estypes } from "@elastic/elasticsearch";']
    for number, (name, fields) in enumerate(requests):
        rows.append(f"export const asked{number}: estypes.{name} = {json.dumps(fields)};")
    (types / "asked.ts").write_text("\n".join(rows), encoding="utf-8")
    command = ["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"]
    ended = subprocess.run([*command, "asked.ts"], cwd=types, capture_output=True, check=False, text=True)
    return ended.stdout.splitlines()


def _published(asked: Asked) -> tuple[str, dict[str, Any]]:
    """Give a request as the published types have it: the path's parts and the parameters as fields."""
    index, _, kind = asked.path.strip("/").rpartition("/")
    name = {"_field_caps": "FieldCapsRequest", "_search": "SearchRequest"}.get(
        kind, "ScrollRequest" if asked.method == "POST" else "ClearScrollRequest"
    )
    place = {} if kind == "scroll" else {"index": index}
    return name, place | dict(asked.given) | (asked.body or {})


@pytest.mark.long
def test_that_the_published_types_take_what_is_asked(
    url: str, find: Find, server: StandIn, types: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field of each request, however deep, is one that the specification knows."""
    monkeypatch.setattr(elasticsearch, "PAGE", 1)
    monkeypatch.setattr(elasticsearch, "SERIES", 1)
    assert find(url, "step").count
    requests = [_published(asked) for asked in server.asked]
    kinds = {"FieldCapsRequest", "SearchRequest", "ScrollRequest", "ClearScrollRequest"}
    assert {name for name, _ in requests} == kinds
    assert _type_errors(types, requests) == []
    wrong = {"index": "a", "query": {"bool": {"filtr": []}}}
    (told,) = _type_errors(types, [("SearchRequest", wrong)])
    assert "filtr" in told


def test_that_lines_of_one_moment_keep_the_order_that_their_shipper_numbered(
    url: str, find: Find, server: StandIn
) -> None:
    server.documents.clear()
    for offset in (30, 10, 20):
        server.add("a-0", f"line {offset}", timedelta(hours=1), **{"log.offset": offset})
    (texts,) = held(find(url)).values()
    assert "".join(texts.values()) == "line 10\nline 20\nline 30\n"


def test_that_lines_without_a_field_are_not_mixed_with_those_that_have_it(
    url: str, find: Find, server: StandIn
) -> None:
    """A query for a service's lines would match those of its pods too."""
    server.documents.clear()
    server.add("a-0", "of the pod", timedelta(hours=1), **{"service.name": "x"})
    at = int((NOW - timedelta(hours=1)).timestamp() * 1000)
    server.documents.append({"@timestamp": at, "service.name": "x", server.names["text"]: "of the service"})
    texts = {name: "".join(files.values()) for name, files in held(find(url)).items()}
    assert texts == {"train/a-0": "of the pod\n", "x": "of the service\n"}


def test_that_a_field_of_ones_own_tells_jobs_and_words_narrow_them(
    url: str, find: Find, server: StandIn
) -> None:
    server.documents.clear()
    server.add("a-0", "one", timedelta(hours=1), run="7")
    server.add("a-0", "two", timedelta(hours=1), run="8")
    field = f"run{server.suffix}"
    assert {spec.name for spec in find(url, job_field=field).specs} == {"train/7", "train/8"}
    assert [spec.name for spec in find(url, "two", field).specs] == ["train/8"]


@each_row(
    "variables",
    [
        ({"ELASTICSEARCH_API_KEY": "of-the-team"}, "ApiKey of-the-team"),
        ({"ELASTICSEARCH_USERNAME": "me", "ELASTICSEARCH_PASSWORD": "word"}, "Basic bWU6d29yZA=="),
    ],
)
def test_that_who_asks_is_told_with_each_request(
    variables: tuple[dict[str, str], str],
    url: str,
    find: Find,
    server: StandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, header = variables
    server.asked.clear()
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    find(url)
    assert {asked.headers["authorization"] for asked in server.asked} == {header}


def test_that_a_refusal_is_told_in_the_servers_words(url: str, find: Find, server: StandIn) -> None:
    root = {"type": "security_exception", "reason": "missing authentication credentials"}
    server.failures = [(401, {"error": {"root_cause": [root], **root}, "status": 401})]
    with pytest.raises(InvalidRequestError, match="could not be asked: missing authentication credentials"):
        find(url)


def test_that_a_list_without_an_end_is_refused(
    url: str, find: Find, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elasticsearch, "SERIES", 1)
    monkeypatch.setattr(elasticsearch, "MOST_PAGES", 3)
    with pytest.raises(InvalidRequestError, match="has no end"):
        find(url)
    server.documents = server.documents[:1]
    assert find(url).count == 1


def test_that_an_index_without_a_telling_field_is_refused(url: str, find: Find, server: StandIn) -> None:
    server.documents = [{"@timestamp": 0, "message": "a line"}]
    with pytest.raises(InvalidRequestError, match="--job-label"):
        find(url)


def test_that_a_watch_waits_until_a_job_is_quiet(
    url: str, server: StandIn, make_settings: Callable[..., Settings]
) -> None:
    """A job of which one pod still prints is not over."""
    server.documents.clear()
    server.add("llama-master-0", DIED, timedelta(hours=1))
    # By the clock: the tests may have begun longer ago than a job must be quiet.
    server.add("llama-worker-0", "step 9", NOW - datetime.now(UTC))
    server.add("over-0", DIED, timedelta(hours=1))
    place = ended_jobs.find_in_elasticsearch(url, "", "", 1800.0, make_settings())
    assert [job.name for job in place.find(NOW - timedelta(hours=2))] == ["train/over-0"]


@pytest.mark.long
def test_that_one_command_triages_them(url: str, tmp_path: Path, warm: Path) -> None:
    """From the address to an answer for each job, in a batch and in a watch."""
    home = home_at(tmp_path / "home", warm)
    words = ["batch", "--elasticsearch", url, "--out", "r.jsonl", "--workers", "1"]
    ended = whycrash(home, *words, folder=tmp_path)
    assert ended.code == EXPLAINED, ended.err
    rows = [json.loads(row) for row in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["source"]: row["cause"] for row in rows}["train/llama"] == "gpu-oom-training"
    watch = ["watch", "elasticsearch", "--api", url, "--once", "--json", "--since-hours", "24"]
    told = whycrash(home, *watch, folder=tmp_path)
    assert [json.loads(row)["cause"] for row in told.out.splitlines()] == ["gpu-oom-training"], told.err
