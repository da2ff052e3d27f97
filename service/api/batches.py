"""Routes of batches: hand in, watch, read results, end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from starlette.responses import HTMLResponse, Response, StreamingResponse

from corpus.message import Message
from service.api import pages, submissions, uploads
from service.api.access import own_batch
from service.api.app_state import (
    AppState,
    BatchPrincipal,
    CurrentAppState,
    IdempotencyKey,
    idempotent_request,
)
from service.api.bodies import BatchRequest, Language, Words
from service.api.idempotency import REPLAYED
from service.api.knowledge import Lang
from service.api.pages import After, Limit, Paged
from service.api.problems import documented_problems
from service.api.read_deadline import ReadDeadline, run_until_deadline
from service.api.submissions import JSON, MULTIPART, invalid
from service.api.triages import as_json
from service.api.uploads import MultipartUpload
from service.app.admission import Principal
from service.batches import page
from service.batches import results as written_results
from service.batches.sources import folder, kubernetes, ray_jobs, slurm
from service.batches.sources import upload as upload_source
from service.batches.sources.found import FoundJobs
from service.batches.sources.spool import BatchSpool as Copies
from service.batches.sources.spool import open_spool
from service.batches.summary import Summary
from service.persistence.spool import Spool
from service.schemas.errors import InvalidRequestError, MediaTypeError
from service.schemas.records import BatchOptions, BatchRecord, JobRecord, JobState, SourceKind
from service.settings import Settings

router = APIRouter(prefix="/v1", tags=["batches"])

BatchId = Annotated[str, Path(max_length=40, pattern=r"^[0-9A-Za-z_-]+$", description="A batch's id.")]
LINES = "application/x-ndjson"
CSV = "text/csv"
HTML = "text/html"
# Bodies that are one file, by their media type, and what the file is called.
_ONE_FILE = {
    LINES: "jobs.jsonl",
    "application/jsonl": "jobs.jsonl",
    "application/zip": "jobs.zip",
    "application/x-tar": "jobs.tar",
    "application/gzip": "jobs.tar.gz",
    "application/zstd": "jobs.tar.zst",
    "application/octet-stream": "jobs",
}
LIMITS = uploads.MultipartLimits(files=20_000, fields=16)
_SWITCHES = frozenset({"name", "language", "model"})
# A page of a batch may be read in a browser: its own styles and plots, and nothing from elsewhere.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri "
    "'none'; form-action 'none'"
)
_BLOCK = 1 << 16
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/BatchRequest"}},
            MULTIPART: {
                "schema": {
                    "type": "object",
                    "required": ["log"],
                    "properties": {
                        "log": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "An archive, many files, or JSON lines.",
                        },
                        "name": {"type": "string"},
                        "language": {"type": "string", "enum": ["", "en", "zh"]},
                        "model": {"type": "string", "enum": ["true", "false"]},
                    },
                }
            },
            LINES: {
                "schema": {"type": "string"},
                "example": (
                    '{"name": "job-1", "log": "torch.OutOfMemoryError: CUDA out of memory.", "nodes": 2, '
                    '"gpu_hours": 12.5}\n'
                ),
            },
        },
    }
}

Reader = Callable[[BatchRequest, Copies, Settings], FoundJobs]


# Where a batch's jobs come from when the server finds them itself. What a request names is checked against
# the settings.
_READERS: dict[str, Reader] = {
    "folder": lambda body, _copies, settings: folder.find_jobs(
        folder.allowed(body.where, settings), settings
    ),
    "kubernetes": lambda body, _copies, settings: kubernetes.find_jobs(
        folder.allowed(body.where, settings), settings
    ),
    "ray": lambda body, copies, settings: ray_jobs.find_jobs(
        ray_jobs.RayJobQuery(ray_jobs.allowed(body.where, settings), body.since), copies, settings
    ),
    "slurm": lambda body, _copies, settings: slurm.find_jobs(
        slurm.SlurmQuery(body.since or datetime.now(UTC) - timedelta(days=1)),
        settings,
        folder.roots(settings),
    ),
}


@dataclass(frozen=True)
class BatchSubmission:
    """A batch that is being handed in: its name, where its jobs are, and what tells it from others."""

    name: str
    source: SourceKind
    options: BatchOptions
    digest: str
    read: Callable[[Copies], FoundJobs]


@router.post(
    "/batches",
    status_code=202,
    response_model=BatchRecord,
    responses=documented_problems(404, 409, 415, 504, 507),
    openapi_extra=_BODY,
)
async def submit_batch(
    request: Request,
    app_state: CurrentAppState,
    principal: BatchPrincipal,
    key: IdempotencyKey = "",
    name: Annotated[
        Words, Query(max_length=300, description="What to call it, where the body is one file.")
    ] = "",
    language: Annotated[
        Language, Query(description="Language of the answers, where the body is one file.")
    ] = "",
) -> Response:
    """Hand in many jobs at once; when this answers, the batch is on the disk and survives whatever dies."""
    with app_state.admission.uploads.slot(principal.caller.owner), Spool(packed=True) as spool:
        order = await _order(
            request,
            app_state.settings,
            spool,
            BatchRequest(source="folder", name=name, options=BatchOptions(language=language)),
        )
        memory = idempotent_request(app_state, key, principal)
        old = await run_in_threadpool(memory.begin, "batch", order.digest) if key else None
        if old is not None:
            return _accepted(await run_in_threadpool(app_state.batches.get, old.body), {REPLAYED: "true"})
        try:
            record = await run_until_deadline(
                request,
                partial(keep_batch, app_state, order, principal),
                ReadDeadline(app_state, sum(file.size for file in spool.files)),
            )
        except BaseException:
            await run_in_threadpool(memory.abandon)
            raise
        await run_in_threadpool(memory.finish, 202, record.id)
        return _accepted(record, {})


def _accepted(record: BatchRecord, headers: dict[str, str]) -> Response:
    answer = as_json(record, 202)
    answer.headers.update({"location": f"/v1/batches/{record.id}", **headers})
    return answer


def keep_batch(
    app_state: AppState, order: BatchSubmission, principal: Principal, read_deadline: ReadDeadline
) -> BatchRecord:
    """Read what was handed in, up to the deadline, and keep it as a batch.

    Raises InvalidRequestError where there is no job in it, TooLargeError, DiskFullError, LateError.
    """
    batch = app_state.batches.begin()
    try:
        found = order.read(
            open_spool(app_state.batches.spool(batch), app_state.settings, read_deadline.check)
        )
        now = datetime.now(UTC)
        with app_state.triage_service.quota_taken(principal.caller, found.count, now):
            record = app_state.batches.accept(
                order.name,
                order.source,
                found.specs,
                order.options,
                principal.caller.owner,
                batch=batch,
                left_out=found.left_out,
            )
    except BaseException:
        app_state.batches.discard(batch)
        raise
    app_state.triage_service.note(principal.caller, "batch", record.id)
    return record


async def _order(request: Request, settings: Settings, spool: Spool, asked: BatchRequest) -> BatchSubmission:
    """Read what was handed in; raises InvalidRequestError, MediaTypeError, TooLargeError."""
    kind = uploads.media_type(request.headers.get("content-type", ""))
    if kind == JSON:
        raw = await submissions.read_small_body(request)
        return _of_json(raw, settings)
    if kind == MULTIPART:
        return _of_upload(await submissions.multipart(request, spool, LIMITS), settings)
    if kind in _ONE_FILE:
        return await _of_file(request, spool, _ONE_FILE[kind], asked, settings)
    raise MediaTypeError(
        Message("errors.send-one-of", types=f"{JSON}, {MULTIPART}", more=", ".join(_ONE_FILE))
    )


def _of_json(raw: bytes, settings: Settings) -> BatchSubmission:
    try:
        body = BatchRequest.model_validate_json(raw)
    except ValidationError as error:
        raise invalid(error) from error
    return BatchSubmission(
        body.name or body.source,
        body.source,
        body.options,
        sha256(raw).hexdigest(),
        lambda copies: _READERS[body.source](body, copies, settings),
    )


def _of_upload(upload: MultipartUpload, settings: Settings) -> BatchSubmission:
    if unknown := ({name for name, _ in upload.files} - {"log"}) | (set(upload.fields) - _SWITCHES):
        raise InvalidRequestError(
            Message(
                "errors.no-field-files-log", unknown=repr(min(unknown)), switches=", ".join(sorted(_SWITCHES))
            )
        )
    options = {
        "language": upload.fields.get("language", ""),
        "model": submissions.parse_switch("model", upload.fields.get("model", "false")),
    }
    try:
        body = BatchRequest.model_validate(
            {"source": "folder", "name": upload.fields.get("name", ""), "options": options}
        )
    except ValidationError as error:
        raise invalid(error) from error
    files = [file for _, file in upload.files]
    name = body.name or (files[0].name if len(files) == 1 else "upload")
    return BatchSubmission(
        name,
        "upload",
        body.options,
        upload.digest,
        lambda copies: upload_source.find_jobs(files, copies, settings),
    )


async def _of_file(
    request: Request, spool: Spool, name: str, asked: BatchRequest, settings: Settings
) -> BatchSubmission:
    file, digest = spool.add(name), sha256()
    async for chunk in request.stream():
        digest.update(chunk)
        await run_in_threadpool(file.write, chunk)
    await run_in_threadpool(file.rewind)
    if name.endswith(".jsonl") and not upload_source.is_lines(file.file):
        raise InvalidRequestError(Message("errors.each-line-job-json"))
    source: SourceKind = "lines" if name.endswith(".jsonl") else "upload"
    return BatchSubmission(
        asked.name or name,
        source,
        asked.options,
        digest.hexdigest(),
        lambda copies: upload_source.find_jobs([file], copies, settings),
    )


@router.get("/batches", response_model=Paged[BatchRecord], responses=documented_problems())
def list_batches(
    request: Request,
    app_state: CurrentAppState,
    principal: BatchPrincipal,
    after: After = None,
    limit: Limit = 20,
) -> Response:
    """List batches, newest first; with the scope admin everybody's, else your own."""
    items, following = app_state.triage_service.store.batches.page(after, limit, principal.only)
    return pages.page_response(request, Paged(items=list(items), next=following))


