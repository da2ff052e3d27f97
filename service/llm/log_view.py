"""A job's output as a model may look into it: redacted lines by their numbers, and a search for words.

The output stays where it lies and is read as a stream, as far as time allows; nothing is kept of it but what
was asked for. Where it is not at hand any more, the lines that the report holds stand in for it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from ingest.errors import InputError
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.line_ranges import Span, mask_lines, merge_ranges, read_lines
from ingest.logs.lines import printable
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from service.llm.deadline import Deadline

Reopen = Callable[[], JobSource | LogSource]

# Lines beside those that are shown are judged with them: a key of many rows may begin above them.
BESIDE = 64
# Of the lines that hold the words, the first and the last.
FIRST_HITS, LAST_HITS = 20, 10
_MARK = re.compile(r"\[?(?:(?P<file>[^\n]+):)?\s?L?(?P<line>\d{1,12})\]?", re.IGNORECASE)
# So long one reading of a large log may take, that others have their turn.
READ_SECONDS = 10.0
# A row without an end is searched in pieces of this size.
MAX_ROW = 1 << 20


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

    def search(self, wanted: Sequence[Sequence[str]], span: Span) -> dict[int, str]:
        """Give lines of a span that hold all words of one of the alternatives, whatever their case.

        The first and the last of them, where they are many. Words within a secret are not found.
        """
        alternatives = [[word.lower() for word in words] for words in wanted]
        if self.reopen is None:
            there = self.lines([span])
        else:
            first: list[int] = []
            last: deque[int] = deque(maxlen=LAST_HITS)
            for number in self._holding([[word.encode() for word in words] for words in alternatives], span):
                if len(first) < FIRST_HITS:
                    first.append(number)
                else:
                    last.append(number)
            there = self.lines((number, number) for number in (*first, *last))
        return {
            number: text
            for number, text in there.items()
            if any(all(word in text.lower() for word in words) for words in alternatives)
        }

    def _holding(self, alternatives: Sequence[Sequence[bytes]], span: Span) -> Iterator[int]:
        """Give the numbers of the lines of a span whose bytes hold the words of an alternative."""
        # The longest word of each alternative is looked for, the others only where it stands.
        needle = re.compile(b"|".join(re.escape(max(words, key=len)) for words in alternatives))
        for first, chunks in self._parts([span]):
            number = first
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
                    if span[0] <= number <= span[1] and any(
                        all(word in row for word in words) for words in alternatives
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
        raise ValueError("a line is named by its mark, such as L12")
    line = int(match["line"])
    if not report.timeline.has_parts:
        return line
    name = match["file"] or ""
    parts = [part for part in report.timeline.parts if name and part.name in (name, name.strip("./"))]
    parts = parts or [part for part in report.timeline.parts if name and part.name.endswith(f"/{name}")]
    if len(parts) != 1:
        raise ValueError(f"the job has several files: name a line as {report.place(1)}")
    return parts[0].first + line - 1
