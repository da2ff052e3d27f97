"""How KubeRay's history server lays out the logs of Ray clusters in an object store, told by names alone.

Each session of a cluster is a folder. In it are, for each node, the files of Ray's own folder of logs, and
the events that Ray exported.
https://github.com/ray-project/kuberay/blob/master/historyserver/pkg/storage/clusterlogs/clusterlogs.go
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_NODE = r"[0-9a-f]{40,64}"
# Below a session: a node's folder with its logs, or the logs with a folder a node, as some stores have them.
# An address may be that of a session itself.
_FILE = re.compile(
    r"(?:(?P<session>(?:[^/]+/)*session_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6}(?:_\d+)?)/)?"
    rf"(?:{_NODE}/(?P<kind>logs|node_events|job_events)|logs/{_NODE}|"
    r"(?P<record>fetched_endpoints|node_events|job_events))/."
)
_STORE = re.compile(r"(?:^|.*/)cluster-history/")
_EVENTS = re.compile(r"(?:^|/)events/(?:event|export)_[^/]+\.log(?:\.\d+)?$")
_JOB_EVENTS = re.compile(r"(?:^|/)job_events/(?P<job>[0-9a-f]{8})/")


def session_of(name: str) -> str | None:
    """Name the session's folder that a file is of, empty where all is below one; None where it is of none."""
    match = _FILE.match(name)
    return (match["session"] or "") if match else None


def shown_session(session: str) -> str:
    """Name a session as people do: by its kind, name space, owner and cluster."""
    return _STORE.sub("", session)


def is_ray_log(name: str) -> bool:
    """Tell whether a file is one of Ray's own log of events."""
    return _EVENTS.search(name) is not None


def core_id_of_events(name: str) -> str:
    """Give the core id of the job whose exported events a file holds; empty where it holds none."""
    match = _JOB_EVENTS.search(name)
    return match["job"] if match else ""


def by_session(names: Iterable[str]) -> dict[str, list[str]]:
    """Give each session's output: what its programs wrote, and not what the cluster noted of itself."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        match = _FILE.match(name)
        if match and not match["record"] and (match["kind"] or "logs") == "logs" and not is_ray_log(name):
            found[match["session"] or ""].append(name)
    return found
