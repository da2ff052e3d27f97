"""Let a snapshot speak: it decides, confirms or contradicts causes, with the readings that it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from corpus.condition_nodes import ConditionResult, SeenReading
from corpus.library import Library
from corpus.message import edited, words
from corpus.schema import Language
from ingest.logs.lines import printable
from ingest.logs.report import CrashReport
from ingest.redaction.redactor import Redactor
from service.schemas.diagnosis import UNKNOWN_CAUSE, CauseTelemetry, Telemetry, TelemetryReading
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate, candidate_of
from service.telemetry import rules
from service.telemetry.conditions import SnapshotContext
from service.telemetry.crash_time import crash_time
from service.telemetry.rules import TelemetryRule
from service.telemetry.snapshot import Snapshot

# How many times likelier a full confirmation makes a cause, less one.
CONFIRMED = 4.0
# What is left of a cause that is shown itself, where one that lies behind it is shown too.
EXPLAINED = 0.1
# How many times over reasons of the same kind count: three rules may read the same event.
MAX_VOTES = 2
MAX_READINGS = 12
MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class TelemetryFinding:
    """A rule that the log is one for, and what the snapshot makes of it."""

    rule: TelemetryRule
    outcome: ConditionResult


@dataclass(frozen=True)
class TelemetryFindings:
    """All that a snapshot says of one crash; without a snapshot, nothing."""

    snapshot: Snapshot | None
    crash: float | None = None
    found: tuple[TelemetryFinding, ...] = ()

    def holding(self, cause: str) -> list[TelemetryFinding]:
        """Give the rules about a cause that hold, the weightiest first."""
        about = [item for item in self.found if cause in item.rule.causes and item.outcome.holds]
        return sorted(about, key=lambda item: -item.rule.weight)

    @property
    def decided(self) -> dict[str, float]:
        """Give the causes that the snapshot shows, each with its surest rule's weight, the surest first."""
        found = [item.rule for item in self.found if item.rule.effect == "decides" and item.outcome.holds]
        surest = {
            cause: rule.weight
            for rule in sorted(found, key=lambda rule: rule.weight)
            for cause in rule.causes
        }
        return dict(sorted(surest.items(), key=lambda item: -item[1]))


def evaluate_rules(snapshot: Snapshot | None, report: CrashReport) -> TelemetryFindings:
    """Ask every rule that the log is one for."""
    if snapshot is None:
        return TelemetryFindings(None)
    offset = snapshot.host.utc_offset_s.value or 0.0
    crash = crash_time(report, snapshot.taken_at.year, offset)
    context, table = SnapshotContext(snapshot, crash), rules.load_rules()
    shown = [rule for rule in table.rules if table.shown(rule, report)]
    return TelemetryFindings(
        snapshot, crash, tuple(TelemetryFinding(rule, table.outcome(rule, context)) for rule in shown)
    )


def weigh_by_telemetry(
    candidates: Sequence[Candidate],
    findings: TelemetryFindings,
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
) -> list[Candidate]:
    """Give the candidates with their probabilities as the snapshot leaves them, the likeliest first."""
    if report.root is None or not any(item.outcome.holds for item in findings.found):
        return list(candidates)
    decided = {cause: weight for cause, weight in findings.decided.items() if cause in library.causes}
    there = {candidate.cause for candidate in candidates}
    only_shown = [cause for cause in decided if cause not in there]
    both = [*candidates, *(candidate_of(cause, "supported", report, retrieval) for cause in only_shown)]
    shares = {item.cause: _share(item, findings, decided, library) for item in both}
    # What speaks against a cause does not speak for another one: it makes the log tell less.
    lost = sum(max(0.0, item.probability - shares[item.cause]) for item in both if item.cause not in decided)
    doubt = lost + (candidates[0].doubt if candidates else 1.0)
    total = doubt + sum(shares.values())
    placed = [
        replace(
            item,
            probability=shares[item.cause] / total,
            doubt=doubt / total,
            standing=(
                "supported" if item.standing == "hypothesis" and item.cause in decided else item.standing
            ),
        )
        for item in both
    ]
    return sorted(placed, key=lambda candidate: (-candidate.probability, -candidate.score))


