"""Candidates: what speaks for each cause, and how sure the first one is."""

from __future__ import annotations

import pytest

from ingest.logs.inputs.sources import from_text
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Standing
from service.scoring.retrieval import Retriever
from service.scoring.scoring import Candidate, confidence, is_doubtful, rank_causes
from service.settings import Settings
from tests.factories import OOM, event, prefixed, steps
from tests.service.factories import failed, report
from tests.tables import each_row
from tests.warm import EVERY, log_lines

PEER_LOST = "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0."
RAY_KILL = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."


def candidate(cause: str, probability: float, doubt: float = 0.0) -> Candidate:
    """Make a candidate without its evidence."""
    return Candidate(cause, probability, "supported", (), (), probability, doubt)


def weighed(triage: Triage, log: str) -> list[Candidate]:
    """Weigh what a log says by signatures alone."""
    told = triage.reader.read(from_text(log))
    return rank_causes(told, Retriever(triage.library, None, None).retrieve(told), triage.library)


def test_no_sum_of_signs_makes_an_answer_certain() -> None:
    """A probability of one is still stated as less."""
    assert confidence([candidate("a", 1.0)]) < 1
    assert confidence([]) == 0


@each_row(
    ("found", "doubtful"),
    [
        ([], True),
        ([candidate("disk-full", 0.9, 0.1)], False),
        ([candidate("disk-full", 0.4, 0.1)], True),
        ([candidate("disk-full", 0.49, 0.5)], True),
        ([candidate("insufficient-evidence", 0.0)], True),
    ],
)
def test_what_is_unlikely_or_outweighed_by_doubt_is_not_named(found: list[Candidate], doubtful: bool) -> None:
    """A cause is named where it is likely, and likelier than that the log does not tell."""
    assert is_doubtful(found) == doubtful


def test_where_nothing_failed_there_is_no_candidate(triage: Triage) -> None:
    """A healthy log accuses nobody."""
    assert weighed(triage, steps(1, 2, 3)) == []


@pytest.mark.long
def test_a_line_that_states_its_cause_settles_it(triage: Triage) -> None:
    """Every pattern that states its cause, alone in a log, gives just that diagnosis."""
    alone = Triage(Settings(home=triage.index.folder, embedding_model="hash"))
    # Signatures alone: the same for a search that finds nothing, and a hundred times faster.
    alone.__dict__ |= {
        "library": triage.library,
        "reader": triage.reader,
        "retriever": Retriever(triage.library, None, None),
    }
    rows = [
        row
        for row in triage.reader.table.rows
        if row.fails and row.role == "origin" and row.strength == "states" and row.cause
    ]
    wrong = []
    for row in rows:
        answer = alone.diagnose(alone.read(from_text(row.examples[0] + "\n"), "en")).first
        cited = [hit.id for hit in answer.cases if f"[case:{hit.id}]" in answer.explanation]
        if (answer.verdict, answer.cause) != ("diagnosed", row.cause) or (
            "[case:" in answer.explanation and not cited
        ):
            wrong.append(f"{row.id}: {answer.verdict} {answer.cause}")
    assert len(rows) > 300
    assert wrong == []


@each_row(
    ("log", "cause", "standing"),
    [
        (OOM, "gpu-oom-training", "hypothesis"),
        (RAY_KILL, "ray-memory-monitor-kill", "established"),
        (RAY_KILL + "\n" + PEER_LOST, "ray-memory-monitor-kill", "established"),
        (PEER_LOST + "\n" + RAY_KILL, "ray-memory-monitor-kill", "established"),
        (prefixed("[rank1]: ", OOM) + PEER_LOST, "gpu-oom-training", None),
    ],
)
def test_the_origin_beats_what_follows_it(
    log: str, cause: str, standing: Standing | None, triage: Triage
) -> None:
    """A peer's complaint never outweighs the failure that it follows from, in whatever order they were
    printed.
    """
    first = weighed(triage, log + "\n")[0]
    assert first.cause == cause
    assert standing in (None, first.standing)


def test_a_following_line_says_less_than_an_origin(triage: Triage) -> None:
    """The same words weigh less where such lines as a rule follow another failure."""
    retriever = Retriever(triage.library, None, None)
    scores = []
    for role in ("origin", "collateral"):
        told = report(failed(pattern="x.unknown", cause="disk-full", pattern_role=role))
        scores.append(rank_causes(told, retriever.retrieve(told), triage.library)[0].score)
    assert scores[0] > scores[1]


def test_more_signs_make_a_cause_likelier(triage: Triage) -> None:
    """A second line that points to the same cause raises its score and lifts a hypothesis to supported."""
    retriever = Retriever(triage.library, None, None)
    root = failed(pattern="x.unknown", cause="disk-full", strength="suggests")
    one, two = report(root), report(root, event(9, pattern="x.other", cause="disk-full"))
    first, second = (rank_causes(told, retriever.retrieve(told), triage.library)[0] for told in (one, two))
    assert second.score > first.score
    assert (first.standing, second.standing) == ("hypothesis", "supported")


def test_a_symptom_gives_way_to_what_explains_it(triage: Triage) -> None:
    """Where a cause and its symptom both have evidence, the cause comes first."""
    deeper = next(cause for cause in triage.library.causes.values() if cause.explains)
    symptom = deeper.explains[0]
    told = report(
        failed(3, pattern="x.symptom", cause=symptom, strength="suggests"),
        event(2, pattern="x.deeper", cause=deeper.id, strength="suggests", role="collateral"),
        event(4, pattern="x.more", cause=deeper.id, strength="suggests", role="collateral"),
    )
    order = [
        found.cause
        for found in rank_causes(told, Retriever(triage.library, None, None).retrieve(told), triage.library)
    ]
    assert order.index(deeper.id) < order.index(symptom)


@each_row("name", EVERY)
def test_scores_are_shares_in_descending_order(name: str, triage: Triage) -> None:
    """Real logs give candidates with probabilities from 0 to 1, the likeliest first, each cause once and in
    the table.
    """
    told = triage.reader.read(from_text("\n".join(log_lines(name)), name))
    found = rank_causes(told, triage.retriever.retrieve(told), triage.library)
    scores = [item.probability for item in found]
    assert sum(scores) + (found[0].doubt if found else 1) == pytest.approx(1)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len({item.cause for item in found}) == len(found)
    assert {item.cause for item in found} <= set(triage.library.causes)
