"""What runs in a worker process of the server: a Triage that is loaded once answers task after task."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ingest.workers import process
from ingest.workers.process import Tell, WorkerProgram
from service.signals import starting, tracing

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from service.settings import Settings
    from service.workers.tasks import Task

_LOG = logging.getLogger("whycrash.workers")


def serve(pipe: Connection, settings: Settings) -> None:
    """Answer tasks until the other end closes the pipe."""
    process.serve(pipe, WorkerProgram(TriageHandler, (settings,), extra=settings.redact_extra))


class TriageHandler:
    """Answers the tasks of the server, each as messages."""

    def __init__(self, settings: Settings) -> None:
        # Imported here: numpy and others look at the threads that they may use when they are imported.
        from service.workers.warm_triage import WarmTriage

        self._settings = settings
        self._warm = WarmTriage(settings)

    def load(self) -> str:
        """Load what every triage needs; gives what is wrong, or the empty text."""
        wrong = self._warm.load()
        # Afterwards: what is loaded is no answer of anybody's.
        starting.start("worker")
        return wrong

    def handle(self, task: Task, tell: Tell) -> None:
        """Answer a task; an error is its last message."""
        from service.schemas.errors import ours
        from service.schemas.failures import failing_frame, failure_of
        from service.workers import handlers

        with tracing.span(handlers.SPANS[type(task)], parent=task.parent) as span:
            try:
                for item in handlers.handle_task(self._warm.fresh(), self._settings, task, tell):
                    tell(item)
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - a failed task is a record; the process lives
                span.fail(type(error).__name__)
                if not isinstance(error, ours()):
                    _LOG.error("%s", failing_frame(error))
                tell(failure_of(error))
