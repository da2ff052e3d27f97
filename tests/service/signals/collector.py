"""A collector of OTLP over HTTP on loopback, which keeps what it is sent as the published messages."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.loopback import LoopbackHandler, http_server


@dataclass
class Collected:
    """What came: spans with the role of the process that sent them, measures, records, and all bytes."""

    url: str = ""
    spans: list[tuple[str, Span]] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        """Give the spans of a name."""
        return [span for _, span in [*self.spans] if span.name == name]

    def take(self, path: str, body: bytes) -> None:
        """Keep one message."""
        self.raw.append(body)
        if path == "/v1/traces":
            for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                role = values(part.resource.attributes)["whycrash.role"]
                self.spans += [(str(role), span) for scope in part.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            found = ExportMetricsServiceRequest.FromString(body).resource_metrics
            self.metrics += [
                metric for part in found for scope in part.scope_metrics for metric in scope.metrics
            ]
        elif path == "/v1/logs":
            sent = ExportLogsServiceRequest.FromString(body).resource_logs
            self.logs += [
                record for part in sent for scope in part.scope_logs for record in scope.log_records
            ]


def values(attributes: Iterator[KeyValue]) -> dict[str, str | int | float | bool]:
    """Give attributes as plain values."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value") or "") for item in attributes}


@contextmanager
def collecting() -> Iterator[Collected]:
    """Collect until left."""
    collected = Collected()

    class Handler(LoopbackHandler):
        def post(self, body: bytes) -> None:
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collected.take(self.path, body)
            self.answer(b"", kind="application/x-protobuf")

    with http_server(Handler) as url:
        collected.url = url
        yield collected
