"""The jobs of a Kubernetes cluster of which a pod failed, by its API; logs are kept as redacted copies.

What is asked needs no more rights than to list pods and events and to read pods' logs; nothing is changed.
Within a pod its service account is used; elsewhere `kubectl proxy` lends the rights of its user.
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from __future__ import annotations

import os
import re
import ssl
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from corpus.message import Message
from ingest.errors import EmptyInputError, InputError
from ingest.logs.inputs.members import Skipped
from ingest.logs.inputs.sources import LogSource
from service.batches.sources import http_client, kubernetes, pod_ends
from service.batches.sources.candidates import JobCandidate, fetch_all
from service.batches.sources.copies import PieceStream
from service.batches.sources.found import FoundJobs, shown_path
from service.batches.sources.pod_ends import DescribedContainer, DescribedPod
from service.batches.sources.spool import BatchSpool, SpooledJob
from service.schemas.errors import InvalidRequestError
from service.schemas.records import JobPlace, JobSpec
from service.settings import Settings

# Rows of one page of a list; a pod is some kilobytes.
PAGE = 500
# A cluster has some hundred thousand pods at most; a list that goes on beyond is none.
MAX_PAGES = 2000
# A pod that starts anew for hours has events without end.
EVENTS = 200
GPU = re.compile(r"(?:^|[./-])(?:gpu|npu)$")
IN_CLUSTER = ("kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# A gateway may have the API below a path of its own.
_ADDRESS = re.compile(
    r"(?P<base>(?:/(?!(?:api|\.+)(?:/|$))[^/]+)*)"
    r"(?:/api/v1(?:/namespaces/(?P<namespace>[a-z0-9][a-z0-9.-]{0,252}))?)?/?"
)

Row = TypeVar("Row", bound=BaseModel)
# What happened to pods, by name space and name.
_Events = Mapping[tuple[str, str], Sequence[str]]


@dataclass(frozen=True)
class KubernetesQuery:
    """What is asked for: jobs of which a pod failed since a time.

    `url` is that of the API, with /api/v1/namespaces/NAME behind it for one name space.
    """

    url: str
    since: datetime | None = None


class _Event(BaseModel):
    """What happened to an object, as the API gives it; fields that are not used are passed over."""

    model_config = ConfigDict(alias_generator=to_camel)

    involved_object: pod_ends.ObjectReference
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def line(self) -> str:
        """The event as a row, in the order of `kubectl get events`."""
        when = self.last_timestamp or self.event_time
        words = [f"{when:%Y-%m-%dT%H:%M:%SZ}" if when else "", self.type, self.reason]
        told = [*words, f"pod/{self.involved_object.name}", *(self.message or "").split()]
        return " ".join(word for word in told if word)


class _Metadata(BaseModel):
    next_page: str | None = Field(default=None, alias="continue")


class _Listing(BaseModel):
    """A page of a list, or the Status of a request that was refused."""

    metadata: _Metadata = _Metadata()
    items: list[object] | None = None
    message: str | None = None


def find_jobs(
    asked: KubernetesQuery, spool: BatchSpool, settings: Settings, answered: Container[str] = ()
) -> FoundJobs:
    """Fetch the logs of all jobs with a pod that failed; raises InvalidRequestError, TooLargeError.

    Where it raises, no copy stays.
    """
    where = f"{shown_path(asked.url)}, of jobs with a failed pod,"
    return fetch_all(lambda skipped: open_jobs(asked, skipped), where, spool, settings, answered)


@contextmanager
def open_jobs(asked: KubernetesQuery, skipped: Skipped) -> Iterator[list[JobCandidate]]:
    """Give the jobs with a pod that failed, oldest name first; raises InvalidRequestError."""
    with _Api(asked.url) as api:
        failed = {
            name: pods
            for name, pods in sorted(_by_job(api.listed("pods", DescribedPod), skipped).items())
            if _is_failed_since(pods, asked.since)
        }
        wanted = {(pod.namespace, pod.name) for pods in failed.values() for pod in pods}
        # Asked for with the first job that is fetched, if any is.
        events = cache(lambda: _events(api, wanted))
        yield [_candidate(api, name, pods, events) for name, pods in failed.items()]


def is_address(text: str) -> bool:
    """Tell an API's address from a folder."""
    return text.startswith(("http://", "https://"))


