"""Read YAML into the tree of places, and write single values into its text.

Only the parser's marks are used: nothing is dumped, so that comments, order, quotes and line ends stay.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from corpus import library
from corpus.errors import CorpusError
from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import Step, TreeEdit, TreeEntry, TreeNode, checked, line_of, spliced
from ingest.configfiles.values import NOTHING, listed, number, same_sort

# The parser takes about a second for a quarter of a megabyte; no configuration written by hand is longer.
MAX_CHARACTERS = 1 << 18
# The parser's time grows with the square of the nesting, and deep nesting exhausts the stack of C parsers.
MAX_DEPTH = 60
_COLON = re.compile(r"\s*:(?=\s|$|[\[{\"',}\]])")
_ALIAS = re.compile(r"[ \t]+\*[^\s,\[\]{}]+")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+\s+")
_COMPUTED = re.compile(r"\$\{|\$\(|\{\{")


@dataclass(frozen=True, slots=True, eq=False)
class YamlFile:
    """A YAML file: its text, and the root of each document in it."""

    text: str
    roots: tuple[TreeNode, ...]

    def only(self) -> TreeNode:
        """Give the one mapping of the file; raises NotPatchableError where it is something else."""
        if len(self.roots) != 1:
            raise NotPatchableError(Message("patch.file-holds-yaml-documents", roots=len(self.roots)))
        if self.roots[0].kind != "mapping":
            raise NotPatchableError(Message("patch.file-no-yaml-mapping"))
        return self.roots[0]


@lru_cache(maxsize=8)
def read(text: str) -> YamlFile:
    """Read a file's text; raises NotPatchableError where it is no clean YAML."""
    if len(text) > MAX_CHARACTERS:
        raise NotPatchableError(Message("patch.file-longer-characters", max_characters=f"{MAX_CHARACTERS:,}"))
    if re.search(r"\r(?!\n)", text):
        raise NotPatchableError(
            Message("patch.line-carriage-return-within", text=line_of(text, text.index(chr(13))))
        )
    if _is_deep(text):
        raise NotPatchableError(Message("patch.file-nests-more-levels", max_depth=MAX_DEPTH))
    from ingest.configfiles import yaml_tree  # see there why not above

    return YamlFile(text, yaml_tree.compose(text))


def _is_deep(text: str) -> bool:
    """Tell whether brackets, list marks in one line or the indentation may open too many levels."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        if depth > MAX_DEPTH:
            return True
    return (
        re.search(rf"(?:[-?:][ \t]+){{{MAX_DEPTH},}}|^ {{{4 * MAX_DEPTH},}}[^\s#]", text, re.MULTILINE)
        is not None
    )


def loaded(document: YamlFile) -> list[object]:
    """Parse each document with the parser that the frameworks use; raises NotPatchableError."""
    found = []
    for root in document.roots:
        begin = document.text.rfind("\n", 0, root.start) + 1
        try:
            found.append(
                library.parse_yaml(document.text[begin : root.end].lstrip("\ufeff"), Path("the file"))
            )
        except (CorpusError, RecursionError, ValueError) as error:
            raise NotPatchableError(Message("patch.file-no-yaml-safe")) from error
    return found


def applied(document: YamlFile, edits: Sequence[TreeEdit]) -> str:
    """Write the edits; raises NotPatchableError where the parsed file would differ in anything else."""
    new = spliced(document.text, edits)
    checked(loaded(document), loaded(read(new)), edits)
    return new


def replacement(
    document: YamlFile, entry: TreeEntry, to: Scalar, *, words: bool = False, whole: bool = False
) -> TreeEdit:
    """Make the edit that gives an entry a new value; `words` keeps it a string whatever it looks like.

    `whole` tells that the setting takes a word in place of a list of words.
    """
    begin, end, old = _span(document, entry)
    written, value = _written(document, to, old, words=words)
    rows = _rows_of_words(document, entry) if whole or isinstance(value, list) else None
    if rows is not None:
        return TreeEdit(*rows, " " + written, entry.path, value)
    _check_replaceable(document, entry, value)
    lead = " " if begin == end else ""
    return TreeEdit(begin, end, lead + written, entry.path, value)


def is_replaceable(document: YamlFile, entry: TreeEntry) -> bool:
    """Tell whether `replacement` can give the entry another value of the same sort."""
    node = entry.node
    is_own = not entry.alias and not node.shared and not document.text.startswith("!", node.start)
    kind = node.kind == "scalar" or (node.kind == "sequence" and node.style == "flow")
    return is_own and kind and node.style not in ("|", ">") and not _COMPUTED.search(node.value)


def item_replacement(document: YamlFile, node: TreeNode, to: str) -> TreeEdit:
    """Make the edit that gives an item of a list a new string."""
    if node.style == "|":
        return literal_replacement(document, node, to)
    if node.shared or node.style == ">" or _COMPUTED.search(node.value):
        raise NotPatchableError(
            Message(
                "patch.line-computed-used-elsewhere",
                text=line_of(document.text, node.start),
                value=node.value,
            )
        )
    written, value = _written(document, to, node, words=node.style in "'\"" or not _is_other(node.value))
    return TreeEdit(node.start, node.end, written, node.path, value)


def literal_replacement(document: YamlFile, node: TreeNode, to: str) -> TreeEdit:
    """Make the edit that rewrites rows of a literal block, such as a manifest's script; the others stay.

    Raises NotPatchableError where the new text has another number of rows.
    """
    rows = document.text[node.start : node.end].split("\n")
    old, new = node.value.rstrip("\n").split("\n"), to.rstrip("\n").split("\n")
    same_count = len(old) == len(new) < len(rows)
    if node.shared or not same_count:
        raise NotPatchableError(
            Message("patch.line-holds-block-text", line=line_of(document.text, node.start))
        )
    for row, (before, after) in enumerate(zip(old, new, strict=True), start=1):
        if before != after:
            rows[row] = rows[row].replace(before, after)
    return TreeEdit(node.start, node.end, "\n".join(rows), node.path, to)


def row_start(document: YamlFile, node: TreeNode, row: int) -> int:
    """Give the offset of a row's first character within a literal block; 1-based, below its mark."""
    at = node.start
    for _ in range(row):
        at = document.text.index("\n", at) + 1
    return at + len(document.text[at:]) - len(document.text[at:].lstrip(" "))


