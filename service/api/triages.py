"""Routes of single triages: hand in, look up, ask on, say what it really was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from corpus.message import Message
from service.api import pages, submissions
from service.api.access import own_triage
from service.api.app_state import (
    AppState,
    CurrentAppState,
    IdempotencyKey,
    TriagePrincipal,
    idempotent_request,
)
from service.api.bodies import Judgement, Language, Question, Switch, TriageRequest, TriageRow
from service.api.idempotency import REPLAYED, IdempotentRequest, StoredAnswer
from service.api.pages import After, Limit, Paged
from service.api.problems import documented_problems
from service.api.streams import MEDIA_TYPE, EventFlow, collect_answer, encode_event, nothing, stream_response
from service.api.submissions import JSON, MULTIPART
from service.app.admission import demand_live
from service.persistence.spool import Spool
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import ConflictError, RequestError, WorkerLostError
from service.schemas.events import Accepted, Event, FinalAnswer, TriageFailed, TurnAnswered
from service.schemas.failures import ReportedError
from service.schemas.records import Excerpt, FeedbackRecord, MessageRecord, TriageRecord

router = APIRouter(prefix="/v1", tags=["triages"])

TriageId = Annotated[str, Path(max_length=40, pattern=r"^[0-9A-Za-z_-]+$", description="A triage's id.")]


# Before OpenAPI 3.2, which gives it a name of its own, the schema of a stream is that of each event.
_EVENTS = {
    "description": (
        "With `stream`: events `accepted`, `progress`, `report`, `cases`, `first`, `look`, `text`, and last "
        "`final`, `turn` or `error`; each one's data is JSON."
    ),
    "schema": {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string", "pattern": r"^\d+$", "description": "The event's number, from 1 on."},
            "event": {
                "type": "string",
                "enum": [event.model_fields["kind"].default for event in get_args(get_args(Event)[0])],
            },
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "description": "An object, whose `kind` is the event's.",
            },
        },
    },
}
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "log": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "What the job wrote: logs, a folder's files, an archive.",
        },
        "config": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "The job's own files, which a patch may change.",
        },
        "telemetry": {
            "type": "string",
            "format": "binary",
            "description": "A snapshot of `whycrash snapshot`; or the word `live` as a field.",
        },
        "text": {"type": "string", "description": "The log as text, instead of files."},
        "exit_code": {
            "type": "integer",
            "minimum": -(2**31),
            "maximum": 2**32 - 1,
            "description": "The exit code that the job ended with.",
        },
        "signal": {"type": "string", "description": "The signal that killed it, such as SIGKILL."},
        "state": {
            "type": "string",
            "description": "What its scheduler says of its end, such as OUT_OF_MEMORY or OOMKilled.",
        },
        "name": {"type": "string"},
        "language": {"type": "string", "enum": ["", "en", "zh"]},
        "model": {"type": "string", "enum": ["true", "false"]},
        "stream": {"type": "string", "enum": ["true", "false"]},
    },
}
_EXAMPLES: Any = TriageRequest.model_config["json_schema_extra"]
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {"$ref": "#/components/schemas/TriageRequest"},
                "example": _EXAMPLES["examples"][0],
            },
            MULTIPART: {
                "schema": _FORM,
                "encoding": {"log": {"contentType": "application/octet-stream, text/plain"}},
            },
        },
    }
}
_STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer.", "content": {MEDIA_TYPE: _EVENTS}}
}


@router.post(
    "/triage",
    response_model=Diagnosis,
    responses=_STREAMS | documented_problems(404, 409, 415, 504, 507),
    openapi_extra=_BODY,
)
async def submit_triage(
    request: Request,
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    key: IdempotencyKey = "",
    stream: Annotated[Switch, Query(description="Answer with server-sent events, as they come.")] = False,
) -> Response:
    """Say why a job died: with the whole answer, or event by event with `stream`."""
    if not key:
        # Who brings a key may be asking for an answer that is there, which needs no room.
        await submissions.refuse_early(request, app_state.admission)
    with ExitStack() as held:
        spool = held.enter_context(Spool())
        with app_state.admission.uploads.slot(principal.caller.owner):
            handed = await submissions.read_submission(request, spool)
        if handed.submission.telemetry == "live":
            demand_live(principal)
        memory = idempotent_request(app_state, key, principal)
        old = await run_in_threadpool(memory.begin, "triage", handed.digest) if key else None
        if old is not None:
            return _replayed(
                await run_in_threadpool(app_state.triage_service.record, old.body), handed.stream or stream
            )
        service, submission = app_state.triage_service, handed.submission
        flow = await _begun(
            app_state,
            memory,
            lambda: service.triage(submission, principal.caller),
            spool.close,
            lambda: service.pool.withdraw(submission.id),
        )
        # From here on the files go when the work is over, whoever still listens.
        held.pop_all()
    return await (_streamed(flow) if handed.stream or stream else _answered(flow, request))


async def _begun(
    app_state: AppState,
    memory: IdempotentRequest,
    begin: Callable[[], Iterator[Event]],
    ended: Callable[[], None] = nothing,
    abandoned: Callable[[], None] = nothing,
) -> EventFlow:
    """Start to work out events; a key whose request could not even begin is free again."""
    try:
        return app_state.flow(lambda: _kept(app_state, memory, begin), ended, abandoned)
    except RequestError:
        await run_in_threadpool(memory.abandon)
        raise


def _kept(
    app_state: AppState, memory: IdempotentRequest, begin: Callable[[], Iterator[Event]]
) -> Iterator[Event]:
    """Work out events, and keep the answer under the request's key before anybody sees it."""
    with memory.kept_on_success():
        for event in begin():
            match event:
                case FinalAnswer():
                    app_state.metrics.count_triage(event.diagnosis)
                    # Its id and no more: an answer that was deleted is not to be had by its request either.
                    memory.finish(200, event.diagnosis.id)
                case TurnAnswered():
                    memory.finish(200, event.model_dump_json(by_alias=True))
                case TriageFailed():
                    memory.abandon()
            yield event


