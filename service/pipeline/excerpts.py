"""What is kept of a log for people and for later questions.

All of a short one, else the lines around what matters.

Lines keep their numbers: a log that is put together again from its excerpt has blank lines in the gaps.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial

from corpus.message import Message
from ingest.errors import EmptyInputError, InputError
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.members import Member
from ingest.logs.inputs.sources import LogSource
from ingest.logs.line_ranges import Span, mask_lines, merge_ranges, read_lines, runs
from ingest.logs.report import CrashReport
from service.schemas.records import Excerpt, LineRange

WHOLE_BYTES = 256 << 10
WHOLE_LINES = 4000
MAX_LINES = 3000
# Lines before and after an event that are kept with it.
AROUND_ROOT = (60, 60)
AROUND = (3, 12)
TAIL = 120
# Lines beside those that are kept are judged with them: a secret may begin above them, or end below.
BESIDE = 4
# A log with more lines than this between its stretches is not put together again.
MAX_GAP = 20_000_000


def make_excerpt(report: CrashReport, job: JobSource) -> Excerpt:
    """Read a job's output once more for the lines to keep; what cannot be read any more is left out."""
    whole = report.limits.bytes <= WHOLE_BYTES and report.limits.lines <= WHOLE_LINES
    spans = None if whole else wanted_lines(report)
    found: list[LineRange] = []
    try:
        for part in job.parts():
            name = part.name if report.timeline.has_parts else None
            kept = [(1, WHOLE_LINES)] if spans is None else spans.get(name or "", [])
            judged = merge_ranges((max(1, begin - BESIDE), end + BESIDE) for begin, end in kept)
            found += _stretches(name, read_lines(part.chunks(), judged), kept)
    except InputError:
        whole = False
    return Excerpt(stretches=tuple(found), whole=whole)


def wanted_lines(report: CrashReport) -> dict[str, list[Span]]:
    """Choose the lines to keep, by file.

    The root's, the other events', the end, then what tells of the job itself.
    """
    left = MAX_LINES
    chosen: dict[str, list[Span]] = {}
    for line, (before, after) in _ranked(report):
        if left <= 0:
            break
        place = report.place(line)
        chosen.setdefault(place.file, []).append((max(1, place.line - before), place.line + after))
        left -= before + after + 1
    return {file: merge_ranges(spans) for file, spans in chosen.items()}


def _ranked(report: CrashReport) -> Iterator[tuple[int, Span]]:
    if report.root:
        yield report.root.line, AROUND_ROOT
    yield from ((event.line, AROUND) for event in report.standing)
    if not report.timeline.has_parts:
        yield report.limits.lines, (TAIL, 0)
    yield from ((line, (0, 0)) for line, _ in report.tail)
    yield from ((event.line, AROUND) for event in report.events if event not in report.standing)
    single = {item.line for found in (report.settings, report.facts, report.frameworks) for item in found}
    yield from ((line, (0, 0)) for line in sorted(single) if line > 0)


def _stretches(file: str | None, found: dict[int, bytes], kept: Sequence[Span]) -> Iterator[LineRange]:
    clean = mask_lines(found)
    for begin, end in kept:
        for numbers in runs(
            [number for number in range(begin, min(end, max(clean, default=0)) + 1) if number in clean]
        ):
            yield LineRange(file=file, begin=numbers[0], lines=tuple(clean[number] for number in numbers))


def restore_excerpt(excerpt: Excerpt, name: str) -> JobSource:
    """Put a log together from what was kept of it, each line at its number.

    Raises EmptyInputError where nothing was kept.
    """
    files: dict[str | None, list[LineRange]] = {}
    for stretch in excerpt.stretches:
        files.setdefault(stretch.file, []).append(stretch)
    if not files or any(stretches[-1].begin > MAX_GAP for stretches in files.values()):
        raise EmptyInputError(Message("errors.little-log-kept-answer"))
    if None in files:
        source = LogSource(name, _text(files[None]))
        return JobSource(name, source.omitted, single=source)
    # Each put together when its turn comes: the blank lines of a thousand ranks' logs together are gigabytes.
    return JobSource(
        name, members=[Member(str(file), partial(_text, stretches)) for file, stretches in files.items()]
    )


def _text(stretches: Sequence[LineRange]) -> io.BytesIO:
    out = io.BytesIO()
    number = 1
    for stretch in stretches:
        out.write(b"\n" * (stretch.begin - number))
        out.write("".join(f"{text}\n" for text in stretch.lines).encode())
        number = stretch.begin + len(stretch.lines)
    out.seek(0)
    return out
