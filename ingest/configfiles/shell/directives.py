"""The `#SBATCH` lines of a Slurm script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ingest.configfiles.shell.words import Word, word

_LINE = re.compile(r"^#SBATCH(?=[ \t])(?P<rest>[^\n]*)", re.MULTILINE)
_OTHER = re.compile(r"^[ \t]*(?:#[^\n]*)?(?:\n|\Z)", re.MULTILINE)
SHORT = {
    "-A": "account", "-a": "array", "-b": "begin", "-C": "constraint", "-c": "cpus-per-task", "-D": "chdir",
    "-d": "dependency", "-e": "error", "-G": "gpus", "-i": "input", "-J": "job-name", "-L": "licenses",
    "-N": "nodes", "-n": "ntasks", "-o": "output", "-p": "partition", "-q": "qos", "-t": "time",
    "-w": "nodelist", "-x": "exclude",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DirectiveOption:
    """One option of a directive: its long name, the word that names it, its value where it has one."""

    name: str
    word: Word
    value: Word | None
    line: tuple[int, int]


def options(text: str) -> list[DirectiveOption]:
    """Read the directives that Slurm reads: those before the first command."""
    found: list[DirectiveOption] = []
    at = 0
    while at < len(text) and (row := _OTHER.match(text, at)):
        if line := _LINE.match(text, at):
            found += _options(text, line)
        at = row.end()
    return found


def unread(text: str) -> list[DirectiveOption]:
    """Give the directives that stand below the first command, where Slurm reads none."""
    read = {option.line for option in options(text)}
    return [
        option
        for found in _LINE.finditer(text)
        if found.span() not in read
        for option in _options(text, found)
    ]


def _options(text: str, found: re.Match[str]) -> Iterator[DirectiveOption]:
    words = list(_words(text, found.start("rest"), found.end("rest")))
    for index, each in enumerate(words):
        name, value = _name(each)
        if name is None:
            continue
        following = words[index + 1] if index + 1 < len(words) else None
        if value is None and following is not None and not following.text.startswith("-"):
            value = following
        yield DirectiveOption(name, each, value, found.span())


def _words(text: str, start: int, end: int) -> Iterator[Word]:
    """Cut at blanks outside of quotes, up to a comment."""
    for found in re.compile(r"(?:[^\s'\"#]|(?<=\S)#|'[^'\n]*'|\"[^\"\n]*\")+|#[^\n]*").finditer(
        text, start, end
    ):
        if found[0].startswith("#"):
            return
        yield word(text, found.start(), found.end(), ())


def _name(option: Word) -> tuple[str | None, Word | None]:
    """Give the long name of an option and the value that is joined to it."""
    text = option.text
    if text.startswith("--"):
        at = option.equals_at()
        return (text[2:], None) if at is None else (text[2:at], option.rest(at + 1))
    name = SHORT.get(text[:2])
    return name, (option.rest(3 if text[2] == "=" else 2) if name and len(text) > 2 else None)
