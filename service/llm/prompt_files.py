"""The job's own files in a prompt: their names, which of them are not what ran, and outputs among them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from corpus.message import words
from ingest.logs.report import CrashReport
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import neutralize, withhold
from service.llm.prompt_lines import PromptRow, own_names

MAX_FILES = 20


def is_named(file: str, report: CrashReport) -> bool:
    """Tell whether the log names a file of the job's: in its command, a stack or a line that was kept."""
    name = file.rpartition("/")[2]
    frames = (frame.file for event in report.events for frame in event.frames)
    return any(name in text for text in chain([report.command[1]], frames, report.texts.values()))


def file_rows(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Name the job's own files with their lengths, those that the log names first."""
    report = prompt_context.report
    given = [text.rpartition("\n") for text in report.launches]
    told = sorted(
        ((not is_named(name, report), name, body.count("\n") + 1) for body, _, name in given),
        key=lambda item: item[0],
    )
    language = prompt_context.language
    foreign = words("prompt.file-foreign", language, foreign=words("prompt.foreign", language))
    remarks = dict.fromkeys(prompt_context.edited, words("prompt.file-edited", language))
    remarks |= dict.fromkeys(prompt_context.foreign, foreign)
    rows = [
        words(
            "prompt.file-rows",
            language,
            file=neutralize(name, 120),
            count=count,
            remark=remarks.get(name, ""),
        )
        for _, name, count in told[:MAX_FILES]
    ]
    left_out = len(told) - MAX_FILES
    more = [words("prompt.more-files", language, count=left_out)] if left_out > 0 else []
    if rows:
        yield PromptRow("files", 3.1, "; ".join([*rows, *more]))
    ids = own_names(prompt_context)
    for number, row in enumerate(prompt_context.beside, 1):
        yield PromptRow("files", 2.0 + number / 100, withhold(row, ids), number=number)
