"""Change environment variables in `.env` files and in the `ENV` lines of a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.tree import line_of
from ingest.configfiles.values import same
from service.patching.target import PatchTarget

# Variables that are made of parts: one value alone would hide what the machine or the image needs.
COMPOSED = frozenset({"PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PYTHONPATH"})
_VALUE = r"(?P<value>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s\"'#][^\s\"']*|)"
_BARE = re.compile(r"[\w.,:/+=@%^*;-]+")
# An instruction goes on behind a backslash at the end of a line.
_INSTRUCTION = r"^[ \t]*{}[ \t](?:[^\\\n]|\\\r?\n|\\.)*$"
_FROM = re.compile(_INSTRUCTION.format("FROM"), re.MULTILINE | re.IGNORECASE)
_ENV = re.compile(_INSTRUCTION.format("ENV"), re.MULTILINE | re.IGNORECASE)


def apply(text: str, target: PatchTarget, name: str = "") -> str:
    """Give a `.env` file's text with the variable's value.

    Raises NotPatchableError where that is not safe.
    """
    del name
    return _written(text, target, _assignments(text, target), len(text), f"{target.names[0]}=")


def holds(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a `.env` file, read anew, gives the variable its value."""
    del name
    return _all_same(_assignments(text, target), target)


def carries(text: str, target: PatchTarget, name: str = "") -> bool:
    """Tell whether a `.env` file sets the variable."""
    del name
    return bool(_assignments(text, target))


def apply_to_dockerfile(text: str, target: PatchTarget, name: str = "") -> str:
    """Give a Dockerfile's text with the variable's value in an `ENV` line of its last stage."""
    del name
    stages = list(_FROM.finditer(text))
    if not stages:
        raise NotPatchableError("the file has no FROM line")
    instructions = list(_ENV.finditer(text, stages[-1].end()))
    old = next(
        (
            match
            for match in instructions
            if re.match(rf"\s*ENV\s+{_key(target)}[ \t]+[^=\s]", match[0], re.IGNORECASE)
        ),
        None,
    )
    if old is not None:
        raise NotPatchableError(
            f"line {line_of(text, old.start())} sets {target.names[0]} in the old form without `=`"
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


def _key(target: PatchTarget) -> str:
    return re.escape(target.names[0])


def _assignments(text: str, target: PatchTarget) -> list[re.Match[str]]:
    if target.kind != "env":
        return []
    pattern = rf"^[ \t]*(?:export[ \t]+)?{_key(target)}[ \t]*=[ \t]*{_VALUE}(?P<rest>[^\n]*)$"
    return list(re.finditer(pattern, text, re.MULTILINE))


def _in_dockerfile(text: str, target: PatchTarget) -> list[re.Match[str]]:
    """Give the places of the variable in the last stage, whose environment the job gets."""
    stages = list(_FROM.finditer(text))
    if target.kind != "env" or not stages:
        return []
    pattern = re.compile(rf"(?<=\s){_key(target)}={_VALUE}(?P<rest>)(?=\s|$)", re.MULTILINE)
    return [
        found
        for match in _ENV.finditer(text, stages[-1].end())
        for found in pattern.finditer(text, match.start(), match.end())
    ]


def _all_same(found: Sequence[re.Match[str]], target: PatchTarget) -> bool:
    return len(found) == 1 and not _odd(found[0]) and same(_value(found[0]), target.to)


def _odd(match: re.Match[str]) -> bool:
    """Tell whether more than a comment follows the value."""
    return bool(match["rest"].strip()) and not re.match(r"\s+#", match["rest"])


def _value(match: re.Match[str]) -> str:
    quoted = match["value"][:1] in ("'", '"') and len(match["value"]) > 1
    return match["value"][1:-1] if quoted else match["value"]


def _written(text: str, target: PatchTarget, found: Sequence[re.Match[str]], offset: int, head: str) -> str:
    if target.kind != "env":
        raise NotPatchableError(f"a {target.kind} is no environment variable")
    if len(found) > 1:
        raise NotPatchableError(
            "it is set more than once (lines "
            f"{', '.join(str(line_of(text, match.start())) for match in found)})"
        )
    to = str(target.to)
    if to == "unset" or target.names[0] in COMPOSED or re.search(r"[$'\"\\`\n]", to):
        raise NotPatchableError("the variable is to be removed or composed by hand")
    if not found:
        row = head + (to if _BARE.fullmatch(to) else f'"{to}"')
        ending = "\r\n" if "\r\n" in text else "\n"
        if offset and text[offset - 1] != "\n":
            return f"{text[:offset]}{ending}{row}{text[offset:]}"
        return f"{text[:offset]}{row}{ending}{text[offset:]}"
    return _replaced(text, found[0], target)


def _replaced(text: str, match: re.Match[str], target: PatchTarget) -> str:
    line, old = line_of(text, match.start("value")), match["value"]
    if _odd(match):
        raise NotPatchableError(f"line {line} is written in an unusual way")
    if "$" in old and not old.startswith("'"):
        raise NotPatchableError(f"its value in line {line} is computed ({old})")
    if same(_value(match), target.to):
        return text
    to = str(target.to)
    quote = old[0] if old[:1] in ("'", '"') else "" if _BARE.fullmatch(to) else '"'
    begin, end = match.span("value")
    return text[:begin] + quote + to + quote + text[end:]
