"""Prometheus' text format: the lines of a metrics page as samples.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_LINE = 16384
_SAMPLE = re.compile(
    r"""^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*
        (?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?
        \s+(?P<value>[^\s]+)(?:\s+(?P<time>-?\d+))?\s*$""",
    re.VERBOSE,
)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric's value; `at` is in seconds since the epoch where the page tells it."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: float | None = None


def parse_samples(text: str) -> Iterator[Sample]:
    """Yield the samples of a page; comments and lines that are none are passed over."""
    for row in text.split("\n"):
        match = _SAMPLE.match(row) if len(row) <= MAX_LINE else None
        value = _number(match["value"]) if match else None
        if match and value is not None:
            at = int(match["time"]) / 1000 if match["time"] else None
            yield Sample(match["name"], parse_labels(match["labels"] or ""), value, at)


def parse_labels(text: str) -> dict[str, str]:
    """Read what stands between the braces."""
    return {name: _ESCAPE.sub(_unescaped, value) for name, value in _LABEL.findall(text)}


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[0])


def _number(text: str) -> float | None:
    """Read a value; what is no number, or not a finite one, measures nothing."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
