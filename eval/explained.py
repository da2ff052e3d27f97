"""The product with a model as a system under evaluation: the answer with its vote, and the tokens it took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from eval.answers import Answer, of_diagnosis
from eval.cassette import Cassette, ReplayedModel
from eval.incidents import Incident
from service.llm.chain import explain_with_model, hear_vote
from service.llm.investigation import SINGLE_SHOT, LookLimits
from service.llm.models import ChatModel
from service.llm.stages import FinalStage
from service.llm.triage_context import TriageContext
from service.pipeline.triage import ReadJob, Triage, read_config
from service.schemas.errors import ModelError
from service.scoring.assessment import Assessment, Vote
from service.settings import Settings

# What is replayed is there at once; no deadline of the product may cut it on a slow machine.
UNHURRIED = 3600.0


@dataclass
class Explained:
    """Answers with a Triage and the recorded answers of a model, or the model itself where there is one.

    `may_look` tells that a model is offered tools; what is replayed is offered them as when it was recorded.
    """

    triage: Triage
    settings: Settings
    cassette: Cassette
    model: ChatModel | None = None
    may_look: bool = False

    @property
    def name(self) -> str:
        """Name the system in tables."""
        return f"with {self.cassette.name}"

    def diagnose(self, incident: Incident) -> TriageContext:
        """Diagnose by rules, with the job's own files where there are any."""
        report = self.triage.reader.read(incident.source())
        files = tuple(read_config(path) for path in incident.job_files)
        return self.triage.diagnose(
            ReadJob(report, incident.label.language, files, reopen=incident.source), incident.telemetry
        )

    def limits(self, incident: Incident) -> LookLimits:
        """Give how often the model may look further into an incident."""
        recorded = self.cassette.requests(incident.id)
        offered = self.cassette.offers_tools(incident.id) if recorded else self.may_look
        if not offered:
            return SINGLE_SHOT
        seconds = UNHURRIED if self.model is None else self.settings.model_calls_deadline
        return LookLimits(self.settings.model_calls, seconds)

    def vote(self, incident: Incident) -> tuple[Assessment, Vote] | None:
        """Give the rules' assessment of an incident and the recorded answer's vote; None without one."""
        if not self.cassette.requests(incident.id):
            return None
        triage_context = self.diagnose(incident)
        if triage_context.first.ended_well:
            return None
        model = ReplayedModel(self.cassette, incident.id)
        try:
            vote = hear_vote(
                triage_context, model, UNHURRIED, self.settings.model_tokens, self.limits(incident)
            )
        except ModelError:
            return None
        return (triage_context.assessment, vote) if vote else None

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; a log that shows a good end is not sent to a model, as in the product."""
        started = perf_counter()
        triage_context = self.diagnose(incident)
        final, limits = triage_context.first, self.limits(incident)
        if not final.ended_well:
            model = ReplayedModel(self.cassette, incident.id, self.model)
            seconds = UNHURRIED if self.model is None else self.settings.model_deadline
            for stage in explain_with_model(
                triage_context, model, seconds, self.settings.model_tokens, limits
            ):
                final = stage.diagnosis if isinstance(stage, FinalStage) else final
        answer = of_diagnosis(final, incident, perf_counter() - started, {})
        # Where nothing is recorded, nobody answered: what would have been sent is no cost.
        tokens = None if incident.id in self.cassette.missing else final.engine.tokens
        votes = final.engine.votes
        return replace(
            answer,
            tokens=tokens.sent + tokens.received if tokens else 0,
            vote=next(iter(votes.model), "") if votes else "",
            calls=len(final.engine.trace) if tokens and limits.calls else None,
            note=final.engine.note or "",
        )
