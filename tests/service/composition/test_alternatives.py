"""The causes beside the named one: what tells them apart, and which of them nothing in the log speaks for."""

from __future__ import annotations

from dataclasses import replace

from corpus.message import words
from corpus.schema import Language
from service.composition.alternatives import alternatives_of
from service.pipeline.triage import Triage
from service.scoring.assessment import assess
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate
from tests.service.factories import failed, report
from tests.tables import each_row


@each_row("language", ["en", "zh"])
def test_that_a_cause_which_no_line_speaks_for_says_so(language: Language, triage: Triage) -> None:
    """It is among the others since it was right where the first one was wrong; one with a line is not so."""
    made = assess(report(failed(cause="disk-full")), Retrieval((), ()), triage.library)
    first = made.candidates[0]
    seen = Candidate("port-in-use", 1.0, "supported", (), first.events, probability=0.2, is_rival=True)
    unseen = Candidate("gpu-oom-training", -4.0, "hypothesis", (), (), probability=0.1, is_rival=True)
    told = replace(made, candidates=(first, seen, unseen))
    one, other = alternatives_of(told, "diagnosed", triage.library, language)
    begin = words("answer.alternative-unseen", language, told="").strip()
    assert (one.cause, begin in one.tell_apart) == ("port-in-use", False)
    assert (other.cause, other.tell_apart.startswith(begin)) == ("gpu-oom-training", True)
