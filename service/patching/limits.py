"""Limits that a launch script sets for its own shell and all that it starts: `ulimit -n 4096`."""

from __future__ import annotations

import re
from itertools import pairwise

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.variables import changeable
from ingest.configfiles.shell.words import Word, WordEdit
from service.patching.target import PatchTarget

# The shell's own command: https://www.gnu.org/software/bash/manual/html_node/Bash-Builtins.html
_COMMAND = "ulimit"
_LIMIT = re.compile(rf"(?P<name>{_COMMAND} -[A-Za-z]) (?P<value>\w+)")


def parted(key: str) -> tuple[str, str] | None:
    """Give the name and the value of a command that sets one limit of its shell; None for any other."""
    found = _LIMIT.fullmatch(key)
    return (found["name"], found["value"]) if found else None


def is_limit(target: PatchTarget) -> bool:
    """Tell whether a target is such a limit."""
    return target.kind == "command" and parted(f"{target.names[0]} {target.to}") is not None


def places(script: Script, target: PatchTarget) -> list[Word]:
    """Find the values that the script gives for the limit, soft, hard or both."""
    option = re.compile(rf"-[SH]{{0,2}}{target.names[0][-1]}")
    return [
        value
        for command in script.commands
        if command.words and command.words[0].text == _COMMAND
        for given, value in pairwise(command.words[1:])
        if option.fullmatch(given.text) and value.text[:1] != "-"
    ]


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that make the script set the limit anew; raises NotPatchableError where it sets none.

    There the command would fail wherever the hard limit is lower, and may end the script.
    """
    found = places(script, target)
    if not found:
        raise NotPatchableError(Message("patch.command-own-run-hand"))
    values = (changeable(script, word) for word in found if word.text != str(target.to))
    return [value.replaced(str(target.to)) for value in values]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether all that the script says of the limit is the value."""
    found = places(script, target)
    return bool(found) and all(word.text == str(target.to) for word in found)
