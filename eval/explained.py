"""whycrash with a model as a system under evaluation; tokens are counted."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from eval.answers import Answer, of_diagnosis
from eval.errors import EvalError
from eval.incidents import Incident
from service.llm.stages import FinalStage
from service.pipeline.triage import ReadJob, Triage, read_config
from service.settings import Settings


class Explained:
    """Answers with a Triage and the configured model; where the model fails, the answer by rules counts.

    Raises EvalError where no model is configured.
    """

    def __init__(self, triage: Triage, settings: Settings) -> None:
        if not settings.model:
            raise EvalError("--model needs a model: set WHYCRASH_MODEL, such as openai:NAME.")
        self._triage = triage
        self.name = f"with {settings.model}"

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident, with the job's own files where there are any."""
        started = perf_counter()
        report = self._triage.reader.read(incident.source())
        files = [read_config(path) for path in incident.job_files]
        triage_context = self._triage.diagnose(ReadJob(report, incident.label.language, tuple(files)))
        final = triage_context.first
        for stage in self._triage.explain(triage_context):
            final = stage.diagnosis if isinstance(stage, FinalStage) else final
        answer = of_diagnosis(final, incident, perf_counter() - started, {})
        tokens = final.engine.tokens
        return replace(answer, tokens=tokens.sent + tokens.received if tokens else 0)
