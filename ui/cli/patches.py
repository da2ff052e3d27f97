"""The patch of an answer on this machine: written to a file, applied after a question, taken back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from corpus.message import Message, words
from corpus.schema import Language
from ingest.errors import MissingInputError
from ingest.redaction.redactor import MASK
from service.patching.application import apply_edits, take_back
from service.patching.patches import FileEdit
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import InvalidRequestError
from ui.cli.codes import EXPLAINED
from ui.cli.console import check_language, err, language, load_settings


def write_patch(answer: Diagnosis, path: Path) -> None:
    """Write an answer's patch, else its suggested diff of code, to a file, and say which."""
    diff = answer.patch if answer.patch is not None else answer.suggestion
    if diff is None:
        _say("no-patch", answer.language)
        return
    try:
        path.write_text(diff, encoding="utf-8", newline="")
    except OSError as error:
        raise MissingInputError(Message("errors.file-not-written", path=path)) from error
    written = "patch-written" if answer.patch is not None else "suggestion-written"
    _say("patch-masked" if MASK in diff else written, answer.language, path=path)


def offer_edits(edits: Sequence[FileEdit], answer: Diagnosis, home: Path) -> None:
    """Ask whether an answer's patch is to be applied, and apply it; only a clear yes counts."""
    if not edits:
        _say("no-patch", answer.language)
        return
    files = ", ".join(edit.file.name for edit in edits)
    question = "apply-question" if answer.patch is not None else "suggestion-question"
    sys.stderr.write(words(f"cli.{question}", answer.language, files=files))
    sys.stderr.flush()
    # A person may answer in either language, whichever the question is in.
    clear = {word for known in get_args(Language) for word in words("cli.clear-yes", known).split()}
    if sys.stdin.readline().strip().lower() not in clear:
        _say("not-applied", answer.language)
        return
    apply_edits(edits, home)
    _say("applied", answer.language, files=files)


def undo(logs: Sequence[str], configs: Sequence[Path], lang: str) -> int:
    """Take the latest patch back, or that of a file; gives the exit code."""
    check_language(lang)
    if logs or len(configs) > 1:
        raise InvalidRequestError(Message("errors.undo-alone"))
    settings = load_settings()
    files = take_back(settings.home, configs[0] if configs else None)
    told = "taken-back" if files else "taken-back-unreached"
    _say(told, language(lang or settings.lang), files=", ".join(map(str, files)))
    return EXPLAINED


def _say(row: str, language: Language, **values: object) -> None:
    err().print(words(f"cli.{row}", language, **values), markup=False, soft_wrap=True)
