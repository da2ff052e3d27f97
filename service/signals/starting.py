"""Where a process begins to send signals, or does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.signals import tracing

if TYPE_CHECKING:
    from service.signals.export import OtlpRecorder

_LOG = logging.getLogger("whycrash.signals")


@contextmanager
def signals(role: str, *, logs: bool = False) -> Iterator[None]:
    """Send signals meanwhile, where OpenTelemetry's variables name a collector; `logs` sends the log too.

    What is missing for it keeps nobody from an answer: the log says which command adds it.
    """
    recorder = start(role)
    if recorder is None:
        yield
        return
    handler = recorder.log_handler
    if logs:
        logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        tracing.install(None)
        logging.getLogger().removeHandler(handler)
        recorder.close()


def start(role: str) -> OtlpRecorder | None:
    """Install a recorder, and give it; None where none is wanted or can be had."""
    if not tracing.is_wanted():
        return None
    try:
        # A tenth of a second, for nobody who sends nothing.
        from service.signals.export import OtlpRecorder
    except ModuleNotFoundError as error:
        from ingest.extras import missing

        _LOG.warning("No signals are sent. %s", missing(error) or error)
        return None
    recorder = OtlpRecorder(role)
    tracing.install(recorder)
    return recorder
