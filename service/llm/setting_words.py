"""How a setting is told: as the job's program spells it, the call that takes it, and its row in a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from corpus.keys import canonical
from ingest.configfiles import reader
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.remediation.data_flow.job_program import JobProgram
from service.remediation.data_flow.option_reads import DefinedOption, defined_options
from service.remediation.own_edits import job_files

# Own options without a value that are named.
MOST_OPTIONS = 40
# The call by which a parser gets an option.
_DEFINES = "add_argument"


def own_options(report: CrashReport) -> Mapping[str, DefinedOption]:
    """Give the options that the parsers of the job's own files define."""
    frames = report.root.frames if report.root is not None else ()
    return defined_options(JobProgram(frames, job_files(report)))


def rows_of(settings: Iterable[Setting], report: CrashReport) -> Callable[[Setting], int]:
    """Give what tells the row of a setting in its file as it is at hand; 0 where it has none."""
    texts = {file.name: file.text for file in job_files(report)}
    wanted = dict.fromkeys(setting.file for setting in settings if setting.file in texts)
    lines: dict[tuple[str, str, str], int] = {}
    for name in wanted:
        for found in reader.read(texts[name], name):
            lines.setdefault((name, found.key, found.value), found.place.line if found.place else found.line)
    return lambda setting: lines.get((setting.file, setting.key, setting.value), 0)


def spelled(setting: Setting, options: Mapping[str, DefinedOption]) -> str:
    """Write a setting as its program takes it."""
    key, value = setting.key, setting.value
    if setting.spelled == "package":
        return f"{key}{value}" if value[:1] in "=<>~!" else f"{key}=={value}"
    call = setting.scope.rpartition(".")[2]
    if setting.spelled == "dump" and call == _DEFINES and (option := options.get(canonical(key))):
        return f"{option.spelled}={value}"
    if setting.spelled in ("flag", "directive"):
        dashed = key if key.startswith("-") else f"{'-' if len(key) == 1 else '--'}{key}"
        lead = f"{setting.scope} " if setting.spelled == "directive" and setting.scope else ""
        return f"{lead}{dashed}={value}"
    is_argument = setting.file and setting.spelled == "dump" and call.isidentifier()
    return f"{key}={value} (in {call})" if is_argument else f"{key}={value}"


def without_value(options: Mapping[str, DefinedOption], told: Collection[str]) -> Sequence[str]:
    """Give the own options that no setting tells, with their defaults where they have one."""
    keys = set(map(canonical, told))
    return [
        option.spelled if option.default is None else f"{option.spelled} (default {option.default})"
        for key, option in options.items()
        if key not in keys
    ][:MOST_OPTIONS]
