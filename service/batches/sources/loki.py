"""The jobs of Grafana Loki: streams of lines by their labels, read page by page into redacted copies.

Loki knows no job's end, so that all that it has lines of within a time is taken, and triage tells which
failed.
https://grafana.com/docs/loki/latest/reference/loki-http-api/
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import BaseModel

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

# Lines of a page; servers allow 5000 by themselves, and some are told to allow less.
PAGE = 1000
# More pages than an end of a log has.
MOST_PAGES = 2000
# How long before its last line a job may have begun; a server takes questions of 30 days.
LONGEST_JOB = timedelta(days=7)
KIND = "Loki"
_SECOND = 1_000_000_000

_Direction = Literal["forward", "backward"]


@dataclass(frozen=True)
class LokiQuery:
    """What is asked for: jobs with lines since a time, of which the last is no younger than `quiet`.

    `selector` is a stream selector of LogQL such as `{namespace="train"}`; where it is empty, all streams.
    `job_label` names the label that tells a job, where it is none that is known.
    """

    url: str
    since: datetime
    selector: str = ""
    job_label: str = ""
    quiet: timedelta | None = None


class _Names(BaseModel):
    data: list[str] = []


class _SeriesList(BaseModel):
    data: list[dict[str, str]] = []


class _LokiStream(BaseModel):
    stream: dict[str, str] = {}
    # Since Loki 3 a third part may hold structured metadata.
    values: list[tuple[int, str] | tuple[int, str, object]] = []


class _Result(BaseModel):
    result: list[_LokiStream] = []


class _Streams(BaseModel):
    data: _Result


def find_jobs(
    asked: LokiQuery, spool: BatchSpool, settings: Settings, answered: Container[str] = ()
) -> FoundJobs:
    """Fetch the logs of all jobs; raises InvalidRequestError, TooLargeError.

    Where it raises, no copy stays.
    """
    where = f"{shown_path(asked.url)}, {shown_path(asked.selector) if asked.selector else 'of any labels'},"
    return fetch_all(lambda skipped: open_jobs(asked, skipped), where, spool, settings, answered)


@contextmanager
def open_jobs(asked: LokiQuery, skipped: Skipped) -> Iterator[list[JobCandidate]]:
    """Give the jobs that have lines; raises InvalidRequestError."""
    if asked.selector and not (asked.selector.startswith("{") and asked.selector.endswith("}")):
        raise InvalidRequestError(Message("errors.loki-no-selector", selector=shown_path(asked.selector)))
    with JsonApi(KIND, asked.url, _headers(), lambda raw: raw.decode("utf-8", "replace")) as api:
        yield list(_candidates(_Loki(api, asked.selector), asked, skipped))


def _candidates(server: _Loki, asked: LokiQuery, skipped: Skipped) -> Iterator[JobCandidate]:
    now = datetime.now(UTC)
    found = group_series(map(LineSeries, server.series(asked.since, now)), asked.job_label, skipped)
    lively: set[str] = set()
    if asked.quiet is not None:
        series = map(LineSeries, server.series(now - asked.quiet, now))
        lively = {job.name for job in group_series(series, asked.job_label, Skipped())}
    for job in found:
        if job.name not in lively and (ended := server.last(job, asked.since, now)):
            yield _candidate(server, job, ended)


def _candidate(server: _Loki, job: SeriesJob, ended: int) -> JobCandidate:
    moment = datetime.fromtimestamp(ended / _SECOND, UTC)

    def fetch(copies: SpooledJob, skipped: Skipped) -> JobSpec | None:
        for name, series in job.files.items():

            def pages(from_end: bool, selector: str = server.selector(series)) -> Iterator[list[Line]]:
                return server.pages(selector, ended, from_end)

            keep_file(f"{name}.log", pages, copies, skipped)
        if not copies.logs:
            return None
        nodes = job.nodes
        return JobSpec(
            name=job.name, place=copies.place(), ended=moment, nodes=len(nodes) or None, node_names=nodes
        )

    return JobCandidate(f"{job.name}|{moment.isoformat()}", job.name, fetch)


class _Loki:
    """Loki's questions about the streams of a selector."""

    def __init__(self, api: JsonApi, selector: str) -> None:
        self._api = api
        self._all = selector
        # Labels that tell whose lines they are, of any stream that was seen.
        self._telling: set[str] = set()

    def series(self, since: datetime, until: datetime) -> list[dict[str, str]]:
        """Give the labels of all streams that have lines within a time."""
        if not self._all:
            self._all = self._any(since, until)
        given = {"match[]": self._all, "start": str(_nanoseconds(since)), "end": str(_nanoseconds(until))}
        found = self._api.get("/loki/api/v1/series", given, _SeriesList).data
        self._telling |= {name for labels in found for name in labels if log_series.role(name)}
        return found

    def _any(self, since: datetime, until: datetime) -> str:
        """Make a selector of all streams: Loki wants a label that each of them has."""
        given = {"start": str(_nanoseconds(since)), "end": str(_nanoseconds(until))}
        names = self._api.get("/loki/api/v1/labels", given, _Names).data
        # A stream of a pod has its name space, and since Loki 3 each has the name of its service.
        best = next((name for name in names if name == "service_name"), None) or next(
            (
                name
                for wanted in ("namespace", "pod", "file", "service")
                for name in names
                if log_series.role(name) == wanted
            ),
            None,
        )
        if best is None:
            raise InvalidRequestError(Message("errors.loki-no-selector", selector="{}"))
        return f'{{{best}=~".+"}}'

    def selector(self, series: Sequence[LineSeries]) -> str:
        """Narrow the selector to the streams of one file: by the labels that are equal in all of them."""
        first, *others = (each.labels for each in series)
        same = {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}
        # Streams of others may have these labels and more; an empty value matches where there is none.
        same |= {name: "" for name in self._telling if not any(name in each.labels for each in series)}
        given = self._all[1:-1].strip().rstrip(",")
        # A string of JSON is one of LogQL's.
        exact = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in sorted(same.items())]
        return "{" + ", ".join([*([given] if given else []), *exact]) + "}"

    def last(self, job: SeriesJob, since: datetime, until: datetime) -> int | None:
        """Give the time of a job's last line, in nanoseconds."""
        begin, end = _nanoseconds(since), _nanoseconds(until)
        pages = (
            self._page(self.selector(series), begin, end, "backward", 1) for series in job.files.values()
        )
        return max((line.order for page in pages for _, line in page), default=None)

    def pages(self, selector: str, ended: int, from_end: bool) -> Iterator[list[Line]]:
        """Yield a file's lines page by page.

        A page begins where the one before ended, since more lines of that moment may follow; those that were
        had are passed over.
        """
        begin, end = ended - _nanoseconds_of(LONGEST_JOB), ended + 1
        had: set[tuple[str, Line]] = set()
        for _ in range(MOST_PAGES):
            if begin >= end:
                return
            page = self._page(selector, begin, end, "backward" if from_end else "forward", PAGE)
            fresh = [row for row in page if row not in had]
            if fresh:
                yield [line for _, line in fresh]
            if len(page) < PAGE:
                return
            last = page[-1][1].order
            if not begin <= last < end:
                raise self._api.refused("it gives lines of another time than was asked for")
            had = {row for row in (*page, *had) if row[1].order == last}
            # Where a page is of one moment, Loki gives no more of it.
            step = int(page[0][1].order == last)
            begin, end = (begin, last + 1 - step) if from_end else (last + step, end)
        raise self._api.refused("its pages have no end")

    def _page(
        self, selector: str, begin: int, end: int, direction: _Direction, limit: int
    ) -> list[tuple[str, Line]]:
        """Give lines with the labels of their stream, in the order of the direction."""
        given = {
            "query": selector,
            "start": str(begin),
            "end": str(end),
            "direction": direction,
            "limit": str(limit),
        }
        streams = self._api.get("/loki/api/v1/query_range", given, _Streams).data.result
        rows = [
            (json.dumps(each.stream, sort_keys=True), Line(row[0], row[1]))
            for each in streams
            for row in each.values
        ]
        return sorted(rows, key=lambda row: row[1].order, reverse=direction == "backward")


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * _SECOND + moment.microsecond * 1000


def _nanoseconds_of(span: timedelta) -> int:
    return int(span.total_seconds()) * _SECOND


def _headers() -> Mapping[str, str]:
    """Give what the variables of Loki's own client, logcli, say of who asks."""
    found = {}
    if token := os.environ.get("LOKI_BEARER_TOKEN"):
        found["Authorization"] = f"Bearer {token}"
    elif user := os.environ.get("LOKI_USERNAME"):
        words = f"{user}:{os.environ.get('LOKI_PASSWORD', '')}".encode()
        found["Authorization"] = f"Basic {base64.b64encode(words).decode()}"
    if tenant := os.environ.get("LOKI_ORG_ID"):
        found["X-Scope-OrgID"] = tenant
    return found
