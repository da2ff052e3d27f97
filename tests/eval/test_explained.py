"""`python -m eval --model`: the product with a model beside the product without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval import __main__ as command
from eval import incidents
from eval.errors import EvalError
from eval.explained import Explained
from service.pipeline.triage import Triage
from service.settings import Settings
from tests.service.llm.answering import faithful
from tests.service.llm.scripted import Turn, serving
from tests.warm import INCIDENTS

NAME = "w-easyr1-offload-host-ram"


def test_the_answer_counts_its_tokens_and_keeps_the_cause(triage: Triage, warm: Path) -> None:
    """What the model cost is recorded, and the rules' cause is scored where it agrees."""
    (incident,) = [item for item in incidents.load(INCIDENTS) if item.id == NAME]
    triage_context = triage.diagnose(triage.read(incident.source(), incident.label.language))
    with serving([Turn(json.dumps(faithful(triage_context)))]) as server:
        settings = Settings(
            home=warm,
            embedding_model="hash",
            model="openai:scripted",
            model_base_url=server.url,
            model_deadline=20.0,
        )
        answer = Explained(Triage(settings), settings).answer(incident)
    assert answer.tokens > 1000
    assert answer.causes[0] == triage_context.first.cause


def test_a_model_must_be_configured(triage: Triage) -> None:
    """`--model` without a model is told, not ignored."""
    with pytest.raises(EvalError, match="WHYCRASH_MODEL"):
        Explained(triage, Settings())


def test_the_option_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` names it."""
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert "--model" in capsys.readouterr().out
