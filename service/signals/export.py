"""The recorder that sends to a collector by OTLP, by OpenTelemetry's own variables; the one user of its SDK.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/ The providers are its own and not the process':
whatever library traces itself goes on to reach nobody.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from multiprocessing.util import Finalize

from opentelemetry import context, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.metrics import Counter as OtelCounter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.signals.tracing import Attributes, Gauge, Kind, Span

NAME = "whycrash"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
SERVICE = "OTEL_SERVICE_NAME"
_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
# Seconds; a model answers within minutes, a request mostly within a second.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)
_TOKENS = (16, 64, 256, 1024, 4096, 16_384, 65_536)
_SEVERITIES = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}
_FORMAT = TraceContextTextMapPropagator()


class _Ids(RandomIdGenerator):
    """Random ids, but for a span whose identity is given."""

    def __init__(self) -> None:
        self.given = threading.local()

    def generate_trace_id(self) -> int:
        """Give the trace of the next root span."""
        given: int = getattr(self.given, "trace", 0)
        return given or super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Give the id of the next span."""
        given: int = getattr(self.given, "span", 0)
        return given or super().generate_span_id()


class _RecordedSpan:
    """A span of the SDK's."""

    def __init__(self, made: trace.Span) -> None:
        self.made = made

    def add(self, attributes: Attributes) -> None:
        """Add what became known on the way."""
        self.made.set_attributes(dict(attributes))

    def rename(self, name: str) -> None:
        """Call it by what became known of it."""
        self.made.update_name(name)

    def fail(self, kind: str) -> None:
        """Note that it failed."""
        self.made.set_attribute("error.type", kind)
        self.made.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        """End it."""
        self.made.end()


class OtlpRecorder:
    """Sends spans, measures and log records in the background; to be closed."""

    def __init__(self, role: str) -> None:
        self._ids = _Ids()
        spans, metrics, logs = _exporters()
        told = {SERVICE_VERSION: version("whycrash"), "whycrash.role": role}
        if SERVICE not in os.environ:
            told[SERVICE_NAME] = NAME
        resource = Resource.create(told)
        # Closed once, by whoever opened this or at the end of the process: also where that is a worker's.
        self.close = Finalize(self, self._close, exitpriority=10)
        self._traces = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._traces.add_span_processor(BatchSpanProcessor(spans))
        self._metrics = MeterProvider(
            [PeriodicExportingMetricReader(metrics)], resource, shutdown_on_exit=False
        )
        self._logs = LoggerProvider(resource, shutdown_on_exit=False)
        self._logs.add_log_record_processor(BatchLogRecordProcessor(logs))
        self._tracer = self._traces.get_tracer(NAME)
        self._meter = self._metrics.get_meter(NAME)
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, OtelCounter] = {}

    def begin(self, name: str, kind: Kind, parent: str, attributes: Attributes) -> Span:
        """Begin a span."""
        above = _FORMAT.extract({"traceparent": parent}) if parent else None
        made = self._tracer.start_span(name, above, _KINDS[kind], dict(attributes))
        return _RecordedSpan(made)

    def enter(self, span: Span) -> Callable[[], None]:
        """Make a span the current one; gives what undoes that."""
        assert isinstance(span, _RecordedSpan)  # noqa: S101 - those that `begin` gave
        return partial(context.detach, context.attach(trace.set_span_in_context(span.made)))

    def current(self) -> str:
        """Give the current span as a W3C traceparent."""
        carried: dict[str, str] = {}
        _FORMAT.inject(carried)
        return carried.get("traceparent", "")

    def root(self, name: str, traceparent: str, attributes: Attributes) -> None:
        """Tell of a span that has this very identity."""
        _, trace_id, span_id, _ = traceparent.split("-")
        now = trace.get_current_span().get_span_context()
        links = [trace.Link(now)] if now.is_valid else []
        self._ids.given.trace, self._ids.given.span = int(trace_id, 16), int(span_id, 16)
        try:
            made = self._tracer.start_span(name, context.Context(), attributes=dict(attributes), links=links)
        finally:
            self._ids.given.trace = self._ids.given.span = 0
        made.end()

    def measure(self, name: str, unit: str, value: float, attributes: Attributes) -> None:
        """Add a value to a histogram; the current span goes along as its exemplar."""
        if name not in self._histograms:
            bounds = _TOKENS if unit == "{token}" else _BOUNDS
            self._histograms[name] = self._meter.create_histogram(
                name, unit, explicit_bucket_boundaries_advisory=bounds
            )
        self._histograms[name].record(value, dict(attributes))

    def count(self, name: str, attributes: Attributes) -> None:
        """Count one."""
        if name not in self._counters:
            self._counters[name] = self._meter.create_counter(name)
        self._counters[name].add(1, dict(attributes))

    def observe(self, name: str, gauge: Gauge) -> None:
        """Ask for a gauge's values whenever measures are sent."""

        def asked(_options: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, dict(attributes)) for value, attributes in gauge()]

        self._meter.create_observable_gauge(name, [asked])

    @property
    def log_handler(self) -> logging.Handler:
        """What sends the records of the program's log, with the span that they were written in."""
        return _LogHandler(self._logs)

    def _close(self) -> None:
        """Send what is left, and end."""
        self._traces.shutdown()
        self._metrics.shutdown()
        self._logs.shutdown()


class _LogHandler(logging.Handler):
    """Sends records as they are written: the message, its logger and level, and no stack."""

    def __init__(self, logs: LoggerProvider) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        """Send one."""
        # The exporters tell of their own trouble; that is not for the collector.
        if record.name.startswith(("opentelemetry", "urllib3")):
            return
        made = LogRecord(
            timestamp=int(record.created * 1e9),
            context=context.get_current(),
            severity_text=record.levelname,
            severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.UNSPECIFIED),
            body=record.getMessage(),
        )
        self._logs.get_logger(record.name).emit(made)


def _exporters() -> tuple[SpanExporter, MetricExporter, LogRecordExporter]:
    """Make the exporters of the protocol that is asked for; each reads its variables itself."""
    if os.environ.get(PROTOCOL, "http/protobuf") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

        return GrpcSpans(), GrpcMetrics(), GrpcLogs()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(), OTLPMetricExporter(), OTLPLogExporter()
