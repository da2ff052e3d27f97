"""Change one setting in a YAML file, where it stands or where it belongs, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from corpus.message import Message
from ingest.configfiles import yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.manifests import is_manifest
from ingest.configfiles.tree import Step, TreeEdit, TreeEntry, line_of
from ingest.configfiles.values import meant, number, same
from ingest.configfiles.yaml_document import YamlFile
from service.patching import manifest, removal, renaming
from service.patching.keys import MissingKey, locate, own_key
from service.patching.target import OWN_PROGRAM, PatchTarget

# How the run's value is written where the program had none.
_EMPTY = frozenset({"", "none", "null", "~"})
# How a target is spelled that a YAML file of settings never holds.
_ELSEWHERE = {
    "directive": "patch.directive-batch-script-yaml",
    "python": "patch.argument-python-code-yaml",
    "package": "patch.package-yaml-file-settings",
    "command": "patch.command-yaml-file-settings",
    "json": "patch.part-json-file-yaml",
}


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give the text with the target's value; raises NotPatchableError where that is not safe.

    `name` is the file's, if known: a file that holds one group of settings may be called like it.
    """
    if target.removes:
        document = yaml_document.read(text)
        entry = None if is_manifest(document) else _entry(document, target, name)
        if entry is None:
            raise NotPatchableError(Message("patch.file-not-set", replaces=target.names[0]))
        return removal.remove_from_yaml(text, entry)
    if target.replaces is not None:
        text = _renamed(text, target, name)
        if target.keeps:
            return text
        target = replace(target, replaces=None)
    document = yaml_document.read(text)
    if is_manifest(document):
        return manifest.apply(document, target)
    target = own_key(document.only(), target)
    if _says(document, target, name):
        return text
    return yaml_document.applied(document, [_edit(document, target, name)])


def _renamed(text: str, target: PatchTarget, name: str) -> str:
    document = yaml_document.read(text)
    if is_manifest(document):
        raise NotPatchableError(Message("patch.stands-manifest-rename-hand", replaces=target.replaces))
    entry = _entry(document, renaming.former_names(target), name)
    right = None
    with contextlib.suppress(NotPatchableError):  # there is no place for the right name yet
        right = _entry(document, target, name)
    if entry is not None and right is None and renaming.is_moved(target) and not target.keeps:
        with contextlib.suppress(NotPatchableError):  # what cannot be taken out is moved by hand
            return removal.remove_from_yaml(text, entry)
    new = renaming.in_file(document.text, entry, right, target)
    if entry is not None:
        renaming.checked(
            yaml_document.loaded(document), yaml_document.loaded(yaml_document.read(new)), entry.path, target
        )
    return new


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file, read anew, says what the target says, and a key that is to go is gone."""
    if target.removes:
        return not carries(text, target, name)
    if target.replaces is not None and carries(text, renaming.former_names(target), name):
        return False
    if target.keeps:
        return carries(text, target, name)
    return _asked(text, target, name, manifest.holds, _says)


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether the file sets the target's key, to whatever value."""
    return _asked(
        text,
        target,
        name,
        manifest.carries,
        lambda document, wanted, called: _entry(document, wanted, called) is not None,
    )


def value(text: str, target: PatchTarget, name: str = "") -> object:
    """Give the value that the file has at the target's key, None where it has none."""
    try:
        document = yaml_document.read(text)
        entry = None if is_manifest(document) else _entry(document, own_key(document.only(), target), name)
        return at(document, entry.path) if entry is not None else None
    except NotPatchableError:
        return None


def _asked(
    text: str,
    target: PatchTarget,
    name: str,
    of_manifest: Callable[[YamlFile, PatchTarget], bool],
    of_settings: Callable[[YamlFile, PatchTarget, str], bool],
) -> bool:
    try:
        document = yaml_document.read(text)
        if is_manifest(document):
            return of_manifest(document, target)
        return of_settings(document, own_key(document.only(), target), name)
    except NotPatchableError:
        return False


def _edit(document: YamlFile, target: PatchTarget, name: str) -> TreeEdit:
    if target.kind == "env":
        raise NotPatchableError(Message("patch.environment-variables-set-job"))
    if target.kind in ("package", "command") or target.spelled in _ELSEWHERE:
        raise NotPatchableError(Message(_ELSEWHERE.get(target.spelled) or _ELSEWHERE[target.kind]))
    place = locate(document.only(), target, document.text, name)
    if isinstance(place, MissingKey):
        return yaml_document.insertion(document, place.parent, place.missing, meant(target.to), place.entry)
    # The job's own program may work out what it is not given, and then overwrite what it is given.
    is_own = target.framework == OWN_PROGRAM and target.present.lower() not in _EMPTY
    if is_own and at(document, place.path) is None:
        raise NotPatchableError(
            Message("patch.value-left-to-program", line=line_of(document.text, place.start))
        )
    return yaml_document.replacement(document, place, target.to, whole=target.is_word_or_list)


def _entry(document: YamlFile, target: PatchTarget, name: str) -> TreeEntry | None:
    if target.kind not in ("setting", "flag") or target.spelled in _ELSEWHERE:
        return None
    place = locate(document.only(), target, document.text, name)
    return place if isinstance(place, TreeEntry) else None


def _says(document: YamlFile, target: PatchTarget, name: str) -> bool:
    """Compare with the value that the frameworks' own parser reads at the key's place."""
    try:
        entry = _entry(document, target, name)
    except NotPatchableError:
        return False
    now = at(document, entry.path) if entry is not None else None
    # `1e-4` is text to the parser, which is what a number in its place mends.
    is_text = isinstance(now, str) and number(target.to) is not None and now != str(target.to)
    return entry is not None and same(now, target.to) and not is_text


def at(document: YamlFile, path: tuple[Step, ...]) -> object:
    """Give the value at a path, as the frameworks' own parser reads it; None where there is none."""
    value: object = yaml_document.loaded(document)
    for step in path:
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if step not in keys:
            return None
        value = value[step]  # type: ignore[index]
    return value
