"""Follow-up questions: constraints that stay, answers without a model, the same grounding with one."""

from __future__ import annotations

import json
from collections.abc import Sequence

from service.llm.conversation import MAX_QUESTION, Conversation, Turn
from service.llm.models import ChatMessage
from service.llm.stages import TextStage
from service.pipeline.triage import Triage
from service.remediation.constraints import remaining_changes, stated_constraints
from tests.service.factories import proposal
from tests.service.llm.answering import BARE, OFFLOAD, asked, model_at
from tests.service.llm.scripted import Scripted, serving
from tests.service.llm.scripted import Turn as Says
from tests.tables import each_row
from tests.waiting import PATIENCE


def nothing(_words: str) -> list[str]:
    """Find no case."""
    return []


def talk(triage: Triage, name: str = OFFLOAD, language: str = "en") -> Conversation:
    """Begin a conversation without a model."""
    return triage.conversation(asked(triage, name, language))


def told(conversation: Conversation, question: str) -> Turn:
    """Ask, and give the whole turn; what was passed on before it is the same text."""
    *texts, turn = conversation.ask(question)
    assert isinstance(turn, Turn)
    assert "\n\n".join(text.text for text in texts if isinstance(text, TextStage)) == turn.text
    return turn


def spoken(
    triage: Triage, questions: Sequence[str], replies: Sequence[Says], name: str = OFFLOAD
) -> tuple[list[Turn], Scripted]:
    """Ask several questions of a scripted model."""
    with serving(replies) as server:
        conversation = Conversation(asked(triage, name), nothing, (model_at(server.url),), PATIENCE, 8000)
        turns = [told(conversation, question) for question in questions]
    return turns, server


def says(answer: str, **fields: object) -> Says:
    """Make a model's reply."""
    return Says(json.dumps({"cases": [], "changes": [], "answer": answer, **fields}, ensure_ascii=False))


@each_row(
    ("text", "topics"),
    [
        ("I cannot change the batch size.", ["batch size"]),
        ("we can't touch batch_size or the sequence length", ["batch size", "sequence length"]),
        ("Upgrading is impossible. I can't upgrade any package", ["versions of packages"]),
        ("I don't have more GPUs", ["number of GPUs and nodes"]),
        ("We must keep bf16.", ["precision"]),
        ("offload has to stay on", ["offload"]),
        ("batch size is fixed by the paper", ["batch size"]),
        ("without changing the learning rate, please", ["learning rate"]),
        ("不能改批大小", ["batch size"]),
        ("我们没法升级版本", ["versions of packages"]),
        ("序列长度必须保持不变", ["sequence length"]),
        ("What does a smaller batch size cost?", []),
        ("why not NCCL?", []),
        ("Should I change the batch size?", []),
        ("I cannot sleep", []),
    ],
)
def test_what_a_person_rules_out_is_understood(text: str, topics: list[str]) -> None:
    """A limit on something that jobs have is kept; a question about it is none."""
    assert [item.topic.name for item in stated_constraints(text)] == topics


@each_row(
    ("said", "key", "kind", "barred"),
    [
        ("I cannot change the batch size", "data.train_batch_size", "setting", True),
        (
            "I cannot change the batch size",
            "worker.actor.micro_batch_size_per_device_for_update",
            "setting",
            True,
        ),
        ("I cannot change the batch size", "data.max_prompt_length", "setting", False),
        ("I cannot upgrade anything", "vllm", "package", True),
        ("I cannot set environment variables", "NCCL_TIMEOUT", "env", True),
        ("I can't change data.size", "data.size", "setting", True),
        ("I can't change data.size", "other.size_of", "setting", False),
        ("I can't get more nodes", "trainer.nnodes", "setting", True),
    ],
)
def test_a_constraint_bars_the_changes_that_it_is_about(said: str, key: str, kind: str, barred: bool) -> None:
    """Settings are barred by what they are, or by their own name."""
    change = proposal(key, 1, kind=kind)
    assert (remaining_changes([change], stated_constraints(said, [change])) == ()) is barred


def test_a_constraint_holds_in_every_later_turn(triage: Triage) -> None:
    """What cannot be changed leaves the answer, its patch, and every later answer."""
    triage_context = asked(triage)
    last = triage_context.first.changes[0].key.split(".")[-1]
    conversation = talk(triage)
    first = told(conversation, f"I cannot change {last}.")
    later = told(conversation, "What else can I do?")
    for turn in (first, later):
        assert last not in [change.key.split(".")[-1] for change in turn.diagnosis.changes]
        assert turn.constraints == (f"I cannot change {last}.",)
        added = [row for row in (turn.diagnosis.patch or "").split("\n") if row.startswith("+")]
        assert not [
            row
            for row in added
            if f"{triage_context.first.changes[0].key}={triage_context.first.changes[0].to}" in row
        ]
    assert f"`{triage_context.first.changes[0].key}`" not in later.text


def test_when_nothing_is_left_the_answer_says_so(triage: Triage) -> None:
    """With every change ruled out the cause's general advice is what remains."""
    conversation = talk(triage)
    for change in asked(triage).first.changes:
        turn = told(conversation, f"I cannot change {change.key.lstrip('-').split('.')[-1]}.")
    assert turn.diagnosis.changes == () or turn.diagnosis.changes[0] not in asked(triage).first.changes
    assert turn.constraints


