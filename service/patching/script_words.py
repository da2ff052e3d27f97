"""One word of a script's commands that names what is not there: a file, a module, an application."""

from __future__ import annotations

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.variables import changeable
from ingest.configfiles.shell.words import Word, WordEdit
from service.patching.target import PatchTarget

# How a target is spelled that is such a word: its name is the old one.
WORD = "word"


def places(script: Script, target: PatchTarget) -> list[Word]:
    """Find the words of the script's commands that are the old one."""
    return [word for command in script.commands for word in command.words[1:] if word.text in target.names]


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that put the new word in place; raises NotPatchableError where there is no old one."""
    found = places(script, target)
    if not found:
        raise NotPatchableError(Message("patch.command-own-run-hand"))
    return [changeable(script, word).replaced(str(target.to)) for word in found]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether the script has the new word and the old one no more."""
    words = [word.text for command in script.commands for word in command.words[1:]]
    return str(target.to) in words and not places(script, target)
