"""The jobs of Elasticsearch or OpenSearch: lines by their fields, read page by page into redacted copies.

What is asked, both answer alike in all versions since 6.4: fields' capabilities, a composite aggregation by
the fields that tell a job and its files, and a scroll over the lines of one file. As with Loki, triage tells
which jobs failed.
https://www.elastic.co/docs/reference/aggregations/search-aggregations-bucket-composite-aggregation
https://opensearch.org/docs/latest/api-reference/scroll/
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from corpus.message import Message
from ingest.logs.inputs.members import Skipped
from service.batches.sources import log_series
from service.batches.sources.candidates import JobCandidate, fetch_all
from service.batches.sources.found import FoundJobs, shown_path
from service.batches.sources.http_client import JsonApi
from service.batches.sources.log_series import Line, LineSeries, SeriesJob, group_series, keep_file
from service.batches.sources.spool import BatchSpool, SpooledJob
from service.schemas.errors import InvalidRequestError
from service.schemas.records import JobSpec
from service.settings import Settings

# Lines of a page, and series of one.
PAGE, SERIES = 1000, 1000
MOST_PAGES = 1000
# How long the server keeps a scroll between two pages.
KEPT = "2m"
LONGEST_JOB = timedelta(days=7)
KIND = "Elasticsearch"
TIME = "@timestamp"
# Of one moment there are more lines; shippers number them, else the order in which they came is the best.
_NUMBERED = "log.offset"
# Where a line's text stands: the Elastic Common Schema, Fluent Bit, OpenTelemetry, what a parser left.
_TEXTS = ("message", "log", "body.text", "body", "event.original", "msg")
# Names of fields that may say whose line it is, so that not all of an index's are listed.
_ASKED = (
    "*pod*",
    "*namespace*",
    "*container*",
    "*node*",
    "*host*",
    "*file*",
    "*job*",
    "*cluster*",
    "*jobset*",
    "*leaderworkerset*",
    "*service*",
    "*unit*",
    "app",
    "app.keyword",
)
# Several operators may name a job in one index.
_MOST_JOB_FIELDS = 4


@dataclass(frozen=True)
class ElasticsearchQuery:
    """What is asked for: jobs with lines since a time, of which the last is no younger than `quiet`.

    `url` has the index, or a pattern of them, behind it. `words` narrow it, in Lucene's syntax; `job_field`
    names the field that tells a job, where it is none that is known.
    """

    url: str
    since: datetime
    words: str = ""
    job_field: str = ""
    quiet: timedelta | None = None


class _Capability(BaseModel):
    aggregatable: bool = False


class _FieldCapabilities(BaseModel):
    fields: dict[str, dict[str, _Capability]] = {}


class _Moment(BaseModel):
    # Milliseconds since 1970.
    value: float | None = None


class _SeriesBucket(BaseModel):
    key: dict[str, str | int | float | bool | None]
    began: _Moment = _Moment()
    ended: _Moment = _Moment()


class _Buckets(BaseModel):
    buckets: list[_SeriesBucket] = []
    after_key: dict[str, Any] | None = None


class _Aggregations(BaseModel):
    series: _Buckets = _Buckets()


class _Aggregated(BaseModel):
    aggregations: _Aggregations = _Aggregations()


class _Hit(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    source: dict[str, Any] = Field(default={}, alias="_source")
    sort: list[Any] = []


class _Hits(BaseModel):
    hits: list[_Hit] = []


class _ScrollPage(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    scroll: str = Field(default="", alias="_scroll_id")
    hits: _Hits = _Hits()


class _AnyAnswer(BaseModel):
    """Whatever it answers."""


def find_jobs(
    asked: ElasticsearchQuery, spool: BatchSpool, settings: Settings, answered: Container[str] = ()
) -> FoundJobs:
    """Fetch the logs of all jobs; raises InvalidRequestError, TooLargeError.

    Where it raises, no copy stays.
    """
    where = shown_path(asked.url)
    return fetch_all(lambda skipped: open_jobs(asked, skipped), where, spool, settings, answered)


@contextmanager
def open_jobs(asked: ElasticsearchQuery, skipped: Skipped) -> Iterator[list[JobCandidate]]:
    """Give the jobs that have lines; raises InvalidRequestError."""
    # A gateway may have the server below a path of its own; the last part is the index.
    place, _, index = asked.url.rstrip("/").rpartition("/")
    has_index = not place.endswith("/")
    with JsonApi(KIND, place if has_index else asked.url, _headers(), _reason) as api:
        server = _Elasticsearch(api, f"/{index}" if has_index else "", asked.words)
        now = datetime.now(UTC)
        quiet_since = now - (asked.quiet or timedelta())
        jobs = group_series(server.series(asked, now), asked.job_field, skipped)
        ended = [(job, max(each.ended for each in job.series if each.ended)) for job in jobs]
        yield [_candidate(server, job, end) for job, end in ended if asked.quiet is None or end < quiet_since]


def _candidate(server: _Elasticsearch, job: SeriesJob, ended: datetime) -> JobCandidate:
    def fetch(copies: SpooledJob, skipped: Skipped) -> JobSpec | None:
        for name, series in job.files.items():

            def pages(from_end: bool, of: Sequence[LineSeries] = series) -> Iterator[list[Line]]:
                return server.pages(of, ended, from_end)

            keep_file(f"{name}.log", pages, copies, skipped)
        if not copies.logs:
            return None
        nodes = job.nodes
        return JobSpec(
            name=job.name,
            place=copies.place(),
            started=min((each.began for each in job.series if each.began), default=None),
            ended=ended,
            nodes=len(nodes) or None,
            node_names=nodes,
        )

    return JobCandidate(f"{job.name}|{ended.isoformat()}", job.name, fetch)


class _Elasticsearch:
    """Questions about the lines of an index."""

    def __init__(self, api: JsonApi, index: str, words: str) -> None:
        self._api = api
        self._index = index
        self._words = words

    def series(self, asked: ElasticsearchQuery, until: datetime) -> Iterator[LineSeries]:
        """Give what tells lines apart, page by page, with the times of the first and the last."""
        fields = self._fields(asked.job_field)
        # Under names of our own: a field's may hold what no aggregation is called.
        names = {f"f{number}": name for number, name in enumerate(fields)}
        sources = [{key: {"terms": {"field": name, "missing_bucket": True}}} for key, name in names.items()]
        after: dict[str, Any] | None = {}
        for _ in range(MOST_PAGES):
            composite = {"size": SERIES, "sources": sources, **({"after": after} if after else {})}
            body = {
                "size": 0,
                "query": self._query(asked.since, until, []),
                "aggs": {
                    "series": {
                        "composite": composite,
                        "aggs": {"began": {"min": {"field": TIME}}, "ended": {"max": {"field": TIME}}},
                    }
                },
            }
            found = self._api.send("POST", f"{self._index}/_search", {}, body, _Aggregated)
            for bucket in found.aggregations.series.buckets:
                told = {key: "" if value is None else str(value) for key, value in bucket.key.items()}
                began, ended = _time(bucket.began), _time(bucket.ended)
                if ended and any(told.values()):
                    yield LineSeries({names[key]: value for key, value in told.items()}, began, ended)
            after = found.aggregations.series.after_key
            if after is None:
                return
        raise self._api.refused("the list of its series has no end")

    def _fields(self, job_field: str) -> list[str]:
        """Choose the fields that tell jobs and their files apart: of each role the shortest name."""
        given = {"fields": ",".join((*_ASKED, *([job_field] if job_field else [])))}
        listed = self._api.get(f"{self._index}/_field_caps", given, _FieldCapabilities).fields
        usable = sorted(
            (name for name, kinds in listed.items() if all(kind.aggregatable for kind in kinds.values())),
            key=lambda name: (len(name), name),
        )
        by_role: dict[str, list[str]] = {}
        for name in usable:
            if (found := log_series.role(name)) is not None:
                by_role.setdefault(found, []).append(name)
        jobs = [job_field] if job_field in usable else by_role.get("job", [])[:_MOST_JOB_FIELDS]
        others = [by_role[kind][0] for kind in log_series.OTHER_ROLES if kind in by_role]
        chosen = list(dict.fromkeys([*jobs, *others]))
        if not chosen:
            raise InvalidRequestError(
                Message("errors.elasticsearch-no-fields", url=shown_path(f"{self._api.place}{self._index}"))
            )
        return chosen

    def pages(self, series: Sequence[LineSeries], ended: datetime, from_end: bool) -> Iterator[list[Line]]:
        """Yield a file's lines page by page; the scroll is given back."""
        order = "desc" if from_end else "asc"
        alike = {"bool": {"should": [_filter(each.labels) for each in series], "minimum_should_match": 1}}
        body = {
            "size": PAGE,
            "query": self._query(ended - LONGEST_JOB, ended, [alike]),
            "sort": [
                {TIME: {"order": order}},
                {_NUMBERED: {"order": order, "unmapped_type": "long"}},
                {"_doc": {"order": order}},
            ],
            "_source": {"includes": list(_TEXTS)},
        }
        found = self._api.send("POST", f"{self._index}/_search", {"scroll": KEPT}, body, _ScrollPage)
        try:
            while hits := found.hits.hits:
                yield [Line(_order(hit), _text(hit.source)) for hit in hits]
                again = {"scroll": KEPT, "scroll_id": found.scroll}
                found = self._api.send("POST", "/_search/scroll", {}, again, _ScrollPage)
        finally:
            with suppress(InvalidRequestError):  # it ends by itself
                self._api.send("DELETE", "/_search/scroll", {}, {"scroll_id": [found.scroll]}, _AnyAnswer)

    def _query(self, since: datetime, until: datetime, filters: Sequence[object]) -> object:
        begin, end = str(_milliseconds(since)), str(_milliseconds(until) + 1)
        span = {"gte": begin, "lte": end, "format": "epoch_millis"}
        words = [{"query_string": {"query": self._words}}] if self._words else []
        return {"bool": {"filter": [{"range": {TIME: span}}, *words, *filters]}}