# Which pods are one job, and whether it failed.


def _by_job(pods: Iterable[DescribedPod], skipped: Skipped) -> dict[str, list[DescribedPod]]:
    """Group pods by the label of their operator, else by their names as those of a folder are."""
    found: dict[str, list[DescribedPod]] = defaultdict(list)
    named: dict[str, DescribedPod] = {}
    for pod in pods:
        label = next((value for key in kubernetes.JOB_LABELS if (value := pod.metadata.labels.get(key))), "")
        if kubernetes.is_own(pod.namespace):
            skipped.add("of_kubernetes_itself", f"{pod.namespace}/{pod.name}")
        elif label:
            found[f"{pod.namespace}/{label}"].append(pod)
        else:
            named[f"{pod.namespace}/{pod.name}"] = pod
    rows = [kubernetes.Pod(pod.namespace, pod.name, key) for key, pod in named.items()]
    for job, keys in kubernetes.group_pods(rows).items():
        found[job] += [named[key] for key in keys]
    return found


def _is_failed_since(pods: Sequence[DescribedPod], since: datetime | None) -> bool:
    failed = [pod for pod in pods if pod.is_failed]
    times = [when for pod in failed for when in pod.ended_at]
    return bool(failed) and (since is None or not times or max(times) >= since)


# What is kept of a job.


def _candidate(
    api: _Api, name: str, pods: Sequence[DescribedPod], events: Callable[[], _Events]
) -> JobCandidate:
    began = min((pod.status.start_time for pod in pods if pod.status.start_time), default=None)

    def fetch(copies: SpooledJob, skipped: Skipped) -> JobSpec | None:
        for pod in pods:
            for container in pod.containers:
                for previous in (True, False)[not container.restart_count :]:
                    _log(api, pod, container, previous, copies, skipped)
            # Why a pod was evicted, or never began, stands in no log.
            if rows := [*pod.described, *events().get((pod.namespace, pod.name), ())]:
                copies.log(f"{pod.name}/status.log", ["".join(f"{row}\n" for row in rows).encode()])
        return _spec(name, pods, copies.place(), began) if copies.logs else None

    # A container that is started anew every few minutes ends as often, and is one failure.
    return JobCandidate(f"{shown_path(name)}|{began}", name, fetch)


def _spec(name: str, pods: Sequence[DescribedPod], place: JobPlace, began: datetime | None) -> JobSpec:
    ends = [pod.outcome for pod in pods if pod.is_failed]
    ended = max((when for pod in pods for when in pod.ended_at), default=None)
    nodes = dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)
    gpus = sum(pod.spec.devices(GPU) for pod in pods)
    hours = (ended - began).total_seconds() / 3600 if began and ended else None
    return JobSpec(
        name=name,
        place=place,
        nodes=len(nodes) or None,
        gpus=gpus or None,
        gpu_hours=round(gpus * hours, 3) if gpus and hours and hours > 0 else None,
        started=began,
        ended=ended,
        node_names=tuple(map(shown_path, nodes)),
        outcome=min((end for end in ends if end), key=pod_ends.order, default=None),
    )


def _log(
    api: _Api,
    pod: DescribedPod,
    container: DescribedContainer,
    previous: bool,
    copies: SpooledJob,
    skipped: Skipped,
) -> None:
    """Keep what a container printed, now or before it was started anew; a node may have dropped it."""
    label = f"{pod.name}/{container.name}{'.previous' if previous else ''}.log"
    given = {"container": container.name, "previous": str(previous).lower(), "timestamps": "true"}
    path = f"namespaces/{_part(pod.namespace)}/pods/{_part(pod.name)}/log"
    try:
        with (
            api.asked(path, given) as response,
            closing(
                LogSource(label, PieceStream(response.iter_bytes(), "the API", copies.spool.check))
            ) as source,
        ):
            source.head()
            copies.log(label, source.chunks())
    except EmptyInputError:
        return
    except (httpx.HTTPError, InputError) as error:
        skipped.add("logs_not_given", f"{shown_path(label)} ({_error_text(error)})")
        return
    for reason, told in source.omitted.items():
        skipped.add(reason, f"{shown_path(label)} ({told})")


