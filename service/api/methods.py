"""Which methods a path takes, asked of the routes themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.routing import BaseRoute, Match, Mount

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def methods_at(routes: Iterable[BaseRoute], scope: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the methods that some route takes at the path of a request; empty where there is none.

    What is mounted takes any method at any path, and is not asked.
    """
    asked = tuple(route for route in routes if not isinstance(route, Mount))
    return tuple(
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in asked)
    )
