"""Which program reads which words of a command: `srun torchrun train.py` has three readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from corpus.frameworks import known_frameworks
from ingest.configfiles.shell.syntax import Script, ShellCommand
from ingest.configfiles.shell.variables import arguments, unused
from ingest.configfiles.shell.words import Word


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """How a program's start looks in a command; a `launcher` starts another one behind its own options."""

    owner: str
    pattern: re.Pattern[str]
    launcher: bool = False


SCRIPT = ""  # the owner of a program that no framework is known to own


@cache
def _program_starts() -> tuple[ProgramStart, ...]:
    """Give the programs of all frameworks, and any script behind them."""
    known = [
        ProgramStart(row.id, re.compile(rf"(?:{'|'.join(row.launches)})(?= |$)"), row.is_launcher)
        for row in known_frameworks().rows.values()
        if row.launches
    ]
    return (*known, ProgramStart(SCRIPT, re.compile(r"(?:-m [A-Za-z_]\w*(?:\.\w+)*|\S+\.py)(?= |$)")))


_SHELL = re.compile(r"(?:\S*/)?(?:bash|sh|zsh) .+|\./.+|\S+\.sh(?: .*)?", re.DOTALL)
# Modules that `python -m` starts for the preparation, not for the job.
_PREPARES = frozenset({"pip", "venv", "json", "ensurepip", "http", "zipfile"})
_NO_JOB = frozenset(
    {
        "echo",
        "printf",
        "pip",
        "pip3",
        "cd",
        "mkdir",
        "export",
        "source",
        ".",
        "sed",
        "grep",
        "cat",
        "kill",
        "pkill",
    }
)


@dataclass(frozen=True, slots=True)
class ProgramWords:
    """The words that one program reads; the first `names` of them are the program itself."""

    owner: str
    words: tuple[Word, ...]
    names: int
    launcher: bool
    known: bool
    command: ShellCommand | None

    @property
    def runs_nothing(self) -> bool:
        """Tell whether the program reads only its own options, and the job is no part of it."""
        return known_frameworks().row(self.owner).runs_nothing

    @property
    def inside(self) -> Literal["", "container", "cluster"]:
        """Tell where what the program starts runs; the empty string where it runs beside it."""
        return known_frameworks().row(self.owner).inside

    def serves(self, framework: str) -> bool:
        """Tell whether the program reads settings of the framework."""
        known = known_frameworks()
        row, asked = known.row(self.owner), known.row(framework)
        if row.starts_ranks:
            return asked.starts_ranks
        if self.owner == SCRIPT:
            return not asked.is_launcher and not asked.runs_nothing
        if not asked.launches and not any(framework in known.read_by(other) for other in known.rows):
            return not row.is_launcher and not row.runs_nothing
        return framework == self.owner or framework in known.read_by(self.owner)

    def is_called(self, program: str) -> bool:
        """Tell whether a program that calls itself so (`train.py`, `vllm serve`) is this one."""
        own = {_stem(word.text) for word in self.words[: self.names]}
        return any(_stem(word) in own for word in program.split() if not word.startswith("-"))

    def takes(self, framework: str) -> bool:
        """Tell whether a further setting of the framework can be given to the program."""
        return framework == self.owner or framework in known_frameworks().taken_by(self.owner)


def _stem(word: str) -> str:
    """Give a program's name without its folder, its package and its ending."""
    return word.rsplit("/", 1)[-1].removesuffix(".py").rsplit(".", 1)[-1]


def stages(script: Script) -> list[ProgramWords]:
    """Give every program's words, in the order of the script."""
    found = [stage for command in script.commands for stage in of_command(script, command)]
    return found + [ProgramWords(SCRIPT, tuple(words), 0, False, False, None) for words in unused(script)]


def of_command(script: Script, command: ShellCommand) -> list[ProgramWords]:
    """Cut a command where another program's words begin."""
    words = arguments(script, command)
    if not words or words[0].text in _NO_JOB:
        return []
    starts = list(_starts(words))
    if not starts:
        return [ProgramWords(SCRIPT, tuple(words), 1, False, False, command)]
    ends = [at for at, _, _ in starts[1:]] + [len(words)]
    return [
        ProgramWords(program.owner, tuple(words[at:end]), names, program.launcher, True, command)
        for (at, program, names), end in zip(starts, ends, strict=True)
    ]


def _starts(words: list[Word]) -> Iterator[tuple[int, ProgramStart, int]]:
    """Find where programs begin; the first that is no launcher reads all the rest."""
    at = 0
    while at < len(words):
        found = _at(words, at)
        if found is None:
            at += 1
            continue
        program, names = found
        yield at, program, names
        # What follows `ray start` belongs to it; a container's image may start a program of its own.
        if not program.launcher:
            return
        at += names


def _at(words: list[Word], at: int) -> tuple[ProgramStart, int] | None:
    tail = " ".join(word.text for word in words[at : at + 4])
    for program in _program_starts():
        found = program.pattern.match(tail)
        if found is None or _is_value(words, at, found[0]):
            continue
        return program, found[0].count(" ") + 1
    return None


def _is_value(words: list[Word], at: int, found: str) -> bool:
    """Tell a program's name from an option's value: `--strategy deepspeed`, `-m mod` of another program."""
    known, before = known_frameworks(), words[at - 1].text if at else ""
    if found.startswith("-m "):
        if found[3:].split(".")[0] in _PREPARES:
            return True
        # Some word before must take a module by `-m`; to srun, `-m block` is something else.
        starting = re.compile("|".join(("python", "launch", *known.rank_starters)), re.IGNORECASE)
        return "." not in found and not any(starting.search(word.text) for word in words[:at])
    if found.endswith(".py"):
        # The words before may be a starter's switches: `torchrun --standalone train.py`.
        schedulers = {name for row in known.rows.values() if row.directives for name in row.executables}
        starters = schedulers | known.rank_starters | {"launch"}
        is_started = any(word.text.rsplit("/", 1)[-1] in starters for word in words[:at])
        return before.startswith("--") and "=" not in before and not is_started
    return before.startswith("-") and found in known.rank_starters


def launches(script: Script) -> list[ShellCommand]:
    """Give the commands that start the job or a part of it."""
    found = []
    for command in script.commands:
        words = [word.text for word in command.words]
        is_shell = bool(words) and words[0] not in _NO_JOB and _SHELL.fullmatch(" ".join(words)) is not None
        if is_shell or any(stage.known for stage in of_command(script, command)):
            found.append(command)
    return found
