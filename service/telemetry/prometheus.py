"""A Prometheus server's range before a crash as a snapshot.

The address is `prometheus://HOST:PORT/PATH?LABEL=REGEX...`: the labels choose the job's machines or pods.
`at=TIME` (RFC 3339) gives the time where the log tells none, `minutes=N` how far back to look; with
`prometheus+https` the server is asked over TLS. Only hosts that the settings allow are asked, and no
redirect is followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from corpus.message import Message
from service.telemetry.errors import TelemetryError, UnknownHostError
from service.telemetry.metric_collector import CollectedParts, MetricSeries, collect_parts
from service.telemetry.metrics import Part, identity, names
from service.telemetry.snapshot import Kernel, Series, Snapshot, unavailable

WHO = "Prometheus"
SCHEMES = {"prometheus": "http", "prometheus+http": "http", "prometheus+https": "https"}
MINUTES = 30
MAX_MINUTES = 24 * 60
AFTER_S = 60
# A time beyond the year 2242 is a log's mistake, and later ones are no dates at all.
LATEST = float(1 << 33)
STEP_S = 1.0
MAX_POINTS = 250
TIMEOUT_S = 10.0
MAX_BYTES = 32 << 20
# Metrics a query; a name list in one pattern keeps the number of requests small.
BATCH = 12
# Whose course is kept in the snapshot, as it tells growth from a peak.
COURSES = {
    "node_memory_MemAvailable_bytes": "host.memory_available_gib",
    "container_memory_usage_bytes": "cgroup.memory_current_gib",
    "DCGM_FI_DEV_FB_USED": "gpus.memory_used_gib",
    "DCGM_FI_DEV_GPU_UTIL": "gpus.utilisation",
}
_SCALE = {
    "host.memory_available_gib": 1 / (1 << 30),
    "cgroup.memory_current_gib": 1 / (1 << 30),
    "gpus.memory_used_gib": 1 / 1024,
}
_LABEL = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
_OWN = frozenset({"at", "minutes"})


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """Where to ask, and for which machines."""

    base: str
    selector: Mapping[str, str]
    at: datetime | None = None
    minutes: int = MINUTES


def this_year() -> int:
    """Give the year that a log's clock without one means."""
    return datetime.now(UTC).year


