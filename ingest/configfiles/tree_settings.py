"""The settings of nested mappings and lists with their places: keys joined by dots.

A variable of an environment goes by its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from corpus.schema import Scalar
from ingest.configfiles import json_document
from ingest.configfiles.settings import Edit, Setting, Spelling, named_as_printed, place_at
from ingest.configfiles.tree import TreeEntry, TreeNode, line_of

_CONTAINERS = frozenset({"containers", "initContainers"})
_COMMANDS = frozenset({"command", "args", "entrypoint"})


@dataclass(frozen=True, slots=True)
class TreeValue:
    """A value of the tree under its dotted path, and where it stands.

    It is the value of `entry` or the `item` of a list, or a part of that text: `rewrite` gives the whole text
    with another value in it. None of them where a person has to change it.
    """

    path: str
    value: str
    start: int
    scope: str = ""
    entry: TreeEntry | None = None
    item: TreeNode | None = None
    rewrite: Callable[[Scalar], str] = str
    spelled: Spelling | None = None


def of_json(text: str) -> list[Setting]:
    """Read a JSON file; raises NotPatchableError where it is no plain JSON object."""
    found: list[Setting] = []
    for each in read_values(text, json_document.read(text)):
        is_open = each.entry is not None and each.entry.node.kind != "mapping" and "${" not in each.value
        write = None
        if is_open and each.entry is not None:
            words = each.entry.node.style == '"'
            write = partial(json_document.replacement, text, each.entry, words=words)
        found += settings_of(text, each, "json", write)
    return found


def settings_of(
    text: str, value: TreeValue, spelling: Spelling, write: Callable[[Scalar], Edit] | None
) -> Iterator[Setting]:
    """Make the setting of a value; none where its path is no setting's name."""
    line = line_of(text, value.start)
    place = place_at(text, value.start, value.scope, write) if write is not None else None
    if value.spelled is not None:
        yield Setting(value.path, value.value, line, value.spelled, place)
    elif setting := named_as_printed(value.path, value.value, line, spelling):
        yield replace(setting, place=place)


def read_values(text: str, node: TreeNode, path: str = "", scope: str = "") -> Iterator[TreeValue]:
    """Give the values below a mapping, in the order of the text."""
    for entry in node.entries:
        below, child = f"{path}{entry.key}", entry.node
        is_command = bool(scope) and entry.key in _COMMANDS
        # A command is changed in its parts, which are read below.
        own = None if is_command else entry
        if entry.alias and child.kind != "scalar":
            continue  # it is read where it is defined
        has_entries = bool(child.entries)
        match child.kind:
            case "mapping" if has_entries:
                # A service of Compose is a container.
                inner = entry.key if path == "services." else scope
                yield from read_values(text, child, f"{below}.", inner)
            case "mapping":
                yield TreeValue(below, "{}", child.start, scope, own)
            case "sequence":
                yield from _sequence(text, entry, own, below, scope)
            case _ if child.style != "empty":
                yield TreeValue(below, shown(text, child), child.start, scope, own)


def shown(text: str, node: TreeNode) -> str:
    """Give a value as it is written, without its quotes."""
    if node.style in ("plain", "") and "\n" not in (raw := text[node.start : node.end]) and raw:
        return raw if raw[0] not in "&!*" else node.value
    return " ".join(node.value.split("\n")).strip() if node.style in ("|", ">") else node.value


def _sequence(
    text: str, entry: TreeEntry, own: TreeEntry | None, path: str, scope: str
) -> Iterator[TreeValue]:
    """Give a list as one value; mappings in it by their keys, and variables by their names."""
    node = entry.node
    if entry.key == "environment" and node.items and all("=" in item.value for item in node.items):
        for item in node.items:
            name, _, told = item.value.partition("=")
            yield TreeValue(
                f"{path}.{name}", told, item.start, scope, None, item, partial("{}={}".format, name)
            )
        return
    mappings = [item for item in node.items if item.kind == "mapping"]
    for item in mappings:
        named, value = item.child("name"), item.entry("value")
        if entry.key == "env" and named is not None and value is not None:
            yield TreeValue(f"{path}.{named.value}", shown(text, value.node), value.node.start, scope, value)
            continue
        whose = named.value if entry.key in _CONTAINERS and named is not None else scope
        yield from read_values(text, item, f"{path}.", whose)
    if node.style == "flow":
        # What holds settings of its own is changed in those.
        whole = None if mappings else own
        yield TreeValue(path, " ".join(text[node.start : node.end].split()), node.start, scope, whole)
    elif not mappings:
        items = ", ".join(shown(text, item) for item in node.items)
        yield TreeValue(path, f"[{items}]", node.start, scope, own)
