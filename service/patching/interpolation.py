"""Where a value comes from that a configuration takes from another of its keys: `${..run.batch_size}`.

https://omegaconf.readthedocs.io/en/latest/usage.html#variable-interpolation: a name counts from the whole
configuration, after dots from the level of the key and so many levels above.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from corpus.keys import levels
from service.patching import yaml_file
from service.patching.patch import YAML, format_named
from service.patching.patches import ConfigFile
from service.patching.target import PatchTarget

_REFERENCE = re.compile(r"\$\{(?P<dots>\.*)(?P<name>[A-Za-z_][\w.]*)\}")
# Keys that take their value from one another.
_MOST = 4


def followed(files: Sequence[ConfigFile], target: PatchTarget) -> PatchTarget:
    """Give the key whose value the target's key has, as its own target; the same one where it has its own.

    A value that other keys take, too, stays as it is, and so does one that is not what the run had.
    """
    texts = [file for file in files if format_named(file.name, file.text) == YAML.name]
    found = target
    for _ in range(_MOST):
        given = (yaml_file.value(file.text, found, file.name) for file in texts)
        reference = next((match for value in given if (match := _REFERENCE.fullmatch(str(value)))), None)
        if reference is None:
            break
        above = levels(found.names[0])
        within = above[: len(above) - len(reference["dots"])] if reference["dots"] else []
        source = ".".join((*within, reference["name"]))
        used = re.compile(rf"\$\{{[^{{}}]*(?<![\w]){re.escape(source.rpartition('.')[2])}\}}")
        if sum(len(used.findall(file.text)) for file in texts) > 1:
            return target
        found = replace(found, names=(source,))
    if found is target:
        return target
    had = [value for file in texts if (value := yaml_file.value(file.text, found, file.name)) is not None]
    is_run = not target.present or any(str(value) == target.present for value in had)
    return found if len(had) == 1 and is_run else target