def _span(document: YamlFile, entry: TreeEntry) -> tuple[int, int, TreeNode]:
    """Give where the value is written: behind an anchor's name, at an alias, or right after the colon."""
    text, node = document.text, entry.node
    colon = _COLON.match(text, entry.end)
    if colon is None:
        raise NotPatchableError(
            Message("patch.line-no-value", key=entry.key, text=line_of(text, entry.start))
        )
    if entry.alias:
        alias = _ALIAS.match(text, colon.end())
        if alias is None:
            raise NotPatchableError(
                Message("patch.line-alias-written-unusual", key=entry.key, text=line_of(text, entry.start))
            )
        begin = colon.end() + len(alias[0]) - len(alias[0].lstrip())
        return begin, alias.end(), TreeNode("scalar", begin, alias.end(), entry.path, "plain", inside=True)
    if node.style == "empty":
        return colon.end(), colon.end(), node
    anchor = _ANCHOR.match(text, node.start)
    return anchor.end() if anchor else node.start, node.end, node


def _rows_of_words(document: YamlFile, entry: TreeEntry) -> tuple[int, int] | None:
    """Give where a list of single words stands, from its key's colon on; None where it holds more.

    A remark between its rows would go with them.
    """
    node, colon = entry.node, _COLON.match(document.text, entry.end)
    is_words = node.kind == "sequence" and all(
        item.kind == "scalar" and item.style in ("plain", "'", '"') and not item.shared for item in node.items
    )
    if colon is None or entry.alias or node.shared or not is_words or not node.items:
        return None
    start, end = colon.end(), end_of(document, node)
    is_bare = not document.text[start : node.start].strip() and "#" not in document.text[start:end]
    return (start, end) if is_bare else None


def _check_replaceable(document: YamlFile, entry: TreeEntry, value: object) -> None:
    node, line = entry.node, line_of(document.text, entry.start)
    if entry.alias:
        return
    # A text that holds a list's members becomes that list.
    is_listed = (
        node.style == "plain" and isinstance(value, list) and listed(f"[{node.value.strip('()')}]") == value
    )
    # And a list of one item, written between brackets, becomes that item.
    text = document.text[node.start : node.end]
    is_only_item = node.style == "flow" and not node.shared and listed(text) == [value]
    if is_only_item:
        return
    if node.kind == "mapping" or ((node.kind == "sequence") != isinstance(value, list) and not is_listed):
        raise NotPatchableError(Message(f"patch.line-holds-{node.kind}", line=line))
    if node.kind == "sequence" and (node.style != "flow" or any(below.shared for below in node.walk())):
        raise NotPatchableError(Message("patch.list-line-changed-hand", line=line))
    if node.style in ("|", ">"):
        raise NotPatchableError(Message("patch.line-holds-block-text", line=line))
    if document.text.startswith("!", node.start):
        raise NotPatchableError(Message("patch.value-line-tag-own", line=line))
    # A reference that is mended stays one.
    is_reference = isinstance(value, str) and "${" in value and "${" in node.value
    if _COMPUTED.search(node.value) and not is_reference:
        raise NotPatchableError(Message("patch.value-line-computed", line=line, old=node.value))


