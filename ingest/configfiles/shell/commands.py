"""Shell commands as a job's settings: overrides, flags and variables.

Read by the shell's rules, never executed: what the shell would compute stays as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ingest.configfiles import literals
from ingest.configfiles.settings import LONGEST, Setting, Spelling, printed

# Bytes of one command that are looked at.
MAX_COMMAND = 65_536

_OVERRIDE = re.compile(r"[+~]{0,2}(?P<key>[A-Za-z_][\w-]*(?:[./@][\w-]+)*)=(?!=)(?P<value>.*)", re.DOTALL)
_ENV = re.compile(r"(?P<key>[A-Z][A-Z0-9_]*|RAY_\w+)=(?P<value>.*)", re.DOTALL)
_FLAG = re.compile(r"--?(?P<key>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_COMMAND = re.compile(
    r"(?:^|[\s;&|+/`])(?:python[\d.]*|torchrun|deepspeed|accelerate|vllm|sglang|ray|sbatch|srun|mpirun|uv|llamafactory-cli|swift|trl|axolotl|"
    r"export|docker)\s"
)
_PROGRAM = re.compile(
    r"(?!-)(?:.*/)?(?:python[\d.]*|torchrun|deepspeed|accelerate|vllm|sglang|ray|sbatch|srun|salloc|mpirun|mpiexec|uv|llamafactory-cli|swift|"
    r"megatron|trl|axolotl|tune|xtuner|colossalai|docker|podman|apptainer|singularity|nsys|[^\s]+\.(?:py|sh|sbatch|slurm))"
)
# Programs that only show or move things: what follows them configures no job.
_BYSTANDERS = frozenset(
    (
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
    )
)
_WRAPPERS = frozenset(
    ("env", "exec", "nohup", "sudo", "time", "nice", "command", "setsid", "+", "++", "+++", "$", ">")
)
_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset", "setenv"))
# Switches that take no value, where a launcher lets the script's name follow.
_SWITCHES = frozenset(
    (
        "standalone",
        "u",
        "no_python",
        "no-python",
        "multi_gpu",
        "multi-gpu",
        "exclusive",
        "requeue",
        "rm",
        "it",
        "d",
        "privileged",
        "label",
        "bf16",
        "fp16",
        "use_deepspeed",
        "no-deps",
        "O",
        "B",
        "E",
        "s",
    )
)
# Flags whose value is a variable to set: `docker run -e A=b`, `mpirun -x A=b`.
_SETS = frozenset(("e", "env", "x"))
_PIP = re.compile(r"(?:.*/)?pip[\d.]*")
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,.-]*\])?\s*(?P<version>(?:===?|~=|!=|<=?|>=?)[^;#\s]+(?:\s*,\s*(?:[=~!<>]=?=?)[^;#\s]+)*)"
)

_TOKEN = re.compile(
    r"(?P<comment>(?<!\S)\#[^\n]*)|(?P<end>[;&|\n]+)|"
    r"(?P<word>(?:\$\((?:[^()]|\([^()]*+\))*+\)|\$?'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\\.|`[^`\n]*+`|[^\s'\"\\;&|`]+?(?=[\s'\"\\;&|`$]|\Z))+)|(?P<lone>.)",
    re.DOTALL,
)
_PIECE = re.compile(r"\\(?P<escaped>.)|\$?'(?P<single>[^']*+)'|\"(?P<double>(?:[^\"\\]|\\.)*+)\"", re.DOTALL)
_INSIDE = re.compile(r"\\(?P<char>[\\\"$`\n])")


def is_command(text: str) -> bool:
    """Tell whether a line looks like a launch command."""
    return _COMMAND.search(text) is not None


def of_trace(text: str, line: int) -> list[Setting]:
    """Read the settings of a command that a log shows, whatever stands before its program."""
    # A log's backquotes set a command apart from prose; what they held in a script is computed by now.
    commands = _commands(text[:MAX_COMMAND].replace("`", " "))
    return [setting for words in commands for setting in _lasting(_launched(words, line))]


def of_script(text: str, line: int) -> list[Setting]:
    """Read the settings of a script's row, which may be a piece of an array of flags."""
    commands = _commands(text[:MAX_COMMAND])
    return [setting for words in commands for setting in _lasting(of_words(words, line))]


def _lasting(settings: Iterable[Setting]) -> Iterable[Setting]:
    """Keep of what one command sets more than once the last, which its program takes."""
    return {(setting.key, setting.spelled): setting for setting in settings}.values()


