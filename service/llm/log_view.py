"""A job's output as a model may look into it: redacted lines by their numbers, and a search for words.

The output stays where it lies and is read as a stream, as far as time allows; nothing is kept of it but what
was asked for. Where it is not at hand any more, the lines that the report holds stand in for it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from corpus.message import Message
from ingest.errors import InputError
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.line_ranges import Span, mask_lines, merge_ranges, read_lines
from ingest.logs.lines import parse_line, printable
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from service.llm.deadline import Deadline

Reopen = Callable[[], JobSource | LogSource]

# Lines beside those that are shown are judged with them: a key of many rows may begin above them.
BESIDE = 64
# Of the lines that hold the words, the first and the last.
FIRST_HITS, LAST_HITS = 20, 10
# Characters that are shown of a long row around the words that it holds.
PIECE = 560
_MARK = re.compile(r"\[?(?:(?P<file>[^\n]+):)?\s?L?(?P<line>\d{1,12})\]?", re.IGNORECASE)
# A word, or several in quotation marks that stand together.
_UNIT = re.compile(r'"([^"]+)"|(\S+)')
# What begins a traceback, and who says so.
_TRACEBACK = "Traceback (most recent call last)"
_SPEAKER = re.compile(r"^(?:[\[(][^\])]{1,60}[\])]:?\s?){1,3}")
# So long one reading of a large log may take, that others have their turn.
READ_SECONDS = 10.0
# A row without an end is searched in pieces of this size.
MAX_ROW = 1 << 20


@dataclass(frozen=True, slots=True)
class Writer:
    """Who prints a line: a rank, and words of the stream's label or file; empty is anybody."""

    rank: str = ""
    stream: tuple[str, ...] = ()

    def wrote(self, raw: bytes, file: str) -> bool:
        """Tell whether a line is of this writer, by what stands before it and its file's name."""
        if not self.rank and not self.stream:
            return True
        line = parse_line(raw, 1)
        label = f"{line.source} {line.told} {file}".lower()
        is_of_rank = not self.rank or self.rank in (line.rank, line.told)
        return is_of_rank and all(word in label for word in self.stream)


ANYBODY = Writer()


@dataclass(frozen=True, slots=True)
class FoundLines:
    """Lines that were searched for, the first and last of them, and whether there are more between.

    How many more is not told: a count of lines that are not masked would tell what stands in a secret.
    """

    rows: Mapping[int, str]
    has_more: bool = False


