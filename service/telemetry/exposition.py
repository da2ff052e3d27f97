"""Prometheus' text format: the lines of a metrics page as samples.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

MAX_LINE = 16384


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric's value; `at` is in seconds since the epoch where the page tells it."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: float | None = None


def parse_samples(text: str, wanted: Container[str] | None = None) -> Iterator[Sample]:
    """Yield the samples of a page, those of the `wanted` names where these are given.

    A line that is none, or whose value is not a finite number, is passed over: it measures nothing.
    """
    # Importing it takes a tenth of a second, for the server that it holds too, and few runs read such a page.
    from prometheus_client.parser import text_string_to_metric_families

    for row in text.split("\n"):
        if len(row) > MAX_LINE or not (wanted is None or row.split("{")[0].split(" ")[0].strip() in wanted):
            continue
        try:
            # Line by line: the parser gives up a page at its first line that is none.
            families = list(text_string_to_metric_families(row))
        except (ValueError, IndexError, KeyError):
            continue
        for found in (sample for family in families for sample in family.samples):
            if math.isfinite(found.value):
                at = None if found.timestamp is None else float(found.timestamp)
                yield Sample(found.name, found.labels, float(found.value), at)
