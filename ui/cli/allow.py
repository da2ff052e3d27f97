"""`whycrash allow`: let a file of settings beside a log count, as it is and where it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

from corpus.message import Message, words
from corpus.schema import Language
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.schemas.errors import InvalidRequestError
from service.settings import allowed_files, folder_content, folder_table, read
from ui.cli.codes import EXPLAINED
from ui.cli.console import language, out

_LONGEST = 200


def run(file: Path | None, *, forget: bool, sure: bool) -> int:
    """Show what a file sets and ask, take its permission back, or list the files that are allowed."""
    chosen = language(read().settings.lang)
    if file is None:
        _list(chosen)
    elif forget:
        if not allowed_files().forget(file):
            raise InvalidRequestError(Message("errors.allow-not-kept", file=file))
        _say("forgotten", chosen, file)
    else:
        _allow(file, chosen, sure=sure)
    return EXPLAINED


def _allow(file: Path, chosen: Language, *, sure: bool) -> None:
    """Show what is to be allowed, and allow these very bytes where the answer is yes."""
    try:
        raw = folder_content(file)
        table = folder_table(raw)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidRequestError(Message("errors.allow-no-settings", file=file, reason=reason)) from error
    if not table:
        _say("sets-nothing", chosen, file)
        return
    _say("sets", chosen, file)
    redactor = Redactor()
    for name, value in table.items():
        shown = printable(" ".join(redactor.value(name, value).split()))[:_LONGEST]
        out().print(f"  {name} = {shown}", markup=False, soft_wrap=True)
    if not sure:
        sys.stderr.write(words("cli.allow-question", chosen))
        sys.stderr.flush()
        clear = {word for known in get_args(Language) for word in words("cli.clear-yes", known).split()}
        if sys.stdin.readline().strip().lower() not in clear:
            out().print(words("cli.not-applied", chosen), markup=False)
            return
    allowed_files().allow(file, raw)
    _say("done", chosen, file)


def _list(chosen: Language) -> None:
    allowed = allowed_files()
    for name in sorted(kept := allowed.all()):
        try:
            is_same = allowed.state(Path(name), folder_content(Path(name))) == "allowed"
        except (OSError, ValueError):
            is_same = False
        told = printable(name)
        row = told if is_same else words("cli.allow-changed", chosen, file=told)
        out().print(row, markup=False, soft_wrap=True)
    if not kept:
        out().print(words("cli.allow-none", chosen), markup=False)


def _say(row: str, chosen: Language, file: Path) -> None:
    told = words(f"cli.allow-{row}", chosen, file=printable(str(file)))
    out().print(told, markup=False, soft_wrap=True)