@router.get("/batches/{batch_id}", response_model=BatchRecord, responses=documented_problems(404))
def get_batch(app_state: CurrentAppState, principal: BatchPrincipal, batch_id: BatchId) -> Response:
    """Say how far a batch is: how many jobs are in each state."""
    return as_json(own_batch(app_state.triage_service, principal, batch_id))


@router.get("/batches/{batch_id}/jobs", response_model=Paged[JobRecord], responses=documented_problems(404))
def list_jobs(
    request: Request,
    app_state: CurrentAppState,
    principal: BatchPrincipal,
    batch_id: BatchId,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=1 << 31, description="The `next` of the page before.")
    ] = None,
    limit: Limit = 100,
) -> Response:
    """List a batch's jobs in their order."""
    own_batch(app_state.triage_service, principal, batch_id)
    items, following = app_state.triage_service.store.batches.jobs(batch_id, state, after, limit)
    return pages.page_response(
        request, Paged(items=list(items), next=None if following is None else str(following))
    )


@router.post(
    "/batches/{batch_id}/cancel", response_model=BatchRecord, responses=documented_problems(404, 409)
)
def cancel_batch(app_state: CurrentAppState, principal: BatchPrincipal, batch_id: BatchId) -> Response:
    """End a batch; what is done stays."""
    own_batch(app_state.triage_service, principal, batch_id)
    record = app_state.batches.cancel(batch_id)
    app_state.triage_service.note(principal.caller, "cancel", batch_id)
    return as_json(record)


