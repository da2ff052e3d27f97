"""Change Kubernetes manifests and Compose files: variables, flags of a command, limits, shared memory.

A setting that several containers have with one value is changed in all of them. One that none has is added to
those with GPUs, or to the only one there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, flag
from corpus.keys import pattern as key_pattern
from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles import yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.manifests import ManifestContainer, containers, is_kubernetes, option_holders, pods
from ingest.configfiles.tree import TreeEdit, TreeEntry, TreeNode, line_of
from ingest.configfiles.values import same
from ingest.configfiles.yaml_document import YamlFile
from service.patching.env_file import COMPOSED
from service.patching.target import PatchTarget

# Flags of `docker run`, as Compose writes them in a service.
_COMPOSE_KEYS = {
    "shm_size": "shm_size",
    "memory": "mem_limit",
    "memory_swap": "memswap_limit",
    "ipc": "ipc",
    "network": "network_mode",
    "pids_limit": "pids_limit",
    "oom_score_adj": "oom_score_adj",
}
_SIZE = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>[kmgt]?)i?b?", re.IGNORECASE)
# One limit, or a soft and a hard one that are the same.
_LIMIT = re.compile(r"(?P<name>\w+)=(?P<value>-?\d+)(?::(?P=value))?")
# What is named by the cards of a node.
_GPUS = "gpus"
# Where programs have their shared memory.
_SHARED = "/dev/shm"  # noqa: S108 - a place in the job's container
_BARE_WORD = re.compile(r"[\w.,:/+=@%^-]+")


@dataclass(frozen=True, slots=True)
class ManifestSlot:
    """A place for the value: what stands there (None where nothing does), what is to, and the edit."""

    line: int
    now: str | None
    to: Scalar
    edit: Callable[[], TreeEdit]
    gpu: bool = False


def apply(document: YamlFile, target: PatchTarget) -> str:
    """Give the manifest's text with the target's value; raises NotPatchableError."""
    slots = _slots(document, target)
    present = [slot for slot in slots if slot.now is not None]
    if len({slot.now for slot in present}) > 1:
        raise NotPatchableError(
            Message("patch.containers-differ-lines", present=", ".join(str(slot.line) for slot in present))
        )
    chosen = present or _receivers(slots)
    edits = {(edit.start, edit.new): edit for edit in (slot.edit() for slot in chosen if not _has(slot))}
    return yaml_document.applied(document, list(edits.values())) if edits else document.text


def holds(document: YamlFile, target: PatchTarget) -> bool:
    """Tell whether every container that sets it has the target's value."""
    present = [slot for slot in _slots(document, target) if slot.now is not None]
    return bool(present) and all(_has(slot) for slot in present)


def carries(document: YamlFile, target: PatchTarget) -> bool:
    """Tell whether a container sets it at all."""
    return any(slot.now is not None for slot in _slots(document, target))


def _has(slot: ManifestSlot) -> bool:
    return slot.now is not None and same(slot.now, slot.to)


def _receivers(slots: Sequence[ManifestSlot]) -> Sequence[ManifestSlot]:
    with_gpus = [slot for slot in slots if slot.gpu]
    if with_gpus or len(slots) == 1:
        return with_gpus or slots
    raise NotPatchableError(
        Message("patch.no-container-sets-open") if slots else Message("patch.no-place-manifest")
    )


def _slots(document: YamlFile, target: PatchTarget) -> list[ManifestSlot]:
    if target.kind == "env":
        return [slot for holder in containers(document) if (slot := _variable(document, holder, target))]
    if target.kind not in ("setting", "flag") or target.spelled in (
        "directive",
        "python",
        "package",
        "command",
    ):
        raise NotPatchableError(Message("patch.not-changed-manifest", kind=target.kind))
    manifest = known_frameworks().row(target.framework).manifest
    if manifest == "kubernetes":
        return list(_of_kubernetes(document, target))
    if manifest == "compose":
        return list(_of_docker(document, target))
    options = known_frameworks().row(target.framework).container.options
    if options and target.kind == "flag":
        groups = list(option_holders(document, options))
        # Cards are counted for the nodes that have them; a head without any may say 0.
        chosen = [each for each in groups if each.gpu or _GPUS not in target.names[0]] or groups
        if chosen:
            key = target.names[0].lstrip("-")
            return [_key(document, each, [options, key], str(target.to)) for each in chosen]
    return [slot for holder in containers(document) if (slot := _argument(document, holder, target))]


