"""The job's own configuration as far as its output, or a launch file, shows it.

Read, never executed: commands are split by shell rules, values that the shell would compute stay as written.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

T = TypeVar("T", list[Any], dict[Any, Any])
Spelling = Literal["hydra", "flag", "env", "dump"]

_OVERRIDE = re.compile(r"^[+~]{0,2}(?P<key>[A-Za-z_][\w-]*(?:[./@][\w-]+)*)=(?P<value>.*)$", re.DOTALL)
_ENV = re.compile(r"^(?P<key>[A-Z][A-Z0-9_]*|RAY_\w+)=(?P<value>.*)$", re.DOTALL)
_FLAG = re.compile(r"^--?(?P<key>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?$", re.DOTALL)
_COMMAND = re.compile(
    r"(?:^|[\s;&|+])(?:python[\d.]*|torchrun|deepspeed|accelerate|vllm|ray|sbatch|srun|uv|llamafactory-cli|swift|trl|export|docker)\s"
)
_NAMESPACE = re.compile(r"\bNamespace\((.*)\)\s*$")
_PAIR = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,()\[\]{}]+)")
_OVERRIDES_LIST = re.compile(r"Error executing job with overrides: (\[.*\])")
_ENGINE_ARGS = re.compile(r"non[- ]default args: (\{.*\})")
_SERVER_ARGS = re.compile(r"server_args=ServerArgs\((.*)\)\s*$")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the job: name and value as written, and the line that shows it."""

    key: str
    value: str
    line: int
    spelled: Spelling


def is_command(text: str) -> bool:
    """Tell whether a line looks like a launch command."""
    return _COMMAND.search(text) is not None


def from_command(text: str, line: int) -> list[Setting]:
    """Read overrides, flags and environment of one command, continuation lines joined."""
    try:
        words = shlex.split(text, comments=True, posix=True)
    except ValueError:  # an unclosed quote: the log was cut; the plain words still tell
        words = text.split()
    return list(_settings(words, line))


def _settings(words: list[str], line: int) -> Iterable[Setting]:
    position = 0
    while position < len(words):
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else ""
        position += 1
        if match := _ENV.match(word):
            yield Setting(match["key"], match["value"], line, "env")
        elif match := _OVERRIDE.match(word):
            yield Setting(match["key"], match["value"], line, "hydra")
        elif match := _FLAG.match(word):
            value = match["value"]
            if value is None:
                value = following if following and not _FLAG.match(following) else "true"
            yield Setting(match["key"], value, line, "flag")


def from_dump(text: str, line: int) -> list[Setting]:
    """Read what a framework prints of its configuration in one line: Namespace(...), lists and dicts."""
    if match := _OVERRIDES_LIST.search(text):
        return [setting for word in _literal(match[1], []) for setting in _settings([str(word)], line)]
    if match := _ENGINE_ARGS.search(text):
        return [Setting(str(key), str(value), line, "dump") for key, value in _literal(match[1], {}).items()]
    if match := _NAMESPACE.search(text) or _SERVER_ARGS.search(text):
        return [Setting(key, value.strip("'\" "), line, "dump") for key, value in _PAIR.findall(match[1])]
    return []


def _literal(text: str, empty: T) -> T:
    """Evaluate a printed list or dict; gives `empty` where it is cut or of another type."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return empty
    return value if isinstance(value, type(empty)) else empty


def from_file(text: str) -> list[Setting]:
    """Read the settings of a launch script, in order; continuation lines count as their first line."""
    found: list[Setting] = []
    for number, logical in logical_lines(text):
        found.extend(from_command(logical, number))
    return found


def logical_lines(text: str) -> Iterable[tuple[int, str]]:
    """Join lines that end in a backslash; yields the first line's number and the whole."""
    held: list[str] = []
    start = 1
    for number, row in enumerate(text.removesuffix("\n").split("\n"), 1):
        start = start if held else number
        if row.rstrip().endswith("\\"):
            held.append(row.rstrip()[:-1])
            continue
        yield start, " ".join([*held, row])
        held = []
    if held:
        yield start, " ".join(held)


class SettingLog:
    """The settings of one log; the first line that shows a value keeps it, up to a bound."""

    LIMIT = 4000

    def __init__(self) -> None:
        self._found: dict[str, Setting] = {}

    def add(self, settings: Iterable[Setting]) -> None:
        """Take in settings; a later value of the same key does not replace the first."""
        for setting in settings:
            if len(self._found) < self.LIMIT:
                self._found.setdefault(setting.key, setting)

    def all(self) -> tuple[Setting, ...]:
        """Give what was found, by line."""
        return tuple(self._found.values())
