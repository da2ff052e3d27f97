"""Telemetry turns unanswerable logs into diagnosed ones, and readings that contradict make answers less
sure.
"""

from __future__ import annotations

from eval import incidents
from eval.incidents import Incident
from service.pipeline.triage import ReadJob, Triage
from service.schemas.diagnosis import Diagnosis
from tests.tables import each_row

WITH = [incident for incident in incidents.load() if incident.telemetry]


def answered(triage: Triage, incident: Incident, *, asked: bool) -> Diagnosis:
    """Answer with the incident's telemetry or without."""
    report = triage.reader.read(incident.source())
    job = ReadJob(report, incident.label.language)
    return triage.diagnose(job, incident.telemetry if asked else None).first


@each_row("incident", WITH, ids=lambda incident: incident.id)
def test_that_an_incident_with_telemetry_gets_its_label(incident: Incident, triage: Triage) -> None:
    answer = answered(triage, incident, asked=True)
    assert answer.verdict == incident.label.verdict
    assert answer.cause in incident.label.causes


def test_that_at_least_ten_unanswerable_logs_are_diagnosed(triage: Triage) -> None:
    twins = [incident for incident in WITH if incident.label.pair]
    turned = [
        item.id
        for item in twins
        if answered(triage, item, asked=False).verdict == "unknown"
        and answered(triage, item, asked=True).verdict == "diagnosed"
    ]
    assert len(turned) >= 10


def shares(answer: Diagnosis) -> dict[str | None, float]:
    """Give how sure an answer is of each cause that it speaks of."""
    return {item.cause: item.confidence for item in answer.alternatives} | {answer.cause: answer.confidence}


def test_that_at_least_five_answers_are_less_sure_where_readings_contradict(triage: Triage) -> None:
    lowered = []
    for incident in WITH:
        without, with_it = (answered(triage, incident, asked=asked) for asked in (False, True))
        against = {item.cause for item in with_it.telemetry.causes if item.says == "contradicts"}
        before, after = shares(without), shares(with_it)
        named = without.cause if without.verdict == "diagnosed" else None
        first = named or next((item.cause for item in without.alternatives), None)
        if first in against and after.get(first, 0.0) < before[first]:
            lowered.append(incident.id)
    assert len(lowered) >= 5


def test_that_twins_differ_by_their_telemetry_alone() -> None:
    logs = {incident.id: incident for incident in incidents.load()}
    pairs = [(incident, logs[incident.label.pair]) for incident in WITH if incident.label.pair]
    assert len(pairs) >= 12
    assert all(
        one.text == other.text and other.telemetry is None and other.label.verdict == "unknown"
        for one, other in pairs
    )