def insertion(
    document: YamlFile,
    parent: TreeNode,
    missing: Sequence[str],
    value: object,
    entry: TreeEntry | None = None,
) -> TreeEdit:
    """Make the edit that adds a key at the end of a mapping, with the levels between.

    `entry` holds the mapping.
    """
    text = document.text
    path = (*parent.path, *missing)
    written = value
    for key in reversed(missing):
        written = {key: written}
    if not isinstance(written, dict) or parent.shared:
        raise NotPatchableError(
            Message("patch.mapping-line-used-elsewhere", text=line_of(text, parent.start))
        )
    if parent.kind == "scalar" and entry is not None:
        begin, _, _ = _span(document, entry)
        column = _column(text, entry.start) + _step(document)
        return _new_lines(text, begin, _block(document, written, column), path, value)
    if parent.style == "flow":
        return _in_flow(document, parent, _flow(document, written)[1:-1], path, value)
    column = _column(text, parent.entries[0].start) if parent.entries else _column(text, parent.start)
    return _new_lines(text, end_of(document, parent), _block(document, written, column), path, value)


def appended(document: YamlFile, sequence: TreeNode, value: object) -> TreeEdit:
    """Make the edit that adds an item at the end of a list."""
    text, path = document.text, (*sequence.path, len(sequence.items))
    if sequence.shared:
        raise NotPatchableError(Message("patch.list-line-used-elsewhere", text=line_of(text, sequence.start)))
    if sequence.style == "flow":
        return _in_flow(document, sequence, _flow(document, value), path, value)
    dash = (
        text.rfind("-", 0, sequence.items[0].start)
        if sequence.items[0].start > sequence.start
        else sequence.start
    )
    column = _column(text, dash)
    if isinstance(value, Mapping):
        first, *rest = _block(document, value, column + 2)
        rows = [" " * column + "- " + first.lstrip(), *rest]
    else:
        rows = [" " * column + "- " + _flow(document, value, inside=False)]
    return _new_lines(text, end_of(document, sequence), rows, path, value)


def _column(text: str, offset: int) -> int:
    row = text[text.rfind("\n", 0, offset) + 1 : offset]
    return len(row.removeprefix("\ufeff"))


def _step(document: YamlFile) -> int:
    """Give the width of one level: the least one that the file's nested mappings show."""
    text, widths = document.text, list[int]()
    for root in document.roots:
        for node in root.walk():
            inner = [
                entry.node
                for entry in node.entries
                if entry.node.kind == "mapping" and entry.node.style == "block"
            ]
            columns = [
                _column(text, below.entries[0].start)
                for below in inner
                if below.entries and below.start > node.start
            ]
            widths += [column - _column(text, node.entries[0].start) for column in columns]
    return min((width for width in widths if width > 0), default=2)


def end_of(document: YamlFile, node: TreeNode) -> int:
    """Give where the text of a node's last part ends.

    A block's own end lies behind the comments that follow.
    """
    if node.style != "block":
        return node.end
    if node.kind == "sequence":
        last = node.items[-1]
        if last.end <= node.start or last.style == "empty":
            raise NotPatchableError(
                Message("patch.list-line-ends-unusually", text=line_of(document.text, node.start))
            )
        return end_of(document, last)
    last_entry = max(node.entries, key=lambda entry: entry.start)
    if last_entry.alias or last_entry.node.style == "empty":
        return _span(document, last_entry)[1]
    return end_of(document, last_entry.node)


def _new_lines(
    text: str, offset: int, rows: Sequence[str], path: tuple[Step, ...], value: object
) -> TreeEdit:
    """Put lines in behind the line of an offset; a last line without an end stays without."""
    ending = "\r\n" if "\r\n" in text else "\n"
    if offset and text[offset - 1] == "\n":
        return TreeEdit(offset, offset, "".join(row + ending for row in rows), path, value)
    found = text.find("\n", offset)
    if found < 0:
        return TreeEdit(len(text), len(text), "".join(ending + row for row in rows), path, value)
    return TreeEdit(found + 1, found + 1, "".join(row + ending for row in rows), path, value)


