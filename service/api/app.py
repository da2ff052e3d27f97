"""The app: the API's routes behind the gate. Nothing is opened before it starts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from service.api import batches as batch_routes
from service.api import crashes, health, knowledge, own_data, problems, reference, triages
from service.api.access import Authorizer
from service.api.app_state import AppState
from service.api.bodies import BatchRequest, TriageRequest
from service.api.browsers import OriginPolicy
from service.api.intake import MIB, BodyRateLimits
from service.api.metrics import Gauges, Metrics
from service.api.middleware import MiddlewareRules, RequestMiddleware
from service.api.oidc import TokenVerifier
from service.api.problems import Problem
from service.api.streams import EventThreads
from service.api.upkeep import expire_records
from service.app.admission import Admission, largest_upload
from service.app.triage_service import TriageService
from service.batches.batches import BatchService
from service.batches.engine import BatchEngine
from service.batches.trend import BatchSummaries
from service.settings import Settings

_SAYS = """Say why a GPU training or serving job died, with the lines that prove it, and what to change.

Errors are `application/problem+json`. A POST with an `Idempotency-Key` may be sent again. Lists come in \
pages: pass `next` as `after`.
"""
# Threads for what is not a triage: look-ups, lists, searches.
THREADS = 40


def create_app(
    settings: Settings,
    triage_service: TriageService | None = None,
    *,
    policies: Mapping[str, str] | None = None,
    pace: BodyRateLimits | None = None,
) -> FastAPI:
    """Make the app. A triage service that is given is open already, and stays open.

    Else one is opened while the app runs.

    `policies` are content security policies of pages mounted beside the API, by the beginning of their path.
    """
    app = FastAPI(
        title="whycrash",
        version=version("whycrash"),
        description=_SAYS,
        lifespan=_lifespan(settings, triage_service),
        # The usual pages that show an OpenAPI load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        # It would tell whatever collector the process knows what errors say, and those may quote what people
        # sent.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    for module in (triages, crashes, batch_routes, knowledge, own_data, reference, health):
        app.include_router(module.router)
    problems.install(app)
    _describe(app)
    boundary = OriginPolicy(settings)
    app.state.boundary = boundary
    # Whether there is a chat page, which what the API gives to browsers may lead to.
    app.state.has_page = bool(policies)
    most = largest_upload(settings)
    large = {
        ("POST", "/v1/triage"): most,
        ("POST", "/v1/batches"): most,
        # What the chat page sends as JSON stands in memory; its files go another way.
        ("POST", "/gradio_api/queue/join"): 8 * MIB,
        ("POST", "/gradio_api/component_server/"): MIB,
    }
    rules = MiddlewareRules(large, policies=policies or {}, pages=most, pace=pace or BodyRateLimits())
    app.add_middleware(
        RequestMiddleware,
        boundary=boundary,
        rules=rules,
        metrics=lambda: _part(app, "metrics"),
        access=lambda: _part(app, "access"),
    )
    return app


def _part(app: FastAPI, name: str) -> Any:
    """Give a part of what the routes share; None before the app has started."""
    return getattr(getattr(app.state, "app_state", None), name, None)


def _lifespan(
    settings: Settings, given: TriageService | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if given is not None:
            async with _receiving(app, settings, given):
                yield
            return
        triage_service = TriageService(settings)
        await run_in_threadpool(triage_service.__enter__)
        try:
            async with _receiving(app, settings, triage_service):
                yield
        finally:
            await run_in_threadpool(triage_service.__exit__, None, None, None)

    return lifespan


@asynccontextmanager
async def _receiving(app: FastAPI, settings: Settings, triage_service: TriageService) -> AsyncIterator[None]:
    """Let the routes have what they share."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    # One for each triage that may be under way; a few more, so that it is the triage service's queue that
    # says when it is full.
    threads = EventThreads(triage_service.pool.size + settings.queue + 4)
    # What has settings of its own, as in a test, has limits of its own.
    has_own = settings != triage_service.settings
    admission = Admission(settings, triage_service.pool) if has_own else triage_service.admission
    tokens = TokenVerifier(settings) if settings.oidc_issuer else None
    access = Authorizer(admission, app.state.boundary, triage_service.store.keys, tokens)
    engine = BatchEngine(settings, triage_service.store)
    batches = BatchService(settings, triage_service.store, engine.wake)
    stopping = threading.Event()
    app.state.app_state = AppState(
        settings,
        triage_service,
        access,
        Metrics(lambda: _gauges(triage_service)),
        threads,
        admission,
        batches,
        BatchSummaries(settings, triage_service.store),
        stopping,
    )
    engine.start()
    try:
        async with expire_records(triage_service, batches, settings.retention_days):
            yield
    finally:
        stopping.set()
        await run_in_threadpool(engine.stop)
        threads.close()
        del app.state.app_state


def _gauges(triage_service: TriageService) -> Gauges:
    open_now = triage_service.pool.waiting
    busy = min(triage_service.pool.size, open_now)
    pool = {"workers": triage_service.pool.size, "busy": busy, "waiting": open_now - busy}
    running = triage_service.store.batches.running()
    jobs: Counter[str] = Counter()
    for batch in running:
        jobs.update(triage_service.store.batches.counts(batch))
    return {"pool": pool, "batches": {"running": len(running)}, "jobs": jobs}


def _describe(app: FastAPI) -> None:
    """Add to the OpenAPI what FastAPI cannot see: bodies that routes read by themselves, and problems."""
    make = app.openapi

    @cache
    def described() -> dict[str, Any]:
        schema = make()
        parts = schema["components"]["schemas"]
        for model in (Problem, TriageRequest, BatchRequest):
            found = model.model_json_schema(ref_template="#/components/schemas/{model}")
            parts |= found.pop("$defs", {}) | {model.__name__: found}
        # FastAPI's own form of a validation error is never sent.
        parts.pop("HTTPValidationError", None)
        parts.pop("ValidationError", None)
        return schema

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's documented way to extend a schema
