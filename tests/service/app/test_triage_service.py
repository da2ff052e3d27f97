"""The triage service: one triage from the log to the last question, with real processes and a real
database.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corpus.message import in_language
from service.app.admission import Caller
from service.app.triage_service import TriageService
from service.patching.patches import ConfigFile
from service.schemas.errors import ConflictError, InvalidRequestError, NotFoundError
from service.schemas.events import (
    Accepted,
    Event,
    FinalAnswer,
    FirstAnswer,
    LogLookedAt,
    LogRead,
    TriageFailed,
    TurnAnswered,
)
from service.schemas.records import Excerpt, Feedback
from service.settings import Settings
from service.workers.pool import ProcessPool
from service.workers.tasks import Submission
from tests.service.llm.scripted import Turn, serving
from tests.service.workers import faulty
from tests.tables import each_row
from tests.warm import INCIDENTS, script

CALLER = Caller("api", "tester")
OFFLOAD = INCIDENTS / "w-easyr1-offload-host-ram"
SECRET = "hf_" + "aB3" * 12


@pytest.fixture(scope="module")
def settings(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The warm home, with a database of this module alone."""
    database = tmp_path_factory.mktemp("desk") / "desk.db"
    return Settings(
        home=warm,
        embedding_model="hash",
        workers=1,
        database=type(Settings().database)(f"sqlite:///{database}"),
    )


@pytest.fixture(scope="module")
def triage_service(settings: Settings) -> Iterator[TriageService]:
    """An open triage service with one worker."""
    with TriageService(settings) as opened:
        yield opened


def offload(**fields: object) -> Submission:
    """Hand in an incident with its launch script."""
    files = (ConfigFile("run.sh", script(OFFLOAD.name).read_text(encoding="utf-8")),)
    made = Submission("paste", text=(OFFLOAD / "log.txt").read_text(encoding="utf-8"), configs=files)
    return replace(made, **fields)  # type: ignore[arg-type]


def accepted(events: list[Event]) -> str:
    """Give the id under which it is kept."""
    assert isinstance(events[0], Accepted)
    return events[0].id


@pytest.fixture(scope="module")
def done(triage_service: TriageService) -> str:
    """One finished triage."""
    return accepted(list(triage_service.triage(offload(), CALLER)))


def turn(events: Iterator[Event]) -> TurnAnswered:
    """Give the last event of a question."""
    *_, last = events
    assert isinstance(last, TurnAnswered)
    return last


def test_that_the_events_come_in_their_order_and_the_answer_is_kept(triage_service: TriageService) -> None:
    events = list(triage_service.triage(offload(), CALLER))
    kinds = [event.kind for event in events if event.kind != "progress"]
    assert kinds == ["accepted", "report", "cases", "first", "final"]
    final = events[-1]
    assert isinstance(final, FinalAnswer)
    record = triage_service.record(accepted(events))
    assert (record.state, record.caller) == ("done", "tester")
    assert record.diagnosis is not None
    assert record.diagnosis.to_json() == final.diagnosis.to_json()
    assert final.diagnosis.id == record.id
    assert final.diagnosis.cause == "cpu-offload-pressure"
    assert final.diagnosis.patch


def test_that_a_folder_is_read_under_its_given_name(triage_service: TriageService) -> None:
    events = list(triage_service.triage(Submission("job 7", paths=(OFFLOAD,)), CALLER))
    read = next(event for event in events if isinstance(event, LogRead))
    assert read.root_line == 357
    assert triage_service.record(accepted(events)).diagnosis.source == "job 7"  # type: ignore[union-attr]


def test_that_several_files_keep_the_names_that_were_given(
    triage_service: TriageService, tmp_path: Path
) -> None:
    fine, broken = tmp_path / "1", tmp_path / "2"
    fine.write_text("fine\n", encoding="utf-8")
    broken.write_text(
        "fine\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", encoding="utf-8"
    )
    events = list(
        triage_service.triage(
            Submission("job", paths=(fine, broken), names=("rank0.log", "rank1.log")), CALLER
        )
    )
    read = next(event for event in events if isinstance(event, LogRead))
    assert (read.root_file, read.root_line) == ("rank1.log", 2)


