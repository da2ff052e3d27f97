"""What is to be said of the job's files at hand: edited since the run, or not of it at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from corpus.keys import canonical
from corpus.message import Message, in_language, words
from corpus.schema import Language
from ingest.configfiles.formats import CODE
from ingest.configfiles.settings import Setting
from ingest.logs.configs import launch
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.llm.prompt_injection import neutralize
from service.patching.patches import ConfigFile
from service.patching.used_files import is_record, of_run
from service.remediation.code_edits.failing_code import JobFile, file_of, row_of
from service.remediation.feasibility import same
from service.remediation.own_edits import job_files

# Differences of one file that are told, and the longest statement.
MOST, LONGEST = 2, 100
# What tells least of a file: it may only have got some rows more.
_ELSEWHERE, _MOVED = "prompt.edited-elsewhere", "prompt.edited-moved"
# What Python says of a name that the code around the failing call has to hold.
_NAMED = re.compile(
    r"name '(\w+)' is not defined|unexpected keyword argument '(\w+)'|has no attribute '(\w+)'"
    r"|cannot import name '(\w+)'"
)
# Values that a framework works out itself: the log prints what came of it.
_FILLED_IN = frozenset({"auto", "null", "None", ""})
# Where a name may come from elsewhere.
_COMPUTED = re.compile(r"\*\*|getattr")


def edited_files(
    report: CrashReport, settings: Sequence[Setting], language: Language = "en"
) -> Mapping[str, str]:
    """Say of each file that is not as it was when the job ran what tells it, by the file's name.

    A traceback's statements stand elsewhere in it or nowhere, it lacks a name that the error speaks of, or
    the log prints other values than a file of settings has.
    """
    files = job_files(report)
    told: dict[str, list[Message]] = {}
    for file, difference in (
        *_by_calls(report, files),
        *_by_names(report, files),
        *_by_values(settings, files),
    ):
        said = told.setdefault(file, [])
        if difference not in said:
            said.append(difference)
    # What is not in a file at all tells more than what only stands elsewhere.
    ordered = {
        name: sorted(said, key=lambda each: each.id in (_ELSEWHERE, _MOVED)) for name, said in told.items()
    }
    return {name: _told(said[:MOST], language) for name, said in ordered.items()}


def _told(differences: Sequence[Message], language: Language) -> str:
    said = "; ".join(in_language(each, language) for each in differences)
    return words("prompt.edited", language, differences=said)


def foreign_files(report: CrashReport) -> frozenset[str]:
    """Name the files that are programs and did not run, or scripts that did not start this run."""
    files = [ConfigFile(file.name, file.text) for file in job_files(report)]
    # What a tracker kept of the run starts nothing.
    programs = frozenset(file.name for file in files if not is_record(file))
    return programs - {file.name for file in of_run(files, report)}


def _by_calls(report: CrashReport, files: Sequence[JobFile]) -> Iterator[tuple[str, Message]]:
    for frame in (frame for event in report.standing for frame in event.frames):
        if not (frame.line and frame.code and is_own(frame)):
            continue
        file = file_of(frame, files)
        if file is not None and (difference := _difference(frame, file)):
            yield file.name, difference


def _difference(frame: Frame, file: JobFile) -> Message | None:
    said, line = neutralize(frame.code.strip(), LONGEST), row_of(frame, file.text)
    rows = list(map(str.strip, file.text.split("\n")))
    if not line and frame.code.strip() not in rows:
        return Message("prompt.edited-not-in", said=said, line=frame.line)
    if line and rows[line - 1] not in frame.code:
        return Message("prompt.edited-otherwise", said=said, line=frame.line)
    if line == frame.line:
        return None
    return Message(_MOVED, line=frame.line, row=line) if line else Message(_ELSEWHERE, line=frame.line)


def _by_names(report: CrashReport, files: Sequence[JobFile]) -> Iterator[tuple[str, Message]]:
    root = report.root
    if root is None or not root.frames or not is_own(root.frames[-1]):
        return
    frame = root.frames[-1]
    file = file_of(frame, files)
    if file is None or _COMPUTED.search(frame.code):
        return
    for name in (next(filter(None, match.groups())) for match in _NAMED.finditer(root.text)):
        if not re.search(rf"\b{name}\b", file.text):
            yield file.name, Message("prompt.edited-name", name=name)


def _by_values(settings: Sequence[Setting], files: Sequence[JobFile]) -> Iterator[tuple[str, Message]]:
    """Tell the values that the log prints otherwise than a file of settings has them."""
    plain = [file for file in files if not file.name.endswith((*CODE, ".sh"))]
    # What a command sets stands in no file.
    told = {canonical(item.key) for item in settings if item.spelled in ("hydra", "flag")}
    dumps = (item for item in reversed(settings) if item.spelled == "dump" and not item.file and item.line)
    printed = {key: item for item in dumps if (key := canonical(item.key)) not in told}
    # Among the settings a file's value that the log contradicts has given way to the run's own.
    held = ((file.name, item) for file in plain for item in launch.from_file(file.text, file.name))
    for name, item in held if printed else ():
        shown = printed.get(canonical(item.key))
        if "." not in item.key or shown is None or item.value in _FILLED_IN:
            continue
        if not same(item.value, shown.value):
            key, here, there = (neutralize(text, LONGEST) for text in (item.key, item.value, shown.value))
            yield name, Message("prompt.edited-value", key=key, there=there, here=here)