def _share(
    candidate: Candidate, findings: TelemetryFindings, decided: Mapping[str, float], library: Library
) -> float:
    """Give a cause's share against the others'; with doubt they were 1 before the snapshot spoke."""
    share = candidate.probability
    held = findings.holding(candidate.cause)
    for item in [item for item in held if item.rule.effect == "confirms"][:MAX_VOTES]:
        share *= 1.0 + CONFIRMED * item.rule.weight
    if weight := decided.get(candidate.cause, 0.0):
        share += weight / (1.0 - weight)
        if any(candidate.cause in library.causes[deeper].explains for deeper in decided):
            share *= EXPLAINED
    for item in [item for item in held if item.rule.effect == "contradicts"][:MAX_VOTES]:
        share *= 1.0 - item.rule.weight
    return share


def telemetry_of(
    findings: TelemetryFindings, named: str | None, others: Iterable[str], language: Language
) -> Telemetry:
    """Say what the snapshot says of the named cause and of the others."""
    if findings.snapshot is None:
        return Telemetry(says="not available", why=words("answer.telemetry-not-given", language))
    wanted = dict.fromkeys(
        cause for cause in (named, *findings.decided, *others) if cause and cause != UNKNOWN_CAUSE
    )
    causes = tuple(_telemetry_of(cause, findings, language) for cause in wanted)
    first = next((item for item in causes if item.cause == named), None)
    return Telemetry(
        says=first.says if first else "not available",
        why=first.why if first else words("answer.telemetry-no-cause", language),
        taken_at=findings.snapshot.taken_at.isoformat(),
        sources=tuple(Redactor().clean(printable(source))[:MAX_TEXT] for source in findings.snapshot.sources),
        causes=causes,
    )


def _telemetry_of(cause: str, findings: TelemetryFindings, language: Language) -> CauseTelemetry:
    about = [item for item in findings.found if cause in item.rule.causes]
    held = findings.holding(cause)
    if not held:
        return _open(cause, about, language)
    against = max((item.rule.weight for item in held if item.rule.effect == "contradicts"), default=0.0)
    pro = max((item.rule.weight for item in held if item.rule.effect != "contradicts"), default=0.0)
    chosen = [item for item in held if (item.rule.effect == "contradicts") is (against > pro)]
    return CauseTelemetry(
        cause=cause,
        says="contradicts" if against > pro else "agrees",
        why=(" " if language == "en" else "").join(item.rule.why.to(language) for item in chosen[:3]),
        rules=tuple(item.rule.id for item in held),
        readings=_readings(item.outcome for item in held),
    )


def _open(cause: str, about: Sequence[TelemetryFinding], language: Language) -> CauseTelemetry:
    """Say why nothing is said of a cause: nobody measured it, or what was measured tells neither way."""
    missing = [item.outcome for item in about if item.outcome.holds is None]
    if not about or missing:
        why = "answer.telemetry-not-measured" if missing else "answer.telemetry-no-rule"
        return CauseTelemetry(
            cause=cause,
            says="not available",
            why=words(why, language),
            readings=_readings(missing, known=False),
        )
    return CauseTelemetry(
        cause=cause,
        says="neither",
        why=words("answer.telemetry-neither", language),
        rules=tuple(item.rule.id for item in about),
        readings=_readings(item.outcome for item in about),
    )


def _readings(outcomes: Iterable[ConditionResult], known: bool = True) -> tuple[TelemetryReading, ...]:
    found: dict[str, SeenReading] = {}
    for outcome in outcomes:
        for seen in (item for item in outcome.seen if known or item.value is None):
            found.setdefault(f"{seen.name}={seen.value}", seen)
    # A snapshot's file is as little to be trusted as a log: names and messages in it may hold anything.
    clean = Redactor().clean
    return tuple(
        TelemetryReading(
            name=clean(printable(item.name)),
            value=clean(printable(item.value))[:MAX_TEXT] if isinstance(item.value, str) else item.value,
            unavailable=None
            if item.unavailable is None
            else edited(item.unavailable, lambda text: clean(printable(text))[:MAX_TEXT]),
        )
        for item in list(found.values())[:MAX_READINGS]
    )
