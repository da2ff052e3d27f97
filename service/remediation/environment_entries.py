"""How a script enters the environment that its program runs in, and which ones the job's files define."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from packaging.utils import canonicalize_name

from service.remediation.code_edits.failing_code import JobFile

# Whatever brings an interpreter of its own, or sets up the one that is there; a remark does nothing, and the
# folder of a toolkit holds no interpreter.
_ENTERS = re.compile(
    r"(?m)^[^\n#]*?(?:\bactivate\b|\b(?:conda|mamba|micromamba|poetry|uv|pipenv)\s+run\b"
    r"|\bmodule\s+load\s[^\n#]*(?:python|conda|torch|tensorflow)|\b(?:apptainer|singularity|docker|podman)\s"
    r"|--container-image|\.sif\b|/bin/python|\bPATH=(?!\S*cuda)|\bpip3?\s+install\b)"
)
# Conda's own file of an environment: conda/env/env.py.
_NAME = re.compile(r"(?m)^name:[ \t]*['\"]?(?P<name>[A-Za-z][\w.-]{0,60})['\"]?[ \t]*(?:#.*)?$")
_DEPENDENCIES = re.compile(r"(?m)^dependencies:[ \t]*$")
_LISTED = re.compile(r"(?m)^[ \t]*-[ \t]+(?:[\w.-]+::)?([A-Za-z][\w.-]*)")


class DefinedEnvironment(NamedTuple):
    """An environment that a file defines: its name, the file's, and the packages that it lists."""

    name: str
    file: str
    packages: frozenset[str]


def enters_one(text: str) -> bool:
    """Tell whether a script, or a command, enters an environment or brings an interpreter of its own."""
    return _ENTERS.search(text) is not None


def defined_environments(files: Sequence[JobFile]) -> Iterator[DefinedEnvironment]:
    """Give the environments that the job's files define, as conda reads them."""
    for file in files:
        named, begin = _NAME.search(file.text), _DEPENDENCIES.search(file.text)
        if named is not None and begin is not None:
            listed = map(canonicalize_name, _LISTED.findall(file.text, begin.end()))
            yield DefinedEnvironment(named["name"], file.name, frozenset(listed))
