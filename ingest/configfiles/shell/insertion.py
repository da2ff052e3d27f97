"""Put further words into a command, or take one out, in the manner in which the command is laid out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.launches import ProgramWords
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.words import Word, WordEdit, written

# What a caller of the script hands on stays last, so that it still wins.
_NAMED = re.compile(r"[\w.@/+-]+=")
_GAP = re.compile(r"(?:\s|\\\n|#[^\n]*\n)*")
_HANDED_ON = ("$@", "$*", "${@}", "${*}", "${@:")


def behind_name(script: Script, stage: ProgramWords, words: Sequence[str]) -> WordEdit:
    """Add options of a launcher directly behind its name: further back they could be its job's."""
    name = stage.words[stage.names - 1]
    following = [word for word in _direct(stage) if word.start > name.end]
    between = script.text[name.end : following[0].start] if following else " "
    blank = between if between and not between.strip(" \t\n\\") else " "
    return _put(name, blank, words)


def behind_words(script: Script, stage: ProgramWords, words: Sequence[str]) -> WordEdit:
    """Add arguments behind the last one of a program."""
    direct = _direct(stage)
    if not direct or stage.words[0] not in direct:
        # Add to the string or array that holds the whole command.
        last = stage.words[-1]
        if last.splits and any(not word or re.search(r"\s", word) for word in words):
            raise NotPatchableError(Message("patch.line-string-cut-blanks", line=last.line))
        return _put(last, _separator(script, list(stage.words), last), words)
    last = next((word for word in reversed(direct) if not word.text.startswith(_HANDED_ON)), direct[-1])
    return _put(last, _separator(script, direct, last), words)


def _direct(stage: ProgramWords) -> list[Word]:
    """Give the words that stand in the command itself, not in a variable."""
    return list(stage.command.words) if stage.command else []


def _separator(script: Script, words: list[Word], last: Word) -> str:
    """Give what stands between the command's arguments: a blank, or a continued line."""
    gaps = [
        script.text[before.end : after.start]
        for before, after in pairwise(words)
        if before.end < after.start <= last.start
    ]
    lines = [gap for gap in gaps if "\n" in gap and not gap.strip(" \t\n\\")]
    return lines[-1] if lines else " "


def _put(behind: Word, separator: str, words: Sequence[str]) -> WordEdit:
    quote = behind.units[-1].quote if behind.splits else ""
    new = []
    for word in words:
        # Of `name=value` the value alone is quoted.
        name = _NAMED.match(word)
        if behind.splits:
            new.append(written(word, quote))
        else:
            new.append(name[0] + written(word[name.end() :], "") if name else shlex.quote(word))
    return WordEdit(behind.end, behind.end, separator + " ".join(new))


def removed(word: Word, before: Word | None) -> WordEdit:
    """Take a word out together with the blanks before it; a comment between them stays."""
    source = word.source
    if before is None or before.end > word.start or not _GAP.fullmatch(source[before.end : word.start]):
        after = word.end + len(source[word.end :]) - len(source[word.end :].lstrip(" \t"))
        return WordEdit(word.start, after, "")
    gap = source[before.end : word.start]
    start = before.end + (gap.rfind("\n") if "#" in gap else 0)
    return WordEdit(start, word.end, "")
