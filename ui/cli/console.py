"""Consoles, languages and progress bars that the commands share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from corpus.message import Message, language_of_user, words
from corpus.schema import Language
from ingest.redaction.extra import use_extra
from ingest.redaction.prefilter import save_prefilter
from service.pipeline.triage import Report
from service.schemas.errors import ServiceError, SettingsError
from service.settings import Settings, own_file, read

MANY_FILES = 50
# Of settings in a folder's file that are passed over, so many are named.
MOST_IGNORED = 5
# Between two lines of a long stage where no bar can be drawn, seconds.
TOLD_EVERY = 30.0
# In the order in which they decide:
# https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html#tag_08_02
_BUILDING = frozenset({"vectors", "words", "store"})
_STAGES = {"files": "reading files", "vectors": "embedding", "words": "indexing words", "store": "storing"}


def out() -> Console:
    """Give the console for answers."""
    return Console(highlight=False)


def err() -> Console:
    """Give the console for everything that is no answer."""
    return Console(stderr=True, highlight=False)


def load_settings() -> Settings:
    """Load the settings, and tell on standard error what the current folder's file says without effect.

    What they hold for secret is masked from now on. Raises SettingsError.
    """
    loaded = read()
    use_extra(loaded.settings.redact_extra)
    # A command that keeps nothing leaves no home behind.
    if loaded.settings.home.is_dir():
        save_prefilter(loaded.settings.home / "cache")
    chosen = language(loaded.settings.lang)
    for item in loaded.ignored[:MOST_IGNORED]:
        told = words(f"cli.ignored-{item.trouble}", chosen, file=item.file, name=item.name, own=own_file())
        err().print(f"whycrash: {told}", markup=False, soft_wrap=True)
    if (more := len(loaded.ignored) - MOST_IGNORED) > 0:
        err().print(f"whycrash: {words('cli.ignored-more', chosen, more=more)}", markup=False)
    if file := next((item.file for item in loaded.ignored if item.trouble == "not-allowed"), None):
        told = words("cli.ignored-allow", chosen, file=file)
        err().print(f"whycrash: {told}", markup=False, soft_wrap=True)
    return loaded.settings


def check_language(lang: str) -> None:
    """Raise SettingsError if `lang` is no language of ours."""
    if lang not in ("", "en", "zh"):
        raise SettingsError(Message("errors.lang-takes-en-zh", lang=repr(lang)))


def language(lang: str) -> Language:
    """Choose a language where there is no log to go by."""
    check_language(lang)
    return language_of_user() if not lang else "zh" if lang == "zh" else "en"


class PlainSteps:
    """Tells how far long stages are as lines, for output that a file keeps and where no bar can be drawn."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._told: set[str] = set()

    def __call__(self, stage: str, done: int, total: int, more: str = "") -> None:
        """Tell of a stage that takes long now and then, and of the end of one that was told of."""
        now = monotonic()
        if now < self._due.setdefault(stage, now + TOLD_EVERY) and not (
            done == total and stage in self._told
        ):
            return
        self._due[stage] = now + TOLD_EVERY
        self._told.add(stage)
        if done == total:
            self._told.remove(stage)
        err().print(f"{_STAGES.get(stage, stage)}: {done:,} of {total:,}{more}", markup=False)


def spoken(arguments: Sequence[str]) -> Language:
    """Tell the language of whoever typed a command that failed, perhaps before its arguments were read."""
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    given = [
        value.removeprefix("--lang=")
        for name, value in zip(["", *own], own, strict=False)
        if name == "--lang" or value.startswith("--lang=")
    ]
    with suppress(ServiceError):
        given.append(load_settings().lang)
    wanted = next((value for value in given if value in ("en", "zh")), "")
    return language(wanted)


@contextmanager
def progress() -> Iterator[Report]:
    """Show the stages of building an index as bars on standard error, as lines where that is no terminal.

    Nothing is shown where there is nothing to do.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, console=err(), transient=True)
    steps = None if err().is_terminal else PlainSteps()
    tasks: dict[str, TaskID] = {}
    told: list[str] = []

    def report(stage: str, done: int, total: int) -> None:
        if stage in _BUILDING and not told:
            told.append(stage)
            err().print("Building the index (once for each change of corpus or model)...")
        if not total or (stage == "files" and total < MANY_FILES):
            return  # over before a bar is seen
        if steps:
            steps(stage, done, total)
            return
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
