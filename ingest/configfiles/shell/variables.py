"""What a script's variables hold, as far as it says so in plain text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Assignment, Script, ShellCommand
from ingest.configfiles.shell.words import Word

# A variable's value may name further variables; a script that nests deeper is not followed.
_DEPTH = 5
# Variables that repeat each other could make any number of words.
_WORDS = 20_000


def arguments(script: Script, command: ShellCommand) -> list[Word]:
    """Give a command's words with arrays and strings of arguments put in where it expands them."""
    evaluated = bool(command.words) and command.words[0].text == "eval"
    words = (word for each in command.words for word in _expanded(script, each, evaluated, ()))
    held = list(islice(words, _WORDS + 1))
    if len(held) > _WORDS:
        raise NotPatchableError(
            Message("patch.line-command-more-words", line=script.line(command.start), words=_WORDS)
        )
    return held


def _expanded(script: Script, word: Word, evaluated: bool, seen: tuple[str, ...]) -> Iterator[Word]:
    reference = word.reference()
    if reference is None or reference.name in seen or len(seen) > _DEPTH:
        yield word
        return
    held = [each for each in script.assignments if each.name == reference.name and not each.prefix]
    arrays = any(each.array for each in held)
    if not held or arrays != reference.items or not (arrays or evaluated or reference.quote != '"'):
        yield word
        return
    split = [
        each.words if each.array else [part for word in each.words for part in word.pieces()] for each in held
    ]
    # A plain value is changed where it is assigned; a variable that is assigned twice, one word each time,
    # holds a value and no arguments.
    are_arguments = any(
        len(pieces) > 1
        or any(piece.text.startswith("-") or piece.equals_at() is not None for piece in pieces)
        for pieces in split
    )
    if not arrays and not are_arguments:
        yield word
        return
    for part in chain.from_iterable(split):
        yield from _expanded(script, part, evaluated, (*seen, reference.name))


def unused(script: Script) -> Iterator[list[Word]]:
    """Give the arrays that no command of the script expands: a piece of a script, or one that is sourced."""
    used = {use.name for use in script.uses}
    for each in script.assignments:
        if each.array and each.name not in used:
            yield list(each.words)


def literal(script: Script, value: Word) -> Word:
    """Give the word that holds a value: the value itself, its default, or what its variable is assigned.

    Raises NotPatchableError where the script computes it.
    """
    held = value if value.plain else value.default()
    if held is not None:
        return held
    reference = value.reference()
    if reference is None or reference.items:
        raise NotPatchableError(Message("patch.line-value-computed", line=value.line, text=value.text))
    return _assigned(script, value, reference.name)


def changeable(script: Script, value: Word) -> Word:
    """Give the word that holds a value and nothing else: where its variable serves others, the use itself.

    Raises NotPatchableError where the script computes it.
    """
    reference = value.reference()
    held = literal(script, value)
    if reference is None:
        return held
    # `X=${X:-8}` reads itself.
    own = [each.words[0] for each in script.assignments if each.name == reference.name and not each.array]
    spans = [range(word.start, word.end) for word in (value, *own)]
    is_shared = any(
        use.name == reference.name and not use.printed and not any(use.start in span for span in spans)
        for use in script.uses
    )
    return value if is_shared else held


def _where(value: Word) -> str:
    return Message("patch.line-value", line=value.line, text=value.text)


def _assigned(script: Script, value: Word, name: str) -> Word:
    held = [each for each in script.assignments if each.name == name]
    if not held:
        raise NotPatchableError(Message("patch.script-not-assign", value=_where(value)))
    if name in script.changed_names:
        raise NotPatchableError(
            Message(
                "patch.line-computes-2", value=_where(value), line=script.line(script.changed_names[name])
            )
        )
    if len(held) > 1:
        lines = ", ".join(str(script.line(each.start)) for each in held)
        raise NotPatchableError(Message("patch.assigned-more-once-lines", value=_where(value), lines=lines))
    _refuse_unless_plain(script, value, held[0])
    word = held[0].words[0].default() or held[0].words[0]
    # Without quotes around it, the variable's value is cut at blanks where it is used.
    return replace(word, splits=True) if value.units[0].quote == "" else word


def _refuse_unless_plain(script: Script, value: Word, held: Assignment) -> None:
    line = script.line(held.start)
    if held.array or held.append or held.prefix or held.branch:
        raise NotPatchableError(Message("patch.line-not-assign-plainly", value=_where(value), line=line))
    if not held.words[0].plain and held.words[0].default() is None:
        raise NotPatchableError(
            Message("patch.line-computes", value=_where(value), line=line, text=held.words[0].text)
        )
    if held.start > value.start:
        raise NotPatchableError(Message("patch.line-assigns-after-used", value=_where(value), line=line))
