"""Commands that the job's own message says to run, as changes.

A log is hostile text: only what a row of `stated_commands.yaml` knows to be harmless is offered, as the row
has it, and nothing of a row in which a shell would read more than the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

from corpus.message import words
from corpus.schema import Language
from corpus.stated_commands import StatedCommand, known_stated_commands
from ingest.configfiles.formats import CODE
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.remediation.chinese_advice import in_english
from service.remediation.own_edits import job_files
from service.remediation.stated_rows import stated_rows
from service.schemas.diagnosis import ProposedChange

# What says that a command is to be run, right before it or before the quotes that it stands in.
_TOLD = re.compile(
    r"(?i)(?:\b(?:please|run(?:ning)?|execut(?:e|ing)|try|us(?:e|ing)|with|via|by|call(?:ing)?|do|need to"
    r"|must|should|log ?in|download|pull|install|launch(?:ing)?|start(?:ing)?|fix|first|is)\b)"
    r"[^.!?]{0,40}$"
)
# Alone on its row it needs no more than a prompt's sign.
_ALONE = re.compile(r"\s*(?:[$%>]{1,3} |[-*•] |\d[.)] )?[`'\"]?$")
# Of a command that was run, or is not to be, the message tells what happened.
_DENIED = re.compile(
    r"(?i)(?:\bnot|n't|\bnever|\bfail\w*|\berror|\bwhile|\bafter|\bwhen|\balready|\bwas|\bwere|\bunable"
    r"|\bcommand|\bsudo|\binstead of|\brather than)\b[^.!?:,]{0,30}$"
)
# A launcher's bare name may be met in any sentence; outside of quotes it is told to be run in these.
_STARTED = re.compile(
    r"(?i)\b(?:run|launch|start|execut|us)\w*(?: \w+){0,4}? (?:with |using |via |by )?(?:the )?$"
)
_QUOTED_RESULT = re.compile(r"(?i)^[`'\"]?\s*(?:returned|failed|exited|died|timed out|was )")
# What may follow the command: its closing quotes, the sentence's end, further words of the sentence.
_END = r"(?=[`'\"]|[.,:)!?]?(?:\s|$)|[\u3002\uff0c\uff09])(?!\s*[`'\"]?\s*[;&|<>$\\(])"
# A number of processes that the message tells beside the name of a size, or of cards.
_COUNT = re.compile(
    r"(?i)\b(?:\w*(?:tp|tensor|parallel|world|process(?:es)?|gpus?|ranks?|workers?|devices?|nproc)"
    r"[\w -]{0,20}?)"
    r"(?: ?[=(:] ?| of | is )(?P<behind>[2-9]|[1-9]\d{1,2})\b"
    r"|(?<![\w.])(?P<before>[2-9]|[1-9]\d{1,2}) (?:gpus?|processes|ranks|devices|cards)\b"
)
_MODULE = "<module>"


def stated_commands(cause: str, report: CrashReport, language: Language) -> list[ProposedChange]:
    """Give the commands that the failing message and the rows around it tell to run, each once."""
    found: dict[str, ProposedChange] = {}
    for row in stated_rows(cause, report):
        for known, command in read_commands(row.text):
            told = _completed(command, row.text, report) if known.launches else command
            if (known.own and not _is_job_file(command, report)) or told == report.command[1]:
                continue
            found.setdefault(told, _change(told, known, report.place(row.line).line, language))
    return list(found.values())


def read_commands(text: str) -> Iterator[tuple[StatedCommand, str]]:
    """Read the commands of a known form that a text tells its reader to run."""
    for known in known_stated_commands():
        for match in _expression(known).finditer(text):
            before, behind = text[: match.start()], text[match.end() :]
            row = in_english(before.rpartition("\n")[2])
            is_told = _ALONE.fullmatch(row) or _TOLD.search(row.rstrip(" `'\":$>"))
            if known.launches and " -" not in match.group() and not before.endswith(("`", "'", '"')):
                is_told = _STARTED.search(row)
            if (
                is_told
                and not _DENIED.search(row.rstrip("`'\" "))
                and not _QUOTED_RESULT.match(in_english(behind))
            ):
                parts = {name: value or "" for name, value in match.groupdict().items()}
                yield known, (known.command.format(**parts) if known.command else match.group()).rstrip(" .:")


@cache
def _expression(known: StatedCommand) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./$-])(?:{known.form}){_END}")


def _completed(command: str, message: str, report: CrashReport) -> str:
    """Give a launcher's bare name with the number of processes and the script, as far as both are told."""
    if " -" in command or not (count := _COUNT.search(message)):
        return command
    program = _program(report)
    number = count["behind"] or count["before"]
    return f"{command} --nproc_per_node={number} {program}" if program and command == "torchrun" else command


def _program(report: CrashReport) -> str:
    """Give the script that the failing process ran, by the outermost call of its stack."""
    frames = report.root.frames if report.root is not None else ()
    outer = next((frame for frame in frames if frame.function == _MODULE and is_own(frame)), None)
    return PurePosixPath(outer.file.replace("\\", "/")).name if outer is not None else ""


def _is_job_file(command: str, report: CrashReport) -> bool:
    """Tell whether a command runs a file that is at hand, or one of the program that says so itself."""
    name = PurePosixPath(command.split(" ")[1]).name
    files = {PurePosixPath(file.name.replace("\\", "/")).name for file in job_files(report)}
    frames = report.root.frames if report.root is not None else ()
    return name in files or (name.endswith(CODE) and bool(frames) and is_own(frames[-1]))


def _change(command: str, known: StatedCommand, line: int, language: Language) -> ProposedChange:
    why = words("changes.stated", language, line=line)
    return ProposedChange(
        framework="host",
        kind="command",
        key=command,
        to=known.to.to(language),
        why=why,
        proof=why,
        status="verified",
    )
