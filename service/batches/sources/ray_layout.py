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
_ABOVE = re.compile(r"(?:^|/)cluster-history(?:/(?!session_)[^/]+)*$")
_STORE = re.compile(r"(?:^|.*/)cluster-history/")
_EVENTS = re.compile(r"(?:^|/)events/(?:event|export)_[^/]+\.log(?:\.\d+)?$")
_JOB_EVENTS = re.compile(r"(?:^|/)job_events/(?P<job>[^/]+)/")
_RECORD = re.compile(r"(?:^|/)(?:node_events|job_events)/")
# What the first releases noted of a cluster, beside its sessions.
_NOTES = re.compile(r"(?:^|/)meta/(?:restful__|static__|ack__)[^/]*$")


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


def is_record(name: str) -> bool:
    """Tell whether a file holds events that Ray exported."""
    return _RECORD.search(name) is not None


def job_of_events(name: str) -> str:
    """Name the job whose exported events a file holds, as the store does; empty where it holds none."""
    match = _JOB_EVENTS.search(name)
    return match["job"] if match else ""


def is_note(name: str) -> bool:
    """Tell whether a file is what the store notes of a cluster, and no program's output."""
    return _NOTES.search(name) is not None


def by_session(names: Iterable[str]) -> dict[str, list[str]]:
    """Give each session's output: what its programs wrote, and not what the cluster noted of itself."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        match = _FILE.match(name)
        if match and not match["record"] and (match["kind"] or "logs") == "logs" and not is_ray_log(name):
            found[match["session"] or ""].append(name)
    return found


def is_above_sessions(folder: str) -> bool:
    """Tell whether a folder of the store lies above those of the sessions of a cluster."""
    return _ABOVE.search(folder) is not None
