"""The text of a DCGM exporter's page, or of any other page of metrics, as readings."""

from __future__ import annotations

from service.telemetry.exposition import parse_samples
from service.telemetry.metric_collector import CollectedParts, MetricSeries, collect_parts
from service.telemetry.metrics import names

WHO = "the exporter"


def read_metrics_page(text: str) -> CollectedParts:
    """Read a page; what is not exported is not available: the default has no ECC and no NVLink counters."""
    wanted = {*names(), "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"}
    lines = (
        MetricSeries(item.name, item.labels, ((item.at or 0.0, item.value),))
        for item in parse_samples(text, wanted)
    )
    return collect_parts(lines, WHO)
