"""The composer: the full answer without a model, from an assessment, the cases and the causes."""

from __future__ import annotations

from dataclasses import replace

from ulid import ULID

from corpus.library import Library
from corpus.message import CHINESE, language_of_user
from corpus.schema import Action, Language
from ingest.logs.conditions import all_hold
from ingest.logs.prose import is_written_in_chinese
from ingest.logs.report import CrashReport
from service.composition import reasons
from service.composition.alternatives import alternatives_of
from service.composition.blanks import LogValues
from service.composition.code_advice import since_words, with_code_advice
from service.composition.curves import curves_of
from service.composition.evidence import cascade_of, evidence_of
from service.composition.explanation import Explanation
from service.composition.failure_text import ranks_in_words
from service.composition.job_end import JobEnd
from service.composition.phrases import phrase
from service.composition.resumption import resumption_of
from service.composition.source_places import read_statements, source_places
from service.remediation.bool_options import told_of_bool
from service.remediation.guesses import is_advised
from service.remediation.proposals import Proposals, propose
from service.schemas.diagnosis import (
    UNKNOWN_CAUSE,
    CaseHit,
    Diagnosis,
    Engine,
    ReadLimits,
    SeenFramework,
    Votes,
)
from service.scoring.assessment import Assessment
from service.scoring.retrieval import RankedHit
from service.scoring.telemetry_evidence import telemetry_of
from service.scoring.verdict import Conclusion, conclude

MAX_CASES = 5
# Causes whose probability an answer gives, and the least that it gives.
MAX_VOTES, LEAST_VOTE = 4, 0.01


def language_of(report: CrashReport, wanted: str) -> Language:
    """Choose the language of an answer.

    As asked, else that of what somebody wrote around a pasted log, of the log, or of the user's variables.
    """
    if wanted in ("en", "zh"):
        return "zh" if wanted == "zh" else "en"
    shown = " ".join(text for _, text in (*report.surroundings, *report.tail))
    if len(CHINESE.findall(shown)) * 12 > len(shown) > 0:
        return "zh"
    if report.is_whole and is_written_in_chinese(report.texts.values()):
        return "zh"
    return language_of_user()


def compose(assessment: Assessment, library: Library, language: Language) -> Diagnosis:
    """Answer for one job."""
    report = assessment.report
    judged = conclude(assessment, library)
    cause = judged.cause
    end = JobEnd(assessment.outcome, report, library, language)
    # What the machine says of the named cause and of the others.
    others = [item.cause for item in assessment.candidates[:4]]
    said = telemetry_of(assessment.findings, cause.id if cause else None, others, language)
    telemetry = reasons.translate_readings(said, language)
    is_diagnosed = judged.verdict == "diagnosed"
    proposals = Proposals()
    if is_diagnosed:
        proposals = propose(assessment, judged.cases, library, language, judged.standing)
    proposed = told_of_bool(proposals.changes, report, language)
    cures = [change for change in proposed if is_advised(change) and change.kind != "code"]
    words = Explanation(assessment, judged, end, telemetry, library, language, tuple(cures))
    advised = with_code_advice(proposed, words.message, cause, assessment, language)
    since = since_words(advised, report, language)
    words = replace(words, step=advised.step, unhelpful=proposals.unhelpful, since=since)
    return Diagnosis(
        id=str(ULID()),
        source=report.source,
        verdict=judged.verdict,
        cause=cause.id if cause else None,
        category=cause.category if cause else None,
        confidence=judged.confidence,
        standing=judged.standing,
        action=_action(judged, end),
        alternatives=alternatives_of(assessment, judged.verdict, library, language),
        headline=words.headline,
        explanation=words.text,
        evidence=() if cause is None else evidence_of(assessment, library, language),
        sources=source_places(assessment, library, words.message),
        statements=read_statements(assessment, library),
        cascade=cascade_of(report),
        cases=tuple(_hit(item, library, language) for item in assessment.retrieval.ranked[:MAX_CASES]),
        changes=advised.changes,
        checks=_checks(judged, end, library, language, LogValues(report, library, words.message)),
        frameworks=_frameworks(report),
        curves=curves_of(report),
        telemetry=telemetry,
        engine=Engine(
            votes=Votes(rules=_rules_votes(assessment)),
            dropped=reasons.translate_reasons(proposals.dropped, language),
        ),
        outcome=assessment.outcome,
        resumption=None if judged.has_ended else resumption_of(report),
        seconds=report.timeline.seconds,
        fingerprint="" if cause is None else report.fingerprint,
        confirmed=assessment.confirmed,
        redactions=report.redactions,
        limits=ReadLimits(
            bytes=report.limits.bytes,
            lines=report.limits.lines,
            truncated=report.limits.truncated,
            cut=report.limits.cut,
            omitted=dict(report.limits.omitted),
        ),
    )


def _rules_votes(assessment: Assessment) -> dict[str, float]:
    """Give what the assessment holds for its likeliest causes, and that the log does not tell."""
    shares = {item.cause: item.probability for item in assessment.candidates[:MAX_VOTES]}
    if assessment.doubt:
        shares.setdefault(UNKNOWN_CAUSE, assessment.doubt)
    return {name: round(share, 3) for name, share in shares.items() if share >= LEAST_VOTE}


def _action(judged: Conclusion, end: JobEnd) -> Action:
    if judged.cause is None:
        return "none" if judged.has_ended else "collect-more"
    if judged.verdict != "diagnosed":
        return "collect-more"
    return end.action or (judged.cases[0].action if judged.cases else judged.cause.action)


def _checks(
    judged: Conclusion, end: JobEnd, library: Library, language: Language, known: LogValues
) -> tuple[str, ...]:
    view = known.report.view()
    if judged.cause is None:
        # Nothing failed; where no end was seen either, say how to find out. Requests have their own causes.
        refusal = end.refusal
        sought = (refusal.cause if refusal else None) or UNKNOWN_CAUSE
        wanted = () if judged.has_ended else library.causes[sought].checks
        texts = (
            check.to(language) for check in wanted if all_hold(check.when, view) and view.can_run(check.en)
        )
        return tuple(known.checks(texts, language))
    is_replaced = known.message is not None and known.message.replaces_case
    of_cases = [check for case in judged.cases[:1] if not is_replaced for check in case.checks]
    fitting = [
        check
        for check in (*of_cases, *judged.cause.checks)
        if all_hold(check.when, view) and view.can_run(check.en)
    ]
    root = known.report.root
    # The rank that others wait for is what a log of the others cannot tell of.
    silent = ranks_in_words(root.silent) if root is not None else ""
    first = [phrase("look-silent", language, ranks=silent)] if silent else []
    checks = dict.fromkeys([*first, *(check.to(language) for check in fitting)])
    shown = tuple(checks)[: 8 if judged.verdict == "unknown" else 5]
    return tuple(known.checks(shown, language))


def _hit(item: RankedHit, library: Library, language: Language) -> CaseHit:
    case = library.cases.get(item.owner)
    return CaseHit(
        id=item.owner,
        title=case.title.to(language) if case else (item.document.title if item.document else item.owner),
        score=round(item.score, 3),
        urls=tuple(source.url for source in case.sources) if case else (),
        kind=item.kind,
        fix=item.document.fix if item.document else "",
    )


def _frameworks(report: CrashReport) -> tuple[SeenFramework, ...]:
    """Name the frameworks that the log shows, each with the place of its first sign."""
    places = [report.place(found.line) for found in report.frameworks]
    return tuple(
        SeenFramework(
            name=found.name, version=found.version or None, line=place.line, file=place.file or None
        )
        for found, place in zip(report.frameworks, places, strict=True)
    )
