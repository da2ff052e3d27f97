"""Routes for those who watch the server."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from service.api import metrics as figures
from service.api.app_state import Anyone, CurrentAppState, get_app_state
from service.api.bodies import Status
from service.api.problems import documented_problems
from service.api.triages import as_json

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=Status)
async def healthz() -> Response:
    """Say that the process runs and answers."""
    return as_json(Status(ready=True))


@router.get(
    "/readyz",
    response_model=Status,
    responses={503: {"description": "Not ready; the checks say why.", "model": Status}},
)
async def readyz(request: Request) -> Response:
    """Say whether database and workers are ready.

    Asked without a key, which is why it names no more than what is not.
    """
    checks = await run_in_threadpool(get_app_state(request).triage_service.ready)
    ready = _is_ready(checks)
    told = {name: "" if not why else "not ready" for name, why in checks.items()}
    return as_json(Status(ready=ready, checks=told), 200 if ready else 503)


@router.get(
    "/metrics",
    responses={
        200: {
            "description": "Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **documented_problems(),
    },
    response_class=Response,
)
def metrics(request: Request, app_state: CurrentAppState, _principal: Anyone) -> Response:
    """Give the server's figures to Prometheus; any key may read them."""
    if figures.OPEN_METRICS in request.headers.get("accept", ""):
        media_type = f"{figures.OPEN_METRICS}; version=1.0.0; charset=utf-8"
        return Response(app_state.metrics.open_metrics(), media_type=media_type)
    return Response(app_state.metrics.exposition(), media_type=figures.MEDIA_TYPE)


@router.get("/v1/status", response_model=Status, responses=documented_problems())
def status(app_state: CurrentAppState, principal: Anyone) -> Response:
    """Say what is wrong, if anything, in words; with the scope admin, else as `/readyz`."""
    checks = app_state.triage_service.ready()
    told = (
        checks if principal.reads_all else {name: "not ready" if why else "" for name, why in checks.items()}
    )
    return as_json(Status(ready=_is_ready(checks), checks=told))


def _is_ready(checks: Mapping[str, str]) -> bool:
    # An index whose server is away answers from what is on this machine.
    return not any(why for name, why in checks.items() if name != "index")
