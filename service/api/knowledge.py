"""Routes of what is known: causes, cases, search."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from corpus.schema import Case
from service.api import pages
from service.api.app_state import CurrentAppState, TriagePrincipal
from service.api.bodies import CasePage, CaseRow, CauseRow, Hits, Language
from service.api.pages import After, Limit, Paged
from service.api.problems import documented_problems
from service.api.triages import as_json

router = APIRouter(prefix="/v1", tags=["knowledge"])

Lang = Annotated[Language, Query(description="Language of titles and texts; empty is English.")]
_Word = Annotated[str, Query(max_length=100, pattern=r"^[^\x00]*$")]


@router.get("/causes", response_model=Paged[CauseRow], responses=documented_problems())
def causes(app_state: CurrentAppState, _principal: TriagePrincipal, lang: Lang = "") -> Response:
    """List the root causes that an answer can name."""
    chosen = lang or "en"
    rows = [
        CauseRow(id=item.id, category=item.category, title=item.title.to(chosen), means=item.means.to(chosen))
        for item in app_state.triage_service.library.causes.values()
    ]
    return as_json(Paged(items=rows))


@router.get("/cases", response_model=Paged[CaseRow], responses=documented_problems())
def cases(
    request: Request,
    app_state: CurrentAppState,
    _principal: TriagePrincipal,
    after: After = None,
    limit: Limit = 50,
    cause: _Word = "",
    framework: _Word = "",
    lang: Lang = "",
) -> Response:
    """List the known cases, in the order of their ids."""
    fitting = sorted(
        name
        for name, case in app_state.triage_service.library.cases.items()
        if (not cause or case.cause == cause)
        and (not framework or framework in case.frameworks)
        and (after is None or name > after)
    )
    shown = [_row(app_state.triage_service.library.cases[name], lang or "en") for name in fitting[:limit]]
    return pages.page_response(
        request, Paged(items=shown, next=shown[-1].id if len(fitting) > limit else None)
    )


@router.get("/cases/{framework}/{name}", response_model=CasePage, responses=documented_problems(404))
def case(
    app_state: CurrentAppState,
    _principal: TriagePrincipal,
    framework: Annotated[str, Path(max_length=100, examples=["ray"])],
    name: Annotated[str, Path(max_length=200, examples=["memory-monitor-kill"])],
    lang: Lang = "",
) -> Response:
    """Give one case with its write-up."""
    found = app_state.triage_service.library.case(f"{framework}/{name}")
    chosen = lang or "en"
    row = _row(found, chosen)
    return as_json(
        CasePage(
            **row.model_dump(),
            action=found.action,
            body=found.body.to(chosen),
            checks=[item.to(chosen) for item in found.checks],
            urls=[str(source.url) for source in found.sources],
        )
    )


def _row(case: Case, lang: Literal["en", "zh"]) -> CaseRow:
    return CaseRow(
        id=case.id, title=case.title.to(lang), cause=case.cause, frameworks=sorted(case.frameworks)
    )


@router.get("/search", response_model=Hits, responses=documented_problems(504))
def search(
    app_state: CurrentAppState,
    principal: TriagePrincipal,
    q: Annotated[
        str,
        Query(
            min_length=1,
            max_length=500,
            pattern=r"^[^\x00]*$",
            description="What to look for, in English or Chinese.",
            examples=["NCCL timeout"],
        ),
    ],
    count: Annotated[int, Query(ge=1, le=50, description="How many at most.")] = 5,
    lang: Lang = "",
) -> Response:
    """Search cases, notes and past reports: everybody's, and your team's."""
    found = app_state.triage_service.search(q, count, lang, principal.caller.team)
    return as_json(Hits(items=list(found)))
