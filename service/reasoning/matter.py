"""What a model is told about, and what its answer is later checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corpus.library import Library
from corpus.schema import Language
from ingest.logs.report import CrashReport
from service.diagnosis import Diagnosis, Dropped, ProposedChange
from service.reasoning.candidates import Candidate, weigh
from service.reasoning.changes import propose, value_of
from service.reasoning.models import Message
from service.retrieval import Retrieval

MAX_CANDIDATES = 6
# Cases beyond those that the first answer has drawn its changes from.
MORE_CASES = 6


@dataclass(frozen=True)
class Matter:
    """All that is known of one job's death. `offered` are changes that are checked, the first answer's own first."""

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

    `lines` maps a line's mark (`L12`, `rank3.log:L12`) to its text as sent, `numbers` to its number in the report;
    `ours` is the text that is not the log's; `omitted` counts what there was no room for; `suspects` lines that
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


def gather(
    report: CrashReport, retrieval: Retrieval, library: Library, first: Diagnosis, language: Language
) -> Matter:
    """Put together what a model is told of a first answer."""
    candidates = tuple(weigh(report, retrieval, library)[:MAX_CANDIDATES])
    return Matter(report, retrieval, library, first, language, candidates, _offered(report, retrieval, library, first, language))


def _offered(
    report: CrashReport, retrieval: Retrieval, library: Library, first: Diagnosis, language: Language
) -> tuple[ProposedChange, ...]:
    """Give the first answer's changes, then those of further cases of the same cause that fit the job."""
    if first.verdict != "diagnosed":
        return ()
    cases = [match.case for match in retrieval.signatures if match.case.cause == first.cause][:MORE_CASES]
    made, _ = propose(cases, report, library, report.settings, language)
    told = {(change.framework, change.key) for change in first.changes}
    # The job's own files are not at hand here; where they hold a value, the first answer knows it better.
    more = [change for change in made if (change.framework, change.key) not in told and _is_news(change, first.engine.dropped)]
    return (*first.changes, *more)


def _is_news(change: ProposedChange, dropped: Sequence[Dropped]) -> bool:
    return not any(f"{change.framework}: {change.key}" in item.what for item in dropped)


def held(key: str, matter: Matter) -> str | None:
    """Give the job's value of a setting as the log shows it."""
    return value_of(key, matter.report.settings)
