"""Give a key that the framework does not know its right name, where it stands; its value stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corpus.keys import flag, levels, signs, unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.words import Word, WordEdit, written
from ingest.configfiles.tree import Step, TreeEntry, alike, line_of
from service.patching import overrides
from service.patching.target import PatchTarget


def former_names(target: PatchTarget) -> PatchTarget:
    """Give the target under the name that is to go."""
    return replace(target, names=(target.replaces or target.names[0],), replaces=None)


def is_moved(target: PatchTarget) -> bool:
    """Tell whether a key goes to another level with its own value: out where it stands, and in there."""
    return levels(target.replaces or "")[:-1] != levels(target.names[0])[:-1] and target.to != ""


def in_script(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that rename the arguments of a script; none where it has the right name only."""
    if is_sign(target):
        return _signed(script, target)
    found, right = (
        overrides.places(script, former_names(target)),
        overrides.places(script, replace(target, replaces=None)),
    )
    if not found:
        if not right:
            raise NotPatchableError(Message("patch.script-not-set", replaces=target.replaces))
        return []
    if right:
        raise NotPatchableError(
            Message(
                "patch.line-sets-line-right",
                line=found[0].line,
                replaces=target.replaces,
                line_2=right[0].line,
            )
        )
    if any(place.form == "deleted" for place in found):
        raise NotPatchableError(Message("patch.taken-out-line", lines=found[0].line))
    return [_renamed(place.word, target) for place in found]


def is_sign(target: PatchTarget) -> bool:
    """Tell whether a key is to stand with another sign alone: `+trainer.nnodes` as `trainer.nnodes`."""
    return target.replaces is not None and unsigned(target.replaces) == unsigned(target.names[0])


def has_sign(script: Script, target: PatchTarget) -> bool:
    """Tell whether the script writes the key with its new sign, wherever it does."""
    found = overrides.places(script, former_names(target))
    return bool(found) and all(signs(place.word.text) == signs(target.names[0]) for place in found)


def _signed(script: Script, target: PatchTarget) -> list[WordEdit]:
    found = overrides.places(script, former_names(target))
    if not found:
        raise NotPatchableError(Message("patch.script-not-set", replaces=target.replaces))
    edits = []
    for place in found:
        begin = len(signs(place.word.text))
        units = place.word.units
        if any(unit.computed for unit in units[: begin + 1]):
            raise NotPatchableError(
                Message("patch.line-name-composed", line=place.line, name=target.replaces or "")
            )
        edits.append(WordEdit(units[0].start, units[begin].start, signs(target.names[0])))
    return edits


def _renamed(word: Word, target: PatchTarget) -> WordEdit:
    """Replace the name within a word, without its signs (`--`, `+`) and its value."""
    at = word.equals_at()
    end = len(word.units) if at is None else at
    name = word.text[:end]
    begin = len(signs(name))
    units = word.units[begin:end]
    if any(unit.computed for unit in units) or len({unit.quote for unit in units}) != 1:
        raise NotPatchableError(Message("patch.line-name-composed", line=word.line, name=name))
    # A flag is written with dashes or underscores as the old one was; keys are taken as they are.
    new = flag(target.names[0], name) if target.spelled == "flag" else target.names[0]
    return WordEdit(units[0].start, units[-1].end, written(unsigned(new), units[0].quote))


def in_file(text: str, entry: TreeEntry | None, right: TreeEntry | None, target: PatchTarget) -> str:
    """Give the text of a YAML or JSON file with the key renamed.

    Raises NotPatchableError where it would have to move.
    """
    if entry is None:
        if right is None:
            raise NotPatchableError(Message("patch.file-not-set", replaces=target.replaces))
        return text
    if right is not None:
        raise NotPatchableError(
            Message(
                "patch.line-sets-line-right",
                line=line_of(text, entry.start),
                replaces=target.replaces,
                line_2=line_of(text, right.start),
            )
        )
    old, new = levels(target.replaces or ""), levels(target.names[0])
    if old[:-1] != new[:-1]:
        raise NotPatchableError(
            Message(
                "patch.line-key-moves-move",
                text=line_of(text, entry.start),
                new=".".join(new[:-1]) or "the top",
            )
        )
    written_as = text[entry.start : entry.end]
    return text[: entry.start] + _last(written_as, old[-1], new[-1]) + text[entry.end :]


def _last(written_as: str, old: str, new: str) -> str:
    """Replace the last part of a key as it is written, quotes and upper levels kept."""
    for spelled in (old, old.replace("_", "-"), old.replace("-", "_")):
        head, found, tail = written_as.rpartition(spelled)
        if found and not tail.strip("'\""):
            return head + new + tail
    raise NotPatchableError(Message("patch.key-written-unusual-way", written_as=written_as))


def checked(before: object, after: object, path: Sequence[Step], target: PatchTarget) -> None:
    """Raise NotPatchableError unless the files differ in nothing but the key's name."""
    expected: Any = copy.deepcopy(before)
    place = expected
    for step in path[:-1]:
        place = place[step]
    old = str(path[-1])
    new = ".".join([*old.split(".")[:-1], levels(target.names[0])[-1]])
    place[new] = place.pop(path[-1])
    if not alike(expected, after):
        raise NotPatchableError(Message("patch.new-name-change-more"))
