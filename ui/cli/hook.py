"""`whycrash hook`: print the lines that install whycrash where jobs run."""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from corpus.library import read_yaml, validated
from corpus.message import Message
from corpus.schema import Record, Text
from service.schemas.errors import InvalidRequestError
from ui.cli.codes import EXPLAINED
from ui.cli.completion import NAME
from ui.cli.console import check_language, language

FILE = Path(__file__).with_name("hooks.yaml")
# What stands for the command's own path in a line.
COMMAND = "{whycrash}"


class HookPart(Record):
    """Lines, and where they belong."""

    where: Text
    lines: Annotated[str, Field(min_length=1)]


class Hook(Record):
    """How whycrash is installed in one place where jobs run."""

    says: Text
    parts: Annotated[tuple[HookPart, ...], Field(min_length=1)]


@cache
def hooks() -> dict[str, Hook]:
    """Read the hooks, by the place that they are for."""
    return {name: validated(Hook, row, f"{FILE.name}: {name}") for name, row in read_yaml(FILE).items()}


def run(place: str, lang: str) -> int:
    """Print how to install whycrash at a place; raises InvalidRequestError where there is none such."""
    check_language(lang)
    if place not in hooks():
        raise InvalidRequestError(Message("errors.no-hook", place=repr(place), known=", ".join(hooks())))
    sys.stdout.write(lines_of(hooks()[place], lang))
    return EXPLAINED


def lines_of(hook: Hook, lang: str) -> str:
    """Give a hook's lines with what they are for as comments, to be pasted."""
    chosen = language(lang)
    # The command by its whole path: where jobs run, the search path may be another.
    started = Path(sys.argv[0])
    is_ours = started.name == NAME and started.is_file()
    command = shlex.quote(str(started.resolve()) if is_ours else shutil.which(NAME) or NAME)
    blocks = [f"# {hook.says.to(chosen)}\n"]
    blocks += [f"# {part.where.to(chosen)}:\n{part.lines.replace(COMMAND, command)}" for part in hook.parts]
    return "\n".join(blocks)
