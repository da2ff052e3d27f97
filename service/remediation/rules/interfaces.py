"""The network interfaces of the job's nodes, as NCCL names those that it uses and as a log lists them."""

from __future__ import annotations

import re
from collections import Counter

from service.remediation.rules.context import RuleContext

# The name of a network's interface, and of those that lead to no other machine: bridges, tunnels of
# containers and the loopback.
_INTERFACE = re.compile(r"=?(?P<name>[A-Za-z][\w.-]{1,14})")
_LOCAL = re.compile(r"lo\d?$|docker|veth|virbr|br-|cni|flannel|cali|tun|tap|dummy|podman")
_LISTED = re.compile(r"\[\d{1,2}\](?P<name>[A-Za-z][\w.-]{1,14}):\d")


def interface(text: str) -> str | None:
    """Give the one interface that a variable names, if other machines may be reached by it."""
    found = _INTERFACE.fullmatch(text.strip("'\""))
    return None if found is None or _LOCAL.match(found["name"]) else found["name"]


def interface_listed(context: RuleContext) -> str | None:
    """Give the one interface of those that NCCL lists which other machines may be reached by."""
    rows = (fact.fields.get("devices") for fact in context.facts if fact.kind == "nccl_net")
    names = {name for row in rows for name in _LISTED.findall(str(row)) if not _LOCAL.match(name)}
    return names.pop() if len(names) == 1 else None


def interface_there(context: RuleContext, wanted: str) -> tuple[str, str] | None:
    """Give the first interface that is up on all nodes which list theirs, and all of these, but for `wanted`.

    None where one of that name, or beginning with it, is listed: NCCL would have taken it.
    """
    listed, fitting = _listed(context)
    names = wanted.strip("'\"").lstrip("=").split(",")
    if not all(names) or any(name.startswith(tuple(names)) for name in listed):
        return None
    return (min(fitting, key=[*reversed(listed)].index), ", ".join(fitting)) if fitting else None


def interface_alone(context: RuleContext) -> str | None:
    """Give the one interface of those which the nodes list that is up on all of them."""
    _, fitting = _listed(context)
    return fitting[0] if len(fitting) == 1 else None


def _listed(context: RuleContext) -> tuple[list[str], list[str]]:
    """Give the interfaces that the log lists, and those that are up on all nodes and lead to others."""
    listed, up = Counter[str](), Counter[str]()
    for fields in (fact.fields for fact in context.facts if fact.kind == "interface"):
        name = str(fields.get("name", ""))
        listed[name] += 1
        up[name] += "UP" in str(fields.get("flags", fields.get("state", ""))).split(",")
    nodes = max(listed.values(), default=0)
    return [*listed], [name for name in listed if up[name] == nodes and not _LOCAL.match(name)]
