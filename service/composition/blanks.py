"""Words in capitals that a check or a step leaves to its reader: filled from the log, or told how to find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.schema import Blank, Language
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from service.composition.message_forms import FormedMessage, fact_value
from service.composition.phrases import phrase

# What a log says goes into a command only where a shell can make nothing else of it.
PLAIN = re.compile(r"(?!-)[\w./:@%+,-]{1,200}", re.ASCII)
# What a blank's value may come from besides a fact.
OTHER_VALUES = ("message.", "config.", "own.", "raised.", "checkpoint.")
_PACKAGE = re.compile(r"(?:site|dist)-packages/(\w+)")
# A variable (`$PATH`, `MASTER_PORT`) and a part of a name or a path are no blanks.
_WORD = re.compile(r"(?<![\w$./{=-])[A-Z][A-Z_]{2,}(?![\w}=])")


@dataclass(frozen=True)
class LogValues:
    """What a log tells for the blanks of commands: plain values, by the names that a `Blank` may give."""

    report: CrashReport
    library: Library
    message: FormedMessage | None = None

    def value(self, name: str) -> str | None:
        """Give what the log tells under a name (`port.port`), if it is plain enough for a command."""
        return next((value for value in self._values_named(name) if PLAIN.fullmatch(value)), None)

    def filled(self, text: str, language: Language) -> tuple[str, str]:
        """Give a check or a command with its blanks filled, and how those are found that stay."""
        open_blanks: dict[str, Blank] = {}

        def fill(found: re.Match[str]) -> str:
            blank = self._blanks.get(found[0])
            if blank is None:
                return found[0]
            told = next((value for name in blank.values if (value := self.value(name))), None)
            if told is None:
                open_blanks[blank.word] = blank
                return found[0]
            return known_frameworks().modules.get(told, told) if blank.installs else told

        made = _WORD.sub(fill, text)
        apart = "；" if language == "zh" else "; "
        return made, apart.join(f"{word}: {blank.find.to(language)}" for word, blank in open_blanks.items())

    def checks(self, texts: Iterable[str], language: Language) -> Iterator[str]:
        """Give checks with their blanks filled; how a blank is found is said once."""
        told: set[str] = set()
        for text in texts:
            made, notes = self.filled(text, language)
            yield with_notes(made, "" if notes in told else notes, language)
            told.add(notes)

    @cached_property
    def _blanks(self) -> Mapping[str, Blank]:
        return {blank.word: blank for blank in reversed(self.library.blanks)}

    def _values_named(self, name: str) -> Iterator[str]:
        kind, _, part = name.partition(".")
        if kind == "message":
            yield from filter(None, [self.message.values.get(part) if self.message else None])
        elif kind == "config":
            for item in self.report.view().items(f"config:{part}") or ():
                yield str(item.look_up(f"config:{part}").value)
        elif kind in ("own", "raised"):
            yield from self._of_calls(name)
        elif kind == "checkpoint":
            # Where the last one lies, the others do.
            saved = self.report.checkpoint
            yield from filter(None, [saved.path.rstrip("/").rpartition("/")[0] if saved else ""])
        elif (told := fact_value(self.report, name)) is not None:
            yield told

    def _of_calls(self, name: str) -> Iterator[str]:
        """Give the file of the job's own call, or the package whose code raised the root."""
        frames = self.report.root.frames if self.report.root else ()
        if name == "own.file" and (own := own_call(frames)) is not None:
            yield own.file
        elif name == "raised.package" and frames and (found := _PACKAGE.search(frames[-1].file)):
            yield found[1]


def with_notes(text: str, notes: str, language: Language) -> str:
    """Put how a text's blanks are found behind it."""
    return phrase("with-blanks", language, text=text, notes=notes) if notes else text
