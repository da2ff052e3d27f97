"""The client for programs, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.message import Message, is_chinese
from service.api.client import Client, UnreachableError
from service.schemas.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    RequestError,
    UnauthorizedError,
)
from service.schemas.events import FinalAnswer
from service.schemas.records import BatchRecord
from tests.service.api.conftest import Serve
from tests.service.api.test_batches import LINES
from tests.service.api.test_triages import KILLED, LOG, SCRIPT
from tests.waiting import PATIENCE


@pytest.fixture
def asked(serve: Serve) -> Iterator[Client]:
    """A client of a server that runs."""
    with serve() as address, Client(address.url) as client:
        yield client


def test_that_a_program_triages_asks_on_and_judges(asked: Client, tmp_path: Path) -> None:
    """Text or files, whole or event by event."""
    script = tmp_path / "run.sh"
    script.write_text(SCRIPT)
    log = tmp_path / "train.log"
    log.write_text(KILLED)
    found = asked.triage(log, configs=[script], language="en", model=False)
    assert (found.source, found.cause) == ("train.log", "cpu-offload-pressure")
    assert found.patch
    events = list(asked.stream(LOG, name="pasted"))
    assert isinstance(events[-1], FinalAnswer)
    assert asked.ask(found.id, "Why is this the cause?").text
    assert [event.kind for event in asked.asking(found.id, "And what if that cannot be changed?")][
        -1
    ] == "turn"
    assert asked.feedback(found.id, right=True).right
    assert asked.record(found.id).diagnosis == found
    assert asked.search("NCCL timeout", 3)
    asked.forget(found.id)
    with pytest.raises(NotFoundError):
        asked.record(found.id)


@pytest.mark.long
def test_that_a_program_waits_for_a_batch(asked: Client, tmp_path: Path) -> None:
    """With its progress, results and summary."""
    file = tmp_path / "jobs.jsonl"
    file.write_text(LINES)
    seen: list[BatchRecord] = []
    record = asked.wait(asked.batch([file], name="night").id, seen=seen.append, pause=0.1, timeout=PATIENCE)
    assert (record.state, seen[-1]) == ("done", record)
    assert len(list(asked.results(record.id))) == 5
    assert asked.summary(record.id)["died"]["jobs"] == 5
    assert asked.cancel(record.id).state == "done"
    asked.delete_batch(record.id)


def test_that_errors_are_the_services_own(asked: Client, tmp_path: Path) -> None:
    """By the kind that the server names."""
    binary = tmp_path / "a.bin"
    binary.write_bytes(bytes(range(256)) * 64)
    for log in ("", binary):
        with pytest.raises(InvalidRequestError):
            asked.triage(log)
        with pytest.raises(RequestError):
            list(asked.stream(log))
    # Folders that a server may look into are its operator's to name.
    with pytest.raises(ForbiddenError):
        asked.batch_of("folder", str(tmp_path))
    asked.triage(LOG, idempotency_key="program-1")
    with pytest.raises(ConflictError):
        asked.triage(KILLED, idempotency_key="program-1")


def test_that_an_error_of_a_server_is_told_in_its_readers_language(asked: Client, tmp_path: Path) -> None:
    """Its message comes with the sentence: before the work, by the work, and as a stream's last event."""
    binary = tmp_path / "a.bin"
    binary.write_bytes(bytes(range(256)) * 64)
    ways = (lambda: asked.record("0"), lambda: asked.triage(binary), lambda: list(asked.stream(binary)))
    for ask in ways:
        with pytest.raises(RequestError) as refused:
            ask()
        message = refused.value.args[0]
        assert isinstance(message, Message)
        assert is_chinese(message.in_language("zh"))


def test_that_a_server_that_is_not_there_is_told() -> None:
    """As an error of the service's tree, too."""
    with Client("http://127.0.0.1:1") as client, pytest.raises(UnreachableError):
        client.search("a")


def test_that_a_wrong_key_is_told(serve: Serve) -> None:
    """And what to do about it."""
    with (
        serve() as address,
        Client(address.url, key="whycrash_0_wrong") as client,
        pytest.raises(UnauthorizedError, match="whycrash keys add"),
    ):
        client.search("a")
