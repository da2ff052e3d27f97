"""A command that a log shows, or the row of a script that cannot be parsed: its words and their settings.

Split by the shell's rules as far as a row tells, never executed: what the shell would compute stays as it
is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from corpus.frameworks import known_frameworks
from ingest.configfiles import literals
from ingest.configfiles.settings import LONGEST, Setting, printed
from ingest.configfiles.shell import arguments

# Bytes of one command that are looked at.
MAX_COMMAND = 65_536

# Programs that only show or move things: what follows them configures no job.
_BYSTANDERS = frozenset(
    [
        "awk",
        "c++",
        "cat",
        "cc",
        "cd",
        "chmod",
        "cmake",
        "cp",
        "curl",
        "date",
        "df",
        "du",
        "echo",
        "find",
        "g++",
        "gcc",
        "git",
        "grep",
        "head",
        "kill",
        "kubectl",
        "ls",
        "make",
        "mkdir",
        "module",
        "mv",
        "ninja",
        "nvcc",
        "nvidia-smi",
        "pkill",
        "printf",
        "rm",
        "rsync",
        "scontrol",
        "sed",
        "sleep",
        "source",
        "squeue",
        "ssh",
        "tail",
        "tar",
        "tee",
        "test",
        "touch",
        "wc",
        "wget",
        "which",
    ]
)
_WRAPPERS = frozenset(
    ["env", "exec", "nohup", "sudo", "time", "nice", "command", "setsid", "+", "++", "+++", "$", ">"]
)
_DECLARES = frozenset(["export", "declare", "local", "readonly", "typeset", "setenv"])
_PIP = re.compile(r"(?:.*/)?pip[\d.]*")
_INTERPRETER = re.compile(r"(?:.*/)?python[\d.]*")

_TOKEN = re.compile(
    r"(?P<comment>(?<!\S)\#[^\n]*)|(?P<end>[;&|\n]+)|"
    r"(?P<word>(?:\$\((?>(?:[^()]|\([^()]*+\))*)\)|\$?'[^']*+'|\"(?>(?:[^\"\\]|\\.)*)\"|\\.|`[^`\n]*+`|"
    r"[^\s'\"\\;&|`]+?(?=[\s'\"\\;&|`$]|\Z))+)|(?P<lone>.)",
    re.DOTALL,
)
_PIECE = re.compile(
    r"\\(?P<escaped>.)|\$?'(?P<single>[^']*+)'|\"(?P<double>(?>(?:[^\"\\]|\\.)*))\"", re.DOTALL
)
_INSIDE = re.compile(r"\\(?P<char>[\\\"$`\n])")


@cache
def _command_start() -> re.Pattern[str]:
    """Give the expression of what begins a command in any text."""
    names = "|".join(map(re.escape, known_frameworks().executables(at_start=False)))
    return re.compile(rf"(?:^|[\s;&|+/`])(?:python[\d.]*|export|{names})\s")


@cache
def _program() -> re.Pattern[str]:
    """Give the expression of a word that starts a program of the job."""
    names = "|".join(map(re.escape, known_frameworks().executables(at_start=True)))
    return re.compile(rf"(?!-)(?:.*/)?(?:python[\d.]*|{names}|[^\s]+\.(?:py|sh|sbatch|slurm))")


def starts_job(program: str) -> bool:
    """Tell whether the word that a command begins with starts a program of a job, and no tool of a shell's.

    A path, a variable and a script's name are a program of somebody's; of names alone those of frameworks.
    An interpreter that gets options of its own, and no script, starts nothing.
    """
    if _INTERPRETER.fullmatch(program):
        return False
    is_somebodys = any(sign in program for sign in "/.$") or not program
    return is_somebodys or _program().fullmatch(program) is not None


# What a usage text leaves to be filled in: `<model>`, `[options]`, `[--port PORT]`.
_BLANK = re.compile(
    r"(?:^|[\s=])(?:<[A-Za-z][\w .-]{0,40}>|\[(?i:options?|flags?|args?)\]|\[--?[A-Za-z][^\]\n]{0,80}\])"
    r"(?:\.\.\.)?(?=\s|$)"
)


def is_command(text: str) -> bool:
    """Tell whether a line looks like a launch command."""
    return _command_start().search(text) is not None


def is_usage(text: str) -> bool:
    """Tell whether a command is one that a message tells how to write: it has blanks to fill in."""
    return _BLANK.search(text) is not None


def of_trace(text: str, line: int) -> list[Setting]:
    """Read the settings of a command that a log shows, whatever stands before its program."""
    # A log's backquotes set a command apart from prose; what they held in a script is computed by now.
    split = _commands(text[:MAX_COMMAND].replace("`", " "))
    return [setting for words in split for setting in _last_of_each(_launched(words, line))]


def of_script(text: str, line: int) -> list[Setting]:
    """Read the settings of a script's row, which may be a piece of an array of flags."""
    split = _commands(text[:MAX_COMMAND])
    return [setting for words in split for setting in _last_of_each(of_words(words, line))]


