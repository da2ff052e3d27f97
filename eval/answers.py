"""The answer of a system under evaluation: one type for all systems, which `eval.metrics` scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from eval.incidents import Incident
from service.schemas.diagnosis import Diagnosis, ProposedChange

NO_FAILURE = "no-failure"


@dataclass(frozen=True)
class Answer:
    """One system's answer.

    `causes` are ranked ids of causes.yaml, empty for `no-failure`; `confidence` is the probability that the
    first is right. `lines` are evidence lines (from 1), most important first; `changes` are (framework, key,
    value) of what may cure, `faults` what is wrong with any of them whatever the cause is; `patch` is a
    unified diff; `grounded` is (quotes found at their line, quotes); `retrieved` maps a retriever to its
    ranked case ids. What a system does not give is None and is not scored. `seconds` is wall time. `vote` is
    what a model that was asked decided for, `calls` how often it looked further, None where it could not;
    `note` is what the answer says of the model. `standing` is what the verdict rests on, empty where the
    system does not tell.
    """

    incident: str
    verdict: str
    causes: tuple[str, ...]
    confidence: float | None
    lines: tuple[int, ...] | None = None
    changes: tuple[tuple[str, str, str], ...] | None = None
    faults: tuple[str, ...] | None = None
    patch: str | None = None
    grounded: tuple[int, int] | None = None
    retrieved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headline: str = ""
    seconds: float = 0.0
    tokens: int = 0
    vote: str = ""
    calls: int | None = None
    note: str = ""
    standing: str = ""

    def record(self) -> dict[str, Any]:
        """Give the fields for a JSON line."""
        return asdict(self)


_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


class System(Protocol):
    """A system under evaluation."""

    @property
    def name(self) -> str:
        """The system's name in tables."""

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident."""


def of_diagnosis(
    diagnosis: Diagnosis,
    incident: Incident,
    seconds: float,
    retrieved: Mapping[str, tuple[str, ...]],
    faults: tuple[str, ...] | None = None,
) -> Answer:
    """Convert a Diagnosis; its quotes are checked against the log."""
    named = () if diagnosis.cause is None else (diagnosis.cause,)
    return Answer(
        incident.id,
        diagnosis.verdict,
        (*named, *(item.cause for item in diagnosis.alternatives)),
        diagnosis.confidence,
        tuple(incident.line_of(item.file, item.line) for item in diagnosis.evidence),
        tuple(
            (change.framework, change.key, _told(change))
            for change in diagnosis.changes
            if change.purpose == "cure"
        ),
        faults,
        diagnosis.patch,
        _grounded(diagnosis, incident),
        retrieved,
        diagnosis.headline,
        seconds,
        standing=diagnosis.standing,
    )


def _told(change: ProposedChange) -> str:
    """Give what a change becomes; of a row of code that is told apart from its new form, both."""
    is_row = change.kind == "code" and change.from_ is not None
    return f"{change.from_} -> {change.to}" if is_row else str(change.to)


def _grounded(diagnosis: Diagnosis, incident: Incident) -> tuple[int, int]:
    """Give (quotes that stand at their line, quotes).

    Compared by letters and digits alone, up to the first redaction, as escapes and masks change the rest.
    """
    lines = incident.lines
    good = 0
    for item in diagnosis.evidence:
        line = incident.line_of(item.file, item.line)
        row = _ESCAPES.sub("", lines[line - 1]) if 0 < line <= len(lines) else ""
        plain = _letters(row)
        good += all(part in plain for part in map(_letters, item.text.split("[redacted:")[:1]))
    return good, len(diagnosis.evidence)


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
