"""Questions about one line of the log: "what does L21 mean"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.message import words
from corpus.schema import Language
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.timeline import Place
from service.composition.diagnosis_view import source_words
from service.llm.prompt_context import PromptContext

_LINE = re.compile(
    r"(?:(?P<file>[\w./-]+):)?\bL(?P<short>\d{1,9})\b|\blines? (?P<long>\d{1,9})\b|第\s*(?P<zh>\d{1,9})\s*行"
)
# A file that stands before or after a line's number; that of a program is no line of the log.
_BEFORE = re.compile(r"(?P<name>[\w./-]+\.[A-Za-z]\w*)[\"'`]?[,:]?\s*$")
_AFTER = re.compile(r"\s*(?:of|in|at)\s+(?:the\s+)?(?:file\s+)?[\"'`]?(?P<name>[\w./-]+\.[A-Za-z]\w*)")
_LOGS = re.compile(r"\.(?:log|out|err|txt|stdout|stderr)$", re.IGNORECASE)
# Lines that one question is answered for, and how much of each is quoted.
MOST = 3
_QUOTED = 300


def describe_lines(text: str, prompt_context: PromptContext) -> str:
    """Say of each line that a question names what it says and is; empty where it names none."""
    asked = _lines_named(text, prompt_context.report)
    return "\n\n".join(_answer_about(file, number, prompt_context) for file, number in asked)


def missing_lines(text: str, report: CrashReport) -> list[int]:
    """Give the lines that a question names and the report does not hold, as it numbers them."""
    parts = report.timeline.parts if report.timeline.has_parts else ()
    numbers = [
        part.first + number - 1
        for file, number in _lines_named(text, report)
        for part in parts
        if not file or part.name == file
    ]
    if not parts:
        numbers = [number for _, number in _lines_named(text, report)]
    return [number for number in numbers if number > 0 and number not in report.texts][:MOST]


def _lines_named(text: str, report: CrashReport) -> list[tuple[str, int]]:
    """Give the file, where one is named, and the number of each line of the log that a question names."""
    parts = {part.name for part in report.timeline.parts} if report.timeline.has_parts else set()
    found: dict[tuple[str, int], None] = {}
    for match in _LINE.finditer(text):
        beside = _BEFORE.search(text, 0, match.start()) or _AFTER.match(text, match.end())
        file = match["file"] or (beside["name"] if beside else "")
        if file and file not in parts and not _LOGS.search(file):
            continue
        number = int(match["short"] or match["long"] or match["zh"])
        found[match["file"] or (file if file in parts else ""), number] = None
    return list(found)[:MOST]


def _answer_about(file: str, number: int, prompt_context: PromptContext) -> str:
    report, language = prompt_context.report, prompt_context.language

    def is_asked(line: int) -> bool:
        place = report.place(line)
        return place.line == number and (not file or place.file == file)

    line = next((line for line in sorted(report.texts) if is_asked(line)), None)
    if line is None:
        return _say("line-unknown", language, place=Place(file, number))
    place = report.place(line)
    quote = report.texts[line].strip().replace("`", "'")[:_QUOTED]
    event = next((event for event in report.events if event.line == line), None)
    parts = [f"[{place}] `{quote}`"] if quote else [_say("line-blank", language, place=place)]
    parts += _meaning(event, prompt_context) if event else [_say("line-plain", language)]
    sources = (
        source
        for source in prompt_context.first.sources
        if source.line == place.line and (source.file or "") == (place.file or "")
    )
    if source := next(sources, None):
        parts.append(_say("line-source", language, source=source_words(source, language)))
    return "\n\n".join(parts)


def _meaning(event: Event, prompt_context: PromptContext) -> Iterator[str]:
    """Yield what an event is to this failure, how often it was said, and what its cause means."""
    language = prompt_context.language
    yield _say(f"line-{event.role}", language)
    if event.count > 1:
        yield _say("line-count", language, count=f"{event.count:,}")
    cause = prompt_context.library.causes.get(event.cause or "")
    if cause is not None:
        means, title = cause.means.to(language), cause.title.to(language)
        yield _say("line-cause", language, title=title, means=means)


def _say(name: str, language: Language, **values: object) -> str:
    return words(f"replies.{name}", language, **values)
