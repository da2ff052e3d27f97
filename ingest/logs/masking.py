"""Mask and cut what is kept of a log: no part of the report holds anything that did not pass here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from corpus.log_patterns import Pattern
from ingest.logs.configs.launch import Setting
from ingest.logs.context_lines import uncut
from ingest.logs.facts import Value, typed
from ingest.logs.lines import Line, parse_line
from ingest.logs.stacks.tracebacks import Frame, Traceback
from ingest.redaction.redactor import Redactor

# How many characters are kept of a line, of a line of source code and of a file's path.
SHOWN, CODE, PATH = 2000, 200, 400


class Masking:
    """The redaction of one job's output, by what is kept of it."""

    def __init__(self) -> None:
        self.redactor = Redactor()

    @property
    def count(self) -> int:
        """Give how many secrets were masked so far."""
        return self.redactor.count

    def clean(self, text: str) -> str:
        """Mask a text that is kept whole."""
        return self.redactor.clean(text)

    def are_clear(self, *texts: str) -> bool:
        """Tell whether texts hold no secret; what is not known of is searched."""
        return self.redactor.are_clear(texts) or all(self.redactor.clean(text) is text for text in texts)

    def size_of_clear(self, line: Line) -> int:
        """Give how many bytes are searched of a line that is clear whatever its digits are.

        0 where that is not known.
        """
        texts = line.text, line.body
        is_clear = line.text.isascii() and self.redactor.are_of_clear_shapes(texts)
        return sum(map(len, texts)) if is_clear else 0

    def shown(self, text: str, pattern: Pattern | None = None) -> str:
        """Mask, then cut around what `pattern` matches.

        A secret that the cut would halve could no longer be told.
        """
        match = pattern.compiled.search(text) if pattern is not None and len(text) > SHOWN else None
        text = self.redactor.clean(text)
        begin = max(0, min((match.start() if match else 0) - SHOWN // 2, len(text) - SHOWN))
        return text[begin : begin + SHOWN]

    def frames(self, traceback: Traceback) -> tuple[Frame, ...]:
        """Give a traceback's frames as they may be shown."""
        clean = self.redactor.clean
        return tuple(
            Frame(
                clean(frame.file)[-PATH:],
                frame.line,
                clean(frame.function)[:CODE],
                clean(frame.code)[:CODE],
                clean(frame.failing)[:CODE],
            )
            for frame in traceback.frames
        )

    def fields(self, pattern: Pattern, line: Line) -> dict[str, Value]:
        """Give the values that a pattern's named groups find in a line."""
        match = pattern.compiled.search(line.text) if pattern.compiled.groupindex else None
        fields = typed(match.groupdict()) if match else {}
        return {
            key: self.redactor.clean(value) if isinstance(value, str) else value
            for key, value in fields.items()
        }

    def settings(self, found: Iterable[Setting]) -> list[Setting]:
        """Give settings whose keys tell which values are secrets."""
        redactor = self.redactor
        return [
            replace(item, key=redactor.clean(item.key), value=redactor.value(item.key, item.value))
            for item in found
        ]

    def rows(self, rows: Sequence[tuple[int, bytes]]) -> tuple[tuple[int, str], ...]:
        """Give numbered raw rows as they may be shown."""
        cleaned = self.redactor.rows(
            [parse_line(uncut(raw, self.redactor.clean), number).text for number, raw in rows]
        )
        return tuple((number, text) for (number, _), text in zip(rows, cleaned, strict=True))