def _events(api: _Api, wanted: set[tuple[str, str]]) -> _Events:
    """Give the events of pods, by name space and name; they are kept for an hour, if at all."""
    found: dict[tuple[str, str], list[str]] = {pod: [] for pod in wanted}
    if wanted:
        for event in api.listed("events", _Event, {"fieldSelector": "involvedObject.kind=Pod"}):
            rows = found.get((event.involved_object.namespace, event.involved_object.name))
            if rows is not None and len(rows) < EVENTS:
                rows.append(event.line)
    return found


# The API.


class _Api:
    """The API of a cluster, of one of its name spaces where the address names it; a context manager."""

    def __init__(self, url: str) -> None:
        self.place, self._namespace = url, ""
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError as error:
            raise self._refused(str(error)) from error
        found = _ADDRESS.fullmatch(parts.path)
        if not parts.hostname or parts.username or parts.query or parts.fragment or not found:
            raise InvalidRequestError(Message("errors.kubernetes-no-address", url=shown_path(url)))
        self._namespace = found["namespace"] or ""
        self.place = f"{parts.scheme}://{parts.netloc}{found['base']}"
        headers, verify = account(parts.scheme, parts.hostname)
        self._client = http_client.open_client(f"{self.place}/api/v1", headers, verify)

    def __enter__(self) -> _Api:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def asked(self, path: str, given: Mapping[str, str]) -> AbstractContextManager[httpx.Response]:
        """Ask, and again where the server cannot just now; raises HTTPError."""
        return http_client.asked(self._client, lambda: self._client.build_request("GET", path, params=given))

    def listed(self, kind: str, row: type[Row], given: Mapping[str, str] | None = None) -> Iterator[Row]:
        """Give a list, page by page; raises InvalidRequestError where the API does not give it."""
        path = f"namespaces/{self._namespace}/{kind}" if self._namespace else kind
        page: str | None = ""
        for _ in range(MAX_PAGES):
            words = {"limit": str(PAGE), **(given or {}), **({"continue": page} if page else {})}
            try:
                with self.asked(path, words) as response:
                    listing = _Listing.model_validate_json(http_client.bounded(response))
                items = [row.model_validate(item) for item in listing.items or ()]
            except httpx.HTTPStatusError as error:
                listing = _refusal(error)
                # A list that took too long goes on as the cluster is by now.
                if error.response.status_code != httpx.codes.GONE or not listing.metadata.next_page:
                    raise self._refused(_error_text(error)) from error
                items = []
            except (httpx.HTTPError, httpx.InvalidURL, ValidationError, ValueError) as error:
                raise self._refused(_error_text(error)) from error
            yield from items
            if not (page := listing.metadata.next_page):
                return
        raise self._refused("its list has no end")

    def _refused(self, reason: str) -> InvalidRequestError:
        return InvalidRequestError(
            Message("errors.kubernetes-not-asked", url=shown_path(self.place), reason=reason)
        )


def _part(name: str) -> str:
    """Write a name as one part of a path, whatever it holds; dots alone would be a way up."""
    return quote(name, safe="").replace(".", "%2E") if not name.strip(".") else quote(name, safe="")


def account(scheme: str, host: str) -> tuple[dict[str, str], ssl.SSLContext | bool]:
    """Give the pod's own token and its cluster's certificate; no other address than its API is sent it."""
    own = {*IN_CLUSTER, os.environ.get("KUBERNETES_SERVICE_HOST", "")}
    try:
        if scheme == "https" and host in own:
            # Read for each question: the token is changed every hour.
            token = (ACCOUNT / "token").read_text(encoding="ascii").strip()
            trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
            return {"Authorization": f"Bearer {token}"}, trusted
    except (OSError, ValueError):
        pass  # asked without, it says itself that it wants one
    return {}, True


def _refusal(error: httpx.HTTPStatusError) -> _Listing:
    try:
        return _Listing.model_validate_json(error.response.content)
    except (ValidationError, httpx.StreamError):
        return _Listing()


def _error_text(error: Exception) -> str:
    """Say why; the API's own words name the right that is missing."""
    if isinstance(error, httpx.HTTPStatusError):
        return shown_path(_refusal(error).message or f"HTTP {error.response.status_code}")
    if isinstance(error, ValidationError):
        return "what it gives is no list of Kubernetes"
    return shown_path(str(error) or type(error).__name__)
