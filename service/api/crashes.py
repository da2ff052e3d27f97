"""Routes of crashes: the triages of one kind together, and what persons note of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from service.api import pages
from service.api.app_state import CurrentAppState, TriagePrincipal
from service.api.bodies import CrashNoted
from service.api.pages import After, Limit, Paged
from service.api.problems import documented_problems
from service.api.submissions import JSON
from service.persistence.crashes import TriageScope
from service.schemas.records import Crash

router = APIRouter(prefix="/v1", tags=["crashes"])

Fingerprint = Annotated[
    str, Path(max_length=64, pattern=r"^[0-9a-f]+$", description="The `fingerprint` of an answer.")
]


@router.get("/crashes", response_model=Paged[Crash], responses=documented_problems())
def list_crashes(
    request: Request,
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    after: After = None,
    limit: Limit = 20,
) -> Response:
    """List crashes, that which came last first; with the scope admin everybody's, else your own."""
    found, following = app_state.triage_service.store.crashes.page(after, limit, TriageScope(principal.only))
    return pages.page_response(request, Paged(items=list(found), next=following))


@router.get("/crashes/{fingerprint}", response_model=Crash, responses=documented_problems(404))
def get_crash(app_state: CurrentAppState, principal: TriagePrincipal, fingerprint: Fingerprint) -> Response:
    """Say how often a crash came, in which jobs, and what was noted of it."""
    return _as_json(app_state.triage_service.crash(fingerprint, TriageScope(principal.only)))


@router.put("/crashes/{fingerprint}", response_model=Crash, responses=documented_problems(404))
def note_crash(
    app_state: CurrentAppState, principal: TriagePrincipal, fingerprint: Fingerprint, body: CrashNoted
) -> Response:
    """Note whether a crash is open, fixed or to be ignored, who looks after it, and what fixed it."""
    note, scope = body.note(), TriageScope(principal.only)
    return _as_json(app_state.triage_service.note_crash(fingerprint, note, principal.caller, scope))


def _as_json(crash: Crash) -> Response:
    return Response(crash.model_dump_json(by_alias=True), media_type=JSON)