async def _streamed(flow: EventFlow) -> Response:
    first = await flow.next()
    if first is None:
        raise WorkerLostError(Message("errors.work-ended-without-answer"))
    return StreamingResponse(
        stream_response(flow, first), media_type=MEDIA_TYPE, headers={"x-accel-buffering": "no"}
    )


async def _answered(flow: EventFlow, request: Request) -> Response:
    last = await collect_answer(flow, request)
    if isinstance(last, TriageFailed):
        raise ReportedError(last)
    if isinstance(last, FinalAnswer):
        return _diagnosis(last.diagnosis)
    if isinstance(last, TurnAnswered):
        return as_json(last)
    raise ClientDisconnect


def _diagnosis(diagnosis: Diagnosis) -> Response:
    return Response(diagnosis.to_json(), media_type=JSON, headers={"location": f"/v1/triages/{diagnosis.id}"})


def _replayed(record: TriageRecord, stream: bool) -> Response:
    """Give an answer again, in the form that is asked for now."""
    if record.diagnosis is None:
        raise ConflictError(Message("errors.triage-request-no-answer"))
    answer = _diagnosis(record.diagnosis)
    if stream:
        events: tuple[Event, ...] = (Accepted(id=record.id), FinalAnswer(diagnosis=record.diagnosis))
        answer = Response(
            b"".join(encode_event(event, number) for number, event in enumerate(events, 1)),
            media_type=MEDIA_TYPE,
        )
    answer.headers[REPLAYED] = "true"
    return answer


def as_json(value: BaseModel, status: int = 200) -> Response:
    """Give a value in the contract's field names."""
    return Response(value.model_dump_json(by_alias=True), status, media_type=JSON)


