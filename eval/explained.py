"""The product with a model as a system under evaluation: the answer with its vote, and the tokens it took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from eval.answers import Answer, of_diagnosis
from eval.cassette import Cassette, ReplayedModel
from eval.incidents import Incident
from service.llm.chain import explain_with_model
from service.llm.claims import Claims, parse
from service.llm.grounding import ground_claims
from service.llm.models import ChatModel
from service.llm.prompt import for_answer
from service.llm.prompt_context import build_prompt_context
from service.llm.stages import FinalStage
from service.llm.triage_context import TriageContext
from service.pipeline.triage import ReadJob, Triage, read_config
from service.scoring.assessment import Assessment, Vote
from service.settings import Settings


@dataclass
class Explained:
    """Answers with a Triage and the recorded answers of a model, or the model itself where there is one."""

    triage: Triage
    settings: Settings
    cassette: Cassette
    model: ChatModel | None = None

    @property
    def name(self) -> str:
        """Name the system in tables."""
        return f"with {self.cassette.name}"

    def diagnose(self, incident: Incident) -> TriageContext:
        """Diagnose by rules, with the job's own files where there are any."""
        report = self.triage.reader.read(incident.source())
        files = tuple(read_config(path) for path in incident.job_files)
        return self.triage.diagnose(ReadJob(report, incident.label.language, files), incident.telemetry)

    def vote(self, incident: Incident) -> tuple[Assessment, Vote] | None:
        """Give the rules' assessment of an incident and the recorded answer's vote; None without one."""
        recording = self.cassette.recordings.get((incident.id, 1))
        triage_context = self.diagnose(incident)
        if recording is None or triage_context.first.ended_well:
            return None
        prompt_context = build_prompt_context(triage_context)
        prompt = for_answer(prompt_context, self.settings.model_tokens)
        try:
            claims = parse(Claims, recording.answer)
        except ValueError:
            return None
        vote = ground_claims(claims, prompt_context, prompt).vote
        return (triage_context.assessment, vote) if vote else None

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; a log that shows a good end is not sent to a model, as in the product."""
        started = perf_counter()
        triage_context = self.diagnose(incident)
        final = triage_context.first
        if not final.ended_well:
            model = ReplayedModel(self.cassette, incident.id, self.model)
            settings = self.settings
            for stage in explain_with_model(
                triage_context, model, settings.model_deadline, settings.model_tokens
            ):
                final = stage.diagnosis if isinstance(stage, FinalStage) else final
        answer = of_diagnosis(final, incident, perf_counter() - started, {})
        tokens = final.engine.tokens
        votes = final.engine.votes
        return replace(
            answer,
            tokens=tokens.sent + tokens.received if tokens else 0,
            vote=next(iter(votes.model), "") if votes else "",
            calls=len(final.engine.trace),
        )
