"""The route by which callers delete all that is kept of them."""

from __future__ import annotations

from fastapi import APIRouter

from service.api.app_state import Anyone, CurrentAppState
from service.api.problems import documented_problems
from service.app import personal_data
from service.app.admission import require_scope
from service.schemas.records import Scope

_SCOPES: tuple[Scope, ...] = ("triage", "batch")

router = APIRouter(prefix="/v1", tags=["data"])


@router.delete("/data", status_code=204, responses=documented_problems())
def delete_data(app_state: CurrentAppState, principal: Anyone) -> None:
    """Delete all that is kept of you, or of your team: triages, batches, feedback, notes, write-ups.

    A team's takes a key that may do all of it: with the scopes triage and batch.
    """
    caller = principal.caller
    for scope in _SCOPES if caller.team else ():
        require_scope(principal, scope)
    service, actor = app_state.triage_service, f"{caller.origin}:{caller.name}"
    personal_data.delete(service.settings, service.store, app_state.batches, caller.owner, actor)
