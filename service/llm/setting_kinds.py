"""Which values of a job's log and files are settings, and which of two of one name is the run's."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from corpus.keys import canonical, last_level
from ingest.configfiles.formats import CODE
from ingest.configfiles.run_record import is_run_metadata, read_record
from ingest.configfiles.settings import Setting
from ingest.configfiles.shell.commands import starts_job
from ingest.logs.report import CrashReport
from service.remediation.feasibility import same
from service.remediation.own_edits import job_files

# How a command gives a setting, and how a file that it overrides holds one.
_GIVEN, _HELD = frozenset({"hydra", "flag"}), frozenset({"yaml", "json", "dump"})
# What a log prints of a setting that nobody gave.
_UNSET = frozenset({"None", "null", ""})
# A call that makes an object of a class, or reads an option.
_OF_CLASS = re.compile(r"(?:.*\.)?(?:_?[A-Z]\w*|add_argument|field|from_pretrained)$")
# A text of code with a place for a value, and one of several plain words.
_MADE = re.compile(r"\{[A-Za-z_][\w.]*(?:[ (\[:!][^{}]*)?\}")
_SENTENCE = re.compile(r"[A-Za-z][a-z']*(?:,? [A-Za-z][a-z']*){2,}[.:!?]?")
_HEADER = re.compile(r"(?:[A-Z][a-z]+-)+[A-Z][a-z]+")
# A name as scripts give their own variables.
_VARIABLE = re.compile(r"[a-z]\w*")
_DEFINED = re.compile(r"(?m)^\s*(?:async\s+)?def\s+(\w+)")


def run_settings(settings: Sequence[Setting], report: CrashReport) -> list[Setting]:
    """Give the settings, those first that the run is known to have had: of its log, then of its record.

    A value in a file does not stand beside the one of that name which the log printed or the tracker kept.
    """
    kept = [file for file in job_files(report) if is_run_metadata(file.text)]
    known = [item for item in settings if not item.file]
    for file in kept:
        record = read_record(file.text)
        known += [replace(item, file=file.name) for item in (record.settings if record else ())]
    names = {canonical(item.key) for item in known}
    # What else the record says is of the machine.
    of_records = {file.name for file in kept}
    rest = (item for item in settings if item.file and item.file not in of_records)
    return [*known, *(item for item in rest if canonical(item.key) not in names)]


def file_values(settings: Sequence[Setting]) -> Callable[[Setting], Setting | None]:
    """Give what tells the other value that a file has under the name of a setting of the log."""
    held: dict[str, Setting] = {}
    for item in settings:
        if item.file and item.spelled != "package":
            held.setdefault(canonical(item.key), item)

    def of_file(setting: Setting) -> Setting | None:
        found = held.get(canonical(setting.key)) if not setting.file else None
        return found if found is not None and not same(found.value, setting.value) else None

    return of_file


def command_values(settings: Sequence[Setting]) -> Callable[[Setting], Setting | None]:
    """Give what tells the value of the run's command line for a file's setting that it overrides.

    A command names the last part of a key, or the whole: it counts where one key alone of the file ends so.
    """
    given = {canonical(item.key): item for item in settings if not item.file and item.spelled in _GIVEN}
    ends: dict[tuple[str, str], set[str]] = {}
    for item in settings:
        if item.file:
            ends.setdefault((item.file, last_level(item.key)), set()).add(canonical(item.key))

    def of_command(setting: Setting) -> Setting | None:
        if not setting.file or setting.spelled not in _HELD:
            return None
        is_one = len(ends.get((setting.file, last_level(setting.key)), ())) == 1
        found = given.get(canonical(setting.key)) or (given.get(last_level(setting.key)) if is_one else None)
        return found if found is not None and not same(found.value, setting.value) else None

    return of_command


def is_of_shell(setting: Setting) -> bool:
    """Tell whether a script's value is an option of a tool, or a variable that the script alone reads."""
    if not setting.file or setting.spelled not in _GIVEN:
        return False
    is_variable = setting.spelled == "hydra" and not setting.scope and _VARIABLE.fullmatch(setting.key)
    return bool(is_variable) or (bool(setting.scope) and not starts_job(setting.scope))


def is_no_setting(report: CrashReport) -> Callable[[Setting], bool]:
    """Give what tells a value that is no setting, unless the catalogue knows its name.

    A printed one that was not given, a number that code counts up, a text that it makes or that reads as a
    sentence, an argument of a call that is neither of a class nor of a function of the job's own.
    """
    files = {file.name: file.text for file in job_files(report) if file.name.endswith(CODE)}
    counters = {name: frozenset(_counters(text)) for name, text in files.items()}
    own = {name for text in files.values() for name in _DEFINED.findall(text)}

    def is_none(setting: Setting) -> bool:
        if not setting.file:
            return setting.spelled == "dump" and setting.value in _UNSET
        if setting.file not in files:
            return False
        if (
            _MADE.search(setting.value)
            or _SENTENCE.fullmatch(setting.value)
            or _HEADER.fullmatch(setting.key)
        ):
            return True
        called = setting.scope.rpartition(".")[2]
        is_argument = setting.scope not in ("", "{}") and setting.spelled == "dump"
        is_foreign = is_argument and not _OF_CLASS.match(setting.scope) and called not in own
        return is_foreign or (not setting.scope and setting.key in counters[setting.file])

    return is_none


def _counters(text: str) -> Iterator[str]:
    """Yield the names that code adds to."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
