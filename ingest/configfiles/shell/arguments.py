"""What the words of a command say: `key=value`, `--key=value`, `--key value`, `--key`, `NAME=value`.

The same forms for a command that a log shows, for a script that is read, and for one that is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ingest.configfiles.settings import Spelling
from ingest.configfiles.shell.spelling import is_switch

# `key=value`; `--key=value`; `--key value`; `--key`; `~key` (Hydra: taken out).
Form = Literal["override", "joined", "pair", "bare", "deleted"]

_OVERRIDE = re.compile(
    r"(?P<sign>\+{0,2}|~)(?P<key>[A-Za-z_][\w-]*(?:[./@][\w-]+)*)(?:=(?!=)(?P<value>.*))?", re.DOTALL
)
_FLAG = re.compile(r"(?P<sign>--?)(?P<key>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_VARIABLE = re.compile(r"(?P<key>[A-Z][A-Z0-9_]*|RAY_\w+)=(?P<value>.*)", re.DOTALL)
_NEGATIVE = re.compile(r"-\.?\d.*", re.DOTALL)
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,.-]*\])?\s*"
    r"(?P<version>(?:===?|~=|!=|<=?|>=?)[^;#\s]+(?:\s*,\s*(?:[=~!<>]=?=?)[^;#\s]+)*)"
)
# So many words of a command are looked back over.
_BACK = 200
# Switches that take no value, where a launcher lets the script's name follow. One letter behind the script's
# name is an option of the script.
_SWITCHES = frozenset(
    [
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
    ]
)
# Flags whose value is a variable to set: `docker run -e A=b`, `mpirun -x A=b`.
_SETS = frozenset(("e", "env", "x"))


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument among a command's words.

    `word` is the number of the word with the name, `value` that of the word with the value, which begins at
    the character `begin` there; None where there is no value.
    """

    form: Form
    sign: str
    key: str
    word: int
    value: int | None = None
    begin: int = 0


def is_option(text: str) -> bool:
    """Tell an option from a value; a negative number is a value."""
    return text.startswith("-") and _NEGATIVE.fullmatch(text) is None


def read_argument(words: Sequence[str], at: int) -> Argument | None:
    """Read one of a command's words; a flag's value may be the word behind it."""
    if words[at].startswith("-"):
        found = _FLAG.fullmatch(words[at])
        if found is None:
            return None
        if found["value"] is not None:
            return Argument("joined", found["sign"], found["key"], at, at, found.start("value"))
        if at + 1 < len(words) and not is_option(words[at + 1]):
            return Argument("pair", found["sign"], found["key"], at, at + 1)
        return Argument("bare", found["sign"], found["key"], at)
    found = _OVERRIDE.fullmatch(words[at])
    if found is None or (found["value"] is None and found["sign"] != "~"):
        return None
    value, begin = (at, found.start("value")) if found["value"] is not None else (None, 0)
    return Argument(
        "deleted" if found["sign"] == "~" else "override", found["sign"], found["key"], at, value, begin
    )


class ArgumentSetting(NamedTuple):
    """A setting among a command's words; `word` and `begin` tell where its value is (None: a switch)."""

    key: str
    value: str
    spelled: Spelling
    word: int | None
    begin: int
    end: int


def is_setting(text: str) -> bool:
    """Tell whether a word has the form of a setting, whatever program it is given to."""
    found = _OVERRIDE.fullmatch(text)
    return _FLAG.fullmatch(text) is not None or (found is not None and found["value"] is not None)


def is_variable(text: str) -> bool:
    """Tell whether a word sets a variable: `NAME=value`."""
    return _VARIABLE.fullmatch(text) is not None


def is_override(text: str) -> bool:
    """Tell whether a word is `key=value`."""
    found = _OVERRIDE.fullmatch(text)
    return found is not None and found["value"] is not None


def assigned(name: str) -> Spelling:
    """Tell how a variable of the shell counts: as the environment's, or as a value of the script's own."""
    return "env" if is_variable(f"{name}=") else "hydra"


def read_settings(words: Sequence[str], at: int) -> Iterator[ArgumentSetting]:
    """Give the settings that one of a command's words says."""
    text = words[at]
    if found := _VARIABLE.fullmatch(text):
        yield ArgumentSetting(found["key"], found["value"], "env", at, found.start("value"), len(text))
        return
    argument = read_argument(words, at)
    if argument is None or (argument.value is None and argument.form == "deleted"):
        return
    if not argument.sign.startswith("-"):
        value = text[argument.begin :]
        yield ArgumentSetting(argument.key, value, "hydra", argument.value, argument.begin, len(text))
        return
    held = None if argument.value is None else words[argument.value][argument.begin :]
    if argument.key in _SETS and held is not None and is_override(held):
        if argument.form == "joined":  # else the variable is read as a word of its own
            begin = argument.begin + held.index("=") + 1
            yield ArgumentSetting(held.partition("=")[0], text[begin:], "env", at, begin, len(text))
        return
    is_pair = argument.form == "pair" and argument.key in _SWITCHES and not is_switch(held or "")
    if is_pair and (len(argument.key) > 1 or not _follows_script(words, at)):
        held = None
    if argument.key == "export" and held is not None and argument.value is not None:
        yield from _exported(held, argument.value, argument.begin)
    if held is None:
        yield ArgumentSetting(argument.key, "true", "flag", None, 0, 0)
        return
    yield ArgumentSetting(
        argument.key, held, "flag", argument.value, argument.begin, argument.begin + len(held)
    )


def _follows_script(words: Sequence[str], at: int) -> bool:
    """Tell whether a script's name stands before a word, as far as is looked back."""
    return any(word.endswith(".py") for word in words[max(0, at - _BACK) : at])


def _exported(held: str, word: int, begin: int) -> Iterator[ArgumentSetting]:
    """Read the variables of `srun --export=ALL,NAME=value`."""
    for part in held.split(","):
        if found := _VARIABLE.fullmatch(part):
            start = begin + found.start("value")
            yield ArgumentSetting(found["key"], found["value"], "env", word, start, begin + len(part))
        begin += len(part) + 1


def read_requirement(text: str) -> re.Match[str] | None:
    """Read a package's `name` and the `version` that it is asked for; None where it names none."""
    return _REQUIREMENT.match(text)
