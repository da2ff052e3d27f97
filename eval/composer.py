"""The product as a system under evaluation: the composer, without a model."""

from __future__ import annotations

from time import perf_counter

from eval.answers import Answer, of_diagnosis
from eval.incidents import Incident
from service.pipeline.triage import ReadJob, Triage, read_config


class Composer:
    """Answers with a Triage; each retriever's ranking is kept beside the answer."""

    name = "composer"

    def __init__(self, triage: Triage) -> None:
        self._triage = triage

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident, with the job's own files where there are any."""
        started = perf_counter()
        report = self._triage.reader.read(incident.source())
        files = [read_config(path) for path in incident.job_files]
        job = ReadJob(report, incident.label.language, tuple(files))
        triage_context = self._triage.diagnose(job, incident.telemetry)
        seconds = perf_counter() - started
        retrieval = triage_context.assessment.retrieval
        rankings = dict(retrieval.by_retriever) | {"fused": tuple(item.owner for item in retrieval.ranked)}
        return of_diagnosis(triage_context.first, incident, seconds, rankings)
