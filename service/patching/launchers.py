"""A launcher in the interpreter's place: `torchrun --standalone train.py` for `python train.py`."""

from __future__ import annotations

import re

from corpus.frameworks import known_frameworks
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.launches import launches, of_command
from ingest.configfiles.shell.syntax import Script, ShellCommand, parse
from ingest.configfiles.shell.words import WordEdit
from service.patching.target import PatchTarget

_INTERPRETER = re.compile(r"(?:\S*/)?python[\d.]*")
# What a launcher takes as python does: a script, or a module.
_STARTED = re.compile(r"-m|\S+\.py")


def is_launcher(command: str) -> bool:
    """Tell whether a command is a program that starts ranks, with its own options alone.

    A remedy's words that no shell can read are none.
    """
    try:
        script = parse(command)
    except NotPatchableError:
        return False
    stages = of_command(script, script.commands[0]) if len(script.commands) == 1 else []
    return len(stages) == 1 and stages[0].launcher and known_frameworks().row(stages[0].owner).starts_ranks


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edit that puts the launcher in place; none where one starts the ranks already.

    Raises NotPatchableError where it is not one command of the script that python runs.
    """
    if hold(script, target):
        return []
    found = [place for command in launches(script) if (place := _place(command))]
    if len(found) != 1:
        raise NotPatchableError(Message("patch.no-command-script-starts"))
    start, end = found[0]
    return [WordEdit(start, end, target.names[0])]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether the script starts its ranks by the launcher."""
    program = parse(target.names[0]).commands[0].words[0].text
    return any(word.text == program for command in launches(script) for word in command.words)


def _place(command: ShellCommand) -> tuple[int, int] | None:
    """Give where the interpreter and its options stand before the script; None where no script is run."""
    words = command.words
    at = next((at for at, word in enumerate(words) if _INTERPRETER.fullmatch(word.text)), None)
    if at is None:
        return None
    begun = next((word for word in words[at + 1 :] if _STARTED.fullmatch(word.text)), None)
    options = [word for word in words[at + 1 :] if begun is not None and word.start < begun.start]
    if begun is None or any(not word.text.startswith("-") for word in options):
        return None
    return words[at].start, options[-1].end if options else words[at].end
