"""An assessment: all that is worked out of one job's output before a word of the answer is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from corpus.library import Library
from ingest.logs.conditions import ReportView, all_hold
from ingest.logs.configs.launch import Setting
from ingest.logs.configs.references import as_run, resolved
from ingest.logs.report import CrashReport
from service.schemas.confirmations import Confirmation, ConfirmedCause
from service.schemas.diagnosis import Outcome
from service.scoring.confirmed_evidence import weigh_by_confirmation
from service.scoring.confusions import shipped, with_rivals
from service.scoring.outcome_evidence import complete_outcome, weigh_by_outcome
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate, explained_causes, rank_causes
from service.scoring.source_sites import LineSite, find_sites
from service.scoring.telemetry_evidence import TelemetryFindings, evaluate_rules, weigh_by_telemetry
from service.telemetry.snapshot import Snapshot

Certainty = Literal["high", "medium", "low"]
CERTAINTIES: tuple[Certainty, ...] = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Vote:
    """What a model decided for, with the evidence that stands.

    `choice` is the id of a cause, `insufficient-evidence` where the model says that the log does not tell, or
    `no-failure`. `lines` are the numbers of the lines that it quotes, `cases` the ids of those that it cites.
    `failing` are lines among them that no rule knows, but that read as a failure by themselves. `against` is
    what the rules alone conclude, where the vote turned it.
    """

    choice: str
    certainty: Certainty = "medium"
    lines: tuple[int, ...] = ()
    cases: tuple[str, ...] = ()
    failing: tuple[int, ...] = ()
    against: str = ""


@dataclass(frozen=True, slots=True)
class Objection:
    """What speaks against a cause, and so keeps it from being named or makes it less likely.

    `by` tells what `what` is the id of: a telemetry rule that contradicts the cause, a cause that lies behind
    it and is shown itself, or the cause that the job's outcome proves.
    """

    cause: str
    by: Literal["telemetry", "deeper-cause", "outcome"]
    what: str


@dataclass(frozen=True)
class Assessment:
    """What is known of one job, computed once and shared by the answer, the prompt and the patch.

    - `report`: what its output tells, redacted; `report.launches` holds the job's own files.
    - `retrieval`: the cases, notes and past crashes found for it.
    - `settings`: the job's settings, first what a tracker kept of the run, then those of its own files, then
      those that the log shows.
    - `outcome`: how the job ended, as its caller or the scheduler knows it, and how far its log shows that
      it came.
    - `findings`: every telemetry rule that the log is one for, with what the snapshot makes of it; without a
      snapshot none.
    - `candidates`: every cause that anything speaks for, the likeliest first, each with its signs, its
      evidence, its probability and its log odds. Log, telemetry and outcome are weighed in. Empty where
      nothing failed.
    - `objections`: what speaks against which of the candidates.
    - `vote`: what a model decided for, where one was asked; its weight is in the probabilities then
      (`service/scoring/fusion.py`). `sound` is the probability then that nothing failed at all, `silence`
      that
      the log does not tell, where nothing was found that failed.
    - `confirmed`: what a person confirmed of the same crash before, and whether it was weighed in.
    - `sites`: where the frameworks' own sources tell of the failures, the root's first.
    """

    report: CrashReport
    retrieval: Retrieval
    settings: tuple[Setting, ...]
    outcome: Outcome
    findings: TelemetryFindings
    candidates: tuple[Candidate, ...]
    objections: tuple[Objection, ...] = ()
    vote: Vote | None = None
    sound: float = 0.0
    silence: float = 0.0
    confirmed: Confirmation | None = None
    sites: tuple[LineSite, ...] = ()

    @cached_property
    def view(self) -> ReportView:
        """What conditions over the report are asked of."""
        return self.report.view()

    def holds(self, conditions: Sequence[str]) -> bool:
        """Tell whether the job is one of those that a part of a text is for."""
        return all_hold(conditions, self.view)

    @property
    def snapshot(self) -> Snapshot | None:
        """The telemetry that the findings rest on."""
        return self.findings.snapshot

    @property
    def checked_names(self) -> tuple[str, ...]:
        """What the source tests where the root's line is told, and what the message names.

        The job's own installation, where it was read, comes before what releases of the package have.
        """
        raised = self.report.failing_source.raised
        read = raised.names if raised is not None else ()
        return (*read, *next((item.site.names for item in self.sites if item.is_root), ()))

    @property
    def doubt(self) -> float:
        """Give the probability that the log does not tell the cause; 0 where nothing is to be told."""
        return self.candidates[0].doubt if self.candidates else self.silence


def assess(
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
    own: Sequence[Setting] = (),
    telemetry: Snapshot | None = None,
    outcome: Outcome | None = None,
    known: Iterable[ConfirmedCause] = (),
    kept: Sequence[Setting] = (),
) -> Assessment:
    """Weigh all that is known of one job.

    `own` are the settings of its own files, `known` what persons confirmed of crashes, the latest first, and
    `kept` the settings that a tracker wrote down of this very run.
    """
    ended = complete_outcome(outcome, telemetry, report)
    findings = evaluate_rules(telemetry, report)
    ranked = rank_causes(report, retrieval, library)
    found = with_rivals(ranked, report, retrieval, library, shipped())
    # What this job's machine and end say weighs after what an earlier one was.
    found, confirmed = weigh_by_confirmation(found, known, report, retrieval, library)
    found = weigh_by_telemetry(found, findings, report, retrieval, library)
    weighed = weigh_by_outcome(found, ended, report, retrieval, library)
    objections = tuple(_objections(weighed, findings, ended, library))
    last = report.root.line if report.root is not None else 0
    filled = as_run(resolved(own, report.settings), report.settings, last)
    # What code says of itself is a default: what the run printed is what it ran with.
    given = [setting for setting in filled if setting.spelled != "dump"]
    defaults = [setting for setting in filled if setting.spelled == "dump"]
    # A file may be of another run, or edited since: what the tracker kept is what this one had.
    settings = (*kept, *given, *report.settings, *defaults)
    return Assessment(
        report,
        retrieval,
        settings,
        ended,
        findings,
        tuple(weighed),
        objections,
        confirmed=confirmed,
        sites=find_sites(report),
    )


def _objections(
    candidates: Sequence[Candidate], findings: TelemetryFindings, outcome: Outcome, library: Library
) -> Iterator[Objection]:
    for candidate in candidates:
        for held in findings.holding(candidate.cause):
            if held.rule.effect == "contradicts":
                yield Objection(candidate.cause, "telemetry", held.rule.id)
    for deeper, symptoms in explained_causes(candidates, library).items():
        yield from (Objection(symptom, "deeper-cause", deeper) for symptom in symptoms)
    row = outcome.reading
    if row is not None and row.cause is not None and row.proof == "established":
        is_first = bool(candidates) and candidates[0].cause == row.cause
        yield from (Objection(item.cause, "outcome", row.cause) for item in candidates[1:] if is_first)
