"""What a whole log adds to one event: a cause that is more exact than its pattern's own."""

from __future__ import annotations

from dataclasses import replace

from corpus.log_patterns import PatternTable
from ingest.logs.conditions import ReportView, all_hold
from ingest.logs.derived_facts import DERIVED
from ingest.logs.events import Event
from ingest.logs.stacks.exception_classifier import classify_exception


def refine_event(event: Event, job: ReportView, table: PatternTable) -> Event:
    """Give the event with the most exact cause that its pattern, or the code that failed, tells."""
    row = table.by_id.get(event.pattern)
    if row and row.refine:
        # Facts of other lines belong to other events; what was derived belongs to the whole log.
        facts = [fact for fact in job.facts if fact.line == event.line or fact.kind in DERIVED]
        view = replace(job, root=event, facts=facts, focus=event)
        exact = next((refinement for refinement in row.refine if all_hold(refinement.when, view)), None)
        if exact:
            event = replace(event, cause=exact.cause, strength=exact.strength or event.strength)
    return classify_exception(event, table.exceptions)
