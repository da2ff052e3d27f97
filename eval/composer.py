"""whycrash without a model as a system under evaluation."""

from __future__ import annotations

from time import perf_counter

from eval.answers import Answer, of_diagnosis
from eval.change_faults import faulty_changes
from eval.incidents import Incident
from service.pipeline.triage import ReadJob, Triage, read_config, with_notebooks


class Composer:
    """Answers with a Triage; the answer carries each retriever's ranking of case ids."""

    name = "composer"

    def __init__(self, triage: Triage) -> None:
        self._triage = triage

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident from its log, configuration files and telemetry; reading them is timed too."""
        started = perf_counter()
        source = incident.source()
        report = self._triage.reader.read(source)
        files = with_notebooks(source, [read_config(path) for path in incident.job_files])
        job = ReadJob(report, incident.label.language, tuple(files))
        triage_context = self._triage.diagnose(job, incident.telemetry)
        seconds = perf_counter() - started
        retrieval = triage_context.assessment.retrieval
        rankings = dict(retrieval.by_retriever) | {"fused": tuple(item.owner for item in retrieval.ranked)}
        first, assessment = triage_context.first, triage_context.assessment
        faults = tuple(found.fault for found in faulty_changes(first, assessment, self._triage.library))
        return of_diagnosis(first, incident, seconds, rankings, faults)
