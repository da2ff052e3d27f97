"""What a class or function refuses of the keys that a file of the job's hands on to it as arguments.

A file names what is to be made and gives its arguments a level lower, or beside the name: DeepSpeed's `type`
and `params`, Hydra's `_target_`, Lightning's `class_path` and `init_args`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corpus.keys import canonical, last_level
from ingest.configfiles.settings import Setting
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame

# CPython, Python/ceval.c: the names are of the call, so that a file's key stands there as it is written.
_CALLEE = r"TypeError: (?P<callee>[\w.<>]{1,160})\(\) "
_UNKNOWN = re.compile(rf"{_CALLEE}got an unexpected keyword argument '(?P<key>\w{{1,80}})'")
_MISSING = re.compile(
    rf"{_CALLEE}missing \d+ required (?:positional|keyword-only) arguments?: (?P<keys>'[^\n]{{1,300}})"
)
_NAME = re.compile(r"'(\w{1,80})'")
_OF_FILES = frozenset({"yaml", "json"})
# The level that a call hands on, as its statement reads it: `**cfg["model"]`, `**cfg.model.encoder`.
_HANDED = re.compile(
    r"\*\*\s*[A-Za-z_]\w{0,60}(?P<path>(?:\[['\"][\w-]{1,60}['\"]\]|\.[A-Za-z_]\w{0,60}){1,6})(?!\s*\()"
)
# What is handed on is read of a configuration, as its name or a key says: others may hold objects.
_CONFIGURED = re.compile(
    r"(?i)\*\*\s*(?:[\w.]{0,60}(?:conf|cfg|(?<!kw)arg|param|opt|setting|hyper|yaml|json|toml|load|spec)"
    r"|[\w.]{1,60}\[['\"])"
)
_PART = re.compile(r"[\w-]+")
# The levels below a name that hold its arguments alone.
_ARGUMENTS = ("params", "init_args", "kwargs", "args", "arguments")


class HandedKey(NamedTuple):
    """A key by its whole path, the class or function that it is for, and the job's value, if any."""

    key: str
    callee: str
    value: str | None = None


def unknown_key(message: str, frames: Sequence[Frame], settings: Sequence[Setting]) -> HandedKey | None:
    """Give the key of a file that the call hands on and that what is called does not take.

    A call that names the argument itself has it from its own code, and a key of that name elsewhere in the
    file is another thing's.
    """
    match = _UNKNOWN.search(message)
    if match is None or not _hands_on(frames, match["key"]):
        return None
    wanted = canonical(match["key"])
    found = {
        item.key: item for item in settings if item.spelled in _OF_FILES and last_level(item.key) == wanted
    }
    code = frames[-1].code
    is_read = "**" in code and (not is_own(frames[-1]) or hands_configuration(code))
    # What reads no level of a file hands on the top one.
    levels = list(argument_levels(_called(match), settings)) or (
        (_read_levels(frames, settings) or [""]) if is_read else []
    )
    named = [item for item in found.values() if any(_is_below(item.key, level) for level in levels)]
    return HandedKey(named[0].key, _called(match), named[0].value) if len(named) == 1 else None


def missing_keys(message: str, frames: Sequence[Frame], settings: Sequence[Setting]) -> list[HandedKey]:
    """Give the keys that a file lacks below the name of what is called, by their whole paths."""
    match = _MISSING.search(message)
    names = _NAME.findall(match["keys"]) if match is not None else []
    if match is None or not any(_hands_on(frames, name) for name in names):
        return []
    levels = list(argument_levels(_called(match), settings)) or _read_levels(frames, settings)
    given = {canonical(item.key) for item in settings if any(_is_below(item.key, level) for level in levels)}
    if len(levels) != 1:
        return []
    keys = [f"{levels[0]}.{name}" if levels[0] else name for name in names]
    return [HandedKey(key, _called(match)) for key in keys if canonical(key) not in given]


def hands_configuration(code: str) -> bool:
    """Tell whether a statement of the job's own hands on, as arguments, what it has of a configuration."""
    return _CONFIGURED.search(code) is not None


def _called(match: re.Match[str]) -> str:
    """Give the bare name of the class or function that is called."""
    return match["callee"].replace(".__init__", "").replace(".__new__", "").rpartition(".")[2]


def argument_levels(callee: str, settings: Sequence[Setting]) -> Iterator[str]:
    """Give the levels that hold the arguments of a class or function whose name is a value of the file."""
    files = [item for item in settings if item.spelled in _OF_FILES]
    for item in files:
        if item.value.strip("'\"").rpartition(".")[2] != callee:
            continue
        above = item.key.rpartition(".")[0]
        lower = (f"{above}.{name}" if above else name for name in _ARGUMENTS)
        yield next((level for level in lower if any(_is_below(each.key, level) for each in files)), above)


def _read_levels(frames: Sequence[Frame], settings: Sequence[Setting]) -> list[str]:
    """Give the one level of a file that the failing statement itself reads, as it hands it on."""
    read = _HANDED.search(frames[-1].code)
    path = ".".join(_PART.findall(read["path"])) if read is not None else ""
    above = {item.key.rpartition(".")[0] for item in settings if item.spelled in _OF_FILES}
    found = [level for level in above if path and f".{canonical(level)}".endswith(f".{canonical(path)}")]
    return found if len(found) == 1 else []


def _is_below(key: str, level: str) -> bool:
    """Tell whether a key stands right below a level."""
    return canonical(key).rpartition(".")[0] == canonical(level)


def _hands_on(frames: Sequence[Frame], name: str) -> bool:
    """Tell whether the failing call hands a mapping on, or may: only the first row of a long one is shown."""
    code = frames[-1].code.strip() if frames else ""
    if re.search(rf"(?<![\w.]){re.escape(name)} ?=(?!=)", code):
        return False
    return "**" in code or (code.endswith(("(", ",")) and not is_own(frames[-1]))
