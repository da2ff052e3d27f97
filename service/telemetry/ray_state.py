"""A Ray cluster's state out of its dashboard: nodes that died, memory of nodes, the object store.

Asked over HTTP, so that ray need not be installed, nor be imported, where whycrash runs.
https://docs.ray.io/en/latest/cluster/running-applications/job-submission/openapi.html
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ingest.redaction.redactor import Redactor
from service.telemetry.snapshot import ClusterNode, RayState, Reading, gib, known, unavailable

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 5.0
MAX_NODES = 2000
MAX_MESSAGE = 300
# Ray's reason of an end that was meant: a node that the autoscaler or a person took away.
MEANT = ("expected termination", "autoscaler", "drain")


@dataclass(frozen=True, slots=True)
class RayClusterState:
    """What the dashboard told."""

    state: RayState
    nodes: tuple[ClusterNode, ...] = ()


def read_ray_state(dashboard: str, token: str = "") -> RayClusterState:
    """Ask a dashboard such as http://127.0.0.1:8265; what it does not tell is not available."""
    import httpx  # slow to load, and most samplers have no dashboard to ask

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=dashboard, timeout=TIMEOUT_S, headers=headers, trust_env=False) as client:
            listed = _fetch_data(client, "/api/v0/nodes", {"detail": "1", "limit": str(MAX_NODES)})["result"][
                "result"
            ]
            summary = _fetch_data(client, "/nodes", {"view": "summary"})["summary"]
        shares = {row.get("raylet", {}).get("nodeId"): _share(row) for row in summary}
        clean = Redactor().clean
        nodes = tuple(
            _node(row, shares.get(row["node_id"]), clean(str(row.get("state_message") or ""))[:MAX_MESSAGE])
            for row in listed
        )
        return RayClusterState(_state(listed, summary), nodes)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError) as error:
        return no_ray_state(f"Ray's dashboard could not be asked: {str(error) or type(error).__name__}")


def token() -> str:
    """Give the token of a cluster that asks for one, where the user has set it for Ray's own commands."""
    return os.environ.get("RAY_AUTH_TOKEN", "")


def no_ray_state(why: str) -> RayClusterState:
    """Make the state of a cluster that was not, or could not be, asked."""
    return RayClusterState(RayState(**{name: unavailable(why) for name in RayState.model_fields}))


def _fetch_data(client: httpx.Client, path: str, params: Mapping[str, str]) -> Any:
    response = client.get(path, params=dict(params))
    response.raise_for_status()
    return response.json()["data"]


def _state(listed: Sequence[Mapping[str, Any]], summary: Sequence[Mapping[str, Any]]) -> RayState:
    ends = [str(row.get("state_message") or "").lower() for row in listed if row["state"] == "DEAD"]
    lost = sum("unexpected" in why or not any(word in why for word in MEANT) for why in ends)
    alive = sum(row["state"] == "ALIVE" for row in listed)
    # Capacity and use in bytes; both are zero until the agent has reported.
    stores = []
    for row in summary:
        told = row.get("raylet", {})
        used, free = (int(told.get(f"objectStore{name}Memory") or 0) for name in ("Used", "Available"))
        if used + free > 0:
            stores.append((used + free, used))
    fullest = max(stores, key=lambda store: store[1] / store[0]) if stores else None
    shares = [share for row in summary if (share := _share(row)) is not None]
    silent: Reading[float] = unavailable("no node's agent has told of its object store")
    return RayState(
        nodes_dead=known(lost),
        nodes_alive=known(alive),
        memory_fraction=known(max(shares))
        if shares
        else unavailable("no node's agent has told of its memory"),
        memory_kills_new=unavailable("the dashboard does not count them; Prometheus does"),
        object_store_total_gib=known(gib(fullest[0])) if fullest else silent,
        object_store_used_gib=known(gib(fullest[1])) if fullest else silent,
    )


def _share(row: Mapping[str, Any]) -> float | None:
    told = row.get("mem")
    return round(1 - told[1] / told[0], 4) if isinstance(told, list) and len(told) > 1 and told[0] else None


def _node(row: Mapping[str, Any], share: float | None, message: str) -> ClusterNode:
    return ClusterNode(
        name=str(row["node_ip"]),
        alive=known(row["state"] == "ALIVE"),
        why_dead=known(message) if message else unavailable("Ray says nothing of an end"),
        memory_fraction=known(share)
        if share is not None
        else unavailable("its agent has not told of its memory"),
    )
