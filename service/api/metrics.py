"""What Prometheus may ask: requests, triages, what waits, batches and their jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from service.schemas.diagnosis import Diagnosis
from service.signals import tracing
from service.signals.tracing import Attributes

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text"
Gauges = Mapping[str, Mapping[str, float]]

_TIMES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)
# What is asked for when it is scraped: name, what it counts, the label of its parts.
_ASKED = {
    "pool": ("Places of the processes that triage: `workers`, `busy` and `waiting`.", "kind"),
    "batches": ("Batches that are worked on.", "state"),
    "jobs": ("Jobs of running batches by state.", "state"),
}


class Metrics:
    """The counters of one server; `ask` gives the gauges of this moment."""

    def __init__(self, ask: Callable[[], Gauges]) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "whycrash_requests",
            "Requests by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "whycrash_request_seconds",
            "Seconds until a request was answered.",
            ("route",),
            buckets=_TIMES,
            registry=self.registry,
        )
        self._triages = Counter(
            "whycrash_triages", "Triages by verdict and cause.", ("verdict", "cause"), registry=self.registry
        )
        self.running = Gauge(
            "whycrash_requests_running", "Requests that are being answered.", registry=self.registry
        )
        self.registry.register(_ScrapeGauges(ask))
        for name, (_, label) in _ASKED.items():
            tracing.observe(f"whycrash.{name}", partial(_asked, ask, name, label))

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is the path's pattern, so that ids make no series of their own."""
        self._requests.labels(method, route, str(status)).inc()
        trace = tracing.current_trace()
        self._seconds.labels(route).observe(seconds, {"trace_id": trace} if trace else None)
        told: Attributes = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
        }
        tracing.measure("http.server.request.duration", "s", seconds, told)

    def count_triage(self, diagnosis: Diagnosis) -> None:
        """Count a triage."""
        self._triages.labels(diagnosis.verdict, diagnosis.cause or "").inc()
        told = {"whycrash.verdict": diagnosis.verdict, "whycrash.cause": diagnosis.cause or ""}
        tracing.count("whycrash.triages", told)

    def exposition(self) -> bytes:
        """Give all of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def open_metrics(self) -> bytes:
        """Give all of it in OpenMetrics' format, which has room for the traces of single requests."""
        # The package's own function has no types.
        made: bytes = openmetrics.generate_latest(self.registry)  # type: ignore[no-untyped-call]
        return made


def _asked(ask: Callable[[], Gauges], name: str, label: str) -> list[tuple[float, Attributes]]:
    return [(value, {label: part}) for part, value in ask().get(name, {}).items()]


class _ScrapeGauges(Collector):
    """Gauges that are asked for at each scrape."""

    def __init__(self, ask: Callable[[], Gauges]) -> None:
        self._ask = ask

    def describe(self) -> Iterable[Metric]:
        """Name the gauges without asking; the registry would ask otherwise, before anything is open."""
        return [
            GaugeMetricFamily(f"whycrash_{name}", says, labels=(label,))
            for name, (says, label) in _ASKED.items()
        ]

    def collect(self) -> Iterable[Metric]:
        """Give the gauges of this moment."""
        asked = self._ask()
        for name, (says, label) in _ASKED.items():
            family = GaugeMetricFamily(f"whycrash_{name}", says, labels=(label,))
            for part, value in asked.get(name, {}).items():
                family.add_metric((part,), value)
            yield family
