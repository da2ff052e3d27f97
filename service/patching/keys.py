"""Find where a dotted setting stands in nested mappings, or where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, is_distinctive, levels, unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import TreeEntry, TreeNode, line_of
from service.patching.target import OWN_PROGRAM, PatchTarget

_ON_COMMANDS = frozenset({"flag", "directive", "command", "python", "package"})
# First levels that hold all roles: a file may start below them and still name the role.
_WHOLES = frozenset({("actor_rollout_ref",), ("worker",)})
_PACKAGE = re.compile(r"^#\s*@package\s+([\w.]+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MissingKey:
    """A key that is not there: the mapping or the empty entry that it belongs to, and the missing levels."""

    parent: TreeNode
    missing: tuple[str, ...]
    entry: TreeEntry | None = None


def locate(root: TreeNode, target: PatchTarget, text: str, name: str = "") -> TreeEntry | MissingKey:
    """Find the target's entry, or where it can be added; raises NotPatchableError with the reason.

    `name` is the file's, if known: it tells which group of settings a file without the upper levels holds.
    """
    names = [tuple(levels(spelled)) for spelled in target.names]
    found = [way for steps in names for way in _ways(root, steps)]
    # Who has no form of file of its own (Hydra, a script) means the key that stands there whole, and so does
    # a program that refuses it by name.
    has_form = bool(known_frameworks().row(target.framework).config.marks)
    if not found or (not target.removes and (has_form or any(len(steps) == 1 for steps in names))):
        _check_owner(owners(root), target.framework)
    if not found:
        found = [way for steps in names for way in _below(root, steps, text, name)]
    if not found and (section := _section(root, target)) is not None:
        found = [(section, *way) for steps in names for way in _ways(section.node, steps)]
    if len({way[-1].start for way in found}) > 1:
        lines = sorted({line_of(text, way[-1].start) for way in found})
        raise NotPatchableError(Message("patch.set-more-once-lines", found=", ".join(map(str, lines))))
    if found:
        *above, last = found[0]
        _check_own(above, text)
        if last.node.shared and not last.alias:
            raise NotPatchableError(
                Message("patch.value-line-used-elsewhere", text=line_of(text, last.start))
            )
        return last
    return _gap(root, names[0], target, text)


def owners(root: TreeNode) -> list[str]:
    """Give the frameworks whose configuration a mapping looks like; none where nothing tells."""
    keys = {entry.key.split(".")[0] for entry in root.entries}
    rows = known_frameworks().rows.values()
    hits = {row.id: len(keys & set(row.config.marks)) for row in rows if row.config.marks}
    most = max(hits.values())
    return [framework for framework, count in hits.items() if count == most] if most > 1 else []


def _added_to(owner: str) -> frozenset[str]:
    """Name those whose settings may be added to a framework's file, the forks laid out like it included."""
    known = known_frameworks()
    return known.forks(owner) | frozenset(known.row(owner).config.adds)


def _check_owner(found: Sequence[str], framework: str) -> None:
    known = known_frameworks()
    is_taken = any(
        framework == owner or framework in _added_to(owner) or framework in known.row(owner).config.changes
        for owner in found
    )
    if found and not is_taken:
        raise NotPatchableError(
            Message("patch.file-looks-like-configuration", found=" or ".join(found), framework=framework)
        )


def _ways(node: TreeNode, steps: tuple[str, ...]) -> Iterator[tuple[TreeEntry, ...]]:
    """Give every way to the key: nested, written flat with dots, or both mixed; a number is a list's item."""
    if node.items and steps and steps[0].isdecimal():
        for item in node.items[int(steps[0]) :][:1]:
            yield from _ways(item, steps[1:])
    for count in range(len(steps), 0, -1):
        entry = node.entry(".".join(steps[:count]))
        if entry is None:
            continue
        if count == len(steps):
            yield (entry,)
        else:
            yield from ((entry, *rest) for rest in _ways(entry.node, steps[count:]))


def _below(root: TreeNode, steps: tuple[str, ...], text: str, name: str) -> Iterator[tuple[TreeEntry, ...]]:
    """Give ways in a file that starts below the key's first levels, as the groups of Hydra do.

    What is left of the key may be another role's (`optim.lr`): then the file must say which group it is.
    """
    if root.entry(steps[0]) is not None:
        return
    for dropped in range(1, len(steps)):
        named = steps[:dropped] in _WHOLES and dropped < len(steps) - 1
        if named or _is_group(steps[:dropped], text, name):
            yield from _ways(root, steps[dropped:])


def _is_group(dropped: tuple[str, ...], text: str, name: str) -> bool:
    header = _PACKAGE.search(text)
    if header is not None:
        return header[1] == ".".join(dropped)
    path = PurePath(name)
    words = {canonical(path.stem), *re.split(r"[-_.]", path.stem), path.parent.name}
    return dropped[-1] in words


