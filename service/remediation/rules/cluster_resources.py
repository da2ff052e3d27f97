"""What a cluster has of a resource, as its status and its warnings print it."""

from __future__ import annotations

import re

from service.remediation.rules.context import RuleContext

# `ray status`: python/ray/autoscaler/_private/util.py, `16.0/192.0 CPU (...)`.
_USAGE = re.compile(
    r"(?m)^\s{0,40}(?P<used>\d{1,9}(?:\.\d{1,6})?)/(?P<total>\d{1,9}(?:\.\d{1,6})?) (?P<name>[A-Z]{3})\b"
)
# python/ray/serve/_private/deployment_state.py: all that there is, by name.
_LISTED = re.compile(r"total resources available: \{(?P<listed>[^{}]{0,400})\}")
_ITEM = re.compile(r"['\"](?P<name>\w{1,40})['\"]: (?P<count>\d{1,9}(?:\.\d{1,6})?)")
# `--gres=gpu:a100:8`, https://slurm.schedmd.com/gres.html
_GRES = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::[A-Za-z][\w.-]*)?[:=](?P<count>\d{1,4})\b")


def cluster_has(context: RuleContext, resource: str) -> float | None:
    """Give the most of a resource that the log says there is; 0 where a list of all has none."""
    found = list[float]()
    for text in context.texts:
        found += [float(row["total"]) for row in _USAGE.finditer(text) if row["name"] == resource]
        for row in _LISTED.finditer(text):
            counts = {item["name"]: float(item["count"]) for item in _ITEM.finditer(row["listed"])}
            found.append(counts.get(resource, 0.0))
    return max(found, default=None)


def cluster_free(context: RuleContext, resource: str) -> float | None:
    """Give the least of a resource that the log says is left; all of it where it tells nothing of its use."""
    left = [
        float(row["total"]) - float(row["used"])
        for text in context.texts
        for row in _USAGE.finditer(text)
        if row["name"] == resource
    ]
    return min(left, default=cluster_has(context, resource))


def asked_of(context: RuleContext, resource: str) -> float | None:
    """Give how much of a resource the request has that cannot be met."""
    text = context.words("ray_request", "request")
    return next((float(item["count"]) for item in _ITEM.finditer(text) if item["name"] == resource), None)


def listed_cards(text: str) -> int | None:
    """Read how many cards of a node `--gres` asks for."""
    found = _GRES.search(text.strip("'\""))
    return int(found["count"]) if found is not None else None
