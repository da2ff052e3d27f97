"""Recorded talks with a model that looks before it answers, and with a reader in its seat."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval import incidents
from eval.cassette import Cassette, Recording, request_key
from eval.errors import EvalError
from eval.explained import Explained
from eval.seat import Seat, main, seat_name
from service.llm.models import ChatMessage, ToolCall, open_model
from service.pipeline.triage import Triage
from service.settings import Settings
from tests.service.llm.answering import faithful
from tests.service.llm.scripted import Turn, serving
from tests.tables import each_row
from tests.warm import INCIDENTS

NAME = "w-easyr1-offload-host-ram"
LOOKS: Sequence[tuple[str, dict[str, Any]]] = (
    ("read_lines", {"first": "L1", "last": "L3"}),
    ("search_log", {"words": "ran low"}),
)


def incident() -> incidents.Incident:
    """Give an incident with a plain cause."""
    return next(item for item in incidents.load(INCIDENTS) if item.id == NAME)


def settings(warm: Path, url: str = "") -> Settings:
    """Give settings with a model where there is an address of one."""
    model = "openai:scripted" if url else ""
    return Settings(home=warm, embedding_model="hash", model=model, model_base_url=url, model_deadline=60.0)


def system(warm: Path, folder: Path, url: str = "") -> Explained:
    """Make the system that may look, with what is recorded in a folder."""
    given = settings(warm, url)
    return Explained(Triage(given), given, Cassette.load("looks", folder), open_model(given), may_look=True)


def answered(warm: Path, folder: Path) -> str:
    """Write a faithful answer to the incident."""
    return json.dumps(faithful(system(warm, folder).diagnose(incident())))


def calls(looks: Sequence[tuple[str, dict[str, Any]]]) -> list[Turn]:
    """Make turns that call tools, one each."""
    return [Turn(calls=((name, arguments),)) for name, arguments in looks]


@pytest.mark.long
def test_a_talk_with_looks_is_replayed_without_the_model(warm: Path, tmp_path: Path) -> None:
    """Calls are recorded with the hash of the request that they answer; what they find is found again."""
    with serving([*calls(LOOKS), Turn(answered(warm, tmp_path))]) as server:
        first = system(warm, tmp_path, server.url).answer(incident())
        asked = len(server.calls)
    again = system(warm, tmp_path)
    replayed = again.answer(incident())
    assert (asked, first.calls, replayed.calls) == (3, 2, 2)
    assert (first.vote, first.causes, first.lines) == (replayed.vote, replayed.causes, replayed.lines)
    assert (again.cassette.stale, again.cassette.missing) == (set(), set())
    recorded = again.cassette.requests(NAME)
    assert [[call.name for call in each.calls] for each in recorded] == [["read_lines"], ["search_log"], []]
    assert all(each.tools for each in recorded)
    assert len({each.request for each in recorded}) == 3
    assert again.vote(incident()) is not None


@pytest.mark.long
def test_a_look_that_finds_something_else_makes_what_follows_stale(warm: Path, tmp_path: Path) -> None:
    """The answer is replayed all the same, and the incident is named."""
    with serving([*calls(LOOKS[:1]), Turn(answered(warm, tmp_path))]) as server:
        system(warm, tmp_path, server.url).answer(incident())
    again = system(warm, tmp_path)
    first = again.cassette.recordings[NAME, 1]
    other = replace(first.calls[0], arguments=json.dumps({"first": "L2", "last": "L4"}))
    again.cassette.add(replace(first, calls=(other,)))
    assert again.answer(incident()).calls == 1
    assert again.cassette.stale == {NAME}


def test_an_answer_that_was_recorded_without_tools_is_replayed_without(warm: Path, tmp_path: Path) -> None:
    """Whatever is offered now: the request was another."""
    made = system(warm, tmp_path)
    made.cassette.add(Recording(NAME, 1, "any", answered(warm, tmp_path)))
    assert made.answer(incident()).calls is None


def test_a_row_of_a_single_answer_has_no_more_fields_than_before(tmp_path: Path) -> None:
    """Cassettes of before are read, and written as they were."""
    row = {"incident": "a", "number": 1, "request": "k", "answer": "{}", "sent": 3, "received": 2}
    (tmp_path / "old.jsonl").write_text(json.dumps(row) + "\n")
    Cassette.load("old", tmp_path).save()
    assert json.loads((tmp_path / "old.jsonl").read_text()) == row


@each_row("text", ['{"incident": "a"}', "[]", "no JSON", '{"incident": "a", "calls": [{"what": 1}]}'])
def test_a_file_that_is_no_cassette_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(text + "\n")
    with pytest.raises(EvalError, match="cannot be read as recorded answers"):
        Cassette.load("bad", tmp_path)


def test_a_requests_hash_depends_on_calls_and_not_on_their_ids() -> None:
    """Ids differ from run to run; what was called, and what it found, do not."""
    talks = [
        [
            ChatMessage("assistant", "", (ToolCall(name, tool, "{}"),)),
            ChatMessage("tool", found, call_id=name),
        ]
        for name, tool, found in (("a", "x", "1"), ("b", "x", "1"), ("a", "y", "1"), ("a", "x", "2"))
    ]
    keys = [request_key(talk) for talk in talks]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def said(seat: Seat, *lines: str, whole: bool = False) -> tuple[str, bool]:
    """Give what a run of the seat shows for these lines, and whether the talk came to its end."""
    shown = io.StringIO()
    answer = seat.hear(incident(), iter(f"{line}\n" for line in lines), shown, whole=whole)
    return shown.getvalue(), answer is not None


@pytest.mark.long
def test_a_reader_goes_on_from_run_to_run(warm: Path, tmp_path: Path) -> None:
    """The prompt is shown once, then what each call finds; words that are no call are told and not kept."""
    seat = Seat(Triage(settings(warm)), settings(warm), tmp_path / "words")
    prompt, ended = said(seat)
    assert not ended
    assert prompt.startswith("===== system =====")
    look = json.dumps({"tool": "read_lines", "arguments": {"first": "L1", "last": "L2"}})
    found, ended = said(seat, look)
    assert not ended
    assert found.count("=====") == 2
    assert "===== tool =====" in found
    assert "L1| " in found
    wrong, ended = said(seat, '{"cause": 1}', "nothing", "[]")
    assert not ended
    assert wrong.count("not taken: ") == 3
    every, _ = said(seat, whole=True)
    assert every.startswith(prompt.rstrip())
    assert "===== assistant =====\n\nread_lines " in every
    assert said(seat, answered(warm, tmp_path))[1]
    assert seat.collect([incident()], "collected", tmp_path) == (1, 0)
    made = replace(system(warm, tmp_path), cassette=Cassette.load("collected", tmp_path))
    assert (made.answer(incident()).calls, made.cassette.stale) == (1, set())


def test_a_talk_without_its_answer_is_not_collected(warm: Path, tmp_path: Path) -> None:
    """It is counted, and nothing of it is taken."""
    seat = Seat(Triage(settings(warm)), settings(warm), tmp_path / "words")
    said(seat, json.dumps({"tool": "find_cases", "arguments": {"words": "offload"}}))
    assert seat.collect([incident()], "collected", tmp_path) == (0, 1)
    assert Cassette.load("collected", tmp_path).recordings == {}


def test_the_command_names_an_unknown_incident(
    warm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do; a reader's name of an incident tells nothing of it."""
    monkeypatch.setenv("WHYCRASH_HOME", str(warm))
    assert main(["nobody", "--words", str(tmp_path), "--incidents", str(INCIDENTS)]) == 2
    assert "--list" in capsys.readouterr().err
    assert seat_name(NAME) not in NAME
