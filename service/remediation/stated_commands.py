"""Commands that the job's own message says to run, as changes.

A log is hostile text: only what a row of `stated_commands.yaml` knows to be harmless is offered, as the row
has it, and nothing of a row in which a shell would read more than the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from corpus.message import words
from corpus.schema import Language
from corpus.stated_commands import StatedCommand, known_stated_commands
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
    r"|\bcommand|\bsudo|\binstead of|\brather than|\bstop|\bremov\w+|\bwrong|\bif (?:you|it)|\bbefore"
    r"|\b(?:you|it|we|was|has|have) (?:have |has |had )?(?:started|launched|ran|used|called)|\buse of"
    r"|\b(?:un)?install|\bpip|\bconda|\buv|\bapt)\b[^.!?:,]{0,30}$"
)
# A launcher's bare name may be met in any sentence; outside of quotes it is told to be run in these.
_STARTED = re.compile(
    r"(?i)\b(?:run|launch|start|execut|us)\w*(?: \w+){0,4}? (?:with |using |via |by )?(?:the )?$"
)
_QUOTED_RESULT = re.compile(r"(?i)^[`'\"]?\s*(?:returned|failed|exited|died|timed out|was |is deprecated)")
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
# A log words the names in its stack too.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,80}\.py")
# So much of a long row's begin and of its end is looked at, and of a whole text.
_HALF, _LONGEST = 200, 16000
# How far behind a command its row tells what came of it.
_BEHIND = 80
# Options behind a command that its form does not have, any word behind it, and what none of them may name: a
# place outside of the folder, an address.
_UNKNOWN = re.compile(r"(?: {1,4}--?[A-Za-z][\w-]{0,40}(?:[ =][^\s`'\"]{0,200}){0,3}){1,8}")
_NEXT = re.compile(r"(?: {1,4}[^\s`'\"]{1,200})?")
_OUTSIDE = re.compile(r"\.\.|://|[ =][/~\\]|[ =][A-Za-z]:[/\\]")


class ToldCommand(NamedTuple):
    """A command that a text tells to run, with its row of knowledge and the groups `bare` and `script`."""

    known: StatedCommand
    text: str
    bare: str = ""
    script: str = ""


def stated_commands(cause: str, report: CrashReport, language: Language) -> list[ProposedChange]:
    """Give the commands that the failing message and the rows around it tell to run, each once."""
    found: dict[str, ProposedChange] = {}
    for row in stated_rows(cause, report):
        for read in read_commands(row.text):
            is_foreign = bool(read.script) and not _is_job_file(read.script, report)
            if read.known.own and is_foreign:
                continue
            told = read.text
            if read.known.launches:
                told = _completed(read.bare if is_foreign else read.text, row.text, report)
            # What a script of the job's starts already is nothing to start.
            is_started = any(_starts(told, file.text) for file in job_files(report))
            if told != report.command[1] and not is_started:
                found.setdefault(told, _change(told, read.known, report.place(row.line).line, language))
    return list(found.values())


def _starts(command: str, text: str) -> bool:
    """Tell whether a row of a script that is no comment holds a command."""
    bare = re.escape(command)
    return (
        re.search(rf"(?m)^(?!\s*(?:#|echo\b))[^\n#]{{0,400}}(?<![\w./'\"-]){bare}(?![\w-])", text) is not None
    )


def read_commands(text: str) -> Iterator[ToldCommand]:
    """Read the commands of a known form that a text tells its reader to run.

    Options that the form does not have are left out; with those that lead outside nothing is read. Of a
    launcher with any such option its bare name is.
    """
    text = _within_bounds(text)
    for known in known_stated_commands():
        for match in _expression(known).finditer(text):
            unknown = _UNKNOWN.match(text, match.end())
            behind = (found.group() for found in (unknown, _NEXT.match(text, match.end())) if found)
            is_harmful = any(map(_OUTSIDE.search, behind))
            if not _is_told(known, match, text) or (is_harmful and not known.launches):
                continue
            parts = {name: value or "" for name, value in match.groupdict().items()}
            told = (known.command.format(**parts) if known.command else match.group()).rstrip(" .:")
            bare, script = parts.get("bare", ""), parts.get("script", "")
            if known.launches and unknown is not None:
                told, script = bare, ""
            yield ToldCommand(known, told, bare, script)


def _within_bounds(text: str) -> str:
    """Give a text with long rows cut in their middle; three dots keep what is beside them apart."""
    return "\n".join(_shortened(row) for row in text[:_LONGEST].split("\n"))


def _shortened(row: str) -> str:
    if len(row) <= 2 * _HALF:
        return row
    return f"{row[:_HALF].rpartition(' ')[0]} ... {row[-_HALF:].partition(' ')[2]}"


def _is_told(known: StatedCommand, match: re.Match[str], text: str) -> bool:
    """Tell whether what stands around a command says that it is to be run, and not what came of it."""
    before = text[: match.start()]
    row = in_english(before[before.rfind("\n") + 1 :])
    is_told = _ALONE.fullmatch(row) or _TOLD.search(row.rstrip(" `'\":$>"))
    if known.launches and " -" not in match.group() and not before.endswith(("`", "'", '"')):
        is_told = _STARTED.search(row)
    behind = in_english(text[match.end() : match.end() + _BEHIND])
    return bool(is_told) and not _DENIED.search(row.rstrip("`'\" ")) and not _QUOTED_RESULT.match(behind)


@cache
def _expression(known: StatedCommand) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./$-])(?:{known.form}){_END}")


def _completed(command: str, message: str, report: CrashReport) -> str:
    """Give a launcher's bare name with the number of processes and the script, as far as both are told."""
    if " -" in command or not (count := _COUNT.search(_within_bounds(message))):
        return command
    program = _program(report)
    number = count["behind"] or count["before"]
    return f"{command} --nproc_per_node={number} {program}" if program and command == "torchrun" else command


def _program(report: CrashReport) -> str:
    """Give the script that the failing process ran, by the outermost call of its stack."""
    frames = report.root.frames if report.root is not None else ()
    outer = next((frame for frame in frames if frame.function == _MODULE and is_own(frame)), None)
    name = PurePosixPath(outer.file.replace("\\", "/")).name if outer is not None else ""
    return name if _PLAIN_NAME.fullmatch(name) else ""


def _is_job_file(script: str, report: CrashReport) -> bool:
    """Tell whether a path is that of a file at hand or of the job's own code in the failing stack."""
    frames = report.root.frames if report.root is not None else ()
    files = [file.name for file in job_files(report)] + [frame.file for frame in frames if is_own(frame)]
    wanted = script.removeprefix("./")
    paths = (file.replace("\\", "/").removeprefix("./") for file in files)
    return any(path == wanted or path.endswith(f"/{wanted}") for path in paths)


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
