"""Spans and measures of the program's own work; nothing is made of them until a recorder is installed.

No span and no measure holds what a log, a request or a model says: names, sizes, times and kinds alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, Protocol

Attributes = Mapping[str, str | int | float | bool]
Kind = Literal["internal", "server", "client"]
Gauge = Callable[[], Iterable[tuple[float, Attributes]]]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
DISABLED = "OTEL_SDK_DISABLED"


class Span(Protocol):
    """One piece of work with a beginning and an end."""

    def add(self, attributes: Attributes) -> None:
        """Add what became known on the way."""

    def rename(self, name: str) -> None:
        """Call it by what became known of it."""

    def fail(self, kind: str) -> None:
        """Note that it failed, by the error's type; never by its text, which may quote a log."""

    def end(self) -> None:
        """End it."""


class Recorder(Protocol):
    """Takes spans and measures to somewhere."""

    def begin(self, name: str, kind: Kind, parent: str, attributes: Attributes) -> Span:
        """Begin a span, below `parent` as a W3C traceparent, or below the current one where that is empty."""

    def enter(self, span: Span) -> Callable[[], None]:
        """Make a span the current one; gives what undoes that."""

    def current(self) -> str:
        """Give the current span as a W3C traceparent; empty where there is none."""

    def root(self, name: str, traceparent: str, attributes: Attributes) -> None:
        """Tell of a span that has this very identity, over at once and linked to the current one."""

    def measure(self, name: str, unit: str, value: float, attributes: Attributes) -> None:
        """Add a value to a histogram."""

    def count(self, name: str, attributes: Attributes) -> None:
        """Count one."""

    def observe(self, name: str, gauge: Gauge) -> None:
        """Ask for a gauge's values whenever measures are sent."""


class _UnrecordedSpan:
    """A span that nobody records."""

    def add(self, attributes: Attributes) -> None:
        """Pass over it."""

    def rename(self, name: str) -> None:
        """Pass over it."""

    def fail(self, kind: str) -> None:
        """Pass over it."""

    def end(self) -> None:
        """Pass over it."""


_NOTHING = _UnrecordedSpan()
_installed: list[Recorder] = []


def is_wanted() -> bool:
    """Tell whether a collector's address is set; nothing is loaded for it otherwise."""
    return bool(os.environ.get(ENDPOINT)) and os.environ.get(DISABLED, "").lower() != "true"


def install(recorder: Recorder | None) -> None:
    """Have all that follows recorded, or no more."""
    _installed[:] = [recorder] if recorder else []


def begin(
    name: str, *, kind: Kind = "internal", parent: str = "", attributes: Attributes | None = None
) -> Span:
    """Begin a span that does not become the current one, as for work that others run between."""
    return _installed[0].begin(name, kind, parent, attributes or {}) if _installed else _NOTHING


@contextmanager
def span(
    name: str, *, kind: Kind = "internal", parent: str = "", attributes: Attributes | None = None
) -> Iterator[Span]:
    """Record what is done meanwhile; what it raises fails it."""
    if not _installed:
        yield _NOTHING
        return
    begun = begin(name, kind=kind, parent=parent, attributes=attributes)
    leave = _installed[0].enter(begun)
    try:
        yield begun
    except GeneratorExit:
        raise
    except BaseException as error:
        begun.fail(type(error).__name__)
        raise
    finally:
        leave()
        begun.end()


def current() -> str:
    """Give the current span as a W3C traceparent, for another process to go on from; empty where none is."""
    return _installed[0].current() if _installed else ""


def current_trace() -> str:
    """Give the id of the current trace; empty where there is none."""
    parts = current().split("-")
    return parts[1] if len(parts) == 4 else ""


def of_batch(batch: str) -> str:
    """Give the span that all jobs of a batch are below, on whatever machine and after whatever restart.

    It follows from the batch's id, so that no process has to be told of it.
    """
    if not _installed:
        return ""
    digest = hashlib.sha256(f"whycrash batch {batch}".encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def begin_batch(batch: str, jobs: int) -> None:
    """Tell of a batch that was accepted, as the span that its jobs are below."""
    if _installed:
        attributes: Attributes = {"whycrash.batch.id": batch, "whycrash.batch.jobs": jobs}
        _installed[0].root("batch", of_batch(batch), attributes)


def measure(name: str, unit: str, value: float, attributes: Attributes) -> None:
    """Add a value to a histogram."""
    if _installed:
        _installed[0].measure(name, unit, value, attributes)


def count(name: str, attributes: Attributes) -> None:
    """Count one."""
    if _installed:
        _installed[0].count(name, attributes)


def observe(name: str, gauge: Gauge) -> None:
    """Have a gauge asked for its values whenever measures are sent."""
    if _installed:
        _installed[0].observe(name, gauge)