def _filter(labels: Mapping[str, str]) -> object:
    """Match the lines of one series: what it does not have, they do not have either."""
    has = [{"term": {name: {"value": value}}} for name, value in sorted(labels.items()) if value]
    lacks = [{"exists": {"field": name}} for name, value in sorted(labels.items()) if not value]
    return {"bool": {"filter": has, "must_not": lacks}}


def _order(hit: _Hit) -> int:
    # Dates of nanoseconds sort by them, others by milliseconds.
    return int(hit.sort[0]) if hit.sort and isinstance(hit.sort[0], int | float) else 0


def _text(source: Mapping[str, Any]) -> str:
    for path in _TEXTS:
        if path in source and isinstance(source[path], str):
            return str(source[path])
        found: object = source
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str):
            return found
    return ""


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _time(moment: _Moment) -> datetime | None:
    return None if moment.value is None else datetime.fromtimestamp(moment.value / 1000, UTC)


def _headers() -> Mapping[str, str]:
    """Give who asks, by the variables that say so."""
    if key := os.environ.get("ELASTICSEARCH_API_KEY"):
        return {"Authorization": f"ApiKey {key}"}
    if user := os.environ.get("ELASTICSEARCH_USERNAME"):
        words = f"{user}:{os.environ.get('ELASTICSEARCH_PASSWORD', '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(words).decode()}"}
    return {}


def _reason(raw: bytes) -> str:
    """Take the reason out of an error; the server's root cause says more than its own word."""
    try:
        error = json.loads(raw)["error"]
        root = error["root_cause"][0]["reason"] if error.get("root_cause") else error["reason"]
        return str(root)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return raw.decode("utf-8", "replace")
