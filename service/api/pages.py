"""Lists in pages: `limit` and `after` in, a cursor and a Link header out (RFC 8288)."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
After = Annotated[
    str | None, Query(max_length=200, pattern=r"^[\x20-\x7e]*$", description="The `next` of the page before.")
]


class Paged(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(
        default=None, description="What to pass as `after` for the next page; null at the end."
    )


def page_response(request: Request, page: Paged[T]) -> Response:
    """Give a page with a link to the next one."""
    answer = Response(page.model_dump_json(by_alias=True), media_type="application/json")
    if page.next is not None:
        query = {**request.query_params, "after": page.next}
        answer.headers["link"] = f'<{request.url.path}?{urlencode(query)}>; rel="next"'
    return answer
