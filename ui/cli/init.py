"""`whycrash init`: write a file of settings in which every one is explained and none is set."""

from __future__ import annotations

import os
import sys
import textwrap
from dataclasses import fields
from pathlib import Path

from corpus.message import Message, words
from service.schemas.errors import InvalidRequestError, SettingsError
from service.settings import NUMBERS, PREFIX, Settings, own_file
from ui.cli.codes import EXPLAINED
from ui.cli.console import check_language, language, out

WIDTH = 100


def run(*, shown: bool, lang: str) -> int:
    """Write the user's own file of settings, or print what would stand in it.

    Raises InvalidRequestError where the file is there, SettingsError where it cannot be written.
    """
    check_language(lang)
    if shown:
        sys.stdout.write(commented_settings())
        return EXPLAINED
    path = own_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Settings may name servers and hold tokens: they are the user's alone, from the first byte.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(commented_settings())
    except FileExistsError as error:
        raise InvalidRequestError(Message("errors.settings-are-there", file=path)) from error
    except OSError as error:
        raise SettingsError(Message("errors.cannot-write", file=path, reason=error.strerror)) from error
    out().print(words("cli.init-written", language(lang), file=path), markup=False, soft_wrap=True)
    return EXPLAINED


def commented_settings() -> str:
    """Give a TOML file with every setting's sentence and its default, all as comments."""
    defaults = Settings()
    head = (
        f"Your own settings of whycrash. Take the # from a line to set it; a variable {PREFIX}NAME of the "
        "environment comes before it. docs/settings.md tells more of them."
    )
    blocks = ["\n".join(f"# {row}" for row in textwrap.wrap(head, WIDTH - 2)) + "\n"]
    for item in fields(Settings):
        says = textwrap.wrap(item.metadata["says"].replace("`", ""), WIDTH - 2)
        default = getattr(defaults, item.name)
        text = str(default) if isinstance(default, Path | str) else ""
        value = '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
        if item.name in NUMBERS:
            value = str(default)
        blocks.append("\n".join([*(f"# {row}" for row in says), f"#{item.name} = {value}\n"]))
    return "\n".join(blocks)
