"""What the log shows of a failure, in paragraphs: the root's line, what followed, what the run survived."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpus.library import Library
from corpus.schema import Language
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.stack import Frame
from service.composition import phrases
from service.composition.evidence import kindred_events
from service.composition.phrases import phrase
from service.remediation.value_traces import ValueTrace, trace_values
from service.scoring.assessment import Assessment

# Where packages are installed says nothing of what was called.
_SITE = re.compile(r"^.*(?:(?:site|dist)-packages|/lib(?:64)?/python3\.\d+)/")
# The first row of a call that goes on below: `raise ValueError(`, `super().__init__(`.
# What a programmer noted behind a statement.
_REMARK = re.compile(r"\s{2,}#\s.*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SAYS_LITTLE = re.compile(r"raise [\w.]+\(\s*[rbuRBU]?[\"']|raise \w+$|\*")
_BEGINNING = re.compile(r"(?:raise |return |await |yield )?[\w.]*(?:\(\))?[\w.]*[(\[{]")
# So many lines above a root what only repeats a failure may announce it.
ANNOUNCED = 2


@dataclass(frozen=True)
class FailureText:
    """The paragraphs about the events of one log; each is empty where there is nothing to tell."""

    assessment: Assessment
    library: Library
    language: Language

    @property
    def _report(self) -> CrashReport:
        return self.assessment.report

    def what_happened(self, told: str = "") -> str:
        """Quote the root's line and say what is known of it in numbers.

        Numbers, and the statement that failed, are left out where the rest of the answer, `told`, has them.
        """
        root = self._report.root
        if root is None:
            return ""
        source = phrase("by", self.language, source=root.source) if root.source else ""
        place = self._report.place(root.line)
        rows = self._facts(root, told)
        if root.count > 1 and not root.silent:
            # Where no prefix tells who printed a line, one stream may be that of many processes.
            name = "repeated" if len(root.sources) > 1 else "repeated-alone"
            rows.append(phrase(name, self.language, count=root.count, streams=len(root.sources)))
        if root.silent:
            ranks = ranks_in_words(root.silent)
            last = ", ".join(
                f"[{self._report.place(line)}] `{inline_code(text, 160)}`"
                for line, text in self._report.last_words
            )
            name = "missing-last" if last else "missing"
            rows.append(phrase(name, self.language, ranks=ranks, count=len(root.ranks), last=last))
        # Where the end is told, the last step stands there.
        is_told = self.assessment.outcome.last_step is not None
        if not is_told and self._report.last_step is not None and self._report.last_step > 0:
            rows.append(phrase("last-step", self.language, step=f"{self._report.last_step:g}"))
        quote = f"[{place}] `{inline_code(root.body)}`{source}"
        parts = (quote, self._raised(root, told), " ".join(dict.fromkeys(rows)))
        return "\n\n".join(part for part in parts if part)

    def compared(self) -> str:
        """Say where else in the log and in the job's settings stands what the failing line names."""
        traces = trace_values(self.assessment)
        rows = [f"- {trace_sentence(trace, self._report, self.language)}" for trace in traces]
        return bulleted("compared", rows, self.language)

    def _raised(self, root: Event, told: str) -> str:
        """Say where the exception was raised, and which call of the job's own code led there."""
        inner, own = (root.frames[-1] if root.frames else None), own_call(root.frames)
        said: list[str] = []
        # Where one can change something comes first.
        if own is not None and own is not inner:
            said.append(self._call("called-own", own, told))
        if inner is not None and inner.line:
            said.append(self._call("raised-own" if own is inner else "raised", inner, told))
        return ("" if self.language == "zh" else " ").join(said)

    def _call(self, name: str, frame: Frame, told: str) -> str:
        file, _, line = (frame.place or f"{_SITE.sub('', frame.file)}:{frame.line}").rpartition(":")
        quoted = inline_code(_REMARK.sub("", frame.code), 160).rstrip(":,")
        # Of a statement of several rows one is quoted; a bare beginning tells nothing, nor do arguments that
        # are handed on. What a statement raises is the message itself.
        is_empty = _BEGINNING.fullmatch(frame.code.strip()) or _SAYS_LITTLE.match(quoted)
        is_told = quoted.removeprefix("assert ") in told
        code = "" if is_empty or is_told or not quoted else phrase("call-code", self.language, code=quoted)
        return phrase(
            name, self.language, file=inline_code(file), line=line, function=frame.function, code=code
        )

    def _facts(self, root: Event, told: str) -> list[str]:
        """Put the root line's facts into sentences; for want of any, those of an event that says more.

        Those whose numbers are `told` are left out.
        """
        lines = [root.line, *(event.line for event in kindred_events(self.assessment, self.library))]
        found = next(
            (
                facts
                for line in lines
                if (
                    facts := [
                        fact for fact in self._report.facts if fact.line == line and phrases.fact(fact, "en")
                    ]
                )
            ),
            [],
        )
        sentences = (phrases.fact(fact, self.language) for fact in found)
        said = [text for text in sentences if text and not _has_numbers(told, text)]
        if self.language == "zh":
            return [f"{text}。" for text in said]
        return [f"{text[0].upper()}{text[1:]}." for text in said]

    def aftermath(self, *, ended_in_failure: bool) -> str:
        """Quote what came after the root, and name the errors that the run recovered from.

        Where the job is known to have failed and no line says why, the errors that it went on after are
        quoted.
        """
        if ended_in_failure and self._report.root is None:
            return self._listed("went-on", self._survived()[-3:])
        rest = [
            event for event in self._report.events if event.role == "collateral" and event.kind != "warning"
        ]
        before = [event for event in rest if self._precedes(event)]
        after = [event for event in rest if event not in before and not self._announces(event)]
        recovered = [
            f"[{self._report.place(event.line)}]"
            for event in self._report.events
            if event.role == "recovered" and not event.earlier_run
        ]
        named = phrase("recovered", self.language, lines=", ".join(recovered[:4])) if recovered else ""
        earlier = [event for event in self._report.events if event.earlier_run and event.kind != "warning"]
        earlier.sort(key=lambda event: event.weight, reverse=True)
        told = (
            self._listed("followed", after[:3]),
            self._listed("preceded", before[:2]),
            named,
            self._listed("earlier-run", earlier[:1]),
        )
        return "\n\n".join(part for part in told if part)

    def _precedes(self, event: Event) -> bool:
        """Tell whether an event was over before the root; what only announces the root is part of it."""
        root, timeline = self._report.root, self._report.timeline
        if root is None or timeline.number(event.line) != timeline.number(root.line):
            return False
        lead = ANNOUNCED if event.pattern_role == "wrapper" else 0
        return self._begin(root) - event.last > lead

    def _begin(self, root: Event) -> int:
        """Give the line at which the root's report begins: its traceback, or that of an exception around it.

        Ray prints the outer exception first, and below its line the frames of the one that it came of.
        """
        begin = root.traceback or root.line
        above = sorted(self._report.events, key=lambda event: event.line, reverse=True)
        for event in above:
            if event.traceback and event.line == event.last == begin:
                begin = event.traceback
        return begin

    def _announces(self, event: Event) -> bool:
        """Tell whether an event only announces the root in the rows right above it."""
        root = self._report.root
        return (
            root is not None
            and event.pattern_role == "wrapper"
            and 0 < self._begin(root) - event.last <= ANNOUNCED
            and self._report.timeline.number(event.line) == self._report.timeline.number(root.line)
        )

    def survived(self) -> str:
        """Quote the latest errors that the program went on after."""
        return self._listed("survived", self._survived()[-3:])

    def _survived(self) -> list[Event]:
        return [
            event
            for event in self._report.events
            if event.role in ("recovered", "teardown") and not event.usual
        ]

    def novel(self) -> str:
        """Quote what a healthy run of the job does not print."""
        rows = [
            f"- [{self._report.place(number)}] `{inline_code(text, 200)}`"
            for number, text in self._report.novel
        ]
        return bulleted("novel", rows, self.language)

    def _listed(self, title: str, events: Iterable[Event]) -> str:
        rows = []
        for event in events:
            often = f" ×{event.count}" if event.count > 1 else ""
            if event.missing:
                often += f" ({phrase('not-by', self.language, ranks=ranks_in_words(event.missing))})"
            rows.append(f"- [{self._report.place(event.line)}] `{inline_code(event.body, 300)}`{often}")
        return bulleted(title, rows, self.language)


def trace_sentence(trace: ValueTrace, report: CrashReport, language: Language) -> str:
    """Say what else the job tells of a value, with the place."""
    where = f"[{report.place(trace.line)}]" if trace.line else phrase("own-file", language)
    values = {name: inline_code(value) for name, value in trace.values.items()}
    return phrase(f"trace-{trace.kind}", language, where=where, **values)


def bulleted(title: str, rows: Sequence[str], language: Language) -> str:
    """Put a sentence above a list; empty where the list is."""
    return "\n".join([phrase(title, language), "", *rows]) if rows else ""


def _has_numbers(told: str, text: str) -> bool:
    """Tell whether a text tells all the numbers of another one."""
    first, second = (set(map(float, _NUMBER.findall(one.replace(",", "")))) for one in (told, text))
    return bool(second) and second <= first


def inline_code(text: str, limit: int = 400) -> str:
    """Give text that can stand between backticks."""
    return text.replace("`", "'")[:limit].strip()


def ranks_in_words(numbers: Sequence[int]) -> str:
    """List ranks, of many the first ones with their number."""
    shown = ", ".join(map(str, numbers[:8]))
    return shown + (f" ... ({len(numbers)})" if len(numbers) > 8 else "")