def _of_kubernetes(document: YamlFile, target: PatchTarget) -> Iterator[ManifestSlot]:
    key = target.names[0]
    if key == "volumes.emptyDir.sizeLimit":
        return _memory_volumes(document, target.to)
    if key == "volumes.emptyDir.medium":
        return _shared_memory(document, target.to)
    if key.startswith("resources."):
        own = (holder for holder in containers(document) if not holder.compose)
        return (_key(document, holder, key.split(".", 2), target.to) for holder in own)
    holders = _HOLDERS[key](document) if key in _HOLDERS else ()
    return (_key(document, holder, [key], target.to) for holder in holders)


def _job_specs(document: YamlFile) -> Iterator[ManifestContainer]:
    """Give where a time limit stands: the Job's own spec, else the pod's."""
    for root in document.roots:
        kind, spec = root.child("kind"), root.child("spec")
        if kind is not None and kind.value == "Job" and spec is not None:
            yield ManifestContainer(spec, gpu=False, compose=False)
        elif is_kubernetes(root):
            yield from pods(YamlFile(document.text, (root,)))


# Where the keys stand that are written in one place only.
_HOLDERS: dict[str, Callable[[YamlFile], Iterator[ManifestContainer]]] = {
    "priorityClassName": pods, "terminationGracePeriodSeconds": pods, "activeDeadlineSeconds": _job_specs,
}  # fmt: skip


def _memory_volumes(document: YamlFile, to: Scalar) -> Iterator[ManifestSlot]:
    # Docker's `64g` is `64Gi` to Kubernetes; all else stays.
    match = _SIZE.fullmatch(str(to))
    size = f"{match['count']}{match['unit'].upper()}i" if match and match["unit"] else str(to)
    for pod in pods(document):
        volumes = pod.node.child("volumes")
        empty = []
        for volume in volumes.items if volumes else ():
            node, medium = volume.child("emptyDir"), volume.child("emptyDir", "medium")
            if node is not None and medium is not None and medium.value == "Memory":
                empty.append(node)
        yield from (
            _key(document, ManifestContainer(node, pod.gpu, compose=False), ["sizeLimit"], size)
            for node in empty
        )


def _shared_memory(document: YamlFile, to: Scalar) -> Iterator[ManifestSlot]:
    """Give the volume that is mounted at /dev/shm, and where it is mounted; both are to be where none is."""
    found = list(pods(document))
    for pod in [each for each in found if each.gpu] or found[:2]:
        own = [each for each in containers(document) if each.node.path[: len(pod.node.path)] == pod.node.path]
        users = [each for each in own if each.gpu] or own
        listed, is_only = pod.node.child("volumes"), len(found) == len(users) == 1
        volumes = {item.child("name"): item.child("emptyDir") for item in (listed.items if listed else ())}
        named = {name.value: empty for name, empty in volumes.items() if name is not None}
        free = next(name for name in ("shm", "dshm", "dev-shm", "shm-in-memory") if name not in named)
        missing = [each for each in users if _mount(each, _SHARED) is None]
        if missing:
            volume = partial(
                _listed, document, pod.node, "volumes", {"name": free, "emptyDir": {"medium": str(to)}}
            )
            yield ManifestSlot(line_of(document.text, pod.node.start), None, to, volume, pod.gpu or is_only)
        for each in users:
            if each in missing:
                mount = partial(
                    _listed, document, each.node, "volumeMounts", {"name": free, "mountPath": _SHARED}
                )
                line = line_of(document.text, each.node.start)
                yield ManifestSlot(line, None, to, mount, each.gpu or is_only)
            elif (empty := named.get(_mount(each, _SHARED) or "")) is not None:
                holder = ManifestContainer(empty, each.gpu or is_only, compose=False)
                yield _key(document, holder, ["medium"], to)


