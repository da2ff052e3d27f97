"""Consoles, languages and progress bars that the commands share."""

from __future__ import annotations

import locale
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from corpus.schema import Language
from service.errors import SettingsError
from service.triage import Report

MANY_FILES = 50
_BUILDING = frozenset({"vectors", "words", "store"})
_STAGES = {"files": "reading files", "vectors": "embedding", "words": "indexing words", "store": "storing"}


def out() -> Console:
    """Give the console for answers."""
    return Console(highlight=False)


def err() -> Console:
    """Give the console for everything that is no answer."""
    return Console(stderr=True, highlight=False)


def check_language(lang: str) -> None:
    """Raise SettingsError if `lang` is no language of ours."""
    if lang not in ("", "en", "zh"):
        raise SettingsError(f"--lang is {lang!r}; it takes en or zh.")


def language(lang: str) -> Language:
    """Choose a language where there is no log to go by."""
    check_language(lang)
    wanted = lang or (locale.getlocale()[0] or "")[:2]
    return "zh" if wanted == "zh" else "en"


@contextmanager
def progress() -> Iterator[Report]:
    """Show the stages of building an index as bars on standard error; nothing where there is nothing to do."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, console=err(), transient=True)
    tasks: dict[str, TaskID] = {}
    told: list[str] = []

    def report(stage: str, done: int, total: int) -> None:
        if stage in _BUILDING and not told:
            told.append(stage)
            err().print("Building the index (once for each change of corpus or model)...")
        if not total or (stage == "files" and total < MANY_FILES):
            return  # over before a bar is seen
        if not tasks:
            bars.start()
        if stage not in tasks:
            tasks[stage] = bars.add_task(_STAGES.get(stage, stage), total=total)
        bars.update(tasks[stage], completed=done, total=total)

    try:
        yield report
    finally:
        if tasks:
            bars.stop()
