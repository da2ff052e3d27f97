"""The causes beside the first: what it is mostly confused with comes before what is merely alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.logs.inputs.sources import from_text
from service.pipeline.triage import Triage
from service.scoring.assessment import assess
from service.scoring.confusions import PROPOSED, Confusions, shipped, with_rivals
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import CLOSE, DIAGNOSED, Candidate
from service.scoring.verdict import verdict_of
from tests.service.factories import NOTHING_FOUND, failed, report
from tests.tables import each_row

TABLE = Confusions(
    shares={"framework-bug": {"user-code-error": 0.5, "package-incompatible": 0.2, "disk-full": 0.1}},
    usual={"user-code-error": 0.5, "framework-bug": 0.4},
    answers=20,
)


def candidate(cause: str, probability: float, score: float = 0.0) -> Candidate:
    """Make a candidate; one without a score is merely alike."""
    return Candidate(cause, score, "hypothesis", (), (), probability, doubt=0.1)


def weighed(triage: Triage, *found: Candidate) -> dict[str, float]:
    """Give the probabilities of the causes with the rivals of the first."""
    told = with_rivals(found, report(failed()), Retrieval((), ()), triage.library, TABLE)
    return {item.cause: round(item.probability, 3) for item in told}


def test_that_what_is_alike_gives_way_to_what_the_first_is_confused_with(triage: Triage) -> None:
    """The first and what something in the log speaks for keep theirs, and nothing is made up."""
    shown = candidate("abi-mismatch", 0.05, 0.3)
    found = weighed(triage, candidate("framework-bug", 0.65, 0.6), candidate("node-lost", 0.2), shown)
    assert found == {
        "framework-bug": 0.65,
        "user-code-error": 0.1,
        "node-lost": 0.06,
        "abi-mismatch": 0.05,
        "package-incompatible": 0.04,
    }


def test_that_a_rival_which_something_speaks_for_is_likelier_still(triage: Triage) -> None:
    shown = candidate("user-code-error", 0.2, 0.3)
    found = weighed(triage, candidate("framework-bug", 0.5, 0.6), shown, candidate("node-lost", 0.1))
    assert found["user-code-error"] == 0.25
    assert sum(found.values()) == pytest.approx(0.8 - 0.1 * 0.1, abs=0.02)


@each_row("cause", ["node-lost", "disk-full"])
def test_that_a_cause_which_was_never_named_has_the_usual_rivals(cause: str, triage: Triage) -> None:
    found = weighed(triage, candidate(cause, 0.7, 0.6), candidate("nan-or-inf", 0.1))
    assert list(found)[:3] == [cause, "user-code-error", "framework-bug"]


def test_that_what_is_not_named_is_confused_with_nothing(triage: Triage) -> None:
    """A first cause that is too unlikely to be named says nothing of the others."""
    found = (candidate("framework-bug", DIAGNOSED - 0.01, 0.2), candidate("node-lost", 0.3))
    assert weighed(triage, *found) == {item.cause: item.probability for item in found}
    assert weighed(triage) == {}


def test_that_an_answer_offers_the_rival_with_its_chance(triage: Triage) -> None:
    """Where a package misses a name, the job's code may ask for the wrong one: both are told."""
    log = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 3, in main\n    quux.run()\n'
        "ImportError: cannot import name 'run' from 'quux' (/env/site-packages/quux/__init__.py)\n"
    )
    answer = triage.diagnose(triage.read(from_text(log), "en")).first
    assert answer.cause == "package-incompatible"
    told = {item.cause: item for item in answer.alternatives}
    assert 0.0 < told["user-code-error"].confidence < answer.confidence
    assert told["user-code-error"].tell_apart


def test_that_what_a_cause_is_confused_with_makes_no_question(triage: Triage) -> None:
    """Two causes fit where this log speaks for both, not where other logs' answers were wrong."""
    first, shown = candidate("framework-bug", 0.5, 0.6), candidate("user-code-error", 0.3, 0.3)
    found = with_rivals((first, shown), report(failed()), Retrieval((), ()), triage.library, TABLE)
    alike = with_rivals(
        (first, candidate("user-code-error", 0.2, 0.3), candidate("node-lost", 0.5)),
        report(failed()),
        Retrieval((), ()),
        triage.library,
        TABLE,
    )
    made = assess(report(failed()), NOTHING_FOUND, triage.library)
    assert alike[1].probability > CLOSE * first.probability > alike[1].probability - alike[1].borrowed
    for candidates in (found, alike):
        assert verdict_of(replace(made, candidates=tuple(candidates)), triage.library) == "diagnosed"
    close = replace(made, candidates=(first, candidate("user-code-error", 0.48, 0.5)))
    assert verdict_of(close, triage.library) == "ambiguous"


def test_that_the_table_names_causes_that_there_are(triage: Triage) -> None:
    """No cause is its own rival, and chances are no more than one."""
    table = shipped()
    for named, shares in {**table.shares, "usual": table.usual}.items():
        assert {named, *shares} <= {*triage.library.causes, "usual"}
        assert sum(table.rivals(named).values()) <= 1.01
        assert named not in table.rivals(named)
    assert min(len(shares) for shares in table.shares.values()) >= PROPOSED
