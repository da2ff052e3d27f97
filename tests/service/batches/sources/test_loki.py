"""The jobs of Loki, by a stand-in that answers as its published API says (`test_loki_api.py`).

A line's time is within [start, end), an answer has `limit` lines of all streams together at most, and more
than the server allows are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.logs.inputs.jobs import open_jobs
from service.batches.sources import http_client, log_series, loki
from service.batches.sources.found import FoundJobs
from service.batches.sources.loki import LokiQuery
from service.batches.sources.spool import open_spool
from service.monitoring import ended_jobs
from service.schemas.errors import InvalidRequestError, TooLargeError
from service.settings import Settings
from tests.service.batches.jobs import home_at
from tests.service.batches.sources.handing import DIED, SECRET, held
from tests.service.batches.sources.serving import Asked, serving
from tests.tables import each_row
from tests.ui.shell import EXPLAINED, whycrash

NOW = datetime.now(UTC).replace(microsecond=0)
SECOND = 1_000_000_000
MATCHER = re.compile(r'(\w+)\s*(=~|=)\s*("(?:[^"\\]|\\.)*")')
MOST = 5000

Labels = dict[str, str]
Find = Callable[..., FoundJobs]


def ago(**span: float) -> int:
    """Give a moment before now as Loki counts, in nanoseconds."""
    return int((NOW - timedelta(**span)).timestamp()) * SECOND


def pod(name: str, namespace: str = "train", **labels: str) -> Labels:
    """Make the labels that a collector gives the lines of a pod's container."""
    return {"namespace": namespace, "pod": name, "container": "main", **labels}


class StandIn:
    """Streams of lines; `failures` are answered first."""

    def __init__(self) -> None:
        self.streams: list[tuple[Labels, list[tuple[int, str]]]] = []
        self.failures: list[tuple[int, str]] = []
        self.asked: list[Asked] = []

    def add(self, labels: Labels, *lines: tuple[int, str]) -> None:
        """Take lines in."""
        self.streams.append((labels, list(lines)))

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Answer a request."""
        self.asked.append(asked)
        if self.failures:
            return self.failures.pop(0)
        begin, end = int(asked.given["start"]), int(asked.given["end"])
        kind = asked.path.removeprefix("/loki/api/v1/")
        if kind == "labels":
            return 200, {
                "status": "success",
                "data": sorted({name for each, _ in self.streams for name in each}),
            }
        matching = [
            (labels, [line for line in lines if begin <= line[0] < end])
            for labels, lines in self.streams
            if self._matches(asked.given["match[]" if kind == "series" else "query"], labels)
        ]
        matching = [(labels, lines) for labels, lines in matching if lines]
        if kind == "series":
            return 200, {"status": "success", "data": [labels for labels, _ in matching]}
        assert kind == "query_range"
        limit = int(asked.given["limit"])
        if limit > MOST:
            return 400, f"max entries limit per query exceeded, limit > max_entries_limit ({limit} > {MOST})"
        backward = asked.given["direction"] == "backward"
        rows = [(when, text, at) for at, (_, lines) in enumerate(matching) for when, text in lines]
        rows = sorted(rows, key=lambda row: row[0], reverse=backward)[:limit]
        result = [
            {"stream": labels, "values": [[str(when), text] for when, text, of in rows if of == at]}
            for at, (labels, _) in enumerate(matching)
        ]
        return 200, {"status": "success", "data": {"resultType": "streams", "result": result, "stats": {}}}

    @staticmethod
    def _matches(selector: str, labels: Labels) -> bool:
        found = MATCHER.findall(selector)
        assert "{" + ", ".join("".join(each) for each in found) + "}" == selector, selector
        return all(
            re.fullmatch(json.loads(value), labels.get(name, ""))
            if sign == "=~"
            else labels.get(name, "") == json.loads(value)
            for name, sign, value in found
        )


@pytest.fixture
def server() -> StandIn:
    """Hold a job of two pods of which one failed, a job that ended well, and one of Kubernetes' own."""
    made = StandIn()
    label = {"training_kubeflow_org_job_name": "llama"}
    made.add(pod("llama-master-0", **label, node_name="node-1", stream="stdout"), (ago(hours=2), "step 1"))
    made.add(
        pod("llama-master-0", **label, node_name="node-1", stream="stderr"),
        (ago(hours=2) + 1, f"{SECRET}\n"),
        (ago(hours=1), DIED),
    )
    made.add(pod("llama-worker-0", **label, node_name="node-2"), (ago(hours=2), "step 1 of the worker"))
    made.add(pod("fine-0"), (ago(hours=1), "Training completed successfully"))
    made.add(pod("coredns-x", "kube-system"), (ago(hours=1), "ready"))
    return made


