"""Where a value comes from that a script takes from a variable which it does not assign itself.

Another of the job's files assigns it: a script that starts this one, a manifest, a list of variables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ingest.configfiles import reader
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import parse
from service.patching import overrides
from service.patching.patch import SHELL, format_named
from service.patching.patches import ConfigFile
from service.patching.target import PatchTarget

_REFERENCE = re.compile(r"\$(?:(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?[-=][^{}]*)?\})")


def handed(files: Sequence[ConfigFile], target: PatchTarget) -> PatchTarget:
    """Give the variable of another file that a setting's value is, as its own target; else the same one.

    The variable must serve this one setting, and stand once, with the value that the run had.
    """
    if target.kind not in ("setting", "flag") or target.removes or target.replaces is not None:
        return target
    scripts = [file for file in files if format_named(file.name, file.text) == SHELL.name]
    named = [(file, _variable(file, target)) for file in scripts]
    users = [(file, name) for file, name in named if name is not None]
    if len(users) != 1 or not users[0][1]:
        return target
    user, name = users[0]
    uses = sum(len(re.findall(rf"\$\{{?{re.escape(name)}\b", file.text)) for file in scripts)
    told = [(file, item) for file in files for item in reader.read(file.text, file.name) if item.key == name]
    is_one = len(told) == 1 and told[0][0] is not user and uses == 1
    if not is_one or "$" in told[0][1].value or target.present not in ("", told[0][1].value):
        return target
    return replace(target, framework="env", kind="env", names=(name,), spelled="env")


def _variable(file: ConfigFile, target: PatchTarget) -> str | None:
    """Name the variable that is all of a setting's value in a script; None where it does not set it."""
    try:
        found = overrides.places(parse(file.text.replace("\r\n", "\n")), target)
    except NotPatchableError:
        return None
    values = [place.value.text if place.value is not None else "" for place in found]
    references = {
        match["bare"] or match["braced"] for text in values if (match := _REFERENCE.fullmatch(text))
    }
    return None if not values else references.pop() if len(references) == len(values) == 1 else ""