def of_words(words: list[str], line: int, depth: int = 2) -> Iterator[Setting]:
    """Read every override, flag and variable among words."""
    if any(_PIP.fullmatch(word) for word in words[:4]):
        yield from (setting for word in words for setting in requirement(word, line))
        return
    for word, following in zip(words, [*words[1:], ""], strict=False):
        yield from _word(word, following, line, depth)


def _commands(text: str) -> list[list[str]]:
    """Split text into commands and those into words; an unclosed quote counts for nothing."""
    found: list[list[str]] = [[]]
    for match in _TOKEN.finditer(text):
        if match["end"]:
            found.append([])
        elif match["word"] and (word := _unquoted(match["word"])):
            found[-1].append(word)
    return [words for words in found if words]


def _unquoted(word: str) -> str:
    if not word.isalnum() and any(char in word for char in "'\"\\"):
        word = _PIECE.sub(_plain, word)
    return word


def _plain(match: re.Match[str]) -> str:
    if match["escaped"] is not None:
        return "" if match["escaped"] == "\n" else match["escaped"]
    if match["single"] is not None:
        return match["single"]
    return _INSIDE.sub(lambda inner: inner["char"].strip("\n"), match["double"])


def _launched(words: list[str], line: int) -> Iterator[Setting]:
    """Read a command from its program on, with the variables set right before it."""
    start = next(
        (place for place, word in enumerate(words) if word not in _WRAPPERS and not _ENV.fullmatch(word)),
        len(words),
    )
    if start < len(words) and (
        words[start].rsplit("/", 1)[-1] in _BYSTANDERS or words[start].lower() == "usage:"
    ):
        return
    program = next(
        (
            place
            for place, word in enumerate(words)
            if _PROGRAM.fullmatch(word) or word in _DECLARES or _PIP.fullmatch(word)
        ),
        None,
    )
    if program is None:
        # A trace of assignments alone, as `set -x` prints them.
        yield from of_words(words[:start] if start == len(words) else [], line)
        return
    first = program
    while first and (words[first - 1] in _WRAPPERS or _OVERRIDE.fullmatch(words[first - 1])):
        first -= 1
    yield from of_words(words[first:], line)


def _word(word: str, following: str, line: int, depth: int) -> Iterator[Setting]:
    for form, read in _FORMS:
        if match := form.fullmatch(word):
            return read(match, following, line, depth)
    return _inner(word, line, depth)


def _inner(word: str, line: int, depth: int) -> Iterator[Setting]:
    """Read the commands within a word: `bash -c "..."`, or flags that a variable holds."""
    if depth and " " in word and (is_command(word) or word.lstrip().startswith("--")):
        for words in _commands(word):
            yield from of_words(words, line, depth - 1)


def _assigned(
    match: re.Match[str], following: str, line: int, depth: int, *, spelled: Spelling
) -> Iterator[Setting]:
    value = match["value"]
    if value and value[0] != "(":
        yield Setting(match["key"], value[:LONGEST], line, spelled)
    elif value[1:].strip():
        yield from _word(value[1:], following, line, depth)  # the first word of an array
    if depth and value.lstrip().startswith("--") and " " in value:
        for words in _commands(value):
            yield from of_words(words, line, depth - 1)


def _flag(match: re.Match[str], following: str, line: int, _depth: int) -> Iterator[Setting]:
    key, value = match["key"], match["value"]
    if key in _SETS and (variable := _OVERRIDE.fullmatch(value or following)):
        if value:
            yield Setting(variable["key"], variable["value"][:LONGEST], line, "env")
        return  # else the variable is read as a word of its own
    if value is None:
        value = following if following and not _FLAG.fullmatch(following) and key not in _SWITCHES else "true"
    if value.endswith(")") and value.count("(") < value.count(")"):
        value = value[:-1]  # the end of a shell array
    if key in ("runtime-env-json", "runtime_env_json"):
        yield from printed(literals.entries([(line, value.strip()[1:])], is_call=False), "json")
    if key == "export":
        yield from (
            Setting(each["key"], each["value"], line, "env")
            for part in value.split(",")
            if (each := _ENV.fullmatch(part))
        )
    yield Setting(key, value[:LONGEST], line, "flag")


def requirement(text: str, line: int) -> Iterator[Setting]:
    """Read a package and the versions that a requirement allows."""
    if match := _REQUIREMENT.match(text.strip()):
        yield Setting(match["name"], match["version"], line, "package")


# What a word is, by the first form that it has, and who reads it.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, int, int], Iterator[Setting]]], ...] = (
    (_ENV, partial(_assigned, spelled="env")),
    (_OVERRIDE, partial(_assigned, spelled="hydra")),
    (_FLAG, _flag),
)