def parse_address(address: str, allowed: Sequence[str]) -> PrometheusQuery:
    """Read an address; raises TelemetryError where it is none, UnknownHostError for a host not allowed."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise TelemetryError(Message("errors.no-address", address=address, reason=error)) from error
    if parts.scheme not in SCHEMES:
        raise TelemetryError(
            Message(
                "errors.begins-none", address=address, schemes=", ".join(f"{name}://" for name in SCHEMES)
            )
        )
    netloc = f"{_bracketed(host)}:{port}" if port else _bracketed(host)
    if netloc not in allowed and host not in allowed:
        shown = ", ".join(allowed) or "none"
        raise UnknownHostError(
            Message("errors.not-among-hosts-whycrash", host=netloc or address, shown=shown)
        )
    if parts.username or parts.password:
        raise TelemetryError(Message("errors.address-holds-user-name"))
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    labels = {name: value for name, value in options.items() if name not in _OWN}
    wrong = [name for name, value in labels.items() if not _LABEL.match(name) or not value]
    if wrong or not labels:
        raise TelemetryError(Message("errors.not-say-whose-metrics", address=address))
    at, minutes = _at(options.get("at", "")), options.get("minutes", "")
    if minutes and (not minutes.isdecimal() or not 0 < int(minutes[:9]) <= MAX_MINUTES):
        raise TelemetryError(Message("errors.minutes-no-number-1", text=minutes, max_minutes=MAX_MINUTES))
    return PrometheusQuery(
        f"{SCHEMES[parts.scheme]}://{netloc}{parts.path.rstrip('/')}",
        labels,
        at,
        int(minutes) if minutes else MINUTES,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _at(text: str) -> datetime | None:
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign in a query stands for a space
    except ValueError as error:
        raise TelemetryError(Message("errors.no-time-write-2026", text=text)) from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def query_snapshot(server: PrometheusQuery, crash: float | None) -> Snapshot:
    """Ask for the range before the crash; a server that cannot be asked gives a snapshot that says so."""
    end = server.at.timestamp() if server.at else crash
    if end is None or not 0 <= end < LATEST:
        # The address can be mended; a server that is down cannot, and takes no answer away.
        raise TelemetryError(Message("errors.log-names-no-day"))
    start, end = end - 60 * server.minutes, end + AFTER_S
    taken = datetime.fromtimestamp(end, UTC)
    try:
        lines = list(_lines(server, start, end))
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return _silent(taken, f"{WHO} could not be asked: {str(error) or type(error).__name__}")
    if not lines:
        return _silent(
            taken, f"{WHO} has no series of these labels from {server.minutes} minutes before the crash on"
        )
    courses = []
    for line in lines:
        if name := COURSES.get(line.name):
            scale = _SCALE.get(name, 1.0)
            points = tuple((at, round(value * scale, 4)) for at, value in line.points)
            part: Part = "gpus" if line.name.startswith("DCGM") else "nodes"
            labels = dict(zip(("id", "node", "index"), identity(part, line.labels), strict=False))
            courses.append(Series(name=name, labels=labels, points=points))
    return _snapshot(
        collect_parts(lines, WHO, end - AFTER_S), taken, datetime.fromtimestamp(start, UTC), tuple(courses)
    )


def _snapshot(
    found: CollectedParts, taken: datetime, start: datetime, courses: tuple[Series, ...]
) -> Snapshot:
    return Snapshot(
        taken_at=taken,
        baseline_at=start,
        sources=("prometheus",),
        host=found.host,
        cgroup=found.cgroup,
        disks=found.disks,
        nics=found.nics,
        gpus=found.gpus,
        nodes=found.nodes,
        ray=found.ray,
        serving=found.serving,
        scheduler=found.scheduler,
        kernel=Kernel(events=unavailable(f"{WHO} holds no kernel log")),
        history=courses,
    )


def _silent(taken: datetime, why: str) -> Snapshot:
    return Snapshot(taken_at=taken, sources=(why,), kernel=Kernel(events=unavailable(why)))


def _lines(server: PrometheusQuery, start: float, end: float) -> Iterator[MetricSeries]:
    step = max(STEP_S, (end - start) / MAX_POINTS)
    wanted = (*names(), "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
    with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
        for first in range(0, len(wanted), BATCH):
            query = query_of(wanted[first : first + BATCH], server.selector)
            asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
            yield from _parsed(_answer(client, f"{server.base}/api/v1/query_range", asked))


def query_of(wanted: Sequence[str], selector: Mapping[str, str]) -> str:
    """Write one selector; https://prometheus.io/docs/prometheus/latest/querying/basics/ has the quoting."""
    chosen = [f"{name}=~{json.dumps(value)}" for name, value in selector.items()]
    return "{" + ",".join([f"__name__=~{json.dumps('|'.join(wanted))}", *chosen]) + "}"


def _bounded(response: httpx.Response) -> bytes:
    body = b""
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise ValueError(f"its answer is larger than {MAX_BYTES >> 20} MiB; choose fewer machines")
    return body


def _answer(client: httpx.Client, url: str, asked: Mapping[str, str]) -> Any:
    """Post one query (a long list of names does not fit an address) and read a bounded answer."""
    with client.stream("POST", url, data=dict(asked)) as response:
        body = _bounded(response)
    try:
        told = json.loads(body)
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    if response.status_code != httpx.codes.OK or told.get("status") != "success":
        raise ValueError(f"it answered {response.status_code}: {str(told.get('error', ''))[:200]}")
    return told["data"]["result"]


def _parsed(result: Any) -> Iterator[MetricSeries]:
    for row in result:
        labels = {str(name): str(value) for name, value in row["metric"].items()}
        points = tuple(
            (float(at), float(value)) for at, value in row["values"] if value not in ("NaN", "+Inf", "-Inf")
        )
        if points:
            yield MetricSeries(labels.pop("__name__", ""), labels, points)