def _in_flow(
    document: YamlFile, node: TreeNode, written: str, path: tuple[Step, ...], value: object
) -> TreeEdit:
    if not node.entries and not node.items:
        return TreeEdit(node.end - 1, node.end - 1, written, path, value)
    offset = node.items[-1].end if node.items else max(node.entries, key=lambda entry: entry.start).node.end
    if not node.start < offset < node.end or (node.entries and node.entries[-1].alias):
        raise NotPatchableError(
            Message("patch.line-ends-alias-empty", text=line_of(document.text, node.start))
        )
    return TreeEdit(offset, offset, f", {written}", path, value)


def _block(document: YamlFile, value: Mapping[str, object], column: int) -> list[str]:
    rows = []
    for key, below in value.items():
        if isinstance(below, Mapping):
            rows += [" " * column + f"{key}:", *_block(document, below, column + _step(document))]
        else:
            rows.append(" " * column + f"{key}: {_flow(document, below, inside=False)}")
    return rows


def _flow(document: YamlFile, value: object, *, inside: bool = True) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(document, below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(document, below) for below in value) + "]"
    return _plain(document, value, inside=inside)


def _written(document: YamlFile, to: Scalar, old: TreeNode, *, words: bool) -> tuple[str, object]:
    """Give how a value is written in the place of an old one, and what a reader gets."""
    if not isinstance(to, str):
        value: Scalar = str(to) if words else to
        return (_quoted(str(to), old.style) if words else _plain(document, to, old, inside=old.inside)), value
    items = None if words else listed(to)
    if items is not None:
        return _flow(document, items), items
    if old.style in ("'", '"'):
        return _quoted(to, old.style), to
    if not words and to == NOTHING:
        return "null", None
    if not words and old.style == "plain" and same_sort(to, old.value):
        value, as_number = library.parse_yaml(to, Path("the value")), number(to)
        if isinstance(value, str) and as_number is not None:
            # `2e-05` is text to YAML 1.1.
            return _plain(document, as_number, inside=old.inside), as_number
        return to, value
    return _plain(document, to, inside=old.inside), to


def _plain(document: YamlFile, value: object, old: TreeNode | None = None, *, inside: bool) -> str:
    if isinstance(value, bool):
        upper = (
            re.fullmatch("True|False", old.value)
            if old is not None and old.value
            else (
                len(re.findall(r":\s+(?:True|False)\b", document.text))
                > len(re.findall(r":\s+(?:true|false)\b", document.text))
            )
        )
        return str(value) if upper else str(value).lower()
    if isinstance(value, float):
        # `1e-05` is a string for YAML 1.1: it wants the point and the sign.
        if not math.isfinite(value):
            raise NotPatchableError(Message("patch.no-number-write", value=value))
        mantissa, _, exponent = repr(value).partition("e")
        # `1e-05` is a string for YAML 1.1: it wants the point and the sign.
        return (
            (mantissa if "." in mantissa else f"{mantissa}.0")
            + (f"e{exponent}" if exponent[0] in "+-" else f"e+{exponent}")
            if exponent
            else mantissa
        )
    if isinstance(value, str) and (_is_other(value) or not _is_bare(value, inside=inside)):
        return _quoted(value, '"' if document.text.count('"') > document.text.count("'") else "'")
    return str(value)


def _is_other(word: str) -> bool:
    """Tell whether a plain word is a number, a switch, nothing or a date to some reader of YAML."""
    try:
        return number(word) is not None or not isinstance(library.parse_yaml(word, Path("a value")), str)
    except (CorpusError, ValueError):
        return False


def _is_bare(word: str, *, inside: bool) -> bool:
    """Tell whether a string may stand without quotes, between brackets or not."""
    if (
        word != word.strip()
        or not word.isprintable()
        or re.search(r": |:$| #", word)
        or (inside and re.search(r"[,\[\]{}]", word))
    ):
        return False
    try:
        return bool(library.parse_yaml(f"[{word}]" if inside else f"- {word}", Path("a value")) == [word])
    except (CorpusError, ValueError):
        return False


def _quoted(value: str, style: str) -> str:
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value, ensure_ascii=False)