def _mount(container: ManifestContainer, path: str) -> str | None:
    """Name the volume that a container has at a path; None where it has none there."""
    mounts = container.node.child("volumeMounts")
    for mount in mounts.items if mounts is not None else ():
        at, name = mount.child("mountPath"), mount.child("name")
        if at is not None and at.value.rstrip("/") == path:
            return name.value if name is not None else ""
    return None


def _listed(document: YamlFile, holder: TreeNode, key: str, item: dict[str, object]) -> TreeEdit:
    """Make the edit that adds an item to a list below a holder, or the list with it."""
    _refuse_shared(document, holder)
    entry = holder.entry(key)
    if entry is None:
        return yaml_document.insertion(document, holder, [key], [item])
    if entry.alias:
        line = line_of(document.text, entry.start)
        raise NotPatchableError(Message("patch.line-alias-another-place", line=line))
    return yaml_document.appended(document, entry.node, item)


def _of_docker(document: YamlFile, target: PatchTarget) -> Iterator[ManifestSlot]:
    name = canonical(target.names[0])
    services = [holder for holder in containers(document) if holder.compose]
    if not services and name == "shm_size":
        yield from _memory_volumes(document, target.to)
    elif services and name == "ulimit":
        limit = _LIMIT.fullmatch(str(target.to))
        yield from (
            _key(document, service, ["ulimits", limit["name"]], int(limit["value"]))
            for service in services
            if limit
        )
    elif services and name in _COMPOSE_KEYS:
        yield from (_key(document, service, [_COMPOSE_KEYS[name]], target.to) for service in services)


def _key(document: YamlFile, holder: ManifestContainer, keys: Sequence[str], to: Scalar) -> ManifestSlot:
    """Give the slot of a key below a holder; levels that are missing are added with it."""
    node, way, rest = holder.node, list[TreeEntry](), list(keys)
    while rest and (entry := node.entry(rest[0])) is not None:
        way.append(entry)
        node = entry.node
        rest.pop(0)
    line = line_of(document.text, way[-1].start if way else holder.node.start)

    def edit() -> TreeEdit:
        _refuse_shared(document, holder.node, *(entry.node for entry in way[:-1]))
        if any(entry.alias for entry in way):
            raise NotPatchableError(Message("patch.line-alias-another-place", line=line))
        if rest:
            return yaml_document.insertion(document, node, rest, to, way[-1] if way else None)
        return yaml_document.replacement(document, way[-1], to)

    return ManifestSlot(line, node.value if not rest else None, to, edit, holder.gpu)


def _refuse_shared(document: YamlFile, *nodes: TreeNode) -> None:
    for node in nodes:
        if node.shared:
            raise NotPatchableError(
                Message("patch.line-used-elsewhere-anchor", text=line_of(document.text, node.start))
            )


def _variable(document: YamlFile, holder: ManifestContainer, target: PatchTarget) -> ManifestSlot | None:
    """Give the slot of an environment variable in a container or a service."""
    name, to = target.names[0], str(target.to)
    if to == "unset" or "$" in to or name in COMPOSED:
        raise NotPatchableError(Message("patch.variable-removed-composed-hand"))
    entry = holder.node.entry("environment" if holder.compose else "env")
    pairs = entry.node if entry is not None and not entry.alias else None
    if entry is not None and pairs is None:
        raise NotPatchableError(
            Message("patch.environment-line-alias-another", text=line_of(document.text, entry.start))
        )
    found = list(_pairs(document, pairs, name, to)) if pairs is not None else []
    if len(found) > 1:
        raise NotPatchableError(
            Message("patch.set-twice-lines", name=name, line=found[0].line, line_2=found[1].line)
        )
    if found:
        return replace(found[0], gpu=holder.gpu)
    line = line_of(document.text, holder.node.start)
    return ManifestSlot(line, None, to, partial(_new_variable, document, holder, pairs, name, to), holder.gpu)


