"""Batches on the page: an archive or several files in, their summary as it grows, and each job's answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from pydantic import Field

from service.api.access import own_batch
from service.api.app_state import AppState
from service.api.batches import BatchSubmission, keep_batch
from service.api.read_deadline import ReadDeadline
from service.app.admission import Principal
from service.batches.answers import job_result
from service.batches.sources import upload
from service.html.markup import element
from service.schemas.records import BatchOptions
from ui.chat import batch_summary
from ui.chat.controller import BrowserForm, PanelCache, State
from ui.chat.uploads import Uploaded, Uploads
from ui.chat.view import TriageView
from ui.chat.words import say

# A batch's id, and that of a job of it.
_BATCH, _JOB = r"^[0-9A-Za-z_]{1,40}$", r"^[0-9A-Za-z_]{1,40}-[0-9]{1,9}$"
# What an answer's page has that is of a triage alone, and not of a job of a batch.
_TRIAGES_OWN = ("feedback", "talk", "privacy")


class BatchForm(BrowserForm):
    """Files that are many jobs: an archive, several logs, or JSON lines."""

    files: list[Uploaded] = Field(min_length=1)


class BatchReference(BrowserForm):
    """A batch by its id."""

    batch: str = Field(pattern=_BATCH)


class JobReference(BrowserForm):
    """A job of a batch by its id."""

    job: str = Field(pattern=_JOB)


class BatchController:
    """What the page does with batches, each for a principal who was let in; another's batch is not there."""

    def __init__(self, app_state: Callable[[], AppState], uploads: Uploads) -> None:
        """`app_state` gives what the API's routes share, once the server runs."""
        self._app_state = app_state
        self._uploads = uploads

    def begin(self, sent: BatchForm, principal: Principal) -> dict[str, str]:
        """Take files apart into jobs and hand these in.

        Raises InvalidRequestError where there is no job in them, BusyError, and what `keep_batch` raises.
        """
        shared = self._app_state()
        caller = principal.caller.name
        with shared.admission.uploads.slot(principal.caller.owner), ExitStack() as held:
            found = held.enter_context(self._uploads.taken(sent.files, caller))
            files = [upload.NamedFile(name, held.enter_context(path.open("rb"))) for name, path in found]
            order = BatchSubmission(
                files[0].name if len(files) == 1 else say("batch-files", sent.language, count=len(files)),
                "upload",
                BatchOptions(language=sent.language),
                "",
                lambda copies: upload.find_jobs(files, copies, shared.settings),
            )
            deadline = ReadDeadline(shared, sum(path.stat().st_size for _, path in found))
            record = keep_batch(shared, order, replace(principal, caller=principal.caller.on_page), deadline)
        return {"batch": record.id}

    def show(self, named: BatchReference, principal: Principal) -> dict[str, Any]:
        """Give a batch's summary so far, and whether it is over."""
        shared = self._app_state()
        record = own_batch(shared.triage_service, principal, named.batch)
        summary = shared.summaries.of(record.id, named.language)
        return {
            "html": str(batch_summary.render(record, summary, named.language)),
            "over": record.state != "running",
            "title": record.name,
        }

    def cancel(self, named: BatchReference, principal: Principal) -> None:
        """End a batch; what is done stays."""
        shared = self._app_state()
        record = own_batch(shared.triage_service, principal, named.batch)
        shared.batches.cancel(record.id)
        shared.triage_service.note(principal.caller.on_page, "cancel", record.id)

    def open(self, named: JobReference, principal: Principal) -> State:
        """Show a job's answer, with the way back to its batch."""
        shared = self._app_state()
        store = shared.triage_service.store.batches
        record = own_batch(shared.triage_service, principal, named.job.rpartition("-")[0])
        job = store.job(named.job)
        answer = job_result(job, store.job(job.same_as) if job.same_as else None, named.language)
        view = TriageView(named.language, job.name, state="done", diagnosis=answer, job=job.id)
        state = PanelCache(shared.triage_service.library, named.ticket).paint(view)
        panels = {name: "" if name in _TRIAGES_OWN else html for name, html in state["panels"].items()}
        back = element(
            "a",
            say("batch-back", named.language, name=record.name or record.id),
            href=f"?batch={record.id}",
            data_do="open-batch",
            data_batch=record.id,
        )
        panels["stages"] = str(element("p", back, class_="back")) + panels["stages"]
        return state | {"panels": panels, "job": job.id}