@router.get("/triages", response_model=Paged[TriageRow], responses=documented_problems())
def list_triages(
    request: Request,
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    after: After = None,
    limit: Limit = 20,
    q: Annotated[
        str,
        Query(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description="Words that stand in its source, headline or cause.",
        ),
    ] = "",
) -> Response:
    """List past triages, newest first; with the scope admin everybody's, else your own."""
    found = app_state.triage_service.records(q, after, limit, principal.only)
    return pages.page_response(
        request, Paged(items=[TriageRow.of(record) for record in found.items], next=found.next)
    )


@router.get("/triages/{triage_id}", response_model=TriageRecord, responses=documented_problems(404, 504))
def get_triage(
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    triage_id: TriageId,
    lang: Annotated[
        Language, Query(description="Language of the answer, made of what was kept; empty is its own.")
    ] = "",
) -> Response:
    """Give a triage with its answer, in another language where one is asked for."""
    record = own_triage(app_state.triage_service, principal, triage_id)
    if lang:
        told = app_state.triage_service.retold(record, lang)
        record = record.model_copy(update={"diagnosis": told})
    return as_json(record)


@router.delete("/triages/{triage_id}", status_code=204, responses=documented_problems(404))
def delete_triage(app_state: CurrentAppState, principal: TriagePrincipal, triage_id: TriageId) -> None:
    """Delete a triage with all that belongs to it."""
    own_triage(app_state.triage_service, principal, triage_id)
    app_state.triage_service.forget(triage_id, principal.caller)


@router.get("/triages/{triage_id}/excerpt", response_model=Excerpt, responses=documented_problems(404))
def get_excerpt(app_state: CurrentAppState, principal: TriagePrincipal, triage_id: TriageId) -> Response:
    """Give what is kept of the log, redacted, by line numbers."""
    own_triage(app_state.triage_service, principal, triage_id)
    return as_json(app_state.triage_service.excerpt(triage_id))


@router.get(
    "/triages/{triage_id}/messages", response_model=Paged[MessageRecord], responses=documented_problems(404)
)
def list_messages(app_state: CurrentAppState, principal: TriagePrincipal, triage_id: TriageId) -> Response:
    """Give the conversation about a triage, oldest first."""
    own_triage(app_state.triage_service, principal, triage_id)
    return as_json(Paged(items=list(app_state.triage_service.messages(triage_id))))


@router.post(
    "/triages/{triage_id}/messages",
    response_model=TurnAnswered,
    responses=_STREAMS | documented_problems(404, 409, 504),
)
async def ask_question(
    request: Request,
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    triage_id: TriageId,
    body: Question,
    key: IdempotencyKey = "",
    stream: Annotated[Switch, Query(description="Answer with server-sent events, as they come.")] = False,
) -> Response:
    """Ask on about a triage; with `stream`, events `text` and last `turn` or `error`."""
    await run_in_threadpool(own_triage, app_state.triage_service, principal, triage_id)
    memory = idempotent_request(app_state, key, principal)
    old = await run_in_threadpool(memory.begin, "ask", triage_id, body.text) if key else None
    if old is not None:
        return Response(old.body, old.status, {REPLAYED: "true"}, JSON)
    service = app_state.triage_service
    flow = await _begun(app_state, memory, lambda: service.ask(triage_id, body.text, principal.caller))
    return await (_streamed(flow) if body.stream or stream else _answered(flow, request))


@router.post(
    "/triages/{triage_id}/feedback",
    response_model=FeedbackRecord,
    status_code=201,
    responses=documented_problems(404, 409),
)
def add_feedback(
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    triage_id: TriageId,
    body: Judgement,
    key: IdempotencyKey = "",
) -> Response:
    """Say whether an answer was right, what the real cause was, and what fixed it."""
    own_triage(app_state.triage_service, principal, triage_id)

    def keep() -> StoredAnswer:
        return StoredAnswer(
            201,
            app_state.triage_service.feedback(triage_id, body.feedback(), principal.caller).model_dump_json(
                by_alias=True
            ),
        )

    made, replayed = idempotent_request(app_state, key, principal).run(
        ("feedback", triage_id, body.model_dump_json()), keep
    )
    return Response(made.body, made.status, {REPLAYED: "true"} if replayed else {}, JSON)