def _pairs(document: YamlFile, pairs: TreeNode, name: str, to: str) -> Iterator[ManifestSlot]:
    """Give the slots of a variable in a mapping, a list of `NAME=value`, or a list of names and values."""
    entries = [entry for entry in pairs.entries if entry.key == name]
    for item in pairs.items:
        named = item.child("name")
        if named is not None and named.value == name:
            value = item.entry("value")
            if value is None:
                raise NotPatchableError(
                    Message(
                        "patch.line-gets-value-elsewhere", name=name, text=line_of(document.text, item.start)
                    )
                )
            entries.append(value)
        elif item.kind == "scalar" and item.value.partition("=")[0] == name:
            make = partial(yaml_document.item_replacement, document, item, f"{name}={to}")
            yield _slot(document, pairs, item, item.value.partition("=")[2], to, make)
    for entry in entries:
        yield _slot(
            document,
            pairs,
            entry,
            entry.node.value,
            to,
            partial(yaml_document.replacement, document, entry, to, words=True),
        )


def _slot(
    document: YamlFile,
    within: TreeNode,
    place: TreeNode | TreeEntry,
    now: str,
    to: Scalar,
    make: Callable[[], TreeEdit],
) -> ManifestSlot:
    def edit() -> TreeEdit:
        _refuse_shared(document, within)
        return make()

    return ManifestSlot(line_of(document.text, place.start), now, to, edit)


def _new_variable(
    document: YamlFile, holder: ManifestContainer, pairs: TreeNode | None, name: str, to: str
) -> TreeEdit:
    _refuse_shared(document, holder.node)
    if holder.compose:
        if pairs is not None and pairs.kind == "sequence":
            return yaml_document.appended(document, pairs, f"{name}={to}")
        if pairs is not None:
            return yaml_document.insertion(document, pairs, [name], to, holder.node.entry("environment"))
        return yaml_document.insertion(document, holder.node, ["environment", name], to)
    if pairs is not None and pairs.kind == "sequence":
        return yaml_document.appended(document, pairs, {"name": name, "value": to})
    if pairs is not None:
        raise NotPatchableError(Message("patch.env-line-no-list", text=line_of(document.text, pairs.start)))
    return yaml_document.insertion(document, holder.node, ["env"], [{"name": name, "value": to}])


def _argument(document: YamlFile, holder: ManifestContainer, target: PatchTarget) -> ManifestSlot | None:
    """Give the slot of a flag or override in a container's command."""
    said = re.sub(r"[-_]", "", document.text[holder.node.start : holder.node.end].lower())
    known = known_frameworks()
    program = known.row(target.framework).container.word or target.framework.replace("-", "")
    others = (row.container.word for row in known.rows.values() if row.container.word)
    if program not in said and any(other in said for other in others):
        return None
    keys = ("entrypoint", "command") if holder.compose else ("command", "args")
    nodes = [node for key in keys if (node := holder.node.child(key)) is not None]
    found = [
        slot for node in nodes for name in target.names for slot in _words(document, node, name, target.to)
    ]
    if len({slot.line for slot in found}) > 1:
        raise NotPatchableError(
            Message("patch.set-more-once-lines", found=", ".join(sorted({str(slot.line) for slot in found})))
        )
    if found:
        return replace(found[0], gpu=holder.gpu)
    if not nodes or program not in said or target.spelled not in ("flag", ""):
        return None
    return ManifestSlot(
        line_of(document.text, nodes[-1].start),
        None,
        target.to,
        partial(_new_argument, document, nodes[-1], target),
        holder.gpu,
    )