@dataclass
class LogView:
    """The redacted lines of a job's output, numbered as its report numbers them.

    `reopen` opens the output anew; None where it is not at hand. Reading ends at the deadline, and after
    READ_SECONDS each time; `is_cut` tells that this was before all was read.
    """

    report: CrashReport
    reopen: Reopen | None
    deadline: Deadline
    is_cut: bool = field(default=False, init=False)

    def lines(self, spans: Iterable[Span]) -> dict[int, str]:
        """Give the lines of the spans by their numbers, those that are there."""
        wanted = merge_ranges((max(1, begin), end) for begin, end in spans if end >= max(1, begin))
        known = {
            number: text
            for number, text in self.report.texts.items()
            if any(begin <= number <= end for begin, end in wanted)
        }
        judged = merge_ranges((max(1, begin - BESIDE), end + BESIDE) for begin, end in wanted)
        found: dict[int, str] = {}
        for first, chunks in self._parts(judged):
            local = [(max(1, begin - first + 1), end - first + 1) for begin, end in judged]
            read = read_lines(chunks, [(begin, end) for begin, end in local if end >= 1])
            masked = mask_lines({number + first - 1: raw for number, raw in read.items()})
            found |= {
                number: text
                for number, text in masked.items()
                if any(begin <= number <= end for begin, end in wanted)
            }
        return dict(sorted((found or known).items()))

    def search(self, wanted: Sequence[Sequence[str]], span: Span, writer: Writer = ANYBODY) -> FoundLines:
        """Give lines of a span that hold all words of one of the alternatives, whatever their case.

        Only those of the writer. The first and the last of them, where they are many. Words within a secret
        are not found.
        """
        found = self._search(wanted, span, writer, as_words=True)
        # What stands nowhere as a word may be a piece of one.
        return found if found.rows or self.is_cut else self._search(wanted, span, writer, as_words=False)

    def _search(
        self, wanted: Sequence[Sequence[str]], span: Span, writer: Writer, *, as_words: bool
    ) -> FoundLines:
        alternatives = [[finder(word, as_words=as_words) for word in words] for words in wanted]
        count = 0
        if self.reopen is None:
            names = self.report.place
            there = {
                number: text
                for number, text in self.lines([span]).items()
                if writer.wrote(text.encode(), names(number).file)
            }
        else:
            first: list[int] = []
            last: deque[int] = deque(maxlen=LAST_HITS)
            encoded = [[word.lower().encode() for word in words] for words in wanted]
            holding = [[finder(word, as_words=as_words) for word in words] for words in wanted]
            for number in self._holding(encoded, holding, span, writer):
                count += 1
                if len(first) < FIRST_HITS:
                    first.append(number)
                else:
                    last.append(number)
            there = self.lines((number, number) for number in (*first, *last))
        rows = {
            number: text
            for number, text in there.items()
            if any(all(word.search(text) for word in words) for words in alternatives)
        }
        return FoundLines(rows, count > FIRST_HITS + LAST_HITS)

    def _holding(
        self,
        alternatives: Sequence[Sequence[bytes]],
        needles: Sequence[Sequence[re.Pattern[str]]],
        span: Span,
        writer: Writer,
    ) -> Iterator[int]:
        """Give the numbers of the writer's lines of a span whose bytes hold the words of an alternative."""
        # The longest word of each alternative is looked for, the others only where it stands.
        # Without a word, each line that is not blank is looked at.
        longest = (re.escape(max(words, key=len)) or rb"[^\n]" for words in alternatives)
        needle = re.compile(b"|".join(longest))
        for first, chunks in self._parts([span]):
            number, file = first, self.report.place(first).file
            for data in _whole_rows(chunks):
                if number > span[1]:
                    break
                low = data.lower()
                counted = at = 0
                while match := needle.search(low, at):
                    begin = low.rfind(b"\n", 0, match.start()) + 1
                    end = low.find(b"\n", match.start())
                    end = len(low) if end < 0 else end
                    number += low.count(b"\n", counted, begin)
                    counted = begin
                    row = low[begin:end]
                    text = data[begin:end].decode("utf-8", "replace")
                    if (
                        span[0] <= number <= span[1]
                        and any(
                            all(word in row for word in words) and all(form.search(text) for form in forms)
                            for words, forms in zip(alternatives, needles, strict=True)
                        )
                        and writer.wrote(data[begin:end], file)
                    ):
                        yield number
                    at = end + 1
                number += low.count(b"\n", counted)

    def _parts(self, spans: Sequence[Span]) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Open the output, and give the bytes of each part of a span with the number of its first line."""
        if self.reopen is None or not spans:
            return
        deadline = Deadline(min(READ_SECONDS, self.deadline.left))
        try:
            with closing(self.reopen()) as source:
                opened = source.parts() if isinstance(source, JobSource) else iter([source])
                for first, end, part in self._placed(opened):
                    if any(span[0] <= end and span[1] >= first for span in spans):
                        yield first, self._in_time(part.chunks(), deadline)
                    if self.is_cut or end >= spans[-1][1]:
                        return
        except (InputError, OSError):
            # What cannot be read any more is as if it were not at hand.
            return

    def _placed(self, opened: Iterator[LogSource]) -> Iterator[tuple[int, int, LogSource]]:
        """Give each part with the numbers of its first and last line as the report counts them.

        A file that came or went since the report was made moves no line of another.
        """
        parts = self.report.timeline.parts
        if len(parts) <= 1:
            yield from ((1, 1 << 62, part) for part in islice(opened, 1))
            return
        ends = [*(part.first - 1 for part in parts[1:]), 1 << 62]
        named = Counter(part.name for part in parts)
        # Of files with one name, nobody can tell which is which.
        places = {
            part.name: (part.first, end)
            for part, end in zip(parts, ends, strict=True)
            if named[part.name] == 1
        }
        for part in opened:
            if place := places.get(printable(Redactor().clean(part.name))):
                yield *place, part

    def _in_time(self, chunks: Iterator[bytes], deadline: Deadline) -> Iterator[bytes]:
        try:
            for chunk in chunks:
                if not deadline.left:
                    self.is_cut = True
                    return
                yield chunk
        except (InputError, OSError):
            return


def finder(word: str, *, as_words: bool) -> re.Pattern[str]:
    """Give what finds a word whatever its case: as the beginning of one, also within `OutOfMemory`."""
    plain = re.escape(word)
    if not as_words or not word[:1].isalnum():
        return re.compile(f"(?i:{plain})")
    inner = f"|(?<=[a-z0-9]){re.escape(word[0].upper())}(?i:{re.escape(word[1:])})"
    return re.compile(rf"(?<![^\W_])(?i:{plain}){inner}")


def units(said: str) -> list[str]:
    """Give the words of a search; several in quotation marks are one."""
    return [match[1] or match[2] for match in _UNIT.finditer(said)]


def written(unit: str) -> str:
    """Write what `units` gave as it was asked for."""
    return f'"{unit}"' if " " in unit else unit


def begins_late(text: str) -> bool:
    """Tell whether a traceback begins amid a row, such as that of a progress bar which was not ended."""
    head, traceback, _ = text.partition(_TRACEBACK)
    return bool(traceback and _SPEAKER.sub("", head).strip())


def around(text: str, wanted: Sequence[Sequence[str]]) -> str:
    """Give a piece of a long row: that around the first of the words that stands in it."""
    needles = [finder(word, as_words=False) for words in wanted for word in words]
    at = min((match.start() for needle in needles if (match := needle.search(text))), default=0)
    begin = max(0, min(at - PIECE // 3, len(text) - PIECE))
    left, right = ("[...] " if begin else ""), (" [...]" if begin + PIECE < len(text) else "")
    return f"{left}{text[begin : begin + PIECE]}{right}"


def _whole_rows(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give the bytes in pieces that end where a row ends, the last one and endless rows excepted."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > MAX_ROW:
            cut = len(data)
        if cut:
            yield data[:cut]
        rest = data[cut:]
    if rest:
        yield rest


def line_number(mark: str, report: CrashReport) -> int:
    """Give the number of the line that a mark names (`L12`, `rank3.log:L12`, `12`).

    Raises ValueError, in words for a model, where it names none.
    """
    match = _MARK.fullmatch(mark.strip())
    if match is None:
        raise ValueError(Message("tools.no-mark"))
    line = int(match["line"])
    if not report.timeline.has_parts:
        return line
    name = match["file"] or ""
    parts = [part for part in report.timeline.parts if name and part.name in (name, name.strip("./"))]
    parts = parts or [part for part in report.timeline.parts if name and part.name.endswith(f"/{name}")]
    if len(parts) != 1:
        raise ValueError(Message("tools.which-file", line=str(report.place(1))))
    return parts[0].first + line - 1
