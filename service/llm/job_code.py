"""The job's own code in a prompt: around the calls that failed, else where the last line was printed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence

from corpus.message import words
from ingest.configfiles import notebook
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from service.llm.last_print import last_print
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import neutralize, withhold
from service.llm.prompt_lines import PromptRow, own_names
from service.llm.rows_to_edit import rows_to_edit
from service.remediation.code_edits.failing_code import JobFile, file_of, is_row, row_of
from service.remediation.own_edits import job_files

# Calls that are shown, the innermost first, and lines around each.
CALLS, AROUND = 8, 6
# Rows that are shown above and below the statement that printed the log's last line.
ABOVE, BELOW = 2, 14
# How like a statement a row of an edited file is that may have come of it.
ALIKE = 0.6
# The longest row of code that is shown.
_LONGEST = 160
# Ranks of the failing rows, how much the next call adds, and a row of distance.
_AT, _PER_CALL, _PER_ROW = 1.7, 0.5, 0.35
# The rank of rows that a change would edit, and their place behind those of all calls.
_TO_EDIT, _BEHIND = 2.3, 10_000_000
# What a stack calls a program's own top level.
_TOP = "<module>"
_DEFINED = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")


def code_rows(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give the rows of the job's files around the own calls of what failed, the raising one ranked first.

    Of a root without such calls, those of the next failure that stands. Where nothing failed, the rows that
    follow the statement which printed the log's last line.
    """
    report = prompt_context.report
    shown: dict[tuple[str, int], PromptRow] = {}
    ids, files = own_names(prompt_context), job_files(report)
    calls = [
        (depth, frame, file, at)
        for depth, frame in enumerate(_own_calls(report, files))
        if (file := file_of(frame, files)) is not None and (at := _place_in(frame, file)) is not None
    ]
    ran = {
        (file.name, at): _ran_as(frame, file, at, prompt_context) for _, frame, file, at in reversed(calls)
    }
    for depth, _, file, at in calls:
        rows = file.text.split("\n")
        for place in range(max(0, at - AROUND), min(len(rows), at + AROUND + 1)):
            if rows[place].strip():
                rank = _AT + _PER_CALL * depth + _PER_ROW * abs(place - at)
                named = f"{_place(file.name, rows, place)}{ran.get((file.name, place), '')}"
                text = withhold(f"{named}: {rows[place]}", ids, _LONGEST)
                row = PromptRow("code", rank, text, number=place + 1 + 100_000 * depth)
                shown.setdefault((file.name, place), row)
    yield from shown.values()
    yield from _to_edit(prompt_context, files, shown)
    if not report.standing:
        yield from _after_last_print(prompt_context, files)


def _to_edit(
    prompt_context: PromptContext, files: Sequence[JobFile], shown: Collection[tuple[str, int]]
) -> Iterator[PromptRow]:
    """Give the rows that a change would edit and that are not among those around the calls."""
    ids, of_run = (
        own_names(prompt_context),
        [file for file in files if file.name not in prompt_context.foreign],
    )
    found = rows_to_edit(prompt_context.report, of_run, prompt_context.offered)
    new = [each for each in found if (each.file.name, each.place) not in shown]
    if new:
        told = words("prompt.rows-to-edit", prompt_context.language)
        yield PromptRow("code", _TO_EDIT, told, number=_BEHIND, is_ours=True)
    for number, (file, place) in enumerate(new, 1):
        rows = file.text.split("\n")
        text = withhold(f"{_place(file.name, rows, place)}: {rows[place]}", ids, _LONGEST)
        yield PromptRow("code", _TO_EDIT + number / 100, text, number=_BEHIND + number)


def _own_calls(report: CrashReport, files: Sequence[JobFile]) -> Sequence[Frame]:
    """Give the own calls that are looked for, the innermost first, of the first failure that has them."""
    root = report.root
    told: list[Event] = [] if root is None else [root]
    told += [event for event in report.standing if event is not root]
    for event in told:
        own = [frame for frame in reversed(event.frames) if frame.line and frame.code and is_own(frame)]
        if any(file_of(frame, files) is not None for frame in own):
            return own[:CALLS]
    return ()


def _place_in(frame: Frame, file: JobFile) -> int | None:
    """Give the place of a call's row in its file; in one that was edited, of the row that is most like it.

    That one is looked for in the function of the call alone; of the top level, in the whole file.
    """
    if line := row_of(frame, file.text):
        return line - 1
    rows, said = file.text.split("\n"), frame.code.strip()
    heads = [place for place, row in enumerate(rows) if _defines(row, frame.function)]
    if len(heads) == 1:
        depth = len(rows[heads[0]]) - len(rows[heads[0]].lstrip())
        ends = (place for place in range(heads[0] + 1, len(rows)) if _ends(rows[place], depth))
        body = range(heads[0] + 1, next(ends, len(rows)))
    elif frame.function == _TOP:
        body = range(len(rows))
    else:
        return None
    alike = {place: _likeness(rows[place].strip(), said) for place in body}
    nearest = max(alike, key=lambda place: alike[place], default=None)
    return nearest if nearest is not None and alike[nearest] >= ALIKE else None


def _likeness(row: str, said: str) -> float:
    matcher = difflib.SequenceMatcher(None, row, said)
    is_near = matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE
    return matcher.ratio() if is_near else 0.0


def _defines(row: str, name: str) -> bool:
    found = _DEFINED.match(row)
    return found is not None and found[1] == name.rpartition(".")[2]


def _ends(row: str, depth: int) -> bool:
    """Tell whether a row stands no deeper than a function's head: it is none of its body."""
    plain = row.lstrip()
    return bool(plain) and not plain.startswith(("#", ")")) and len(row) - len(plain) <= depth


def _ran_as(frame: Frame, file: JobFile, at: int, prompt_context: PromptContext) -> str:
    """Say which line of the run a row of an edited file is, or that it only stands in that one's place."""
    language, row = prompt_context.language, file.text.split("\n")[at]
    if not is_row(row, frame.code.strip()):
        return words("prompt.row-in-place-of", language, line=frame.line)
    return "" if at + 1 == frame.line else words("prompt.row-ran-as", language, line=frame.line)


def _after_last_print(prompt_context: PromptContext, files: Sequence[JobFile]) -> Iterator[PromptRow]:
    report, ids = prompt_context.report, own_names(prompt_context)
    found = last_print(report, files)
    if found is None:
        return
    rows = found.file.text.split("\n")
    at, name = found.row - 1, neutralize(found.file.name, 120)
    said = words(
        "prompt.after-last-print",
        prompt_context.language,
        line=str(report.place(found.line)),
        place=f"{name}:{found.row}",
    )
    yield PromptRow("code", _AT - 0.1, said)
    for place in range(max(0, at - ABOVE), min(len(rows), at + BELOW + 1)):
        if rows[place].strip():
            text = withhold(f"{_place(found.file.name, rows, place)}: {rows[place]}", ids, _LONGEST)
            yield PromptRow("code", _AT + _PER_ROW * abs(place - at) / 2, text, number=place + 1)


def _place(name: str, rows: Sequence[str], place: int) -> str:
    is_cell = name.endswith(notebook.ENDING)
    return notebook.place_of("\n".join(rows), place + 1) if is_cell else f"{name}:{place + 1}"
