"""Take a key that its program does not know out of the job's files, with its value and with nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from corpus.message import Message
from ingest.configfiles import json_document, yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.inner import inner_scripts
from ingest.configfiles.shell.insertion import removed
from ingest.configfiles.shell.syntax import Script, parse
from ingest.configfiles.shell.words import WordEdit
from ingest.configfiles.tree import TreeEntry, TreeNode, alike, line_of
from ingest.configfiles.yaml_document import YamlFile
from service.patching import directives, overrides
from service.patching.overrides import SettingPlace
from service.patching.target import PatchTarget


def is_set_in(script: Script, target: PatchTarget) -> bool:
    """Tell whether a program of the script, or a directive, is given the key."""
    return bool(overrides.places(script, target) or directives.found(script.text, target))


def remove_from_script(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that take the key out of the commands and the directives of a script."""
    if not is_set_in(script, target):
        raise NotPatchableError(Message("patch.script-not-set", replaces=target.names[0]))
    taken_out = [_removal_edit(place, target) for place in overrides.places(script, target)]
    return taken_out + directives.removals(script.text, target)


def is_gone(script: Script, target: PatchTarget) -> bool:
    """Tell whether no program of a script, nor of one within it, is given the key."""
    inner = (parse(each.text) for each in inner_scripts(script))
    return not is_set_in(script, target) and all(is_gone(each, target) for each in inner)


def _removal_edit(place: SettingPlace, target: PatchTarget) -> WordEdit:
    """Take out the word with the name, and the one behind it where the program calls it the key's value.

    Else what follows may be the program's next argument, or the value: then it is left to the reader.
    """
    edit = removed(place.word, place.before)
    if place.form != "pair" or place.value is None:
        return edit
    if not place.value.plain or place.value.text != str(target.to):
        raise NotPatchableError(
            Message("patch.line-value-or-argument", line=place.line, text=place.value.text)
        )
    return WordEdit(edit.start, place.value.end, "")


def remove_from_yaml(text: str, entry: TreeEntry) -> str:
    """Give a YAML file without a key; raises NotPatchableError where more would change than that."""
    document = yaml_document.read(text)
    parent = _parent(document.only(), entry)
    start, end = _member(parent, entry) if parent.style == "flow" else _rows(document, entry)
    new = text[:start] + text[end:]
    _check(yaml_document.loaded(document), lambda: yaml_document.loaded(yaml_document.read(new)), entry)
    return new


def remove_from_json(text: str, entry: TreeEntry) -> str:
    """Give a JSON file without a key."""
    start, end = _member(_parent(json_document.read(text), entry), entry)
    new = text[:start] + text[end:]
    _check(json_document.loaded(text), lambda: json_document.loaded(new), entry)
    return new


def _parent(root: TreeNode, entry: TreeEntry) -> TreeNode:
    """Give the mapping that holds an entry beside others; an empty one may mean something else."""
    parent = next(node for node in root.walk() if entry.path == (*node.path, entry.key))
    if len(parent.entries) < 2:
        raise NotPatchableError(Message("patch.only-key-of-group", key=entry.key))
    return parent


def _member(parent: TreeNode, entry: TreeEntry) -> tuple[int, int]:
    """Give where a member stands between brackets, with the comma that parts it from its neighbour."""
    for before, after in pairwise(parent.entries):
        if after.path == entry.path:
            return before.node.end, after.node.end
        if before.path == entry.path:
            return before.start, after.start
    raise NotPatchableError(Message("patch.edit-change-more-value"))


def _rows(document: YamlFile, entry: TreeEntry) -> tuple[int, int]:
    """Give the rows of a block's entry: from its key's row to the end of the row in which its value ends."""
    text, node = document.text, entry.node
    start = text.rfind("\n", 0, entry.start) + 1
    if text[start : entry.start].strip():
        raise NotPatchableError(
            Message("patch.line-shares-row", key=entry.key, line=line_of(text, entry.start))
        )
    ending = entry.end if entry.alias or node.style == "empty" else yaml_document.end_of(document, node)
    last = len(text[:ending].rstrip())
    return start, text.find("\n", last) + 1 or len(text)


def _check(before: object, after: Callable[[], object], entry: TreeEntry) -> None:
    """Raise NotPatchableError unless the parsed files differ in nothing but the key."""
    expected: Any = copy.deepcopy(before)
    place = expected
    for step in entry.path[:-1]:
        place = place[step]
    del place[entry.path[-1]]
    try:
        as_meant = alike(expected, after())
    except ValueError as error:
        raise NotPatchableError(Message("patch.changed-file-not-read")) from error
    if not as_meant:
        raise NotPatchableError(Message("patch.edit-change-more-value"))
