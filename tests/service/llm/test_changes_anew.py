"""A model whose first change does not stand may say its changes once more, and nothing else."""

from __future__ import annotations

from typing import Any

from eval.cassette import Cassette, Recording, ReplayedModel
from service.llm.chain import explain_with_model
from service.llm.stages import FinalStage
from service.pipeline.triage import Triage
from tests.service.llm.answering import asked, faithful, hear, say
from tests.waiting import PATIENCE

MADE_UP: dict[str, Any] = {
    "framework": "easyr1",
    "key": "worker.warp.factor",
    "to": "9",
    "kind": "setting",
    "why": "It frees memory.",
}
FELL = "=9: is not in the catalogue"


def test_a_change_that_does_not_stand_may_be_said_anew(triage: Triage) -> None:
    """The model hears which one fell and why; what it says then leads, and else its first words count."""
    context = asked(triage)
    wanted = context.first.changes[1]
    better = {"framework": wanted.framework, "key": wanted.key, "to": str(wanted.to)}
    turns = [
        say(context, changes=[MADE_UP]),
        say(context, changes=[better], cause="disk-full", explanation="Other words."),
    ]
    heard = hear(triage, context, turns)
    assert len(heard.server.calls) == 2
    told = heard.server.calls[1]["messages"][-1]["content"]
    assert "worker.warp.factor=9: " in told
    assert heard.final.changes[0].key == wanted.key
    assert heard.final.cause == context.first.cause
    assert "Other words" not in heard.final.engine.model_explanation
    assert FELL in heard.dropped


def test_a_change_that_does_not_stand_twice_is_dropped(triage: Triage) -> None:
    """It is asked for once; the rules' own changes stay, with what the model said that stands."""
    context = asked(triage)
    offered = context.first.changes[1]
    stands = {"framework": offered.framework, "key": offered.key, "to": str(offered.to)}
    heard = hear(triage, context, [say(context, changes=[MADE_UP, stands])])
    assert len(heard.server.calls) == 2
    assert heard.final.changes[0].key == offered.key
    assert heard.dropped.count(FELL) == 1


def test_an_answer_whose_first_change_stands_is_not_asked_for_again(triage: Triage) -> None:
    """What falls behind it is listed among what was dropped."""
    context = asked(triage)
    offered = context.first.changes[0]
    stands = {"framework": offered.framework, "key": offered.key, "to": str(offered.to)}
    heard = hear(triage, context, [say(context, changes=[stands, MADE_UP])])
    assert len(heard.server.calls) == 1
    assert FELL in heard.dropped


def test_a_recorded_answer_without_a_second_one_stands(triage: Triage, tmp_path: Any) -> None:
    """Talks that were recorded before a model was asked anew are replayed as they were, and lack nothing."""
    context = asked(triage)
    said = say(context, changes=[MADE_UP]).text
    cassette = Cassette("reader", tmp_path / "reader.jsonl", {("a", 1): Recording("a", 1, "", said)})
    *_, last = explain_with_model(context, ReplayedModel(cassette, "a"), PATIENCE, 8000)
    assert isinstance(last, FinalStage)
    assert last.diagnosis.engine.name == "reader"
    assert faithful(context)["cause"] == last.diagnosis.cause
    assert cassette.missing == set()
