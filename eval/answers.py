"""What a system says of an incident, in the one form that all systems are scored in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from eval.incidents import Incident
from service.schemas.diagnosis import Diagnosis

NO_FAILURE = "no-failure"


@dataclass(frozen=True)
class Answer:
    """One system's answer.

    `causes` are ranked, the named one first, and empty where nothing is said to have failed; `lines` are
    evidence lines, the most telling first; `changes` pairs of framework and key with the proposed value;
    `retrieved` maps a retriever to its ranked case ids. What a system does not give is None: unscored.
    """

    incident: str
    verdict: str
    causes: tuple[str, ...]
    confidence: float | None
    lines: tuple[int, ...] | None = None
    changes: tuple[tuple[str, str, str], ...] | None = None
    patch: str | None = None
    grounded: tuple[int, int] | None = None
    retrieved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headline: str = ""
    seconds: float = 0.0
    tokens: int = 0

    def record(self) -> dict[str, Any]:
        """Give the fields for a JSON line."""
        return asdict(self)


_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


class System(Protocol):
    """Something that answers incidents."""

    @property
    def name(self) -> str:
        """Name the system in tables."""

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident."""


def of_diagnosis(
    diagnosis: Diagnosis, incident: Incident, seconds: float, retrieved: Mapping[str, tuple[str, ...]]
) -> Answer:
    """Put a Diagnosis into the common form, its claims checked against the log."""
    named = () if diagnosis.cause is None else (diagnosis.cause,)
    return Answer(
        incident.id,
        diagnosis.verdict,
        (*named, *(item.cause for item in diagnosis.alternatives)),
        diagnosis.confidence,
        tuple(item.line for item in diagnosis.evidence),
        tuple((change.framework, change.key, str(change.to)) for change in diagnosis.changes),
        diagnosis.patch,
        _grounded(diagnosis, incident),
        retrieved,
        diagnosis.headline,
        seconds,
    )


def _grounded(diagnosis: Diagnosis, incident: Incident) -> tuple[int, int]:
    """Count the quotes, and those of them that stand in their lines but for what was masked or redrawn."""
    lines = incident.lines
    good = 0
    for item in diagnosis.evidence:
        row = _ESCAPES.sub("", lines[item.line - 1]) if 0 < item.line <= len(lines) else ""
        plain = _letters(row)
        good += all(part in plain for part in map(_letters, item.text.split("[redacted:")[:1]))
    return good, len(diagnosis.evidence)


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