@pytest.fixture
def url(server: StandIn) -> Iterator[str]:
    with serving(server.answer) as address:
        yield address


@pytest.fixture
def find(tmp_path: Path, make_settings: Callable[..., Settings]) -> Find:
    """Take the jobs of an address."""

    def of(
        url: str, selector: str = "", answered: Any = (), job_label: str = "", **settings: int
    ) -> FoundJobs:
        folder = tmp_path / f"copies{len(list(tmp_path.glob('copies*')))}"
        return find_in(url, folder, make_settings(**settings), selector, job_label)

    return of


def find_in(url: str, folder: Path, settings: Settings, selector: str = "", job_label: str = "") -> FoundJobs:
    """Take the jobs of a day of an address, with copies in a folder."""
    asked = LokiQuery(url, NOW - timedelta(days=1), selector, job_label)
    return loki.find_jobs(asked, open_spool(folder, settings), settings)


@each_row("selector", ["", '{namespace=~".+"}', '{namespace="train"}'])
def test_that_streams_become_jobs_with_a_file_for_each_container(
    selector: str, url: str, find: Find, server: StandIn
) -> None:
    """By the operator's label, else by pods' names; what a container printed is one file, in order."""
    found = find(url, selector)
    assert {spec.name for spec in found.specs} == {"train/llama", "train/fine-0"}
    (llama,) = (spec for spec in found.specs if spec.name == "train/llama")
    assert (llama.ended, llama.nodes) == (NOW - timedelta(hours=1), 2)
    assert set(llama.node_names) == {"node-1", "node-2"}
    with open_jobs([Path(path) for path in llama.place.paths]) as source:
        texts = {part.name.removesuffix(".zst"): b"".join(part.chunks()).decode() for part in source.parts()}
    assert set(texts) == {"llama-master-0/main.log", "llama-worker-0/main.log"}
    master = texts["llama-master-0/main.log"]
    assert master.startswith("step 1\n")
    assert master.endswith(DIED)
    assert "hf_abc" not in master


