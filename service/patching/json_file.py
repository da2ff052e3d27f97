"""Change one setting in a JSON file: DeepSpeed's configuration, a model's, a runtime environment."""

from __future__ import annotations

import contextlib
import dataclasses

from corpus.message import Message
from ingest.configfiles import json_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import TreeEdit, TreeEntry, TreeNode
from ingest.configfiles.values import meant, same
from service.patching import removal, renaming
from service.patching.keys import MissingKey, locate, own_key
from service.patching.target import PatchTarget

_ELSEWHERE = frozenset({"directive", "python", "package", "command"})


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give the text with the target's value; raises NotPatchableError where that is not safe."""
    if target.removes:
        standing = _entry(text, target, name)
        if standing is None:
            raise NotPatchableError(Message("patch.file-not-set", replaces=target.names[0]))
        return removal.remove_from_json(text, standing)
    if target.replaces is not None:
        entry = _entry(text, renaming.former_names(target), name)
        right = None
        with contextlib.suppress(NotPatchableError):  # there is no place for the right name yet
            right = _entry(text, target, name)
        new = renaming.in_file(text, entry, right, target)
        if entry is not None:
            renaming.checked(json_document.loaded(text), json_document.loaded(new), entry.path, target)
        text = new
        if target.keeps:
            return text
        target = dataclasses.replace(target, replaces=None)
    root = json_document.read(text)
    if holds(text, target, name):
        return text
    return json_document.applied(text, [_edit(text, root, target, name)])


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file, read anew, says what the target says, and a key that is to go is gone."""
    if target.removes:
        return not carries(text, target, name)
    if target.replaces is not None and carries(text, renaming.former_names(target), name):
        return False
    if target.keeps:
        return carries(text, target, name)
    try:
        entry = _entry(text, target, name)
    except NotPatchableError:
        return False
    value: object = json_document.loaded(text) if entry is not None else None
    for step in entry.path if entry is not None else ():
        value = value[step]  # type: ignore[index]
    return entry is not None and same(value, target.to)


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file sets the target's key, to whatever value."""
    try:
        return _entry(text, target, name) is not None
    except NotPatchableError:
        return False


def _entry(text: str, target: PatchTarget, name: str) -> TreeEntry | None:
    place = _place(text, json_document.read(text), target, name)
    return place if isinstance(place, TreeEntry) else None


def _place(text: str, root: TreeNode, target: PatchTarget, name: str) -> TreeEntry | MissingKey:
    if target.kind == "env":
        return _variable(root, target)
    target = own_key(root, target)
    if target.kind not in ("setting", "flag") or target.spelled in _ELSEWHERE:
        raise NotPatchableError(Message("patch.not-set-json-file", spelled=target.spelled or target.kind))
    return locate(root, target, text, name)


def _variable(root: TreeNode, target: PatchTarget) -> TreeEntry | MissingKey:
    """Find a variable in a runtime environment of Ray."""
    variables = root.child("env_vars") or root.child("runtime_env", "env_vars")
    if variables is None or variables.kind != "mapping":
        raise NotPatchableError(Message("patch.file-sets-no-environment"))
    if target.to == "unset" or "$" in str(target.to):
        raise NotPatchableError(Message("patch.variable-removed-composed-hand"))
    return variables.entry(target.names[0]) or MissingKey(variables, (target.names[0],))


def _edit(text: str, root: TreeNode, target: PatchTarget, name: str) -> TreeEdit:
    place = _place(text, root, target, name)
    is_variable = target.kind == "env"
    if isinstance(place, MissingKey):
        value = str(target.to) if is_variable else meant(target.to)
        return json_document.insertion(text, place.parent, place.missing, value)
    return json_document.replacement(text, place, target.to, words=is_variable, whole=target.is_word_or_list)
