"""Compose YAML into the tree of places: the one module that imports the round-trip parser.

Imported where a YAML file is read: the parser takes longer to import than most answers take to give.
"""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as Parsed

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import Step, TreeEntry, TreeNode, line_of

# Aliases of aliases let a short file stand for a huge one.
MAX_VALUES = 100_000


def compose(text: str) -> tuple[TreeNode, ...]:
    """Give the root of each document; raises NotPatchableError where the text is no clean YAML."""
    parser = YAML(typ="safe", pure=True)
    try:
        parsed = list(parser.compose_all(text))
        return tuple(_YamlNodeReader(text, root).node(root, (index,)) for index, root in enumerate(parsed))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise NotPatchableError(
            Message("patch.line-no-valid-yaml", line=line, problem=error.problem)
        ) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise NotPatchableError(Message("patch.file-no-valid-yaml", name=type(error).__name__)) from error


class _YamlNodeReader:
    """Turns what the parser composed into nodes; counts on the way who is referred to twice."""

    def __init__(self, text: str, root: Parsed) -> None:
        self._text = text
        self._uses: dict[int, int] = {}
        self._made: dict[int, TreeNode] = {}
        self._count(root)
        if self._size(root, {}, set()) > MAX_VALUES:
            raise NotPatchableError(Message("patch.aliases-file-stand-many"))

    def _count(self, root: Parsed) -> None:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            self._uses[id(node)] = self._uses.get(id(node), 0) + 1
            if self._uses[id(node)] == 1:
                waiting.extend(_children(node))

    def _size(self, node: Parsed, known: dict[int, int], above: set[int]) -> int:
        if id(node) in above:
            raise NotPatchableError(
                Message("patch.line-contains-itself-alias", text=line_of(self._text, node.start_mark.index))
            )
        if id(node) not in known:
            known[id(node)] = 1 + sum(
                self._size(child, known, above | {id(node)}) for child in _children(node)
            )
        return known[id(node)]

    def node(self, node: Parsed, path: tuple[Step, ...], inside: bool = False) -> TreeNode:
        """Give the node; one that is referred to again keeps the path of its own place."""
        if id(node) not in self._made:
            self._made[id(node)] = self._new(node, path, inside)
        return self._made[id(node)]

    def _new(self, node: Parsed, path: tuple[Step, ...], inside: bool) -> TreeNode:
        start, end, shared = node.start_mark.index, node.end_mark.index, self._uses[id(node)] > 1
        below = inside or bool(getattr(node, "flow_style", False))
        if isinstance(node, MappingNode):
            entries = self._entries(node, path, below)
            lists = [
                value.value if isinstance(value, SequenceNode) else [value]
                for key, value in node.value
                if _is_merge(key)
            ]
            merged = tuple(self.node(child, path) for children in lists for child in children)
            style = "flow" if node.flow_style else "block"
            return TreeNode(
                "mapping",
                start,
                end,
                path,
                style,
                entries=entries,
                merged=merged,
                shared=shared,
                inside=inside,
            )
        if isinstance(node, SequenceNode):
            items = tuple(self.node(child, (*path, index), below) for index, child in enumerate(node.value))
            return TreeNode(
                "sequence",
                start,
                end,
                path,
                "flow" if node.flow_style else "block",
                items=items,
                shared=shared,
                inside=inside,
            )
        style = str(getattr(node, "style", None) or "") or ("plain" if end > start else "empty")
        return TreeNode(
            "scalar", start, end, path, style, value=str(node.value), shared=shared, inside=inside
        )

    def _entries(self, node: MappingNode, path: tuple[Step, ...], inside: bool) -> tuple[TreeEntry, ...]:
        found: dict[str, TreeEntry] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise NotPatchableError(
                    Message("patch.line-key-no-plain", text=line_of(self._text, key.start_mark.index))
                )
            if _is_merge(key):
                continue
            name = str(key.value)
            if name in found:
                lines = [line_of(self._text, place) for place in (found[name].start, key.start_mark.index)]
                raise NotPatchableError(
                    Message("patch.key-stands-twice-lines", key=name, lines=lines[0], lines_2=lines[1])
                )
            below = (*path, name)
            alias = value.end_mark.index <= key.start_mark.index
            found[name] = TreeEntry(
                name, key.start_mark.index, key.end_mark.index, below, self.node(value, below, inside), alias
            )
        return tuple(found.values())


def _children(node: Parsed) -> list[Parsed]:
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, SequenceNode) else []


def _is_merge(key: Parsed) -> bool:
    return isinstance(key, ScalarNode) and key.value == "<<" and not key.style