def _check_own(way: Sequence[TreeEntry], text: str) -> None:
    for entry in way:
        if entry.alias or entry.node.shared:
            raise NotPatchableError(
                Message("patch.line-shares-value-another", key=entry.key, text=line_of(text, entry.start))
            )


def _gap(root: TreeNode, steps: tuple[str, ...], target: PatchTarget, text: str) -> MissingKey:
    if target.spelled in _ON_COMMANDS or (target.kind == "flag" and not target.spelled):
        raise NotPatchableError(Message("patch.file-not-set-flag"))
    header = _PACKAGE.search(text)
    if header is not None and header[1] != "_global_":
        group = tuple(header[1].split("."))
        if steps[: len(group)] != group or len(steps) == len(group):
            raise NotPatchableError(Message("patch.file-holds-group-not", header=header[1]))
        return _deepest(root, steps[len(group) :], text)
    if len(steps) == 1:
        if any(owner == target.framework or target.framework in _added_to(owner) for owner in owners(root)):
            return _deepest(root, steps, text)
        if (section := _section(root, target)) is not None:
            _check_own((section,), text)
            return MissingKey(section.node, steps, section)
        raise NotPatchableError(Message("patch.file-not-set-not", framework=target.framework))
    if root.entry(steps[0]) is None and any(entry.key.startswith(f"{steps[0]}.") for entry in root.entries):
        return MissingKey(root, (".".join(steps),))
    if root.entry(steps[0]) is None and not any(merged.entry(steps[0]) for merged in root.merged):
        if target.framework in owners(root):
            return MissingKey(root, steps)
        raise NotPatchableError(Message("patch.file-no-belongs", steps=steps[0]))
    return _deepest(root, steps, text)


def _section(root: TreeNode, target: PatchTarget) -> TreeEntry | None:
    """Find the section of a program's own file that is handed to the framework whole; None of several.

    It holds the framework's settings under their names, as for `TrainingArguments(**config["trainer"])`.
    """
    found = [
        entry
        for entry in root.entries
        if entry.node.kind == "mapping"
        and any(
            owner == target.framework or target.framework in _added_to(owner) for owner in owners(entry.node)
        )
    ]
    return found[0] if len(found) == 1 and not owners(root) else None


def _deepest(root: TreeNode, steps: tuple[str, ...], text: str) -> MissingKey:
    """Walk down as far as the levels are there."""
    node, way, rest = root, list[TreeEntry](), list(steps)
    while len(rest) > 1 and (entry := node.entry(rest[0])) is not None:
        way.append(entry)
        node = entry.node
        rest.pop(0)
        if node.kind != "mapping" and not (node.kind == "scalar" and node.style == "empty"):
            raise NotPatchableError(
                Message("patch.line-no-mapping", key=entry.key, text=line_of(text, entry.start))
            )
    if len(rest) > 1 and any(merged.entry(rest[0]) for merged in node.merged):
        raise NotPatchableError(Message("patch.comes-out-merge-key", rest=rest[0]))
    _check_own(way, text)
    return MissingKey(node, tuple(rest), way[-1] if way else None)


def own_key(root: TreeNode, target: PatchTarget) -> PatchTarget:
    """Give an argument of a call (`DataLoader.num_workers`) as the one key by which a file has it.

    A program's own configuration names it so; where several keys do, or none, the target stays as it is.
    """
    if target.framework == OWN_PROGRAM and (within := _in_list(root, target)):
        return replace(target, names=(within,))
    argument = target.call_argument[1]
    names = {argument} if argument else _own_names(root, target)
    found = [entry for entry in _entries(root) if entry.key in names]
    if len(found) != 1:
        return target
    key = ".".join(map(str, found[0].path[len(root.path) :]))
    return replace(target, kind="setting", names=(key,), spelled="yaml")


def _own_names(root: TreeNode, target: PatchTarget) -> set[str]:
    """Give the names that a file of a program's own may hold in a section of its own, below the top.

    None where the file has the setting on its top level, or is the configuration of a framework.
    """
    names = {unsigned(name) for name in target.names if is_distinctive(name)}
    is_plain = target.kind in ("setting", "flag") and target.spelled not in ("env", "directive", "command")
    at_top = any(root.entry(name) is not None for name in names)
    is_framework = any(target.framework != owner for owner in owners(root))
    return names if is_plain and not at_top and not is_framework else set()


def _in_list(root: TreeNode, target: PatchTarget) -> str:
    """Give the path of the one key below a list that is told without its item's number; the empty string."""
    depth = len(root.path)
    paths = [entry.path[depth:] for entry in _entries(root)]
    found = [
        ".".join(map(str, path))
        for path in paths
        if any(isinstance(step, int) for step in path)
        and ".".join(step for step in path if isinstance(step, str)) in target.names
    ]
    return found[0] if len(found) == 1 else ""


def _entries(node: TreeNode) -> Iterator[TreeEntry]:
    """Give all keys of a mapping and of those below it, in its lists too."""
    for item in node.items:
        yield from _entries(item)
    for entry in node.entries:
        yield entry
        yield from _entries(entry.node)
