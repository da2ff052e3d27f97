"""The life of a batch's jobs under any order of events: none is lost, none ends twice."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as rules
from hypothesis import strategies as st

from service.persistence.store import Store
from service.settings import Settings
from tests.service.factories import diagnosis
from tests.service.persistence.makers import NOW, batch, later, specs

OWNERS = st.sampled_from(["a", "b"])
PLACE = st.integers(0, 5)
EVENTS = st.one_of(
    st.tuples(st.just("claim"), OWNERS, st.integers(1, 4)),
    st.tuples(st.just("finish"), OWNERS, PLACE),
    st.tuples(st.just("fail"), OWNERS, PLACE),
    st.tuples(st.just("retry"), OWNERS, PLACE),
    st.tuples(st.just("give back"), OWNERS, PLACE),
    st.tuples(st.just("renew"), OWNERS, PLACE),
    st.tuples(st.just("wait"), OWNERS, st.integers(1, 20)),
    st.tuples(st.just("cancel"), OWNERS, st.just(0)),
)


class Engines:
    """Two engines on one batch: what each believes to hold, which may be long lost, and which results were
    taken.
    """

    def __init__(self, store: Store, batch_id: str, jobs: int) -> None:
        self._batches = store.batches
        self._batch = batch_id
        self._batches.add(batch(id=batch_id), specs(jobs))
        self._held: dict[str, list[str]] = {"a": [], "b": []}
        self._seconds = 0.0
        self.ends: Counter[str] = Counter()
        self._reopened: Counter[str] = Counter()

    def step(self, event: str, owner: str, number: int) -> None:
        """Let one thing happen."""
        held = self._held[owner]
        if event == "claim":
            held += [job.id for job in self._batches.claim(owner, number, 10, self.now, batch=self._batch)]
        elif event == "wait":
            self._seconds += number
        elif event == "cancel":
            # Rare, so that most orders are longer.
            self._seconds += 1
            if self._seconds > 25:
                self._batches.cancel(self._batch, self.now)
        elif event == "renew":
            self._held[owner] = sorted(self._batches.renew(owner, held, 10, self.now))
        elif number < len(held):
            self._end(event, owner, held.pop(number))

    def drain(self) -> None:
        """Let one engine work until nothing is left."""
        self._seconds += 1000
        for _ in range(200):
            jobs = self._batches.claim("last", 3, 10, self.now, batch=self._batch)
            for job in jobs:
                self._end("finish", "last", job.id)
            if not jobs:
                return
        raise AssertionError("the batch never ends")

    def check(self) -> None:
        """Every job ended, once for each time that it was open, and its answer is there."""
        state = self._batches.get(self._batch).state
        assert state == "cancelled" or self._batches.settle(self._batch, self.now)
        jobs = {job.id: job for job in self._batches.results(self._batch)}
        assert len(jobs) == self._batches.get(self._batch).total
        for key, job in jobs.items():
            assert self.ends[key] <= 1 + self._reopened[key]
            if job.state == "done" and state == "done":
                answer = jobs[job.same_as] if job.same_as else job
                assert answer.state == "done"
                assert answer.diagnosis is not None
                assert answer.same_as is None

    @property
    def now(self) -> datetime:
        return later(self._seconds)

    def _end(self, event: str, owner: str, job: str) -> None:
        if event == "give back":
            self._batches.give_back(owner, [job])
        elif event == "finish":
            self._finish(owner, job)
        else:
            before = self._states()
            retry_at = later(self._seconds + 5) if event == "retry" else None
            self.ends[job] += (
                self._batches.fail(job, owner, "it broke", retry_at, self.now) and retry_at is None
            )
            after = self._states()
            self._reopened.update(
                key for key in after if (before[key], after[key]) in {("done", "queued"), ("done", "failed")}
            )
            self.ends.update(key for key in after if (before[key], after[key]) == ("done", "failed"))

    def _finish(self, owner: str, job: str) -> None:
        number = int(job.rpartition("-")[2])
        crash, config = f"crash-{number % 2}", ("", "", "a", "b")[number % 4]
        standing = self._batches.representatives(self._batch, crash, config, job)[1]
        mine = standing == job
        answer = diagnosis() if mine else None
        same_as = None if mine else standing
        self.ends[job] += self._batches.finish(
            job, owner, fingerprint=crash, config=config, same_as=same_as, diagnosis=answer, now=self.now
        )

    def _states(self) -> dict[str, str]:
        return {job.id: job.state for job in self._batches.jobs(self._batch)[0]}


@pytest.fixture(scope="module")
def counter() -> list[int]:
    """Number the batches of all examples."""
    return [0]


@pytest.mark.long
@rules(
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(jobs=st.integers(1, 8), events=st.lists(EVENTS, min_size=5, max_size=40))
def test_that_every_job_ends_once_whatever_happens(
    settings: Settings, counter: list[int], jobs: int, events: list[tuple[str, str, int]]
) -> None:
    counter[0] += 1
    with Store.open(settings) as store:
        engines = Engines(store, f"B{counter[0]}", jobs)
        for event in events:
            engines.step(*event)
        engines.drain()
        engines.check()


def test_that_the_events_of_the_property_do_happen(settings: Settings) -> None:
    with Store.open(settings) as store:
        engines = Engines(store, "B1", 4)
        for event in [
            ("claim", "a", 4),
            ("finish", "a", 2),
            ("retry", "a", 0),
            ("wait", "a", 20),
            ("claim", "b", 4),
            ("finish", "a", 0),
        ]:
            engines.step(*event)
        assert engines.ends == Counter({"B1-3": 1})
        assert {job.owner for job in store.batches.jobs("B1", state="running")[0]} == {"b"}
        engines.drain()
        engines.check()
        assert engines.now > NOW