def _words(document: YamlFile, node: TreeNode, name: str, to: Scalar) -> Iterator[ManifestSlot]:
    if node.kind == "scalar":
        yield from _in_string(document, node, node, name, to)
    for index, item in enumerate(node.items):
        if item.kind != "scalar":
            continue
        head, equals, value = item.value.partition("=")
        if _is_name(head, name) and equals:
            yield _slot(
                document,
                node,
                item,
                value,
                to,
                partial(yaml_document.item_replacement, document, item, f"{head}={to}"),
            )
        elif _is_name(head, name) and head.startswith("-"):
            yield _after(document, node, index, to)
        else:
            yield from _in_string(document, node, item, name, to)


def _after(document: YamlFile, node: TreeNode, index: int, to: Scalar) -> ManifestSlot:
    """Give the slot of the word behind a flag; a flag without one is a switch that is on."""
    following = node.items[index + 1] if index + 1 < len(node.items) else None
    if following is not None and not re.match(r"--?[A-Za-z]", following.value):
        return _slot(
            document,
            node,
            following,
            following.value,
            to,
            partial(yaml_document.item_replacement, document, following, str(to)),
        )
    line = line_of(document.text, node.items[index].start)

    def edit() -> TreeEdit:
        raise NotPatchableError(Message("patch.stands-switch-line-take", line=line))

    return ManifestSlot(line, "true", to, edit)


def _is_name(word: str, name: str) -> bool:
    return canonical(word) == canonical(name) and (word.startswith(("-", "+")) or "." in word)


def _in_string(
    document: YamlFile, within: TreeNode, node: TreeNode, name: str, to: Scalar
) -> Iterator[ManifestSlot]:
    """Give the slot of a flag inside a command line that is written as one string."""
    bare = key_pattern(name)
    pattern = re.compile(rf"(?<![^\s\"'])(?:--{bare}(?:=|\s+)|\+{{0,2}}{bare}=)(?P<value>[^\s\"'`;|&\\]*)")
    raw = document.text[node.start : node.end]
    if not re.search(rf"(?<![\w.-])-{{0,2}}{bare}[\s=]", raw + " ") or "#" in raw:
        return
    found, meant = list(pattern.finditer(raw)), list(pattern.finditer(node.value))

    def edit() -> TreeEdit:
        line = line_of(document.text, node.start)
        _refuse_shared(document, within, node)
        values = {match["value"] for match in (*found, *meant)}
        if (
            len(found) != 1
            or len(meant) != 1
            or len(values) != 1
            or not _BARE_WORD.fullmatch(str(to))
            or not _BARE_WORD.fullmatch(values.pop())
        ):
            raise NotPatchableError(Message("patch.command-line-line-sets", line=line))
        begin, end = found[0].span("value")
        whole = node.value[: meant[0].start("value")] + str(to) + node.value[meant[0].end("value") :]
        return TreeEdit(node.start + begin, node.start + end, str(to), node.path, whole)

    yield ManifestSlot(line_of(document.text, node.start), found[0]["value"] if found else "", to, edit)


def _new_argument(document: YamlFile, node: TreeNode, target: PatchTarget) -> TreeEdit:
    line = line_of(document.text, node.start)
    _refuse_shared(document, node)
    option = flag(target.names[0])
    if target.to is False or "$" in str(target.to):
        raise NotPatchableError(Message("patch.command-line-not-set", line=line))
    word = option if target.to is True else f"{option}={target.to}"
    if (
        node.kind == "sequence"
        and node.items
        and all(item.kind == "scalar" and not re.search(r"\s", item.value) for item in node.items)
    ):
        return yaml_document.appended(document, node, word)
    if (
        node.style == "plain"
        and "\n" not in document.text[node.start : node.end]
        and _BARE_WORD.fullmatch(word)
        and re.fullmatch(r"[\w./ :=,-]+", node.value)
    ):
        return TreeEdit(node.end, node.end, f" {word}", node.path, f"{node.value} {word}")
    raise NotPatchableError(Message("patch.command-line-line-shell", line=line, word=word))