@each_row("page", [1, 2, 3, 1000])
def test_that_every_line_comes_once_and_in_order_whatever_a_page_holds(
    page: int, url: str, find: Find, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a page ends among lines of one moment; of more than a page holds of one, a page is had."""
    monkeypatch.setattr(loki, "PAGE", page)
    server.streams.clear()
    server.add(pod("a-0"), *((ago(hours=1) + number // 2, f"line {number}") for number in range(20)))
    (texts,) = held(find(url)).values()
    lines = [line for text in texts.values() for line in text.splitlines()]
    whole = [f"line {number}" for number in range(20)]
    assert lines == (whole if page > 1 else whole[::2])


def test_that_a_long_log_gives_its_beginning_and_its_end(
    url: str, find: Find, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says that its middle is left out; one that is a little longer than its beginning is whole."""
    monkeypatch.setattr(loki, "PAGE", 2)
    monkeypatch.setattr(log_series, "END_LINES", 4)
    server.streams.clear()
    server.add(pod("long-0"), *((ago(hours=1) + number, f"line {number}") for number in range(30)))
    server.add(pod("short-0"), *((ago(hours=1) + number, f"line {number}") for number in range(7)))
    found = find(url)
    texts = {name: "".join(files.values()).splitlines() for name, files in held(found).items()}
    assert texts["train/short-0"] == [f"line {number}" for number in range(7)]
    assert texts["train/long-0"] == [f"line {number}" for number in (0, 1, 2, 3, 26, 27, 28, 29)]
    assert "long-0/main.log" in str(found.left_out["middle_of_long_logs"])


def test_that_streams_with_fewer_labels_are_not_mixed_with_those_with_more(
    url: str, find: Find, server: StandIn
) -> None:
    """A selector matches what has more labels too."""
    server.streams.clear()
    server.add({"service_name": "x"}, (ago(hours=1), "of the service"))
    server.add({"service_name": "x", "filename": "/logs/a.out"}, (ago(hours=1), "of the file"))
    texts = {name: "".join(files.values()) for name, files in held(find(url)).items()}
    assert texts == {"x": "of the service\n", "/logs/a.out": "of the file\n"}


def test_that_a_label_of_ones_own_tells_jobs(url: str, find: Find, server: StandIn) -> None:
    server.add({"service_name": "x", "run": 'a"b\\c'}, (ago(hours=1), "of a run"))
    found = find(url, '{run=~".+"}', job_label="run")
    assert [spec.name for spec in found.specs] == ['a"b\\c']


def test_that_who_asks_is_told_by_the_variables_of_lokis_own_client(
    url: str, find: Find, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each request, and no other header of theirs."""
    monkeypatch.setenv("LOKI_BEARER_TOKEN", "of-the-team")
    monkeypatch.setenv("LOKI_ORG_ID", "train")
    find(url)
    assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer of-the-team"}
    assert {asked.headers["x-scope-orgid"] for asked in server.asked} == {"train"}


@each_row("status", [429, 500, 503])
def test_that_what_fails_for_now_is_asked_again(
    status: int, url: str, find: Find, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "PAUSES", (0.0, 0.0))
    server.failures = [(status, "not now")] * 2
    assert find(url).count == 2


def test_that_a_refusal_is_told_in_the_servers_words(url: str, find: Find, server: StandIn) -> None:
    server.failures = [(401, "no org id")]
    with pytest.raises(InvalidRequestError, match="could not be asked: no org id"):
        find(url)


@each_row("selector", ['namespace="train"', '{namespace="train"} |= "error"', "train"])
def test_that_what_is_no_selector_is_refused(selector: str, url: str, find: Find) -> None:
    with pytest.raises(InvalidRequestError, match="no stream selector"):
        find(url, selector)


@each_row(
    "address", ["http://", "ftp://127.0.0.1", "http://user:word@127.0.0.1:3100", "http://127.0.0.1/?x=1"]
)
def test_that_other_addresses_are_refused(address: str, find: Find) -> None:
    with pytest.raises(InvalidRequestError, match="no address of Loki"):
        find(address)


def test_that_more_jobs_than_a_batch_holds_are_refused_before_any_log_is_fetched(
    url: str, find: Find, server: StandIn, tmp_path: Path
) -> None:
    with pytest.raises(TooLargeError):
        find(url, max_jobs=1)
    assert not [*tmp_path.glob("copies*")]
    assert not [asked for asked in server.asked if asked.given.get("limit") == str(loki.PAGE)]


def test_that_a_watch_waits_until_a_job_is_quiet_and_tells_it_once(
    url: str, server: StandIn, make_settings: Callable[..., Settings]
) -> None:
    """A job of which one pod still prints is not over."""
    server.streams.clear()
    just_now = int(datetime.now(UTC).timestamp()) * SECOND
    server.add(pod("llama-master-0"), (ago(hours=1), DIED))
    server.add(pod("llama-worker-0"), (just_now, "step 9"))
    server.add(pod("over-0"), (ago(hours=1), DIED))
    place = ended_jobs.find_in_loki(url, "", "", 1800.0, make_settings())
    seen = [(job.name, job.key) for job in place.find(NOW - timedelta(hours=2))]
    assert [name for name, _ in seen] == ["train/over-0"]
    assert seen == [(job.name, job.key) for job in place.find(NOW - timedelta(hours=2))]


@pytest.mark.long
def test_that_one_command_triages_them_and_the_next_only_what_is_new(
    url: str, server: StandIn, tmp_path: Path, warm: Path
) -> None:
    """From the address to an answer for each job; with --new, none of them again."""
    home = home_at(tmp_path / "home", warm)
    words = ["batch", "--loki", url, "--since", "1d", "--new", "--workers", "1"]
    ended = whycrash(home, *words, "--out", "first.jsonl", folder=tmp_path)
    assert ended.code == EXPLAINED, ended.err
    rows = [json.loads(row) for row in (tmp_path / "first.jsonl").read_text(encoding="utf-8").splitlines()]
    causes = {row["source"]: row["cause"] for row in rows}
    assert causes["train/llama"] == "gpu-oom-training"
    nothing = whycrash(home, *words, "--out", "second.jsonl", folder=tmp_path)
    assert (nothing.code, (tmp_path / "second.jsonl").exists()) == (4, False), nothing.err
    server.add(pod("other-0"), (ago(minutes=30), DIED))
    third = whycrash(home, *words, "--out", "third.jsonl", folder=tmp_path)
    assert third.code == EXPLAINED, third.err
    told = [json.loads(row)["source"] for row in (tmp_path / "third.jsonl").read_text("utf-8").splitlines()]
    assert told == ["train/other-0"]