def test_that_what_cannot_be_read_is_told_by_its_name_and_kept_as_failed(
    triage_service: TriageService, tmp_path: Path
) -> None:
    path = tmp_path / "spooled-7"
    path.write_bytes(b"\x7fELF\0\0\0" * 100)
    events = list(triage_service.triage(Submission("core", paths=(path,), names=("core.1234",)), CALLER))
    failed = events[-1]
    assert isinstance(failed, TriageFailed)
    assert failed.status == 422
    assert "core.1234" in failed.error
    assert "spooled" not in failed.error
    assert triage_service.record(accepted(events)).state == "failed"


@each_row("submission", [Submission("empty"), Submission("blank", text=" \n ")], ids=["nothing", "blank"])
def test_that_nothing_is_refused_with_a_sentence(
    triage_service: TriageService, submission: Submission
) -> None:
    with pytest.raises(InvalidRequestError, match="paste its text"):
        triage_service.triage(submission, CALLER)


def test_that_a_question_is_answered_from_what_was_kept(triage_service: TriageService, done: str) -> None:
    first = turn(triage_service.ask(done, "We cannot switch offload off.", CALLER))
    assert first.constraints
    second = turn(triage_service.ask(done, "what should I change?", CALLER))
    assert "offload_optimizer" not in second.text
    assert [message.role for message in triage_service.messages(done)][-4:] == ["user", "assistant"] * 2


def test_that_the_excerpt_holds_the_root_line_at_its_number(triage_service: TriageService, done: str) -> None:
    (stretch,) = triage_service.excerpt(done).stretches
    assert "killed due to memory pressure" in stretch.lines[357 - stretch.begin]


def test_that_a_prompt_can_be_read_and_holds_no_secret(triage_service: TriageService) -> None:
    log = f"login {SECRET}\n" + offload().text
    done = accepted(
        list(
            triage_service.triage(
                offload(text=log, configs=(ConfigFile("run.sh", f"export HF_TOKEN={SECRET}\n"),)), CALLER
            )
        )
    )
    assert "L358" in triage_service.prompt(done)
    kept = (
        triage_service.record(done).model_dump_json()
        + triage_service.excerpt(done).model_dump_json()
        + triage_service.prompt(done)
    )
    assert SECRET not in kept


def test_that_feedback_needs_a_cause_of_ours(triage_service: TriageService, done: str) -> None:
    with pytest.raises(InvalidRequestError, match="no cause"):
        triage_service.feedback(done, Feedback(right=False, cause="gremlins"), CALLER)
    kept = triage_service.feedback(
        done, Feedback(right=False, cause="disk-full", fix=f"token={SECRET}"), CALLER
    )
    assert SECRET not in kept.fix
    assert triage_service.store.triages.feedback(done)[-1].cause == "disk-full"


def test_that_past_triages_are_found_by_words(triage_service: TriageService, done: str) -> None:
    assert done in [item.id for item in triage_service.records("offload paste").items]
    assert triage_service.records("no such words at all").items == ()


def test_that_a_search_gives_cases(triage_service: TriageService) -> None:
    assert any(hit.kind == "case" for hit in triage_service.search("vllm wake_up after sleep"))
    assert any("一" <= char <= "鿿" for char in triage_service.search("显存不足 vllm")[0].title)


def test_that_a_triage_that_was_deleted_is_gone(triage_service: TriageService) -> None:
    gone = accepted(list(triage_service.triage(offload(), CALLER)))
    triage_service.forget(gone, CALLER)
    for ask in (
        triage_service.record,
        triage_service.messages,
        triage_service.excerpt,
        triage_service.prompt,
    ):
        with pytest.raises(NotFoundError):
            ask(gone)


