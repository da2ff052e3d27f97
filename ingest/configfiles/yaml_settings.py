"""The settings of YAML files with their places: of a program, and of the containers of a manifest.

A setting of a container or pod goes by its path from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from corpus.frameworks import known_frameworks
from corpus.schema import Scalar
from ingest.configfiles import yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.manifests import containers, is_kubernetes, is_manifest
from ingest.configfiles.settings import Edit, Setting, edited
from ingest.configfiles.shell import arguments, commands, document
from ingest.configfiles.tree import TreeEntry, TreeNode
from ingest.configfiles.tree_settings import TreeValue, read_values, settings_of
from ingest.configfiles.yaml_document import YamlFile

# The levels of a cluster's object above a pod's or container's own settings.
_OBJECT = re.compile(
    r"(?:^|(?<=\.))(?:spec|containers|initContainers|template|jobTemplate|worker|replicaSpecs|"
    r"\w+ReplicaSpecs|Worker|Master|rayClusterSpec)\."
)
# What Weights & Biases keeps of a run beside its settings (`wandb/sdk/lib/config_util.py`).
_RUN = "_wandb"
# Where a variable of the environment stands, which is a string whatever it looks like.
_VARIABLE = re.compile(r"(?:^|\.)(?:env|environment|env_vars)\.[A-Z_][A-Z0-9_]*$")


def read(text: YamlFile) -> list[Setting]:
    """Read all documents of a YAML file; a list of Hydra overrides is one of arguments."""
    found: list[Setting] = []
    for root in text.roots:
        if root.child(_RUN) is not None:
            found += _of_run(text, root)
            continue
        is_object = is_kubernetes(root)
        # The size of a pod's volume on the node's disk says nothing of shared memory.
        volumes = [node.child("emptyDir") for node in root.walk()] if is_object else []
        on_disk = [
            entry
            for volume in volumes
            if volume is not None and volume.entry("medium") is None
            for entry in volume.entries
            if entry.key == "sizeLimit"
        ]
        values = [each for each in read_values(text.text, root) if each.entry not in on_disk]
        words = [item.value for item in root.items if item.kind == "scalar"]
        if words and len(words) == len(root.items) and all(map(arguments.is_override, words)):
            # A list of Hydra overrides, as Hydra notes them of a run.
            values[:0] = (each for number in range(len(words)) for each in _of_words(root, number, ""))
        for each in values:
            last = max((match.end() for match in _OBJECT.finditer(each.path)), default=0) if is_object else 0
            found += settings_of(text.text, replace(each, path=each.path[last:]), "yaml", _write(text, each))
    if is_manifest(text):
        for each in _of_commands(text):
            found += settings_of(text.text, each, "yaml", _write(text, each))
    return found


def _of_run(text: YamlFile, root: TreeNode) -> Iterator[Setting]:
    """Give the settings that Weights & Biases kept of a run, each of which it holds under `value`.

    They are what the run had, with no place: a rerun does not read this file. What the configuration of a
    model says that nobody set is no setting of the job, such as the `max_length` of its generation.
    """
    defaults = known_frameworks().model_defaults
    values = ((entry.key, entry.node.child("value")) for entry in root.entries)
    held = {key: node.value for key, node in values if node is not None}
    untouched = {key for key, value in defaults.items() if held.get(key) == value}
    is_model = len(untouched) > 1
    for entry in root.entries:
        if is_model and entry.key in untouched:
            continue
        for each in read_values(text.text, entry.node) if entry.key != _RUN else ():
            name, _, below = each.path.partition(".")
            if name == "value":
                path = f"{entry.key}.{below}".rstrip(".")
                yield from settings_of(text.text, replace(each, path=path), "dump", None)


def _write(text: YamlFile, value: TreeValue) -> Callable[[Scalar], Edit] | None:
    if value.item is not None:
        item = value.item
        return lambda to: yaml_document.item_replacement(text, item, value.rewrite(to))
    entry = value.entry
    if entry is not None and entry.node.style == "|" and value.rewrite is not str and not entry.alias:
        block = entry.node
        return lambda to: yaml_document.literal_replacement(text, block, value.rewrite(to))
    if entry is None or not yaml_document.is_replaceable(text, entry):
        return None
    if value.rewrite is not str:
        quoted = entry.node.style in ("'", '"')
        return lambda to: yaml_document.replacement(text, entry, value.rewrite(to), words=quoted)
    is_variable = _VARIABLE.search(value.path) is not None
    return lambda to: yaml_document.replacement(text, entry, to, words=is_variable)


def _of_commands(text: YamlFile) -> Iterator[TreeValue]:
    """Give the flags and overrides of the containers' commands."""
    for container in containers(text):
        keys = ("entrypoint", "command") if container.compose else ("command", "args")
        for entry in (entry for key in keys if (entry := container.node.entry(key)) is not None):
            named = container.node.child("name")
            scope = named.value if named is not None else str(container.node.path[-1])
            if entry.node.kind == "scalar":
                yield from _of_line(text, entry.node, scope, entry)
            for number, item in enumerate(entry.node.items):
                is_line = item.kind == "scalar" and " " in item.value and not arguments.is_setting(item.value)
                yield from _of_line(text, item, scope) if is_line else _of_words(entry.node, number, scope)


def _of_words(node: TreeNode, number: int, scope: str) -> Iterator[TreeValue]:
    """Give the settings that one item of a list of words says."""
    words = [item.value for item in node.items]
    for found in arguments.read_settings(words, number):
        held = node.items[number if found.word is None else found.word]
        rewrite = partial(_between, held.value[: found.begin], held.value[found.end :])
        # A switch without a value has none to change.
        item = None if found.word is None or held.shared else held
        yield TreeValue(found.key, found.value, held.start, scope, None, item, rewrite, found.spelled)


def _between(before: str, after: str, to: Scalar) -> str:
    return f"{before}{to}{after}"


def _of_line(
    text: YamlFile, node: TreeNode, scope: str, entry: TreeEntry | None = None
) -> Iterator[TreeValue]:
    """Give the settings of a command line, or of a script, that is one string."""
    try:
        found = document.read(node.value)
    except NotPatchableError:
        found = commands.of_script(node.value, 0)
    for each in found:
        start, item, own = node.start, None, None
        rewrite: Callable[[Scalar], str] = str
        if each.place is not None:
            item, own = (node, None) if entry is None else (None, entry)
            rewrite = partial(_in_line, node.value, each.place.write)
            if node.style == "|":
                start = yaml_document.row_start(text, node, each.place.line) + each.place.column - 1
        yield TreeValue(each.key, each.value, start, scope, own, item, rewrite, each.spelled)


def _in_line(line: str, write: Callable[[Scalar], Edit], to: Scalar) -> str:
    return edited(line, write(to))
