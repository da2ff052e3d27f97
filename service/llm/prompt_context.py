"""What a model is told about, and what its answer is later checked against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from corpus.library import Library
from corpus.schema import Language
from ingest.logs.report import CrashReport
from service.llm.models import ChatMessage
from service.llm.triage_context import TriageContext
from service.remediation.proposals import further_changes
from service.schemas.diagnosis import Diagnosis, ProposedChange
from service.scoring.assessment import Assessment
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate

MAX_CANDIDATES = 6


@dataclass(frozen=True)
class PromptContext:
    """All that is known of one job's death.

    `offered` are changes that are checked, the first answer's own first.
    """

    assessment: Assessment
    library: Library
    first: Diagnosis
    language: Language
    offered: tuple[ProposedChange, ...]

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
    more = further_changes(assessment, first, library, triage_context.language)
    return PromptContext(assessment, library, first, triage_context.language, (*first.changes, *more))
