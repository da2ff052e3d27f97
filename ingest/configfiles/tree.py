"""A file as nested mappings and lists with the place of every part in the text, and edits at such places.

YAML and JSON are read into the same tree, so that finding a dotted key is written once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from corpus.keys import canonical
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError

Step = str | int


@dataclass(frozen=True, slots=True, eq=False)
class TreeNode:
    """A value of the file.

    `start` and `end` are offsets in the text, `path` leads to it from the whole (document, keys, indices).
    `inside` tells that it stands between brackets, where a comma ends a word. `style` is `block`, `flow`,
    `plain`, `'`, `"`, `|`, `>`, or `empty` where nothing is written. `shared` says that another place of the
    file refers to this very value.
    """

    kind: Literal["mapping", "sequence", "scalar"]
    start: int
    end: int
    path: tuple[Step, ...]
    style: str
    value: str = ""
    entries: tuple[TreeEntry, ...] = ()
    items: tuple[TreeNode, ...] = ()
    merged: tuple[TreeNode, ...] = ()
    shared: bool = False
    inside: bool = False

    def entry(self, key: str) -> TreeEntry | None:
        """Give the entry of a key; `-` and `_` are one, as for command-line flags."""
        wanted = canonical(key)
        return next((entry for entry in self.entries if canonical(entry.key) == wanted), None)

    def child(self, *keys: str) -> TreeNode | None:
        """Follow keys downwards; gives None where one is missing."""
        node: TreeNode | None = self
        for key in keys:
            entry = node.entry(key) if node is not None else None
            node = entry.node if entry is not None else None
        return node

    def walk(self) -> Iterator[TreeNode]:
        """Give this node and all below it, each once."""
        waiting = [self]
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            waiting.extend(reversed([*(entry.node for entry in node.entries), *node.items]))


@dataclass(frozen=True, slots=True, eq=False)
class TreeEntry:
    """A key with its value.

    `start` and `end` are the key's, `alias` says that the value only refers to another.
    """

    key: str
    start: int
    end: int
    path: tuple[Step, ...]
    node: TreeNode
    alias: bool = False


@dataclass(frozen=True, slots=True)
class TreeEdit:
    """A piece of text to put in, and what the parsed file must then hold at `path`."""

    start: int
    end: int
    new: str
    path: tuple[Step, ...]
    value: object


def line_of(text: str, offset: int) -> int:
    """Give the 1-based line of an offset; only newlines end lines."""
    return text.count("\n", 0, offset) + 1


def spliced(text: str, edits: Sequence[TreeEdit]) -> str:
    """Write all edits into the text, from the end backwards so that offsets stay right."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def expected(loaded: object, edits: Sequence[TreeEdit]) -> object:
    """Give the parsed file with the edits' values put in and all else as it was."""
    whole = copy.deepcopy(loaded)
    for edit in edits:
        _put(whole, edit.path, edit.value)
    return whole


def _put(whole: Any, path: Sequence[Step], value: object) -> None:
    place = whole
    for step in path[:-1]:
        if isinstance(step, str) and place.get(step) is None:
            place[step] = {}
        place = place[step]
    if isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value


def alike(one: object, other: object) -> bool:
    """Tell whether two parsed files are the same, types included; the order of keys does not matter."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    # A NaN differs from itself.
    return one == other or (one != one and other != other)


def checked(before: object, after: object, edits: Sequence[TreeEdit]) -> None:
    """Raise NotPatchableError unless exactly the edits' values differ."""
    try:
        as_meant = alike(expected(before, edits), after)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise NotPatchableError(Message("patch.key-read-otherwise-written", reason=error)) from error
    if not as_meant:
        raise NotPatchableError(Message("patch.edit-change-more-value"))
