"""Batches with a model: each job has its answer whatever the model does, and one that fails is not asked by
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corpus.message import words
from ingest.workers.backoff import Backoff
from service.batches import circuit_breaker
from service.batches.batches import open_store
from service.batches.circuit_breaker import MOST, CircuitBreaker
from service.batches.engine import BatchEngine
from service.batches.page import page
from service.batches.trend import BatchSummaries
from service.persistence.store import Store
from service.schemas.diagnosis import Engine as Writer
from service.schemas.diagnosis import Tokens
from service.schemas.records import BatchOptions
from service.settings import Settings
from tests.factories import steps
from tests.service.batches.jobs import accepted, crash, jobs, settings_at, write
from tests.service.factories import diagnosis
from tests.service.llm.scripted import Scripted, Turn, serving

ANSWER = Turn(
    json.dumps(
        {"cause": None, "quotes": [], "cases": [], "changes": [], "headline": "", "explanation": "It is so."}
    )
)
BUSY = Turn(status=429, headers=(("Retry-After", "3600"),))
COUNT = 7
# What the server does in turn, how often it is called for seven crashes, what it is said to have done, and
# its tokens.
SCRIPTS = {
    "fails from the third on": (
        [ANSWER, ANSWER, Turn(status=401)],
        2 + MOST,
        "(401)",
        (2 + MOST, MOST, False),
    ),
    "is over its limit": ([BUSY], MOST, "over its rate limit", (MOST, MOST, False)),
    "says nothing": ([Turn(silent=1.5)], MOST, "did not answer within 1 s", (MOST, MOST, False)),
    "fails now and then": (
        [Turn(status=401), Turn(status=401), ANSWER, Turn(status=401), ANSWER],
        COUNT,
        "(401)",
        (COUNT, 3, False),
    ),
}


@pytest.fixture
def place(tmp_path: Path, warm: Path) -> Callable[..., Settings]:
    return lambda server, seconds=60.0: settings_at(
        tmp_path / "home", warm, model="openai:x", model_base_url=server.url, model_deadline=seconds
    )


@pytest.fixture
def settled(place: Callable[..., Settings], tmp_path: Path) -> Iterator[Callable[..., tuple[Store, str]]]:
    """Work through seven crashes, a double of the first and a healthy job, with a model.

    Gives the store and the batch.
    """
    opened: list[Store] = []

    def work(server: Scripted, seconds: float) -> tuple[Store, str]:
        settings = place(server, seconds)
        opened.append(store := open_store(settings))
        texts = [*(crash(number) for number in range(COUNT)), crash(0), steps(1, 2, 3)]
        batch = accepted(settings, store, write(tmp_path / "logs", texts), options=BatchOptions(model=True))
        BatchEngine(settings, store, batch=batch).run()
        return store, batch

    yield work
    for store in opened:
        store.close()


@pytest.mark.long
@pytest.mark.parametrize(("turns", "calls", "note", "use"), SCRIPTS.values(), ids=SCRIPTS)
def test_that_each_job_has_its_answer_whatever_the_model_does(
    settled: Callable[..., tuple[Store, str]],
    place: Callable[..., Settings],
    turns: list[Turn],
    calls: int,
    note: str,
    use: tuple[int, int, bool],
) -> None:
    with serving(turns) as server:
        store, batch = settled(server, 1.0 if turns[0].silent else 60.0)
        assert len(server.calls) == calls
        found = jobs(store, batch)
        assert {(job.state, job.attempts) for job in found} == {("done", 1)}
        # The double asks nobody, nor does the healthy one.
        assert found[COUNT].same_as == found[0].id
        notes = [job.diagnosis.engine.note for job in found[:COUNT] if job.diagnosis]
        assert any(note in said for said in notes)
        assert notes.count(words("answer.model-not-asked", "en")) == COUNT - calls
        summary = BatchSummaries(place(server), store).of(batch)
        assert summary.model is not None
        assert (summary.model.asked, summary.model.silent, summary.model.counted) == use
        assert summary.model.received == 56 * (use[0] - use[1])
        assert f"A model was asked about {use[0]} jobs" in page(summary)


def test_that_a_fuse_lets_one_job_ask_once_its_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "Backoff", lambda *_: Backoff(0.0, 0.0))
    silent, said, unasked = (
        diagnosis(engine=Writer(tokens=tokens))
        for tokens in (Tokens(sent=9), Tokens(sent=9, received=1), None)
    )
    # Without any rest it always lets through, and goes on counting.
    blown = CircuitBreaker()
    for _ in range(MOST):
        assert blown.allows
        blown.record(silent)
    monkeypatch.undo()
    resting = CircuitBreaker()
    for answer in (silent, silent, said, silent, unasked, silent):
        resting.record(answer)
        assert resting.allows
    resting.record(silent)
    assert not resting.allows
    resting.pause.until = 0.0
    assert resting.allows
    resting.record(silent)
    assert not resting.allows
