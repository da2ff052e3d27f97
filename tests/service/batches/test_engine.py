"""The engine on processes of this machine: each job ends once, each crash is answered once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from service.batches.answers import job_result
from service.batches.batches import BatchService, open_store
from service.batches.engine import AHEAD_SECONDS, MOST_AHEAD, BatchEngine, ClaimRate
from service.batches.journal import journal_of
from service.persistence.store import Store
from service.schemas.errors import ConflictError
from service.schemas.records import BatchOptions, JobRecord
from service.settings import Settings
from tests.factories import steps
from tests.service.batches.jobs import (
    accepted,
    crash,
    ends,
    engine_process,
    jobs,
    pipe,
    reader_of,
    settings_at,
    spec,
    states,
    write,
)
from tests.tables import each_row
from tests.waiting import PATIENCE, until


@pytest.fixture
def settings(tmp_path: Path, warm: Path) -> Settings:
    return settings_at(tmp_path / "home", warm)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings) as opened:
        yield opened


def test_that_each_job_ends_once_and_each_crash_is_answered_once(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    texts = [crash(number % 4) for number in range(12)] + [steps(1, 2, 3)] * 2
    batch = accepted(settings, store, write(tmp_path / "logs", texts))
    told: list[JobRecord] = []
    BatchEngine(settings, store, batch=batch, watch=told.append).run()
    found = jobs(store, batch)
    assert store.batches.get(batch).state == "done"
    assert states(store, batch) == {"done": 14}
    answered = [job for job in found if job.same_as is None]
    # A log without a failure is nobody's double.
    assert Counter(job.diagnosis.verdict for job in answered if job.diagnosis)["no-failure"] == 2
    assert len(answered) == 4 + 2
    assert {job.same_as for job in found} - {None} == {job.id for job in answered if job.fingerprint}
    assert sorted(job.id for job in told) == sorted(job.id for job in found)
    assert ends(settings, batch) == {job.number: 1 for job in found}


def test_that_a_double_gets_the_answer_of_its_crash_with_its_own_line(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    batch = accepted(
        settings, store, write(tmp_path / "logs", [crash(7), "one more line before\n" + crash(7)])
    )
    BatchEngine(settings, store, batch=batch).run()
    first, second = jobs(store, batch)
    assert (first.same_as, second.same_as) == (None, first.id)
    own, other = job_result(first), job_result(second, first)
    assert (other.id, other.source, other.cause, other.headline) == (
        second.id,
        second.name,
        own.cause,
        own.headline,
    )
    root = next(item for item in own.evidence if item.role == "root")
    assert [(item.line, item.text, item.role) for item in other.evidence] == [
        (root.line + 1, root.text, "root")
    ]
    assert other.explanation.startswith(f"This is the same crash as that of job **{first.name}**")
    assert other.job is not None
    assert (other.job.same_as, other.job.state) == (first.id, "done")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (bytes(range(256)) * 400, "not text"), (None, "no file a.log")],
    ids=["empty", "binary", "missing"],
)
def test_that_what_cannot_be_read_fails_at_once_and_says_why(
    settings: Settings, store: Store, tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "a.log"
    if content is not None:
        path.write_bytes(content)
    batch = accepted(settings, store, [spec(path)])
    BatchEngine(settings, store, batch=batch).run()
    (job,) = jobs(store, batch)
    assert (job.state, job.attempts) == ("failed", 1)
    assert said in job.error.lower()
    answer = job_result(job)
    assert (answer.verdict, answer.cause) == ("unknown", "insufficient-evidence")
    assert job.error in answer.headline
    assert answer.job is not None
    assert answer.job.error == job.error


def test_that_an_error_names_no_path_of_this_machine(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    batch = accepted(settings, store, [spec(tmp_path / "gone.log")])
    BatchEngine(settings, store, batch=batch).run()
    (job,) = jobs(store, batch)
    assert str(tmp_path) not in job.error
    assert "gone.log" in job.error


@pytest.mark.long
def test_that_a_log_that_hangs_its_worker_fails_and_holds_up_no_other(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    settings = replace(settings, request_deadline=1.0)
    specs = [pipe(tmp_path / "hangs.log"), *write(tmp_path / "logs", [crash(number) for number in range(6)])]
    batch = accepted(settings, store, specs)
    BatchEngine(settings, store, batch=batch).run()
    hangs, *others = jobs(store, batch)
    assert (hangs.state, hangs.attempts) == ("failed", 3)
    assert "longer than" in hangs.error
    assert {(job.state, job.attempts) for job in others} == {("done", 1)}


@pytest.mark.long
def test_that_a_log_that_kills_its_worker_fails_and_the_others_do_not_pay(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    specs = [pipe(tmp_path / "kills.log"), *write(tmp_path / "logs", [crash(number) for number in range(6)])]
    batch = accepted(settings, store, specs)
    engine = BatchEngine(settings, store, batch=batch)
    engine.start()
    for _ in range(3):
        number, handle = reader_of(tmp_path / "kills.log")
        os.kill(number, signal.SIGKILL)
        until(lambda number=number: not Path(f"/proc/{number}").exists(), "the worker is gone")  # type: ignore[misc]
        os.close(handle)
    until(lambda: store.batches.get(batch).state == "done", "the batch is over")
    engine.stop()
    kills, *others = jobs(store, batch)
    assert (kills.state, kills.attempts) == ("failed", 3)
    assert "SIGKILL" in kills.error
    assert {(job.state, job.attempts) for job in others} == {("done", 1)}
    assert ends(settings, batch) == dict.fromkeys(range(1, 8), 1)


@pytest.mark.long
def test_that_a_worker_that_dies_once_costs_a_try_and_no_job(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "once.log"
    batch = accepted(settings, store, [pipe(path)])
    engine = BatchEngine(settings, store, batch=batch)
    engine.start()
    number, handle = reader_of(path)
    os.kill(number, signal.SIGKILL)
    os.close(handle)
    until(lambda: not Path(f"/proc/{number}").exists(), "the worker is gone")
    _, handle = reader_of(path)
    os.write(handle, crash(1).encode())
    os.close(handle)
    until(lambda: store.batches.get(batch).state == "done", "the batch is over")
    engine.stop()
    (job,) = jobs(store, batch)
    assert (job.state, job.attempts) == ("done", 2)


@pytest.mark.long
def test_that_a_cancelled_batch_ends_within_a_second_and_frees_its_workers(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "long.log"
    batch = accepted(settings, store, [pipe(path), *write(tmp_path / "logs", [crash(1)])])
    engine = BatchEngine(settings, store)
    engine.start()
    number, handle = reader_of(path)
    begun = monotonic()
    BatchService(settings, store, engine.wake).cancel(batch)
    until(lambda: not Path(f"/proc/{number}").exists(), "the worker is ended")
    assert monotonic() - begun < 20  # no deadline of the job is as short
    os.close(handle)
    # What comes after finds a worker.
    other = accepted(settings, store, write(tmp_path / "others", [crash(2)]))
    until(lambda: store.batches.get(other).state == "done", "the next batch is over")
    engine.stop()
    assert store.batches.get(batch).state == "cancelled"
    assert set(states(store, batch)) <= {"cancelled", "done"}
    assert job_result(jobs(store, batch)[0]).verdict == "unknown"


@pytest.mark.long
def test_that_a_deleted_batch_leaves_nothing_and_stops_nothing(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "long.log"
    batch = accepted(settings, store, [pipe(path)])
    engine = BatchEngine(settings, store)
    engine.start()
    _, handle = reader_of(path)
    BatchService(settings, store, engine.wake).delete(batch)
    os.close(handle)
    other = accepted(settings, store, write(tmp_path / "others", [crash(2)]))
    until(lambda: store.batches.get(other).state == "done", "the next batch is over")
    engine.stop()
    assert not journal_of(settings.home, batch).folder.exists()


@pytest.mark.long
def test_that_a_batch_that_is_deleted_while_its_crash_is_asked_for_stops_no_other(
    settings: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = accepted(settings, store, write(tmp_path / "logs", [crash(1)]))
    other = accepted(settings, store, write(tmp_path / "others", [crash(2)]))
    representatives = store.batches.representatives

    def deleted(batch: str, *rest: str) -> tuple[str, str]:
        if batch == gone:
            BatchService(settings, store).delete(gone)
        return representatives(batch, *rest)

    monkeypatch.setattr(store.batches, "representatives", deleted)
    # Without `start`, nothing would bring an engine back that broke down.
    BatchEngine(settings, store, batch=other).run()
    engine = BatchEngine(settings, store)
    monkeypatch.setattr(engine, "run_forever", engine.run)
    engine.start()
    until(lambda: gone not in store.batches.running(), "the batch is deleted")
    last = accepted(settings, store, write(tmp_path / "last", [crash(3)]))
    until(lambda: store.batches.get(last).state == "done", "the last batch is over")
    engine.stop()


@pytest.mark.long
def test_that_an_engine_that_stops_gives_back_what_it_holds_as_if_not_tried(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "long.log"
    batch = accepted(settings, store, [pipe(path), *write(tmp_path / "logs", [crash(1)])])
    engine = BatchEngine(settings, store)
    engine.start()
    _, handle = reader_of(path)
    engine.stop()
    os.close(handle)
    assert {(job.state, job.attempts, job.owner) for job in jobs(store, batch)} == {("queued", 0, "")}


@pytest.mark.long
def test_that_two_engines_share_a_batch_and_no_job_is_done_twice(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    batch = accepted(settings, store, write(tmp_path / "logs", [crash(number % 40) for number in range(120)]))
    with engine_process(settings, batch) as one, engine_process(settings, batch) as other:
        assert (one.wait(PATIENCE), other.wait(PATIENCE)) == (0, 0)
    found = jobs(store, batch)
    assert {job.state for job in found} == {"done"}
    assert len([job for job in found if job.same_as is None]) == 40
    assert ends(settings, batch) == {job.number: 1 for job in found}


@pytest.mark.long
def test_that_spooled_copies_go_when_a_batch_is_over(settings: Settings, store: Store) -> None:
    batches = BatchService(settings, store)
    batch = batches.begin()
    folder = batches.spool(batch)
    specs = [
        item.model_copy(update={"place": item.place.model_copy(update={"spooled": True})})
        for item in write(folder, [crash(1)])
    ]
    batches.accept("an upload", "upload", specs, batch=batch)
    assert folder.exists()
    BatchEngine(settings, store, batch=batch).run()
    assert states(store, batch) == {"done": 1}
    assert not folder.exists()
    assert journal_of(settings.home, batch).exists()


@pytest.mark.long
def test_that_a_batch_is_answered_in_its_language(settings: Settings, store: Store, tmp_path: Path) -> None:
    batch = accepted(
        settings, store, write(tmp_path / "logs", [crash(1)]), options=BatchOptions(language="zh")
    )
    BatchEngine(settings, store, batch=batch).run()
    (job,) = jobs(store, batch)
    assert job.diagnosis is not None
    assert any("一" <= char <= "鿿" for char in job.diagnosis.headline)


def test_that_a_job_that_has_not_ended_has_no_result(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    batch = accepted(settings, store, write(tmp_path / "logs", [crash(1)]))
    with pytest.raises(ConflictError, match="has not ended"):
        job_result(jobs(store, batch)[0])


@each_row(("rate", "ahead"), [(0, 16), (1, 16), (60, 120), (5000, MOST_AHEAD)])
def test_that_as_much_is_claimed_ahead_as_is_done_in_a_moment(rate: int, ahead: int) -> None:
    pace = ClaimRate(16)
    # Whatever it was before, seconds later it is what it is now.
    for speed in (rate, 300, rate, rate, rate):
        pace.since = monotonic() - 2 * AHEAD_SECONDS
        pace.count_ended(int(speed * 2 * AHEAD_SECONDS))
    assert pace.claim_count == pytest.approx(ahead, abs=2)
