"""Change environment variables in `.env` files and in the `ENV` lines of a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.message import Message
from ingest.configfiles.env_file import (
    assignments,
    dockerfile_assignments,
    dockerfile_instructions,
    dockerfile_stages,
    is_composed,
    is_unusual,
    quoted,
    replacement,
    value_of,
)
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import line_of
from ingest.configfiles.values import same
from service.patching.target import PatchTarget

# Variables that are made of parts: one value alone would hide what the machine or the image needs.
COMPOSED = frozenset({"PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PYTHONPATH"})


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give a `.env` file's text with the variable's value.

    Raises NotPatchableError where that is not safe.
    """
    del name
    return _written(text, target, _in_file(text, target), len(text), f"{target.names[0]}=")


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a `.env` file, read anew, gives the variable its value."""
    del name
    return _all_same(_in_file(text, target), target)


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a `.env` file sets the variable."""
    del name
    return bool(_in_file(text, target))


def apply_to_dockerfile(text: str, target: PatchTarget, name: str = "") -> str:
    """Give a Dockerfile's text with the variable's value in an `ENV` line of its last stage."""
    del name
    stages = dockerfile_stages(text)
    if not stages:
        raise NotPatchableError(Message("patch.file-no-line"))
    instructions = dockerfile_instructions(text)
    old = next(
        (
            match
            for match in instructions
            if re.match(rf"\s*ENV\s+{re.escape(target.names[0])}[ \t]+[^=\s]", match[0], re.IGNORECASE)
        ),
        None,
    )
    if old is not None:
        raise NotPatchableError(
            Message("patch.line-sets-old-form", text=line_of(text, old.start()), names=target.names[0])
        )
    behind = (instructions or stages)[-1].end()
    return _written(
        text,
        target,
        _in_dockerfile(text, target),
        min(text.find("\n", behind) + 1 or len(text), len(text)),
        f"ENV {target.names[0]}=",
    )


def dockerfile_holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a Dockerfile, read anew, gives the variable its value."""
    del name
    return _all_same(_in_dockerfile(text, target), target)


def dockerfile_carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a Dockerfile sets the variable in its last stage."""
    del name
    return bool(_in_dockerfile(text, target))


def _in_file(text: str, target: PatchTarget) -> list[re.Match[str]]:
    return _of_target(assignments(text), target)


def _in_dockerfile(text: str, target: PatchTarget) -> list[re.Match[str]]:
    return _of_target(dockerfile_assignments(text), target)


def _of_target(found: Sequence[re.Match[str]], target: PatchTarget) -> list[re.Match[str]]:
    return [match for match in found if target.kind == "env" and match["key"] == target.names[0]]


def _all_same(found: Sequence[re.Match[str]], target: PatchTarget) -> bool:
    return len(found) == 1 and not is_unusual(found[0]) and same(value_of(found[0]), target.to)


def _written(text: str, target: PatchTarget, found: Sequence[re.Match[str]], offset: int, head: str) -> str:
    if target.kind != "env":
        raise NotPatchableError(Message("patch.no-environment-variable", kind=target.kind))
    if len(found) > 1:
        raise NotPatchableError(
            Message(
                "patch.set-more-once-lines",
                found=", ".join(str(line_of(text, match.start())) for match in found),
            )
        )
    to = str(target.to)
    if to == "unset" or target.names[0] in COMPOSED or is_composed(to):
        raise NotPatchableError(Message("patch.variable-removed-composed-hand"))
    if found:
        edit = replacement(text, found[0], to)
        return text if edit is None else text[: edit.start] + edit.new + text[edit.end :]
    row = head + quoted(to)
    ending = "\r\n" if "\r\n" in text else "\n"
    if offset and text[offset - 1] != "\n":
        return f"{text[:offset]}{ending}{row}{text[offset:]}"
    return f"{text[:offset]}{row}{ending}{text[offset:]}"
