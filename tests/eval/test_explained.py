"""`python -m eval --model`: the product with a model beside the product without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval import __main__ as command
from eval import incidents
from eval.cassette import Cassette, Recording
from eval.explained import Explained
from service.llm.models import open_model
from service.pipeline.triage import Triage
from service.settings import Settings
from tests.service.llm.answering import faithful
from tests.service.llm.scripted import Turn, serving
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS

NAME = "w-easyr1-offload-host-ram"


def incident() -> incidents.Incident:
    """Give an incident with a plain cause."""
    return next(item for item in incidents.load(INCIDENTS) if item.id == NAME)


def explained(warm: Path, folder: Path, url: str = "") -> Explained:
    """Make the system, with a model where there is an address of one."""
    settings = Settings(
        home=warm,
        embedding_model="hash",
        model="openai:scripted" if url else "",
        model_base_url=url,
        model_deadline=PATIENCE,
    )
    return Explained(Triage(settings), settings, Cassette.load("scripted", folder), open_model(settings))


@pytest.mark.long
def test_a_recorded_answer_is_replayed_without_the_model(triage: Triage, warm: Path, tmp_path: Path) -> None:
    """What the model said once is scored again, with its tokens, and nobody is asked."""
    triage_context = triage.diagnose(triage.read(incident().source(), incident().label.language))
    with serving([Turn(json.dumps(faithful(triage_context)))]) as server:
        system = explained(warm, tmp_path, server.url)
        answer = system.answer(incident())
    system.cassette.save()
    again = explained(warm, tmp_path)
    replayed = again.answer(incident())
    assert answer.tokens == replayed.tokens > 1000
    assert answer.causes == replayed.causes
    assert answer.causes[0] == triage_context.first.cause
    assert (again.cassette.stale, again.cassette.missing) == (set(), set())


@pytest.mark.long
def test_a_stale_or_missing_answer_is_told(triage: Triage, warm: Path, tmp_path: Path) -> None:
    """An answer to another prompt still counts and is named; without one the rules' answer stands."""
    system = explained(warm, tmp_path)
    first = system.diagnose(incident()).first
    answer = system.answer(incident())
    assert (answer.causes[0], answer.tokens) == (first.cause, 0)
    assert system.cassette.missing == {NAME}
    triage_context = triage.diagnose(triage.read(incident().source(), incident().label.language))
    system.cassette.add(Recording(NAME, 1, "another prompt", json.dumps(faithful(triage_context))))
    system.answer(incident())
    assert system.cassette.stale == {NAME}


@pytest.mark.long
def test_a_model_without_recordings_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--model` with nothing recorded and nothing to ask ends with what to do."""
    monkeypatch.setenv("WHYCRASH_HOME", str(tmp_path / "home"))
    assert command.main(["--model", "nobody", "--incidents", str(INCIDENTS), "--out", str(tmp_path)]) == 2
    assert "--record" in capsys.readouterr().err


def test_the_option_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` names it."""
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert "--model" in capsys.readouterr().out
