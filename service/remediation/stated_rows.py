"""The rows in which a job's output says what to do about its failure.

They are the failing line, the exceptions that came of it, and the other rows of the same message: what a
program has to advise stands below the line that fails, or is what it raises in place of the first exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.chinese_advice import in_english

# How far below the failing line an exception that came of it stands at most; how many rows of one message are
# looked at below it, and above one that is itself in the middle of a message.
LINKED, BELOW, ABOVE = 60, 8, 8
# Where something else begins: another traceback, a log's record, a row of a stack, a shell's prompt.
_ELSE = re.compile(
    r"\s*(?:Traceback \(|File \"|During handling|The above exception|[\w.]{1,80}(?:Error|Exception)\b|\^|"
    r"\[?\d{4}[-/]\d\d|\[rank\d|(?:DEBUG|INFO|WARNING|ERROR)\b|[\w.-]*[\w)]\s?[$%#] |\w+: )"
)
# How a row begins that tells its reader what to do; the rows behind it go on.
_TELLS = re.compile(
    r"(?i)\s*(?:[-*•>→]\s*|\d[.)]\s+|\(\w\)\s*)?(?:please|pls|try|use|pass|set|run|install|add|specify"
    r"|provide|enable|disable|remove|either|you (?:can|need|must|should|may)|consider|make sure|ensure"
    r"|to (?:fix|solve|resolve|continue|download|install|use)|hint|tip|fix|solution|suggestion|export)"
)
_BULLET = re.compile(r"\s*(?:[-*•]|\d[.)])\s")

# What a sentence says to need something else, which is the option that fails and none to set: of
# `Using device_map requires accelerate` the first half.
NEEDING = re.compile(
    r"(?im)(?:^|(?<=[.:!] ))\W{0,3}(?:using|setting|passing|enabling|specifying|loading)\b[^.:;\n]{1,160}?"
    r"(?P<needs>\b(?:requires?|needs?)\b)"
)


@dataclass(frozen=True)
class StatedRow:
    """A row that may say what to do. `field` is what a validator names above its reason, empty elsewhere."""

    line: int
    text: str
    field: str = ""


def stated_rows(cause: str, report: CrashReport) -> list[StatedRow]:
    """Give the failing line, what failed of it or of the same cause, then the rest of its message."""
    told = [
        StatedRow(event.line, _message(event), _field(event, report))
        for event in stating_events(cause, report)
    ]
    root = report.root
    if root is None or root.pattern_role == "wrapper":
        return told
    known = {row.line for row in told}
    rows = (*_below(root, report), *_above(root, report))
    return [*told, *(row for row in rows if row.line not in known)]


def _message(event: Event) -> str:
    return f"{event.body}\n{event.rest}" if event.rest else event.body


def stating_events(cause: str, report: CrashReport) -> Iterator[Event]:
    """Give the root, the other failures of its cause, and the exceptions that were raised in its place."""
    root = report.root
    if root is not None and root.pattern_role != "wrapper":
        yield root
    for event in report.standing:
        if event is root or event.kind != "error":
            continue
        is_chained = root is not None and event.linked and 0 < event.line - root.line <= LINKED
        if event.cause == cause or is_chained:
            yield event


def _below(root: Event, report: CrashReport) -> Iterator[StatedRow]:
    """Give the rows of the message below its first line, from the first that tells what to do."""
    begun = False
    for line in range(root.line + 1, root.line + BELOW + 1):
        text = report.texts.get(line)
        if text is None and begun:
            return  # a blank line ends what was told
        if text is None or (not begun and not _TELLS.match(in_english(text))):
            if text is not None and _ELSE.match(text):
                return
            continue
        if begun and _ELSE.match(text) and not _TELLS.match(in_english(text)):
            return
        begun = True
        yield StatedRow(line, text)


def _above(root: Event, report: CrashReport) -> Iterator[StatedRow]:
    """Give the rows of a message in whose middle the failing line stands, as an item of a list."""
    if root.traceback or not _BULLET.match(root.text):
        return
    for line in range(root.line - 1, root.line - ABOVE - 1, -1):
        text = report.texts.get(line, "")
        if text and not text[0].isspace():
            return
        if text:
            yield StatedRow(line, text)


def _field(event: Event, report: CrashReport) -> str:
    """Give the field that a validator names on the row above its reason (pydantic's `ValidationError`)."""
    above = report.texts.get(event.line - 1, "")
    is_reason = event.text[:1].isspace() and "[type=" in event.text
    return above if is_reason and re.fullmatch(r"[A-Za-z_][\w.]{0,160}", above) else ""
