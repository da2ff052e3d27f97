"""Packages that a launch script installs: `pip install`, `python -m pip install`, `uv pip install`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import Script, ShellCommand
from ingest.configfiles.shell.variables import literal
from ingest.configfiles.shell.words import Word

_INSTALL = re.compile(
    r"(?:\S*/)?(?:(?:uv pip|pip[\d.]*|python[\d.]* -m (?:uv )?pip|conda run \S+ pip) install)(?= |$)"
)
# Options of pip that take the next word: it is no package.
_WITH_VALUE = frozenset(
    [
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-e",
        "--editable",
        "-t",
        "--target",
        "-i",
        "--index-url",
        "--extra-index-url",
        "-f",
        "--find-links",
        "--prefix",
        "--root",
        "--platform",
        "--python-version",
        "--python",
        "-p",
        "--cache-dir",
        "--log",
        "--proxy",
    ]
)


@dataclass(frozen=True, slots=True)
class InstallPlace:
    """A word that asks for a package."""

    word: Word
    asked: Requirement


def installs(script: Script) -> list[InstallPlace]:
    """Find what the script installs."""
    return [place for command in script.commands for place in _installed_packages(script, command)]


def _installed_packages(script: Script, command: ShellCommand) -> Iterator[InstallPlace]:
    texts = [word.text for word in command.words]
    found = _INSTALL.match(" ".join(texts[:6]))
    if found is None:
        return
    skipped = False
    for word in command.words[found[0].count(" ") + 1 :]:
        takes, skipped = skipped, word.text in _WITH_VALUE
        if takes or word.text.startswith("-"):
            continue
        try:
            yield InstallPlace(word, Requirement(literal(script, word).text))
        except (InvalidRequirement, NotPatchableError):
            continue
