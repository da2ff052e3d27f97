"""What a worker does with a job, and what it takes for the same crash."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from corpus.message import words
from ingest.workers.messages import TaskEnd, WorkerReady
from ingest.workers.process import bound_memory, serve
from service.batches import deadlines, owners
from service.batches.batches import open_store
from service.batches.commands import (
    AnswerCommand,
    DropCommand,
    JobCommand,
    JobWasAnswered,
    JobWasRead,
    ReadCommand,
    StepFailed,
)
from service.batches.engine import BatchEngine
from service.batches.executor import ExecutorLostError
from service.batches.pool_executor import job_program, open_local
from service.batches.worker import JobWorker, error_text
from service.schemas.diagnosis import Diagnosis
from service.settings import Settings
from tests.factories import OOM, traceback
from tests.service.batches.jobs import accepted, crash, jobs, settings_at, states, write
from tests.service.llm.scripted import Turn, serving
from tests.tables import each_row
from tests.waiting import PATIENCE

VERL = "verl==0.3.1\n"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> JobWorker:
    return JobWorker(settings_at(tmp_path_factory.mktemp("worker") / "home", warm))


def order(path: Path, text: str, **fields: object) -> JobCommand:
    path.write_text(text, encoding="utf-8")
    return JobCommand("batch-1", path.name, (str(path),), **fields)  # type: ignore[arg-type]


def read(worker: JobWorker, path: Path, text: str) -> str:
    outcome = worker.run(ReadCommand(order(path, text)))
    assert isinstance(outcome, JobWasRead)
    worker.run(DropCommand(outcome.id))
    return outcome.reading.fingerprint


@each_row(
    ("one", "other", "same"),
    [
        (crash(1), crash(1), True),
        (crash(1), "a line before\n" + crash(1), True),
        (crash(1), crash(2), False),
        (traceback(OOM, "update_actor"), traceback(OOM.replace("2.00", "4.00"), "update_actor"), True),
        (traceback(OOM, "update_actor"), traceback(OOM, "generate_sequences"), False),
        (
            traceback(OOM, "step"),
            "Uses vllm version 0.8.2\nINFO vllm/engine/llm.py:1: vLLM API server version 0.8.2\n"
            + traceback(OOM, "step"),
            False,
        ),
    ],
    ids=[
        "the same text",
        "another line",
        "another message",
        "other numbers",
        "another phase",
        "another version",
    ],
)
def test_that_crashes_are_the_same_where_the_same_answer_fits(
    worker: JobWorker, tmp_path: Path, one: str, other: str, same: bool
) -> None:
    assert (read(worker, tmp_path / "a.log", one) == read(worker, tmp_path / "b.log", other)) is same


def test_that_a_log_without_a_failure_is_no_crash(worker: JobWorker, tmp_path: Path) -> None:
    assert read(worker, tmp_path / "a.log", "step 1 loss 0.5\n") == ""


def test_that_a_job_is_answered_after_it_was_read_and_then_forgotten(
    worker: JobWorker, tmp_path: Path
) -> None:
    worker.run(ReadCommand(order(tmp_path / "a.log", crash(1))))
    outcome = worker.run(AnswerCommand("batch-1"))
    assert isinstance(outcome, JobWasAnswered)
    assert (outcome.diagnosis.id, outcome.diagnosis.source) == ("batch-1", "a.log")
    assert isinstance(worker.run(AnswerCommand("batch-1")), StepFailed)


def answered(worker: JobWorker, path: Path, **fields: object) -> Diagnosis:
    """Read and answer a job whose cause the rules name, in a batch with a model."""
    worker.run(ReadCommand(order(path, traceback(OOM, "update_actor"), model=True, **fields)))
    outcome = worker.run(AnswerCommand("batch-1"))
    assert isinstance(outcome, JobWasAnswered)
    return outcome.diagnosis


def test_that_a_model_is_asked_only_where_the_rules_are_not_certain_and_its_budget_allows(
    tmp_path: Path, warm: Path
) -> None:
    with serving([Turn(status=401)]) as server:

        def work(**fields: object) -> tuple[Diagnosis, int]:
            before = len(server.calls)
            settings = settings_at(
                tmp_path / "home", warm, model="openai:x", model_base_url=server.url, **fields
            )
            worker = JobWorker(settings)
            found = answered(worker, tmp_path / "a.log", batch="B")
            return found, len(server.calls) - before

        asked, calls = work(model_batch_below=1.0)
        assert (asked.verdict, calls > 0) == ("diagnosed", True)
        # As probable as this it is: certain enough.
        spared, calls = work(model_batch_below=asked.confidence)
        assert (spared.engine.note, calls) == (words("answer.model-not-needed", "en"), 0)
        assert spared.engine.tokens is None
        bounded, calls = work(model_batch_below=1.0, model_batch_tokens=100)
        assert calls == 0
        assert "The budget of tokens for this batch is used up" in bounded.engine.note


def test_that_an_error_tells_neither_path_nor_secret(tmp_path: Path) -> None:
    secret = "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi"
    given = JobCommand("1", "a.log", (str(tmp_path / "spool" / "x"),))
    assert error_text(f"{tmp_path}/spool/x is empty: {secret} " + "x" * 900, given).startswith(
        "a.log is empty: [redacted:"
    )
    assert len(error_text("x" * 900, given)) == 500


def test_that_a_log_that_became_a_link_out_of_the_allowed_folders_is_not_read(
    tmp_path: Path, warm: Path
) -> None:
    """Who writes the logs may change them between the listing and the reading."""
    root, outside = tmp_path / "logs", tmp_path / "outside.log"
    root.mkdir()
    outside.write_text(crash(1), encoding="utf-8")
    (root / "job.log").symlink_to(outside)
    (root / "near.log").symlink_to(root / "fine.log")
    (root / "fine.log").write_text(crash(1), encoding="utf-8")
    worker = JobWorker(settings_at(tmp_path / "home", warm, batch_roots=str(root)))
    outcomes = [
        worker.run(ReadCommand(JobCommand(name, name, (str(root / name),))))
        for name in ("job.log", "near.log", "fine.log")
    ]
    assert [type(outcome).__name__ for outcome in outcomes] == ["StepFailed", "JobWasRead", "JobWasRead"]


def _hungry(pipe: Connection, settings: Settings, path: str) -> None:
    """Read a job with no memory to spare, then again with some."""
    worker = JobWorker(settings)
    worker.load()
    bound_memory(256 << 20)
    large: list[bytes] = []
    try:
        while True:
            large.append(bytes(1 << 20))
    except MemoryError:
        pass
    first = worker.run(ReadCommand(JobCommand("1", "large", (path,))))
    large.clear()
    second = worker.run(ReadCommand(JobCommand("2", "large", (path,))))
    pipe.send((first, second))


@pytest.mark.long
def test_that_a_job_that_takes_too_much_memory_fails_and_the_worker_lives_on(
    tmp_path: Path, warm: Path
) -> None:
    path = tmp_path / "large.log"
    path.write_text("step 1\n" * 10_000 + crash(1), encoding="utf-8")
    pipe, other = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_hungry, args=(other, settings_at(tmp_path / "home", warm), str(path))
    )
    process.start()
    first, second = pipe.recv()
    process.join()
    assert isinstance(first, StepFailed)
    assert "memory" in first.error
    assert not first.final
    assert isinstance(second, JobWasRead)


def test_that_a_worker_ends_with_the_process_that_started_it(tmp_path: Path, warm: Path) -> None:
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    process = context.Process(target=serve, args=(other, job_program(settings_at(tmp_path / "home", warm))))
    process.start()
    other.close()
    assert pipe.recv() == WorkerReady("")
    pipe.send(ReadCommand(order(tmp_path / "a.log", crash(1))))
    end = pipe.recv()
    assert isinstance(end, TaskEnd)
    assert isinstance(end.answer, JobWasRead)
    pipe.close()
    process.join(timeout=PATIENCE)
    assert process.exitcode == 0


@pytest.mark.long
def test_that_what_ray_cannot_do_is_done_by_processes(tmp_path: Path, warm: Path) -> None:
    def broken(settings: Settings) -> Iterator[None]:
        raise ExecutorLostError("there is no cluster")

    settings = settings_at(tmp_path / "home", warm, ray_from=1)
    with open_store(settings) as store:
        batch = accepted(settings, store, write(tmp_path / "logs", [crash(1)]))
        BatchEngine(settings, store, batch=batch, openers={"local": open_local, "ray": broken}).run()  # type: ignore[dict-item]
        assert states(store, batch) == {"done": 1}
        assert jobs(store, batch)[0].attempts == 1


@pytest.mark.long
def test_that_a_batch_whose_workers_cannot_load_ends_with_the_reason_and_stays(
    tmp_path: Path, warm: Path
) -> None:
    settings = settings_at(tmp_path / "home", warm)
    (settings.home / "index").unlink()
    (settings.home / "index").write_text("a file in the index's place", encoding="utf-8")
    with open_store(settings) as store:
        batch = accepted(settings, store, write(tmp_path / "logs", [crash(1)]))
        with pytest.raises(ExecutorLostError, match="index"):
            BatchEngine(settings, store, batch=batch).run()
        assert [(job.state, job.attempts) for job in jobs(store, batch)] == [("queued", 0)]


def test_that_a_larger_log_has_more_time(tmp_path: Path, make_settings: object) -> None:
    small, large = tmp_path / "small.log", tmp_path / "folder" / "large.log"
    small.write_bytes(b"x")
    large.parent.mkdir()
    with large.open("wb") as stream:
        stream.truncate(500_000_000)
    settings = Settings(home=tmp_path, request_deadline=10.0, model_deadline=60.0)
    assert deadlines.step_deadline((str(small),), settings, model=False) == pytest.approx(10.0, abs=0.1)
    assert deadlines.step_deadline((str(large.parent),), settings, model=False) == pytest.approx(510.0)
    assert deadlines.step_deadline((str(tmp_path / "gone"),), settings, model=True) == 70.0


def test_that_an_engine_knows_which_others_are_gone() -> None:
    mine = owners.new_owner()
    host = mine.split(":", 1)[0]
    assert [
        owners.is_gone(owner)
        for owner in (mine, f"{host}:4194305:99:ab", f"{host}:1:1:ab", "elsewhere:4194305:99:ab", "", "odd")
    ] == [False, True, True, False, False, False]
