"""Scripts within a script: the text that `bash -c '...'` is given."""

from __future__ import annotations

import re
from itertools import chain

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.words import Word, WordEdit

_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh")
_OPTION = re.compile(r"-[a-z]*c")


def inner_scripts(script: Script) -> list[Word]:
    """Give the words that are scripts of their own and that hold nothing the outer shell computes."""
    runs = (
        zip(command.words, command.words[1:], command.words[2:], strict=False) for command in script.commands
    )
    return [
        text
        for shell, option, text in chain.from_iterable(runs)
        if _SHELL.fullmatch(shell.text) and _OPTION.fullmatch(option.text) and text.plain
    ]


def in_script(word: Word, new: str) -> WordEdit:
    """Give the edit that makes the word's text the new one, where the two differ alone."""
    old = word.text
    begin = _alike(old, new)
    tail = _alike(old[begin:][::-1], new[begin:][::-1])
    if begin == 0:
        raise NotPatchableError(Message("patch.line-script-begin-differently", line=word.line))
    return word.span_replaced(begin, len(old) - tail, new[begin : len(new) - tail])


def _alike(one: str, other: str) -> int:
    """Give how many first characters are the same."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
