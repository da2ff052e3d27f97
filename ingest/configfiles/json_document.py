"""Read JSON into the tree of places, and write single values into its text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import Step, TreeEdit, TreeEntry, TreeNode, checked, line_of, spliced
from ingest.configfiles.values import NOTHING, meant, same_sort

MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def loaded(text: str) -> object:
    """Parse a text; raises ValueError where it is no JSON."""
    return json.loads(text.removeprefix("\ufeff"))


def applied(text: str, edits: Sequence[TreeEdit]) -> str:
    """Write the edits; raises NotPatchableError where the parsed file would differ in anything else."""
    new = spliced(text, edits)
    checked(loaded(text), loaded(new), edits)
    return new


@lru_cache(maxsize=8)
def read(text: str) -> TreeNode:
    """Read an object with the places of its parts.

    Raises NotPatchableError where it is no plain JSON object.
    """
    try:
        parsed = loaded(text)
        if not isinstance(parsed, dict):
            raise NotPatchableError(Message("patch.file-no-json-object"))
        return _Scan(text).node(text.index("{"), ())
    except json.JSONDecodeError as error:
        begin = text[error.pos + text.startswith("\ufeff") :].lstrip()
        if begin.startswith(("//", "/*", "#")):
            raise NotPatchableError(Message("patch.line-comments-plain-json", line=error.lineno)) from error
        raise NotPatchableError(
            Message("patch.line-no-valid-json", line=error.lineno, reason=error.msg)
        ) from error
    except (RecursionError, ValueError) as error:
        raise NotPatchableError(Message("patch.file-no-json-read")) from error


class _Scan:
    """Notes the places of the values of a text that the decoder has read already."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _skip(self, offset: int) -> int:
        found = _SPACE.match(self._text, offset)
        return found.end() if found else offset

    def node(self, start: int, path: tuple[Step, ...]) -> TreeNode:
        """Give the value that begins at an offset."""
        if len(path) > MAX_DEPTH:
            raise NotPatchableError(Message("patch.file-nests-more-levels", max_depth=MAX_DEPTH))
        first = self._text[start]
        if first == "{":
            return self._object(start, path)
        if first == "[":
            return self._array(start, path)
        value, end = _DECODER.raw_decode(self._text, start)
        return TreeNode("scalar", start, end, path, '"' if first == '"' else "plain", value=str(value))

    def _object(self, start: int, path: tuple[Step, ...]) -> TreeNode:
        entries: dict[str, TreeEntry] = {}
        offset = self._skip(start + 1)
        while self._text[offset] != "}":
            key, end = _DECODER.raw_decode(self._text, offset)
            if key in entries:
                lines = (line_of(self._text, entries[key].start), line_of(self._text, offset))
                raise NotPatchableError(
                    Message("patch.key-stands-twice-lines", key=key, lines=lines[0], lines_2=lines[1])
                )
            value = self.node(self._skip(self._skip(end) + 1), (*path, key))
            entries[key] = TreeEntry(key, offset, end, (*path, key), value)
            offset = self._following(value.end)
        return TreeNode("mapping", start, offset + 1, path, "flow", entries=tuple(entries.values()))

    def _array(self, start: int, path: tuple[Step, ...]) -> TreeNode:
        items: list[TreeNode] = []
        offset = self._skip(start + 1)
        while self._text[offset] != "]":
            items.append(self.node(offset, (*path, len(items))))
            offset = self._following(items[-1].end)
        return TreeNode("sequence", start, offset + 1, path, "flow", items=tuple(items))

    def _following(self, end: int) -> int:
        offset = self._skip(end)
        return self._skip(offset + 1) if self._text[offset] == "," else offset


def replacement(
    text: str, entry: TreeEntry, to: Scalar, *, words: bool = False, whole: bool = False
) -> TreeEdit:
    """Make the edit that gives an entry a new value; `words` keeps it a string whatever it looks like.

    `whole` tells that the setting takes a word in place of a list of words.
    """
    node, line = entry.node, line_of(text, entry.start)
    value = str(to) if words else _typed(to, node)
    is_other = (node.kind == "sequence") != isinstance(value, list)
    is_words = node.kind == "sequence" and all(item.kind == "scalar" for item in node.items)
    if node.kind == "mapping" or (is_other and not (whole and is_words)):
        raise NotPatchableError(
            Message(
                "patch.line-holds-object" if node.kind == "mapping" else "patch.line-holds-another-kind",
                line=line,
            )
        )
    if "${" in node.value:
        raise NotPatchableError(Message("patch.value-line-computed", line=line, old=node.value))
    return TreeEdit(node.start, node.end, _written(value), entry.path, value)


def _typed(to: Scalar, old: TreeNode) -> object:
    """Give the value with the type that the file has there: a number that came as a word stays a number."""
    value = meant(to)
    if value == NOTHING:
        return None
    if not isinstance(value, str) or old.style != "plain" or not same_sort(value, old.value):
        return value
    try:
        return json.loads(value.lower())
    except ValueError:
        return value


def _written(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotPatchableError(Message("patch.no-number-write", value=value))
    return json.dumps(value, ensure_ascii=False)


def insertion(text: str, parent: TreeNode, missing: Sequence[str], value: object) -> TreeEdit:
    """Add a member at the end of an object, laid out as its last one is."""
    path = (*parent.path, *missing)
    written = value
    for key in reversed(missing[1:]):
        written = {key: written}
    last = parent.entries[-1] if parent.entries else None
    colon = text[last.end : last.node.start] if last is not None else ": "
    if last is None:
        return TreeEdit(
            parent.start + 1,
            parent.end - 1,
            _alone(text, parent, f"{json.dumps(missing[0])}: {_object(written)}"),
            path,
            value,
        )
    lead = text[len(text[: last.start].rstrip(" \t\r\n")) : last.start] or (
        " " if len(parent.entries) == 1 and colon.endswith(" ") else ""
    )
    member = f"{json.dumps(missing[0], ensure_ascii=False)}{colon}{_object(written)}"
    return TreeEdit(last.node.end, last.node.end, f",{lead}{member}", path, value)


def _object(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)}: {_object(below)}" for key, below in value.items()) + "}"
    return _written(value)


def _alone(text: str, parent: TreeNode, member: str) -> str:
    """Lay out the first member of an empty object: on a line of its own where the braces stand on two."""
    inside = text[parent.start + 1 : parent.end - 1]
    if "\n" not in inside:
        return member
    ending = "\r\n" if "\r\n" in inside else "\n"
    closing = inside.rpartition("\n")[2]
    return f"{ending}{closing}  {member}{ending}{closing}"