def test_that_a_triage_without_an_answer_cannot_be_asked_about(
    triage_service: TriageService, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\0" * 5000)
    failed = accepted(list(triage_service.triage(Submission("zeros", paths=(path,)), CALLER)))
    with pytest.raises(ConflictError):
        triage_service.ask(failed, "why?", CALLER)
    assert triage_service.excerpt(failed) == Excerpt()


def test_that_a_first_answer_stands_where_its_worker_dies_afterwards(
    triage_service: TriageService, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ProcessPool(settings, 1, faulty.first_then_dead)
    monkeypatch.setattr(triage_service, "pool", pool)
    pool.start()
    events = list(triage_service.triage(offload(), CALLER))
    pool.close()
    assert [event.kind for event in events] == ["accepted", "first", "error"]
    record = triage_service.record(accepted(events))
    assert (record.state, record.diagnosis is not None) == ("done", True)
    assert "died" in record.error


def test_that_work_goes_on_when_nobody_listens(triage_service: TriageService) -> None:
    events = triage_service.triage(offload(), CALLER)
    left = accepted([next(events)])
    events.close()  # type: ignore[attr-defined]
    list(triage_service.triage(offload(), CALLER))  # the one worker has done the first by then
    assert triage_service.record(left).state == "done"


def test_that_old_triages_go(triage_service: TriageService) -> None:
    old = accepted(list(triage_service.triage(offload(), CALLER)))
    now = datetime.now(UTC)
    for day in range(0, 90, 2):
        triage_service.forget_old(now + timedelta(days=day))
    assert triage_service.record(old).id == old
    assert triage_service.forget_old(now + timedelta(days=91)) >= 1
    with pytest.raises(NotFoundError):
        triage_service.record(old)


def test_that_a_clock_that_leaps_deletes_nothing(triage_service: TriageService) -> None:
    kept = accepted(list(triage_service.triage(offload(), CALLER)))
    leapt = datetime.now(UTC) + timedelta(days=3000)
    assert [triage_service.forget_old(leapt + timedelta(hours=hour)) for hour in range(3)] == [0, 0, 0]
    assert triage_service.record(kept).id == kept


@pytest.mark.long
def test_that_a_models_words_come_between_the_first_and_the_final_answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    said = {
        "cause": "cpu-offload-pressure",
        "headline": "",
        "quotes": [],
        "cases": [],
        "changes": [],
        "explanation": "The node killed a worker because its memory was nearly full [L357].",
    }
    with serving([Turn(json.dumps(said))]) as server:
        spoken = replace(settings, model="openai:scripted", model_base_url=server.url)
        with TriageService(spoken) as triage_service:
            events = list(triage_service.triage(offload(), CALLER))
    kinds = [event.kind for event in events if event.kind != "progress"]
    assert kinds == ["accepted", "report", "cases", "first", "text", "final"]
    assert isinstance(events[-1], FinalAnswer)
    first = next(event for event in events if isinstance(event, FirstAnswer))
    assert events[-1].diagnosis.engine.name == "openai:scripted"
    assert events[-1].diagnosis.cause == first.diagnosis.cause
    assert len(server.calls) == 1


@pytest.mark.long
def test_that_a_models_looks_are_told_while_the_upload_is_there(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker reads the job's own file again; the look is an event, and the stored answer keeps it."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    said = {
        "cause": "cpu-offload-pressure",
        "explanation": "The node killed a worker because its memory was nearly full [L357].",
    }
    turns = [Turn(calls=(("read_lines", {"first": "L20", "last": "L24"}),)), Turn(json.dumps(said))]
    with serving(turns) as server:
        spoken = replace(settings, model="openai:scripted", model_base_url=server.url)
        with TriageService(spoken) as triage_service:
            upload = offload(text="", paths=(OFFLOAD / "log.txt",))
            events = list(triage_service.triage(upload, CALLER))
            stored = triage_service.record(accepted(events)).diagnosis
    kinds = [event.kind for event in events if event.kind != "progress"]
    assert kinds == ["accepted", "report", "cases", "first", "look", "text", "final"]
    looked = next(event for event in events if isinstance(event, LogLookedAt))
    assert in_language(looked.says, "zh") == "查看了 L20 至 L24"
    content = next(row["content"] for row in server.calls[1]["messages"] if row["role"] == "tool")
    assert [row.split("|")[0] for row in content.splitlines()[1:-1]] == [f"L{n}" for n in range(20, 25)]
    assert stored is not None
    assert [step.tool for step in stored.engine.trace] == ["read_lines"]
