"""What a model is told about, and what its answer is later checked against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from corpus.library import Library
from corpus.message import words
from corpus.schema import Language
from ingest.logs.inputs.members import is_output
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from service.llm.call_lines import call_lines
from service.llm.deciding_lines import deciding_lines, quoting_lines
from service.llm.file_remarks import edited_files, foreign_files
from service.llm.models import ChatMessage
from service.llm.telling_rows import telling_lines
from service.llm.triage_context import TriageContext
from service.remediation.proposals import further_changes
from service.schemas.diagnosis import Diagnosis, ProposedChange
from service.scoring.assessment import Assessment
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate

MAX_CANDIDATES = 6
# Last rows of an output beside the log that are looked at, those that fail of them, and its very last.
LOOKED_AT, MOST_BESIDE, LAST_BESIDE = 40, 12, 6


@dataclass(frozen=True)
class PromptContext:
    """All that is known of one job's death.

    `offered` are changes that are checked, the first answer's own first. `beside` are rows of outputs that
    were given as files of the job's, each with its file's name: those that fail, and the last. `telling` are
    the numbers of rows that may decide though no rule knows them. `may_look` tells that the model has tools.
    """

    assessment: Assessment
    library: Library
    first: Diagnosis
    language: Language
    offered: tuple[ProposedChange, ...]
    beside: tuple[str, ...] = ()
    telling: frozenset[int] = frozenset()
    may_look: bool = False

    @property
    def report(self) -> CrashReport:
        """What the job's output tells."""
        return self.assessment.report

    @property
    def retrieval(self) -> Retrieval:
        """The cases, notes and past crashes found for it."""
        return self.assessment.retrieval

    def with_lines(self, rows: Mapping[int, str]) -> PromptContext:
        """Give the same with lines beside those that the report holds, such as those that a tool showed."""
        report = self.report
        new = [(number, text) for number, text in rows.items() if number not in report.texts]
        if not new:
            return self
        report = replace(report, nearby=(*report.nearby, *new))
        return replace(self, assessment=replace(self.assessment, report=report))

    @cached_property
    def edited(self) -> Mapping[str, str]:
        """Files that are not as they were when the job ran, each with what tells it."""
        return edited_files(self.report, self.assessment.settings, self.language)

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Files that are not of this run."""
        return foreign_files(self.report)

    def remark_on(self, file: str) -> str:
        """Say of a file that it is not what ran; the empty string where it is."""
        return words("prompt.foreign", self.language) if file in self.foreign else self.edited.get(file, "")

    @cached_property
    def deciding(self) -> frozenset[int]:
        """Lines that are shown whole: the root's, and those that the first answer rests on."""
        report = self.report
        proof = {row.place for row in self.first.evidence}
        lines = {event.line for event in report.events if str(report.place(event.line)) in proof}
        return frozenset(lines | ({report.root.line} if report.root else set()))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The causes that a model is told of, the likeliest first."""
        return self.assessment.candidates[:MAX_CANDIDATES]


@dataclass(frozen=True)
class Prompt:
    """What is sent, and what an answer to it may draw on.

    `lines` maps a line's mark (`L12`, `rank3.log:L12`) to its text as sent, `numbers` to its number in the
    report; `ours` is the text that is not the log's; `omitted` counts what there was no room for; `suspects`
    lines that speak to a model; `looked` is what tools have shown since; `has_telemetry` tells that
    telemetry may be cited.
    """

    messages: tuple[ChatMessage, ...]
    lines: Mapping[str, str]
    numbers: Mapping[str, int]
    cases: frozenset[str]
    ours: str
    tokens: int
    omitted: Mapping[str, int] = field(default_factory=dict)
    suspects: int = 0
    looked: tuple[str, ...] = ()
    has_telemetry: bool = False


def build_prompt_context(triage_context: TriageContext) -> PromptContext:
    """Put together what a model is told of a first answer."""
    assessment, library, first = triage_context.assessment, triage_context.library, triage_context.first
    further = further_changes(assessment, first, library, triage_context.language)
    beside = tuple(_beside(triage_context))
    offered = (*first.changes, *further)
    report, reopen = assessment.report, triage_context.reopen
    telling = {**telling_lines(report, reopen), **quoting_lines(report, reopen)}
    prompt_context = PromptContext(
        assessment, library, first, triage_context.language, offered, beside, frozenset(telling)
    )
    more = {**deciding_lines(report, reopen), **call_lines(report, reopen)}
    return prompt_context.with_lines({**telling, **more})


def _beside(triage_context: TriageContext) -> Iterator[str]:
    """Give the rows that tell of outputs which came as files of the job's, such as a scheduler's `.err`."""
    for file in filter(lambda file: is_output(file.name), triage_context.files):
        rows = Redactor().clean(file.text).split("\n")
        filled = [place for place, row in enumerate(rows) if row.strip()][-LOOKED_AT:]
        fails = triage_context.fails or (lambda _: False)
        told = {place for place in filled if fails(rows[place])}
        for place in sorted({*sorted(told)[-MOST_BESIDE:], *filled[-LAST_BESIDE:]}):
            yield f"{file.name}:{place + 1}: {rows[place]}"
