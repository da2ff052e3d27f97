"""What a model is told about, and what its answer is later checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corpus.library import Library
from corpus.schema import Language
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.llm.models import Message
from service.remediation.changes import propose_changes
from service.schemas.diagnosis import Diagnosis, ProposedChange
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate, rank_causes
from service.scoring.telemetry_evidence import evaluate_rules, weigh_candidates
from service.telemetry.snapshot import Snapshot

MAX_CANDIDATES = 6
# Cases beyond those that the first answer has drawn its changes from.
MORE_CASES = 6
MAX_CHANGES = 6


@dataclass(frozen=True)
class PromptContext:
    """All that is known of one job's death.

    `offered` are changes that are checked, the first answer's own first.
    """

    report: CrashReport
    retrieval: Retrieval
    library: Library
    first: Diagnosis
    language: Language
    candidates: tuple[Candidate, ...]
    offered: tuple[ProposedChange, ...]


@dataclass(frozen=True)
class Prompt:
    """What is sent, and what an answer to it may draw on.

    `lines` maps a line's mark (`L12`, `rank3.log:L12`) to its text as sent, `numbers` to its number in the
    report;
    `ours` is the text that is not the log's; `omitted` counts what there was no room for; `suspects` lines
    that
    speak to a model.
    """

    messages: tuple[Message, ...]
    lines: Mapping[str, str]
    numbers: Mapping[str, int]
    cases: frozenset[str]
    ours: str
    tokens: int
    omitted: Mapping[str, int] = field(default_factory=dict)
    suspects: int = 0


def gather_context(
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
    first: Diagnosis,
    language: Language,
    settings: Sequence[Setting],
    telemetry: Snapshot | None = None,
) -> PromptContext:
    """Put together what a model is told of a first answer.

    `settings` are the job's, those of its own files first.
    """
    found = weigh_candidates(
        rank_causes(report, retrieval, library), evaluate_rules(telemetry, report), report, retrieval, library
    )
    candidates = tuple(found[:MAX_CANDIDATES])
    offered = (*first.changes, *_more(report, retrieval, library, first, language, settings))
    return PromptContext(report, retrieval, library, first, language, candidates, offered)


def _more(
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
    first: Diagnosis,
    language: Language,
    settings: Sequence[Setting],
) -> list[ProposedChange]:
    """Give checked changes of further cases of the same cause that fit the job."""
    if first.verdict != "diagnosed":
        return []
    cases = [match.case for match in retrieval.signatures if match.case.cause == first.cause][:MORE_CASES]
    made, _ = propose_changes(cases, report, library, settings, language)
    told = {(change.framework, change.key) for change in first.changes}
    return [change for change in made if (change.framework, change.key) not in told][
        : max(0, MAX_CHANGES - len(told))
    ]
