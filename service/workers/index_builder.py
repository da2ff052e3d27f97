"""The search index, built in a process of its own: the memory that building takes goes with the process."""

from __future__ import annotations

import signal
from contextlib import suppress
from multiprocessing.connection import Connection

from corpus.errors import CorpusError
from ingest.errors import IngestError
from ingest.index import Index
from ingest.redaction.extra import extra_text, use_extra
from ingest.workers import spawning
from ingest.workers.process import die_with_parent
from service.pipeline.triage import Report, Triage
from service.schemas.errors import ServiceError
from service.settings import Settings, without_secrets


def opened_index(settings: Settings, report: Report) -> Index:
    """Open the index, built first where need be; raises CorpusError, IngestError or ServiceError."""
    triage = Triage(settings, report)
    if (found := triage.current_index()) is not None:
        return found
    _build_apart(settings, report)
    # What the process could not build is tried here, which says why.
    return triage.index


def _build_apart(settings: Settings, report: Report) -> None:
    context = spawning.context()
    progress, told = context.Pipe(duplex=False)
    # No daemon: many logs that were taken in are read by processes of its own.
    process = context.Process(
        target=_build,
        args=(told, without_secrets(settings), extra_text()),
        name="index-builder",
        daemon=False,
    )
    try:
        process.start()
    except OSError:
        # A machine that gives no further process may still build it here.
        return
    finally:
        told.close()
    try:
        with suppress(EOFError):
            while True:
                report(*progress.recv())
    finally:
        process.kill()
        process.join()
        progress.close()


def _build(pipe: Connection, settings: Settings, extra: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    use_extra(extra)
    with suppress(CorpusError, IngestError, ServiceError):
        _ = Triage(settings, lambda *progress: pipe.send(progress)).index
    pipe.close()
