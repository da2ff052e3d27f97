"""Change the values that a launch script spells out; nothing is executed, nothing is added.

A setting is changed where it stands exactly once as `key=value` or `--key value`; a value that the shell
computes (`$BATCH`, `$(nproc)`) is left alone, and the caller is told.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from service.diagnosis import Dropped, ProposedChange

# A value as the shell reads it: quoted, or a bare word. Where the whole `key=value` stands in quotes, it
# goes to the closing one.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_VALUE = r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s\\;&|()'\"]*)"


@dataclass(frozen=True, slots=True)
class Patch:
    """A unified diff of one file (empty where nothing could be changed), and what was left out with why."""

    diff: str
    left_out: tuple[Dropped, ...]


def patch(text: str, name: str, changes: Sequence[ProposedChange]) -> Patch:
    """Write the changes into the script's text and give the difference."""
    new, left_out = text, []
    for change in changes:
        if change.kind not in ("setting", "flag", "env"):
            continue
        result = _changed(new, change)
        if isinstance(result, Dropped):
            left_out.append(result)
        else:
            new = result
    path = PurePath(name).name
    # Lines end at a newline alone: a form feed in a comment starts none for git or bash.
    rows = difflib.unified_diff(_LINE.findall(text), _LINE.findall(new), f"a/{path}", f"b/{path}")
    return Patch("".join(row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in rows), tuple(left_out))


def _changed(text: str, change: ProposedChange) -> str | Dropped:
    found = [match for match in _places(change.key).finditer(text) if not _in_comment(text, match.start())]
    what = f"{change.key}={change.to}"
    if not found:
        return Dropped(what=what, why="the script does not set it; add it by hand")
    if len(found) > 1:
        return Dropped(what=what, why="the script sets it more than once")
    value = found[0]["value"]
    if not value and not found[0][0].endswith("="):
        return Dropped(what=what, why="it stands there as a switch without a value; change it by hand")
    if "$" in value or "`" in value:
        return Dropped(what=what, why=f"its value is computed in the script ({value})")
    quote = value[0] if value[:1] in ("'", '"') else ""
    begin, end = found[0].span("value")
    return text[:begin] + quote + _written(change.to) + quote + text[end:]


def _places(key: str) -> re.Pattern[str]:
    bare = re.escape(key.lstrip("-+~")).replace("_", "[_-]").replace(r"\-", "[_-]")
    return re.compile(rf"(?:(?<=[\s'\"])|^)(?:\+{{0,2}}{bare}=|--{bare}(?:=|[ \t]+(?!-\D|\\)|(?=\s|$))){_VALUE}", re.MULTILINE)


def _in_comment(text: str, offset: int) -> bool:
    row = text[text.rfind("\n", 0, offset) + 1 : offset]
    if row.lstrip().startswith("#SBATCH"):
        return False
    return re.search(r"(?:^|\s)#", row) is not None


def _written(value: object) -> str:
    return str(value) if not isinstance(value, bool) else ("True" if value else "False")