@each_row(
    ("question", "words"),
    [
        ("Why not NCCL?", ["What tells them apart"]),
        ("could it be a memory leak?", ["leak"]),
        ("is it because of disk-full?", ["No line of the log"]),
        ("why not ray-memory-monitor-kill?", ["[L", "speaks for"]),
        ("What does this cost in speed?", ["What the changes cost"]),
        ("how sure are you?", ["[L357]", "To confirm it"]),
        ("what should I change?", ["`"]),
        ("why did it die?", ["**Why.**"]),
        ("what does that mean", ["**Why.**"]),
        (
            "what does offload_params do?",
            ["`worker.actor.offload.offload_params`", "this job has `true`", "bool"],
        ),
        ("Is OMP_NUM_THREADS of use here?", ["`OMP_NUM_THREADS`"]),
        ("asdf qwer zxcv", ["Without a model"]),
    ],
)
def test_a_question_is_answered_without_a_model(question: str, words: list[str], triage: Triage) -> None:
    """From the candidates, the changes, their costs, the checks and the cases."""
    conversation = Conversation(asked(triage), nothing)
    turn = told(conversation, question)
    assert [word for word in words if word not in turn.text] == []
    assert (turn.engine.name, turn.engine.note) == ("composer", "")


@each_row(
    "question", ["为什么不是 NCCL？", "这些修改有什么代价？", "不能改批大小", "怎么确认？", "还能怎么办？"]
)
def test_a_chinese_question_gets_a_chinese_answer(question: str, triage: Triage) -> None:
    """The language is the diagnosis' own."""
    turn = told(talk(triage, language="zh"), question)
    assert any("一" <= char <= "鿿" for char in turn.text)


def test_a_conversation_goes_on_where_it_was_left(triage: Triage) -> None:
    """What was said and what it ruled out holds for the next turn, as if there had been no break."""
    first = talk(triage)
    said = "We cannot change the offload."
    answer = told(first, said)
    again = talk(triage)
    again.resume([ChatMessage("user", said), ChatMessage("assistant", answer.text)])
    assert told(again, "what should I change?") == told(first, "what should I change?")
    assert again.constraints == first.constraints != ()


def test_other_questions_find_the_nearest_cases(triage: Triage) -> None:
    """What fits no table is looked up."""
    turn = told(talk(triage), "vllm wake_up after sleep")
    assert "[case:" in turn.text


def test_a_model_answers_within_the_same_checks(triage: Triage) -> None:
    """What cites the log stands; what does not is dropped with its reason."""
    reply = says("The node used most of its memory. [L385] Rank 4242 was hot. [L385]")
    (turn,), _ = spoken(triage, ["Was the node full?"], [reply])
    assert turn.text == "The node used most of its memory. [L385]"
    assert (turn.engine.name, [item.what for item in turn.engine.dropped]) == (
        "openai:scripted",
        ["Rank 4242 was hot. [L385]"],
    )


@each_row(
    "reply",
    [
        says("Use a smaller batch for that. [L385]"),
        says("All is well. [L385]"),
        says("Rank 4242 did it."),
        says("Run `sudo reboot` now. [L385]"),
        Says("nonsense"),
        Says(status=401),
        says("把批大小改小就可以了，这样内存就够用。 [L385]"),
        Says(refusal="no"),
    ],
)
def test_a_model_that_fails_or_lies_is_replaced(reply: Says, triage: Triage) -> None:
    """The answer without a model stands, and the engine says why."""
    (turn,), _ = spoken(triage, ["I cannot change the batch size, what now?"], [reply])
    assert turn.text.startswith("Noted")
    assert turn.engine.name == "composer"
    assert turn.engine.note


def test_constraints_and_turns_are_sent_on(triage: Triage) -> None:
    """Each call holds what was said before, the constraints apart from it."""
    reply = says("The node used most of its memory. [L385]")
    _, server = spoken(triage, ["I cannot change the batch size.", "And why not NCCL?"], [reply])
    messages = server.calls[1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "user", "assistant", "user"]
    assert "I cannot change the batch size." in messages[0]["content"]
    assert messages[-1]["content"] == "And why not NCCL?"
    offers = server.prompt(1).split("# Offered changes")[-1].split("# Known cases")[0]
    assert "batch" not in "".join(row.split(":")[1] for row in offers.split("\n") if row.startswith("- "))


def test_a_question_is_bounded_and_redacted(triage: Triage) -> None:
    """Pasted secrets are masked before they are sent, and a flood is cut."""
    secret = "hf_" + "Zy" * 17
    _, server = spoken(
        triage, [f"token={secret} " + "x" * 50_000], [says("The node used most of its memory. [L385]")]
    )
    assert secret not in json.dumps(server.calls)
    assert len(server.calls[0]["messages"][-1]["content"]) <= MAX_QUESTION + 100


def test_an_unknown_log_can_be_talked_about(triage: Triage) -> None:
    """Where there is no cause there is still an answer."""
    turn = told(talk(triage, BARE), "what should I do?")
    assert turn.text
    assert turn.diagnosis.verdict == "unknown"
