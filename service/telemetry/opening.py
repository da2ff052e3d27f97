"""What a person names as telemetry: a snapshot's file, this machine now, or a Prometheus server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ingest.logs.report import CrashReport
from service.settings import Settings
from service.telemetry import snapshot
from service.telemetry.snapshot import Snapshot

LIVE = "live"

Taking = Callable[[CrashReport], Snapshot]


def open_telemetry(text: str, settings: Settings) -> Snapshot | Taking:
    """Open what is named; raises TelemetryError for a file that is no snapshot, a server not to be asked."""
    if "://" in text:
        return _of_server(text, settings)
    if text == LIVE:
        # Imported here, as below: who reads a file needs neither psutil nor an HTTP client.
        from service.telemetry import collectors

        return collectors.take_snapshot(collectors.sources_of(settings), job_is_over=True)
    return snapshot.load_snapshot(Path(text))


def _of_server(text: str, settings: Settings) -> Taking:
    from service.telemetry import prometheus
    from service.telemetry.crash_time import crash_time

    server = prometheus.parse_address(text, tuple(settings.prometheus_hosts.replace(",", " ").split()))
    year = prometheus.this_year()
    return lambda report: prometheus.query_snapshot(server, crash_time(report, year))
