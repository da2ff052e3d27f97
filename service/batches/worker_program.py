"""Make the handler of a batch's workers, in a module that imports nothing slow (see WorkerProgram)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.workers.process import TaskHandler
    from service.settings import Settings


def open_job_worker(settings: Settings) -> TaskHandler:
    """Make the handler of jobs."""
    from service.batches.worker import JobWorker

    return JobWorker(settings)