def _last_of_each(settings: Iterable[Setting]) -> Iterable[Setting]:
    """Keep of what one command sets more than once the last, which its program takes."""
    return {(setting.key, setting.spelled): setting for setting in settings}.values()


def of_words(words: list[str], line: int, depth: int = 2) -> Iterator[Setting]:
    """Read every override, flag and variable among words."""
    if is_pip(words):
        for word in words:
            if found := arguments.read_requirement(word):
                yield Setting(found["name"], found["version"], line, "package")
        return
    for at in range(len(words)):
        yield from _of_word(words, at, line, depth)


def is_pip(words: list[str]) -> bool:
    """Tell whether a command is pip's."""
    return any(_PIP.fullmatch(word) for word in words[:4])


def _of_word(words: list[str], at: int, line: int, depth: int) -> Iterator[Setting]:
    """Give a word's settings, and those of the commands and flags within its text."""
    found = list(arguments.read_settings(words, at))
    word = words[at]
    inner = word if not found and (is_command(word) or word.lstrip().startswith("--")) else ""
    for key, value, spelled, *_ in found:
        if spelled == "flag":
            yield from _of_flag(key, value, line)
            continue
        if value.startswith("("):
            # The first word of an array, whose value may be the word behind it.
            if value[1:].strip():
                yield from _of_word([value[1:], *words[at + 1 : at + 2]], 0, line, depth)
        elif value:
            yield Setting(key, value[:LONGEST], line, spelled)
        if value.lstrip().startswith("--"):
            inner = value
    if depth and " " in inner:
        for split in _commands(inner):
            yield from of_words(split, line, depth - 1)


def _of_flag(key: str, value: str, line: int) -> Iterator[Setting]:
    """Give a flag's setting, and those of Ray's runtime environment where it is that flag."""
    if value.endswith(")") and value.count("(") < value.count(")"):
        value = value[:-1]  # the end of a shell array
    if key in ("runtime-env-json", "runtime_env_json"):
        yield from printed(literals.entries([(line, value.strip()[1:])], is_call=False), "json")
    yield Setting(key, value[:LONGEST], line, "flag")


def _commands(text: str) -> list[list[str]]:
    """Split text into commands and those into words; an unclosed quote counts for nothing."""
    found: list[list[str]] = [[]]
    for match in _TOKEN.finditer(text):
        if match["end"]:
            found.append([])
            continue
        word = match["word"] or ""
        if not word.isalnum() and any(char in word for char in "'\"\\"):
            word = _PIECE.sub(_plain, word)
        if word:
            found[-1].append(word)
    return [words for words in found if words]


def _plain(match: re.Match[str]) -> str:
    if match["escaped"] is not None:
        return "" if match["escaped"] == "\n" else match["escaped"]
    if match["single"] is not None:
        return match["single"]
    return _INSIDE.sub(lambda inner: inner["char"].strip("\n"), match["double"])


def _launched(words: list[str], line: int) -> Iterator[Setting]:
    """Read a command from its program on, with the variables set right before it."""
    begins = (
        place for place, word in enumerate(words) if word not in _WRAPPERS and not arguments.is_variable(word)
    )
    start = next(begins, len(words))
    if start < len(words) and (
        words[start].rsplit("/", 1)[-1] in _BYSTANDERS or words[start].lower() == "usage:"
    ):
        return
    programs = (
        place
        for place, word in enumerate(words)
        if _program().fullmatch(word) or word in _DECLARES or _PIP.fullmatch(word)
    )
    first = next(programs, None)
    if first is None:
        # A trace of assignments alone, as `set -x` prints them.
        yield from of_words(words[:start] if start == len(words) else [], line)
        return
    while first and (words[first - 1] in _WRAPPERS or arguments.is_override(words[first - 1])):
        first -= 1
    yield from of_words(words[first:], line)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
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