@router.delete("/batches/{batch_id}", status_code=204, responses=documented_problems(404))
def delete_batch(app_state: CurrentAppState, principal: BatchPrincipal, batch_id: BatchId) -> None:
    """Delete a batch with its results."""
    own_batch(app_state.triage_service, principal, batch_id)
    app_state.batches.delete(batch_id)
    app_state.triage_service.note(principal.caller, "delete", batch_id)


@router.get(
    "/batches/{batch_id}/results",
    response_class=Response,
    responses={
        200: {
            "description": "One answer for each job that is over, in the order of the jobs.",
            "content": {LINES: {"schema": {"type": "string"}}, CSV: {"schema": {"type": "string"}}},
        },
        **documented_problems(404),
    },
)
def get_results(
    request: Request,
    app_state: CurrentAppState,
    principal: BatchPrincipal,
    batch_id: BatchId,
    form: Annotated[
        Literal["", "jsonl", "csv"],
        Query(alias="format", description="`jsonl` or `csv`; else by the Accept header."),
    ] = "",
) -> Response:
    """Give a batch's results, as many as there are so far."""
    record = own_batch(app_state.triage_service, principal, batch_id)
    store = app_state.triage_service.store.batches
    as_csv = form == "csv" or (not form and _prefers(request, CSV))
    write = written_results.csv_lines if as_csv else written_results.json_lines
    kind, ending = (CSV, "csv") if as_csv else (LINES, "jsonl")
    name = {"content-disposition": f'attachment; filename="{record.id}.{ending}"'}
    return StreamingResponse(
        _blocks(write(store.results(batch_id), store.job, record.options.language or "en")),
        media_type=kind,
        headers=name,
    )


def _blocks(rows: Iterator[str]) -> Iterator[str]:
    """Put rows together: each piece of a response costs a way to another thread and back."""
    held: list[str] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row)
        if size >= _BLOCK:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


@router.get(
    "/batches/{batch_id}/summary",
    response_model=Summary,
    responses={
        200: {
            "description": "What died, what it cost, what to change first.",
            "content": {HTML: {"schema": {"type": "string"}}},
        },
        **documented_problems(404),
    },
)
def get_summary(
    request: Request,
    app_state: CurrentAppState,
    principal: BatchPrincipal,
    batch_id: BatchId,
    lang: Lang = "",
    form: Annotated[
        Literal["", "json", "html"],
        Query(alias="format", description="`json` or `html`; else by the Accept header."),
    ] = "",
) -> Response:
    """Sum a batch up: its failures by cause and crash, and what would have saved most."""
    record = own_batch(app_state.triage_service, principal, batch_id)
    chosen = lang or record.options.language or "en"
    made = app_state.summaries.of(batch_id, chosen)
    if form == "html" or (not form and _prefers(request, HTML)):
        # Earlier batches may be another's.
        trend = app_state.summaries.trend(batch_id, chosen) if principal.reads_all else ()
        has_page = request.app.state.has_page
        # A job's answer on the chat page, by its address relative to the summary's own.
        body = page.page(made, trend, lambda job: f"../../../?job={job.id}" if has_page else "")
        return HTMLResponse(body, headers={"content-security-policy": _PAGE_POLICY})
    return as_json(made)


def _prefers(request: Request, kind: str) -> bool:
    """Tell whether the Accept header names a media type before JSON."""
    named = [part.partition(";")[0].strip() for part in request.headers.get("accept", "").split(",")]
    before = named[: named.index(JSON)] if JSON in named else named
    return kind in before
