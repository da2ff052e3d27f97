"""`whycrash explain` with a model, from the shell: order, prompt, JSON, failure, start."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from corpus.message import words
from ingest.logs.inputs import jobs
from service.llm.stages import FinalStage, Stage
from service.llm.triage_context import TriageContext
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.settings import Settings
from tests.service.llm.answering import asked, faithful
from tests.service.llm.scripted import Scripted, Turn, serving
from tests.ui.shell import EXPLAINED, surroundings, whycrash
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, ROOT, script
from ui.cli.explain import spoken

NAME = "w-easyr1-offload-host-ram"
LOG = INCIDENTS / NAME / "log.txt"


def configured(server: Scripted) -> dict[str, Any]:
    """Give the variables that name a scripted server's model."""
    return {
        "WHYCRASH_MODEL": "openai:scripted",
        "WHYCRASH_MODEL_BASE_URL": server.url,
        "WHYCRASH_MODEL_DEADLINE": str(PATIENCE),
    }


@pytest.mark.long
def test_the_first_answer_is_printed_before_the_models(warm: Path, triage: Triage) -> None:
    """The rules' answer comes whole, then the model's paragraphs."""
    said = "The first failure of the job stands in this line."
    with serving([Turn(json.dumps(faithful(asked(triage))))]) as server:
        ended = whycrash(warm, "explain", LOG, "--config", script(NAME), "--lang", "en", **configured(server))
    assert ended.code == EXPLAINED
    assert (
        -1
        < ended.out.index(words("cli.full", "en"))
        < ended.out.index("What the model (openai:scripted) says")
        < ended.out.index(said)
    )


@pytest.mark.long
def test_looks_are_told_between_the_answers(warm: Path, triage: Triage) -> None:
    """What the model looked at stands after the rules' answer, in its language, and in the JSON's trace."""
    turns = [Turn(calls=(("read_lines", {"first": "L40", "last": "L42"}),))]
    turns.append(Turn(json.dumps(faithful(asked(triage)))))
    for language, told in (("en", "Looked at L40 to L42"), ("zh", "查看了 L40 至 L42")):
        with serving(turns) as server:
            ended = whycrash(
                warm, "explain", LOG, "--config", script(NAME), "--lang", language, **configured(server)
            )
        assert ended.out.count(told) == 1, language
        tool = next(row["content"] for row in server.calls[1]["messages"] if row["role"] == "tool")
        assert [row.split("|")[0] for row in tool.splitlines()[1:-1]] == ["L40", "L41", "L42"]
    with serving(turns) as server:
        ended = whycrash(warm, "explain", LOG, "--lang", "en", "--json", **configured(server))
    (step,) = Diagnosis.model_validate_json(ended.out).engine.trace
    assert (step.tool, step.arguments) == ("read_lines", {"first": "L40", "last": "L42"})


@pytest.mark.long
def test_the_json_holds_the_final_answer(warm: Path, triage: Triage) -> None:
    """One object: the model's name, tokens and what was dropped are in it."""
    lie = "Rank 4711 was hot. [L357]"
    answer = faithful(asked(triage))
    with serving(
        [Turn(json.dumps({**answer, "explanation": f"{answer['explanation']}\n\n{lie}"}))]
    ) as server:
        ended = whycrash(
            warm, "explain", LOG, "--config", script(NAME), "--lang", "en", "--json", **configured(server)
        )
    found = Diagnosis.model_validate_json(ended.out)
    assert found.engine.name == "openai:scripted"
    assert lie in [item.what for item in found.engine.dropped]
    assert lie not in found.explanation + found.engine.model_explanation
    assert found.engine.model_explanation == answer["explanation"]


def test_no_model_asks_none(warm: Path) -> None:
    """`--no-model` wins over the settings."""
    with serving([Turn("{}")]) as server:
        ended = whycrash(warm, "explain", LOG, "--no-model", **configured(server))
    assert (ended.code, server.calls) == (EXPLAINED, [])
    assert "What the model" not in ended.out


@pytest.mark.long
def test_the_prompt_is_shown_and_not_sent(warm: Path) -> None:
    """`--show-prompt` prints the messages that the next call sends, and sends nothing itself."""
    with serving([Turn("no"), Turn("no")]) as server:
        shown = whycrash(warm, "explain", LOG, "--lang", "en", "--show-prompt", **configured(server))
        assert (shown.code, server.calls) == (EXPLAINED, [])
        whycrash(warm, "explain", LOG, "--lang", "en", **configured(server))
    for message in server.calls[0]["messages"]:
        assert message["content"] in shown.out


def test_the_prompt_can_be_seen_without_a_model(warm: Path) -> None:
    """One may look before one configures."""
    assert "===== system =====" in whycrash(warm, "explain", LOG, "--show-prompt").out


@pytest.mark.long
def test_a_model_that_fails_is_told_under_the_first_answer(warm: Path) -> None:
    """The exit code is that of the answer, and a sentence says what happened."""
    with serving([Turn(status=401)]) as server:
        ended = whycrash(warm, "explain", LOG, "--lang", "en", **configured(server))
    assert ended.code == EXPLAINED
    assert "The first answer stands." in " ".join(ended.out.split())


def test_without_a_model_no_model_package_is_loaded(warm: Path) -> None:
    """An answer without a model does not wait for what only a model needs."""
    code = (
        "import sys\nfrom ui.cli.main import app\n"
        f"try:\n    app(['explain', {str(LOG)!r}, '--json'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('langchain', 'langchain_core', "
        "'openai', 'langsmith')], file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env=surroundings(warm),
        input=b"",
    )
    assert ended.stderr.decode().strip().splitlines()[-1] == "[]"


@pytest.mark.long
def test_the_doctor_says_where_logs_go(warm: Path) -> None:
    """With a model the network is used, and a model that cannot be set up is named with its mend."""
    with serving([Turn("{}")]) as server:
        assert "go to openai:scripted" in " ".join(whycrash(warm, "doctor", **configured(server)).out.split())
        assert server.calls == []
    broken = whycrash(warm, "doctor", WHYCRASH_MODEL="nonesuch:x")
    assert (broken.code, "nonesuch" in broken.out) == (2, True)


class Ended(Triage):
    """A triage whose model's answer is there: another cause, and nothing to change."""

    def explain(self, triage_context: TriageContext) -> Iterator[Stage]:
        """Give the last stage alone."""
        other = {"cause": "disk-full", "headline": "The disk is full", "changes": ()}
        yield FinalStage(triage_context.first.model_copy(update=other))


def test_a_models_answer_without_a_change_is_printed(triage: Triage) -> None:
    """Where nothing is left to change, the other cause is told, and no list."""
    triage_context = triage.diagnose(triage.read(jobs.open_jobs([LOG]), "en", []))
    assert triage_context.first.changes
    printed = io.StringIO()
    spoken(Ended(Settings()), triage_context, Console(file=printed, width=200))
    assert printed.getvalue().split() == ["The", "disk", "is", "full", "disk-full"]
