"""The composer: the full answer without a model, from the report, the cases and the causes."""

from __future__ import annotations

import locale
import re
from collections.abc import Sequence
from time import perf_counter

from ulid import ULID

from corpus.library import Library
from corpus.schema import Action, Case, Cause, Language
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.frameworks import Framework
from ingest.logs.report import CrashReport
from ingest.logs.timeline import Place
from service.composition import job_end, phrases, reasons
from service.composition.job_end import JobEnd
from service.composition.phrases import phrase
from service.remediation.changes import propose_changes
from service.remediation.feasibility import ALREADY, DEFAULT
from service.remediation.message_hints import hinted_changes
from service.remediation.remedies import applicable
from service.remediation.renames import find_renames
from service.schemas.diagnosis import (
    Alternative,
    CascadeEntry,
    CaseHit,
    Diagnosis,
    Dropped,
    Engine,
    Evidence,
    EvidenceRole,
    Outcome,
    ProposedChange,
    ReadLimits,
    SeenFramework,
    Standing,
    Telemetry,
    Verdict,
)
from service.scoring.retrieval import Ranked, Retrieval
from service.scoring.scoring import Candidate, confidence, is_close, is_doubtful, rank_causes
from service.scoring.telemetry_evidence import (
    TelemetryFindings,
    evaluate_rules,
    telemetry_of,
    weigh_candidates,
)
from service.telemetry.snapshot import Snapshot

UNKNOWN = "insufficient-evidence"
MAX_EVIDENCE = 8
MAX_CASCADE = 12
MAX_CASES = 5
MAX_RANKS = 64
# A cause that is less likely than this is not worth a line.
SLIGHT = 0.05
ALIKE = 0.15
MAX_CHANGES = 6
# Causes whose message may name a key that does not exist.
MISNAMED = frozenset(
    {"config-key-invalid", "package-incompatible", "parallelism-invalid", "batch-not-divisible"}
)
# With fewer changes than this, those of a neighbouring cause's case are worth a look.
ENOUGH_CHANGES = 2
_CHINESE = re.compile(r"[一-鿿]")
_SECTION = re.compile(r"^### .*$", re.MULTILINE)


def language_of(report: CrashReport, wanted: str) -> Language:
    """Choose the language of an answer: as asked, else that of the log, else that of the locale."""
    if wanted in ("en", "zh"):
        return "zh" if wanted == "zh" else "en"
    shown = " ".join(text for _, text in (*report.surroundings, *report.tail))
    if len(_CHINESE.findall(shown)) * 12 > len(shown) > 0:
        return "zh"
    return "zh" if (locale.getlocale()[0] or "").startswith(("zh", "Chinese")) else "en"


def compose(
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
    language: Language,
    job: Sequence[Setting] = (),
    chosen: str = "",
    telemetry: Snapshot | None = None,
    outcome: Outcome | None = None,
) -> Diagnosis:
    """Answer for one report. `job` holds settings of the job's own files, which outrank those in the log.

    `chosen` names the cause that was decided for where two fit; it counts where the answer without it is
    ambiguous.
    `telemetry` is what the machine itself says of the crash, `outcome` what the caller knows of the job's
    end.
    """
    started = perf_counter()
    end = JobEnd(job_end.completed(job_end.known(outcome, telemetry), report), library, language)
    answer = _Answer(
        report, retrieval, library, language, (*job, *report.settings), evaluate_rules(telemetry, report), end
    )
    answer.choose_cause(chosen)
    diagnosis = answer.write()
    spent = round(1000 * (perf_counter() - started), 2)
    return diagnosis.model_copy(update={"timings_ms": {"compose": spent}})


