"""Where a script sets variables: assignments, `export`, prefixes, `env`, docker -e, Ray's environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from corpus.frameworks import known_frameworks
from ingest.configfiles.shell.launches import ProgramWords, stages
from ingest.configfiles.shell.runtime_env import held_json
from ingest.configfiles.shell.syntax import Script, ShellCommand, is_export
from ingest.configfiles.shell.words import Word

Carrier = Literal["export", "shell", "prefix", "env", "container", "job"]

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class VariablePlace:
    """Where a variable is set; of a job submitted to Ray, `value` is the whole JSON text.

    `declared` is the word before an assignment; `branch` tells that it may not be reached.
    """

    name: str
    carrier: Carrier
    start: int
    value: Word
    branch: bool = False
    declared: str = ""


def variables(script: Script) -> list[VariablePlace]:
    """Find every variable that a script sets, in order."""
    found = list(_handed_on(script))
    for each in script.assignments:
        if not each.array:
            exported = is_export(each.declared) or each.name in script.exported
            carrier: Carrier = "prefix" if each.prefix else "export" if exported else "shell"
            place = VariablePlace(each.name, carrier, each.start, each.words[0], each.branch, each.declared)
            found.append(place)
    return sorted(found, key=lambda place: place.start)


def _handed_on(script: Script) -> Iterator[VariablePlace]:
    for command in script.commands:
        yield from _by_env(command)
    for stage in stages(script):
        yield from _by_option(stage)
        text = runtime_env(stage) if stage.inside == "cluster" else None
        if text is not None:
            names = held_json(text) or {}
            yield from (VariablePlace(name, "job", text.start, text, text.branch) for name in names)


def _by_env(command: ShellCommand) -> Iterator[VariablePlace]:
    """Read `env NAME=value program`, up to the program."""
    names = [word.text.rsplit("/", 1)[-1] for word in command.words]
    if "env" not in names[:6]:
        return
    for word in command.words[names.index("env") + 1 :]:
        if not word.text.startswith("-") and not _ASSIGNED.match(word.text):
            return
        if (at := word.equals_at()) is not None:
            yield VariablePlace(word.text[:at], "env", word.start, word.rest(at + 1), command.branch)


def _by_option(stage: ProgramWords) -> Iterator[VariablePlace]:
    options = known_frameworks().row(stage.owner).hands_on
    for before, word in zip(stage.words, stage.words[1:], strict=False):
        joined = next((len(option) + 1 for option in options if word.text.startswith(f"{option}=")), None)
        if before.text not in options and joined is None:
            continue
        pair = word.rest(joined or 0)
        if (at := pair.equals_at()) is not None:
            yield VariablePlace(pair.text[:at], "container", word.start, pair.rest(at + 1), word.branch)


def runtime_env(stage: ProgramWords) -> Word | None:
    """Give the JSON text of `ray job submit --runtime-env-json`."""
    for word, following in zip(stage.words, [*stage.words[1:], None], strict=True):
        if word.text.startswith("--runtime-env-json="):
            return word.rest(len("--runtime-env-json="))
        if word.text == "--runtime-env-json":
            return following
    return None
