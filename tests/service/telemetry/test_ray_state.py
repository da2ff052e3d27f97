"""Ray's dashboard is asked for dead nodes, memory and the object store.

What it does not tell is not available.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from service.telemetry import ray_state
from service.telemetry.ray_state import RayClusterState
from tests.ports import free_port
from tests.service.telemetry.makers import served
from tests.tables import each_row

GIB = 1 << 30


def node(name: str, state: str = "ALIVE", message: str | None = None) -> dict[str, Any]:
    """Write a node as the state API lists it."""
    return {"node_id": name, "node_ip": name, "state": state, "state_message": message}


def agent(name: str, used: int, free: int, total: int = 100, left: int = 40) -> dict[str, Any]:
    """Write a node as the summary has it."""
    return {
        "mem": [total, left, 60.0, total - left],
        "raylet": {"nodeId": name, "objectStoreUsedMemory": used, "objectStoreAvailableMemory": free},
    }


def asked(tmp_path: Path, listed: list[dict[str, Any]], summary: list[dict[str, Any]]) -> RayClusterState:
    """Ask a dashboard that tells this."""
    pages = {
        "/api/v0/nodes": {"data": {"result": {"result": listed}}},
        "/nodes": {"data": {"summary": summary}},
    }
    for place, (path, body) in enumerate(pages.items()):
        (tmp_path / str(place)).write_text(json.dumps(body), encoding="utf-8")
        pages[path] = str(tmp_path / str(place))  # type: ignore[assignment]
    with served(pages) as port:  # type: ignore[arg-type]
        return ray_state.read_ray_state(f"http://127.0.0.1:{port}")


def test_that_nodes_memory_and_store_are_read(tmp_path: Path) -> None:
    listed = [
        node("a"),
        node("b", "DEAD", "Unexpected termination: missing too many heartbeats"),
        node("c", "DEAD", "Expected termination: drained"),
    ]
    found = asked(tmp_path, listed, [agent("a", 9 * GIB, GIB), agent("d", GIB, 9 * GIB)])
    state = found.state
    assert (state.nodes_dead.value, state.nodes_alive.value, state.memory_fraction.value) == (1, 1, 0.6)
    assert (state.object_store_used_gib.value, state.object_store_total_gib.value) == (9.0, 10.0)
    assert [(item.name, item.alive.value, item.memory_fraction.value) for item in found.nodes] == [
        ("a", True, 0.6),
        ("b", False, None),
        ("c", False, None),
    ]


def test_that_a_store_of_which_no_agent_has_told_is_not_empty(tmp_path: Path) -> None:
    found = asked(tmp_path, [node("a")], [agent("a", 0, 0)])
    assert "no node's agent" in (found.state.object_store_used_gib.unavailable or "")


@each_row("summary", [[{"mem": None}], [{}], [{"mem": [0, 0]}]])
def test_that_a_node_without_numbers_is_no_error(summary: list[dict[str, Any]], tmp_path: Path) -> None:
    assert asked(tmp_path, [node("a")], summary).state.memory_fraction.unavailable


@each_row("dashboard", ["http://127.0.0.1:{port}", "nonsense", "http://[::", ""])
def test_that_a_dashboard_that_is_not_there_leaves_everything_not_available(dashboard: str) -> None:
    found = ray_state.read_ray_state(dashboard.format(port=free_port()))
    assert "could not be asked" in (found.state.nodes_dead.unavailable or "")
    assert found.nodes == ()