class _Answer:
    """One answer in the making."""

    def __init__(
        self,
        report: CrashReport,
        retrieval: Retrieval,
        library: Library,
        language: Language,
        settings: Sequence[Setting],
        findings: TelemetryFindings,
        end: JobEnd,
    ) -> None:
        self._report = report
        self._retrieval = retrieval
        self._library = library
        self._language = language
        self._settings = settings
        self._findings = findings
        self._end = end
        self._candidates = end.weighed(
            weigh_candidates(rank_causes(report, retrieval, library), findings, report, retrieval, library),
            report,
            retrieval,
        )
        self._confidence = confidence(self._candidates)
        self._dropped: list[Dropped] = []
        self._chosen = False

    def choose_cause(self, cause: str) -> None:
        """Decide between two causes that both fit; anything else stays as it is."""
        if self._verdict() == "ambiguous" and cause in [item.cause for item in self._candidates[:2]]:
            self._candidates.sort(key=lambda item: item.cause != cause)
            self._chosen = True

    def write(self) -> Diagnosis:
        verdict = self._verdict()
        cause = self._cause(verdict)
        cases = (
            []
            if cause is None or not self._candidates
            else [match.case for match in self._candidates[0].cases if match.case.cause == cause.id]
        )
        changes = self._changes(cases) if verdict == "diagnosed" else []
        hits = [self._hit(item) for item in self._retrieval.ranked[:MAX_CASES]]
        return Diagnosis(
            id=str(ULID()),
            source=self._report.source,
            verdict=verdict,
            cause=cause.id if cause else None,
            category=cause.category if cause else None,
            confidence=0.0 if verdict == "no-failure" else self._confidence,
            standing=self._standing(verdict),
            action=self._action(verdict, cause, cases),
            alternatives=self._alternatives(verdict),
            headline=self._headline(verdict, cause, cases),
            explanation=self._explanation(verdict, cause, cases),
            evidence=tuple(self._evidence()),
            cascade=tuple(self._cascade()),
            cases=tuple(hits),
            changes=tuple(changes),
            checks=self._checks(verdict, cause, cases),
            frameworks=tuple(self._framework(found) for found in self._report.frameworks),
            telemetry=self._telemetry(cause),
            engine=Engine(dropped=reasons.translate_reasons(self._dropped, self._language)),
            outcome=self._end.outcome,
            redactions=self._report.redactions,
            limits=self._limits(),
        )

    def _verdict(self) -> Verdict:
        if self._chosen:
            return "diagnosed"
        if self._report.root is None and not self._candidates:
            # Judge a log in which nothing failed: silence is no proof of a good end, and a failed end
            # outweighs it.
            if self._end.end == "unknown":
                return (
                    "unknown"
                    if self._report.log_end.kind == "unseen" or self._report.limits.cut
                    else "no-failure"
                )
            return "unknown" if self._end.end == "failed" else "no-failure"
        if is_doubtful(self._candidates):
            return "unknown"
        return "ambiguous" if is_close(self._candidates) and self._is_open() else "diagnosed"

    def _is_open(self) -> bool:
        """Tell whether two likely candidates are a question: what lies behind the other, or is proved, is the answer to it."""
        first, second = self._candidates[:2]
        return (
            first.standing != "established" and second.cause not in self._library.causes[first.cause].explains
        )

    @property
    def _has_ended(self) -> bool:
        """Whether the outcome, or else the log, shows a good end."""
        seen = self._report.log_end.kind == "closed" and not self._report.limits.cut
        return self._end.end == "succeeded" or (self._end.end == "unknown" and seen)

    def _cause(self, verdict: Verdict) -> Cause | None:
        if verdict == "no-failure":
            return None
        return self._library.causes[UNKNOWN if verdict == "unknown" else self._candidates[0].cause]

    def _standing(self, verdict: Verdict) -> Standing:
        if self._chosen:
            return "hypothesis"
        if verdict == "no-failure":
            return "established" if self._has_ended else "none"
        return self._candidates[0].standing if verdict in ("diagnosed", "ambiguous") else "none"

    def _action(self, verdict: Verdict, cause: Cause | None, cases: Sequence[Case]) -> Action:
        if cause is None:
            return "none" if self._has_ended else "collect-more"
        if verdict != "diagnosed":
            return "collect-more"
        return self._end.action(self._report) or (cases[0].action if cases else cause.action)

    def _changes(self, cases: Sequence[Case]) -> list[ProposedChange]:
        made, dropped = self._proposed(cases[:2])
        # What the job has already is no reason to look further: the next run of a patched job would grow a
        # new patch.
        if len(made) + sum(item.why in (ALREADY, DEFAULT) for item in dropped) < ENOUGH_CHANGES:
            made, dropped = self._proposed([*cases[:2], *self._kin(cases)][:3])
        self._dropped.extend(dropped)
        return made[:MAX_CHANGES]

    def _proposed(self, cases: Sequence[Case]) -> tuple[list[ProposedChange], list[Dropped]]:
        cause = self._candidates[0].cause
        remedies = applicable(cause, self._report, self._library, self._settings)
        renamed = find_renames(self._report, self._library, self._settings) if cause in MISNAMED else []
        advice = [] if renamed else hinted_changes(cause, self._report, self._library, self._settings)
        return propose_changes(
            cases, self._report, self._library, self._settings, self._language, remedies, renamed, advice
        )

    def _kin(self, cases: Sequence[Case]) -> list[Case]:
        """Give cases that fit the root too and whose cause lies behind, or before, the one that is named."""
        named = self._candidates[0].cause
        near = {*self._library.causes[named].explains}
        near |= {cause.id for cause in self._library.causes.values() if named in cause.explains}
        found = [
            match.case for match in self._retrieval.signatures if match.at_root and match.case.cause in near
        ]
        return [case for case in found if case not in cases]

    def _alternatives(self, verdict: Verdict) -> tuple[Alternative, ...]:
        first = None if verdict == "unknown" else (self._candidates[0] if self._candidates else None)
        # Whether another cause deserves a line: likeness alone has to be a strong one.
        rest = [
            item
            for item in self._candidates
            if item is not first
            and item.cause != UNKNOWN
            and (item.probability >= (SLIGHT if item.score > 0 else ALIKE))
        ][:3]
        return tuple(
            Alternative(
                cause=item.cause, confidence=round(item.probability, 3), tell_apart=self._tell(first, item)
            )
            for item in rest
        )

    def _tell(self, first: Candidate | None, other: Candidate) -> str:
        named = self._library.causes[other.cause]
        for confusion in self._library.causes[first.cause].confused_with if first else ():
            if confusion.cause == other.cause:
                return confusion.to(self._language)
        return named.checks[0].to(self._language) if named.checks else named.means.to(self._language)

    def _headline(self, verdict: Verdict, cause: Cause | None, cases: Sequence[Case]) -> str:
        if cause is None:
            return (
                phrase("healthy-headline", self._language)
                if self._has_ended
                else self._open_end("open-headline")
            )
        if verdict == "unknown":
            return self._end.headline or phrase(
                "unknown-headline" if self._report.root else f"{self._silence()}-headline", self._language
            )
        if verdict == "ambiguous":
            names = [
                self._library.causes[item.cause].title.to(self._language) for item in self._candidates[:2]
            ]
            return phrase("ambiguous-headline", self._language, first=names[0], second=names[1])
        title = self._end.conclusion(self._report) or (cases[0] if cases else cause).title.to(self._language)
        return ("，" if self._language == "zh" else ", ").join(
            part for part in (title, phrases.phase(self._report.phase, self._language)) if part
        )

    def _explanation(self, verdict: Verdict, cause: Cause | None, cases: Sequence[Case]) -> str:
        if cause is None:
            return self._healthy()
        if verdict == "unknown" and self._report.root is None and self._end.end != "failed":
            # Say that a text tells neither of a failure nor of a good end.
            rows = [
                phrase(self._silence(), self._language),
                self._novel(),
                self._machine(cause),
                self._nearest(),
            ]
            rows.append(f"**{phrase('collect', self._language)}.** {cause.advice.to(self._language)}")
            return "\n\n".join(row for row in rows if row)
        parts = [self._end.told(self._report), self._what_happened() if self._report.root else ""]
        if verdict == "unknown" and self._report.root is None:
            parts += [self._novel(), self._end.next]
        elif verdict == "unknown":
            parts = [
                phrase("unknown", self._language),
                phrase("seen", self._language),
                *parts,
                self._novel(),
                self._possibilities(),
                self._end.next,
            ]
        elif cases:
            parts += self._from_case(cases[0])
        else:
            parts.append(f"**{phrase('why', self._language)}.** {cause.means.to(self._language)}")
            parts.append(f"**{phrase('do', self._language)}.** {cause.advice.to(self._language)}")
            parts.append(self._end.next if self._report.root is None else "")
        parts += [self._aftermath(), self._machine(cause), self._past()]
        if verdict == "unknown":
            parts.append(f"**{phrase('collect', self._language)}.** {cause.advice.to(self._language)}")
        return "\n\n".join(part for part in parts if part)

    def _healthy(self) -> str:
        """Tell how a job ended in whose log nothing failed."""
        end = self._report.log_end
        place = phrases.place(self._report.place(end.line), self._language)
        told = [self._end.told(self._report), self._novel(), self._machine(None)]
        if self._has_ended:
            rows = [
                phrase("healthy", self._language),
                *told,
                phrase("ended", self._language, line=place) if end.kind == "closed" else "",
            ]
        else:
            rows = [
                self._open_end("open-end") + phrase("open-where", self._language, line=place),
                phrase("open-do", self._language),
                *told,
            ]
        return "\n\n".join(row for row in rows if row)

    def _open_end(self, name: str) -> str:
        """Say that the log ends amid work, with the step where it counts one."""
        end = self._report.log_end
        of = phrase("of-steps", self._language, total=f"{end.total:g}") if end.total else ""
        if end.step is None or end.step < 0:
            return phrase(f"{name}-uncounted", self._language)
        return phrase(name, self._language, step=f"{end.step:g}", of=of)

    def _silence(self) -> str:
        """Name what a text without any failure is that shows no end either."""
        report = self._report
        if report.limits.cut:
            return "cut"
        return "no-sign" if report.marks or report.frameworks or report.events else "unrecognised"

    def _novel(self) -> str:
        """Quote what a healthy run of the job does not print."""
        rows = [
            f"- [{self._report.place(number)}] `{_inline(text, 200)}`" for number, text in self._report.novel
        ]
        return "\n".join([phrase("novel", self._language), "", *rows]) if rows else ""

    def _what_happened(self) -> str:
        root = self._report.root
        assert root is not None  # noqa: S101 - a healthy log is answered elsewhere
        source = phrase("by", self._language, source=root.source) if root.source else ""
        place = self._report.place(root.line)
        quote = (
            f"[{place}] "
            f"{phrase('at', self._language, line=phrases.place(place, self._language), source=source)} "
            f"`{_inline(root.body)}`"
        )
        rows: list[str] = []
        facts = [phrases.fact(fact, self._language) for fact in self._telling_facts(root)]
        rows += [
            f"{text}。" if self._language == "zh" else f"{text[0].upper()}{text[1:]}."
            for text in facts
            if text
        ]
        if root.count > 1:
            rows.append(
                phrase("repeated", self._language, count=root.count, streams=max(1, len(root.sources)))
            )
        if root.silent:
            rows.append(phrase("missing", self._language, ranks=_ranks(root.silent), count=len(root.ranks)))
        if self._report.last_step is not None and self._report.last_step > 0:
            rows.append(phrase("last-step", self._language, step=f"{self._report.last_step:g}"))
        return "\n\n".join(part for part in (quote, " ".join(dict.fromkeys(rows))) if part)

    def _telling_facts(self, root: Event) -> list[Fact]:
        """Give the root line's facts.

        Where it has none, those of the first event that says more of the same.
        """
        lines = [root.line, *(event.line for event in self._same())]
        for line in lines:
            if found := [
                fact for fact in self._report.facts if fact.line == line and phrases.fact(fact, "en")
            ]:
                return found
        return []

    def _same(self) -> list[Event]:
        """Give the other standing events that speak of the named cause or of what it explains."""
        if not self._candidates:
            return []
        named = self._candidates[0].cause
        causes = {named, *self._library.causes[named].explains}
        return [event for event in self._report.standing if event.role != "root" and event.cause in causes]

    def _from_case(self, case: Case) -> list[str]:
        sections = [part.strip() for part in _SECTION.split(case.body.to(self._language)) if part.strip()]
        why = sections[1] if len(sections) > 1 else sections[0]
        rows = [f"**{phrase('why', self._language)}.** {why} [case:{case.id}]"]
        if len(sections) > 2:
            rows.append(f"**{phrase('do', self._language)}.** {sections[2]} [case:{case.id}]")
        return rows

    def _aftermath(self) -> str:
        after = [
            event for event in self._report.events if event.role == "collateral" and event.kind != "warning"
        ][:3]
        rows = [
            f"- [{self._place(event)}] `{_inline(event.body, 160)}`" + self._how_often(event)
            for event in after
        ]
        text = "\n".join([phrase("followed", self._language), "", *rows]) if rows else ""
        recovered = [f"[{self._place(event)}]" for event in self._report.events if event.role == "recovered"][
            :4
        ]
        if self._end.end == "failed" and self._report.root is None:
            return self._survived()
        if recovered:
            text += ("\n\n" if text else "") + phrase("recovered", self._language, lines=", ".join(recovered))
        return text

    def _survived(self) -> str:
        """Quote the latest errors that the run went on after, where nothing else tells of a failed end."""
        found = [
            event
            for event in self._report.events
            if event.role in ("recovered", "teardown") and not event.usual
        ][-3:]
        rows = [
            f"- [{self._place(event)}] `{_inline(event.body, 160)}`" + self._how_often(event)
            for event in found
        ]
        return "\n".join([phrase("went-on", self._language), "", *rows]) if rows else ""

    def _place(self, event: Event) -> Place:
        return self._report.place(event.line)

    def _how_often(self, event: Event) -> str:
        times = f" ×{event.count}" if event.count > 1 else ""
        return times + (
            f" ({phrase('not-by', self._language, ranks=_ranks(event.missing))})" if event.missing else ""
        )

    def _telemetry(self, cause: Cause | None) -> Telemetry:
        """Give what the machine says of the named cause and of the others."""
        said = telemetry_of(
            self._findings,
            cause.id if cause else None,
            [item.cause for item in self._candidates[:4]],
            self._language,
        )
        return reasons.translate_readings(said, self._language)

    def _machine(self, cause: Cause | None) -> str:
        """Write what the machine says of each cause; nothing where nobody asked it."""
        rows = phrases.telemetry(self._telemetry(cause), self._language)
        return "\n".join([phrase("machine", self._language), "", *rows]) if rows else ""

    def _possibilities(self) -> str:
        rows = [
            f"- **{self._library.causes[item.cause].title.to(self._language)}** — {self._tell(None, item)}"
            for item in self._candidates[:3]
            if item.cause != UNKNOWN
        ]
        return "\n".join([phrase("maybe", self._language), "", *rows]) if rows else self._nearest()

    def _nearest(self) -> str:
        near = [hit for hit in self._retrieval.ranked if hit.kind == "case"][:2]
        if not near or not self._retrieval.query:
            return ""
        rows = [
            f"- {self._library.cases[hit.owner].title.to(self._language)} [case:{hit.owner}]"
            for hit in near
            if hit.owner in self._library.cases
        ]
        return "\n".join([phrase("nearest", self._language), "", *rows]) if rows else ""

    def _past(self) -> str:
        """Name past jobs that crashed in the same way."""
        root_mark = self._report.fingerprint
        rows = []
        for hit in self._retrieval.ranked:
            if hit.kind == "report" and hit.document and hit.document.heading == root_mark:
                cause = hit.document.cause or phrase("unnamed", self._language)
                name = "fixed-by" if hit.document.fix else "seen-before"
                rows.append(
                    "- " + phrase(name, self._language, owner=hit.owner, cause=cause, fix=hit.document.fix)
                )
        return "\n".join([phrase("similar", self._language), "", *rows[:3]]) if rows else ""

    def _evidence(self) -> list[Evidence]:
        root = self._report.root
        if root is None:
            return []
        found = [self._line(root, "root", "root")]
        rest = [event for event in self._report.standing if event.line != root.line]
        same = [event for event in self._same() if event.line != root.line]
        origins = [event for event in rest if event.pattern_role == "origin" and event not in same]
        others = [event for event in rest if event not in same and event not in origins]
        found += [self._line(event, "context", "same") for event in same[:3]]
        found += [self._line(event, "collateral", "after") for event in [*origins[:3], *others]]
        return found[:MAX_EVIDENCE]

    def _line(self, event: Event, role: EvidenceRole, why: str) -> Evidence:
        place = self._place(event)
        return Evidence(
            line=place.line,
            text=event.text,
            role=role,
            why=phrase(why, self._language),
            file=place.file or None,
        )

    def _cascade(self) -> list[CascadeEntry]:
        events = self._report.events
        if len(events) > MAX_CASCADE:
            ranked = sorted(
                events,
                key=lambda event: (event.role != "root", tuple(-part for part in event.weight), event.line),
            )
            chosen = {id(event) for event in ranked[:MAX_CASCADE]}
            events = tuple(event for event in events if id(event) in chosen)
        return [_entry(event, self._place(event)) for event in events]

    def _hit(self, item: Ranked) -> CaseHit:
        case = self._library.cases.get(item.owner)
        title = (
            case.title.to(self._language) if case else (item.document.title if item.document else item.owner)
        )
        urls = tuple(source.url for source in case.sources) if case else ()
        return CaseHit(
            id=item.owner,
            title=title,
            score=round(item.score, 3),
            urls=urls,
            kind=item.kind,
            fix=item.document.fix if item.document else "",
        )

    def _checks(self, verdict: Verdict, cause: Cause | None, cases: Sequence[Case]) -> tuple[str, ...]:
        if cause is None:
            return (
                ()
                if self._has_ended
                else tuple(check.to(self._language) for check in self._library.causes[UNKNOWN].checks)
            )
        own = [check.to(self._language) for case in cases[:1] for check in case.checks]
        general = [check.to(self._language) for check in cause.checks]
        return tuple(dict.fromkeys([*own, *general]))[: 8 if verdict == "unknown" else 5]

    def _framework(self, found: Framework) -> SeenFramework:
        place = self._report.place(found.line)
        return SeenFramework(
            name=found.name, version=found.version or None, line=place.line, file=place.file or None
        )

    def _limits(self) -> ReadLimits:
        limits = self._report.limits
        return ReadLimits(
            bytes=limits.bytes,
            lines=limits.lines,
            truncated=limits.truncated,
            cut=limits.cut,
            omitted=dict(limits.omitted),
        )


def _entry(event: Event, place: Place) -> CascadeEntry:
    return CascadeEntry(
        line=place.line,
        time=event.time or None,
        source=event.source,
        event=event.body[:300],
        role=event.role,
        count=event.count,
        file=place.file or None,
        missing_ranks=event.missing[:MAX_RANKS],
        silent_ranks=event.silent[:MAX_RANKS],
    )


def _ranks(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return shown + (f" ... ({len(numbers)})" if len(numbers) > 8 else "")


def _inline(text: str, limit: int = 400) -> str:
    return text.replace("`", "'")[:limit].strip()
