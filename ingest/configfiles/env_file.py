"""Variables in `.env` files and in the `ENV` lines of a Dockerfile, and edits of their values."""

from __future__ import annotations

import re

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.settings import TextEdit
from ingest.configfiles.tree import line_of
from ingest.configfiles.values import same

# An assignment: `key`, `value` with its quotes, and the `rest` of the line.
Assigned = re.Match[str]

_VALUE = r"(?P<value>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s\"'#][^\s\"']*|)"
_ROW = re.compile(
    rf"^[ \t]*(?:export[ \t]+)?(?P<key>[A-Za-z_]\w*)[ \t]*=[ \t]*{_VALUE}(?P<rest>[^\n]*)$", re.MULTILINE
)
_PAIR = re.compile(rf"(?<=\s)(?P<key>[A-Za-z_]\w*)={_VALUE}(?P<rest>)(?=\s|$)", re.MULTILINE)
_BARE = re.compile(r"[\w.,:/+=@%^*;-]+")
# An instruction goes on behind a backslash at the end of a line.
_INSTRUCTION = r"^[ \t]*{}[ \t](?:[^\\\n]|\\\r?\n|\\.)*$"
_FROM = re.compile(_INSTRUCTION.format("FROM"), re.MULTILINE | re.IGNORECASE)
_ENV = re.compile(_INSTRUCTION.format("ENV"), re.MULTILINE | re.IGNORECASE)


def assignments(text: str) -> list[Assigned]:
    """Give the assignments of a `.env` file."""
    return list(_ROW.finditer(text))


def dockerfile_stages(text: str) -> list[Assigned]:
    """Give the `FROM` instructions of a Dockerfile."""
    return list(_FROM.finditer(text))


def dockerfile_instructions(text: str) -> list[Assigned]:
    """Give the `ENV` instructions of a Dockerfile's last stage, whose environment the job gets."""
    stages = dockerfile_stages(text)
    return list(_ENV.finditer(text, stages[-1].end())) if stages else []


def dockerfile_assignments(text: str) -> list[Assigned]:
    """Give the variables that a Dockerfile's last stage sets."""
    return [
        found
        for match in dockerfile_instructions(text)
        for found in _PAIR.finditer(text, match.start(), match.end())
    ]


def is_unusual(match: Assigned) -> bool:
    """Tell whether more than a comment follows the value."""
    return bool(match["rest"].strip()) and not re.match(r"\s+#", match["rest"])


def value_of(match: Assigned) -> str:
    """Give an assignment's value without its quotes."""
    quoted = match["value"][:1] in ("'", '"') and len(match["value"]) > 1
    return match["value"][1:-1] if quoted else match["value"]


def quoted(value: str) -> str:
    """Write a value, in quotes where a blank or a sign would end it."""
    return value if _BARE.fullmatch(value) else f'"{value}"'


def is_composed(value: str) -> bool:
    """Tell whether a value names other variables or ends its quotes: it cannot be written as it is."""
    return re.search(r"[$'\"\\`\n]", value) is not None


def replacement(text: str, match: Assigned, to: str) -> TextEdit | None:
    """Make the edit that gives an assignment another value; None where it has it.

    Raises NotPatchableError where that is not safe.
    """
    line, old = line_of(text, match.start("value")), match["value"]
    if is_unusual(match):
        raise NotPatchableError(Message("patch.line-written-unusual-way", line=line))
    if "$" in old and not old.startswith("'"):
        raise NotPatchableError(Message("patch.value-line-computed", line=line, old=old))
    if same(value_of(match), to):
        return None
    new = f"{old[0]}{to}{old[0]}" if old[:1] in ("'", '"') else quoted(to)
    return TextEdit(*match.span("value"), new)
