"""Whole exchanges: what people do in Slack, and what the bot says there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from service.app.triage_service import TriageService
from service.settings import Settings
from tests.factories import OOM, traceback
from tests.ui.slack.conftest import Opener
from tests.ui.slack.standin import BOT_USER
from tests.ui.slack.workspace import Workspace, buttons, eventually, shown

LOG = traceback(OOM)
FENCED = f"why did it die?\n```\n{LOG}```"
SCRIPT = b"python train.py actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 trainer.n_gpus_per_node=8\n"
VERL = f"(TaskRunner pid=7) verl 0.4.1\n(WorkerDict pid=9, ip=10.0.0.3) {OOM}\n" + LOG


def typed(log: str) -> list[dict[str, Any]]:
    """Write a message as Slack's editor makes it, with an address in the log that it turned into a link."""
    return [
        {
            "type": "rich_text",
            "elements": [
                {
                    "type": "rich_text_section",
                    "elements": [{"type": "user", "user_id": BOT_USER}, {"type": "text", "text": " why?"}],
                },
                {
                    "type": "rich_text_preformatted",
                    "elements": [
                        {"type": "text", "text": log},
                        {"type": "link", "url": "https://wandb.ai/run"},
                        {"type": "text", "text": " done"},
                    ],
                },
            ],
        }
    ]


def test_that_a_mention_is_answered_in_its_thread(work: Workspace) -> None:
    event = work.mention(FENCED)
    answer = work.answer(event["ts"])
    assert "CUDA out of memory" in shown(answer)
    offered = [item["action_id"] for item in buttons(answer)]
    assert offered[:3] == ["whycrash_more", "whycrash_right", "whycrash_wrong"]
    assert len(work.answers(event["ts"])) == 1
    assert not answer["unfurl_links"]
    assert not answer["unfurl_media"]


def test_that_a_log_is_read_as_it_was_typed_not_as_slack_marks_it_up(
    work: Workspace, triage_service: TriageService
) -> None:
    event = work.mention("x", blocks=typed(LOG + "<main.Runner object at 0x7f> & "))
    triage = buttons(work.answer(event["ts"]))[0]["value"]
    lines = [line for stretch in triage_service.excerpt(triage).stretches for line in stretch.lines]
    assert lines[-1] == "<main.Runner object at 0x7f> & https://wandb.ai/run done"


def test_that_a_direct_message_is_answered(work: Workspace) -> None:
    event = work.message(f"```{LOG}```") | {"type": "message", "channel_type": "im"}
    assert work.deliver(event).status_code == 200
    assert "CUDA out of memory" in shown(work.answer(event["ts"]))


def test_that_attached_files_are_one_jobs_output_and_its_configuration(work: Workspace) -> None:
    files = (work.slack.put("train.log", VERL.encode()), work.slack.put("run.sh", SCRIPT))
    answer = work.answer(work.mention("why?", files)["ts"])
    assert "ppo_micro_batch_size_per_gpu" in shown(answer)
    assert "whycrash_patch" in [item["action_id"] for item in buttons(answer)]


def test_that_several_logs_keep_their_names_in_the_evidence(work: Workspace) -> None:
    files = (work.slack.put("rank0.log", b"all is well\n"), work.slack.put("rank1.log", VERL.encode()))
    assert "rank1.log:" in shown(work.answer(work.mention("why?", files)["ts"]))


def test_that_a_code_block_beside_a_file_is_read_too(work: Workspace) -> None:
    answer = work.answer(work.mention(FENCED, (work.slack.put("quiet.log", b"step 1\nstep 2\n"),))["ts"])
    assert "CUDA out of memory" in shown(answer)


def test_that_a_question_in_chinese_is_answered_in_chinese(work: Workspace) -> None:
    answer = work.answer(work.mention(f"为什么挂了？```{LOG}```")["ts"])
    assert "证据" in shown(answer)
    assert {"原因正确", "原因不对"} <= {item["text"]["text"] for item in buttons(answer)}


def test_that_a_slash_command_is_answered_under_a_message_that_says_who_asked(work: Workspace) -> None:
    assert work.command(LOG).status_code == 200
    root = eventually(
        lambda: [item for item in work.slack.said(channel=work.channel) if "<@UANNA>" in item.values["text"]]
    )[0]
    stamp = next(
        stamp
        for (channel, stamp), item in work.slack.messages.items()
        if channel == work.channel and item["text"] == root.values["text"]
    )
    assert "CUDA out of memory" in shown(work.answer(stamp))


@pytest.mark.parametrize(("text", "words"), [("", "code block"), ("help", "code block"), ("帮助", "代码块")])
def test_that_a_command_without_a_log_says_how_to_ask(work: Workspace, text: str, words: str) -> None:
    assert words in work.command(text).json()["text"]
    assert work.slack.said() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [("search CUDA out of memory", "`"), ("search", "Say what to look for"), ("查 显存不足", "已知案例")],
)
def test_that_a_search_answers_the_one_who_asked_alone(work: Workspace, text: str, words: str) -> None:
    work.command(text)
    told = eventually(lambda: work.slack.responses)[0]
    assert words in json.dumps(told, ensure_ascii=False)
    assert told.get("response_type", "ephemeral") == "ephemeral"


def test_that_the_shortcut_explains_anybodys_message(work: Workspace) -> None:
    alert = work.message(
        "",
        subtype="bot_message",
        bot_id="BALERT",
        attachments=[{"fallback": "-", "title": "job 7 failed", "text": LOG}],
    )
    assert work.shortcut(alert).status_code == 200
    assert "CUDA out of memory" in shown(work.answer(alert["ts"]))


def test_that_a_mention_in_a_thread_reads_the_log_that_began_it(work: Workspace) -> None:
    root = work.message(f"job died ```{LOG}```", user="UBOB")
    work.mention("", thread=root["ts"])
    assert "CUDA out of memory" in shown(work.answer(root["ts"]))


def test_that_a_thread_that_cannot_be_read_is_said_to_be_so(work: Workspace) -> None:
    work.slack.refuse("conversations.replies", "not_in_channel")
    root = work.message("job died", user="UBOB")
    work.mention("why?", thread=root["ts"])
    assert "invite me" in shown(work.answer(root["ts"], "cannot read"))


def test_that_a_question_under_an_answer_goes_on_with_its_triage(
    work: Workspace, triage_service: TriageService
) -> None:
    event = work.mention(FENCED)
    triage = buttons(work.answer(event["ts"]))[0]["value"]
    work.mention("we cannot change the batch size, what else?", thread=event["ts"])
    _, turn = eventually(
        lambda: len(found := list(filter(buttons, work.answers(event["ts"])))) == 2 and found
    )
    assert {item["value"] for item in buttons(turn)} == {triage}
    asked, said = triage_service.messages(triage)
    assert asked.text == "we cannot change the batch size, what else?"
    assert said.text


def test_that_metadata_of_another_app_names_no_triage(work: Workspace) -> None:
    root = work.message("job died", user="UBOB")
    forged = {"event_type": "whycrash_triage", "event_payload": {"triage": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}}
    work.message("hello", thread=root["ts"], bot_id="BEVIL", metadata=forged)
    work.mention("and now?", thread=root["ts"])
    assert "no longer" not in shown(work.answer(root["ts"]))


def test_that_words_alone_are_read_as_a_log_with_a_hint(work: Workspace) -> None:
    assert "code block" in shown(work.answer(work.mention("good morning")["ts"]))


def test_that_the_bot_speaks_the_language_that_is_set(
    triage_service: TriageService, settings: Settings, open_bot: Opener
) -> None:
    work = open_bot(triage_service, replace(settings, lang="zh"))
    assert "代码块" in shown(work.answer(work.mention("")["ts"], "作业"))


def test_that_a_configuration_without_a_log_is_not_taken_for_one(work: Workspace) -> None:
    assert "as a log" in shown(
        work.answer(work.mention("look", (work.slack.put("run.sh", SCRIPT),))["ts"], "None of")
    )


def test_that_a_bare_mention_is_told_how_to_ask(work: Workspace) -> None:
    assert "code block" in shown(work.answer(work.mention("")["ts"], "Give me"))


def test_that_an_answer_goes_to_the_person_where_the_bot_is_not_in_the_channel(work: Workspace) -> None:
    work.slack.refuse("chat.postMessage", "not_in_channel")
    work.mention(FENCED)
    assert eventually(lambda: work.slack.said(channel="UANNA"))


# Buttons.


def test_that_right_is_kept_and_thanked_for(work: Workspace, triage_service: TriageService) -> None:
    answer = work.answer(work.mention(FENCED)["ts"])
    assert work.click("whycrash_right", answer).status_code == 200
    told = eventually(lambda: work.slack.said("chat.postEphemeral"))[0].values
    assert (told["user"], told["channel"]) == ("UANNA", work.channel)
    kept = triage_service.store.triages.feedback(buttons(answer)[0]["value"])
    assert [(item.right, item.caller) for item in kept] == [(True, "T1:UANNA")]


def modal_of(work: Workspace, answer: dict[str, Any]) -> dict[str, Any]:
    """Click Wrong, and give the modal that opens."""
    assert work.click("whycrash_wrong", answer).status_code == 200
    call = eventually(lambda: work.slack.said("views.open"))[0]
    view: dict[str, Any] = call.values["view"]
    return json.loads(view) if isinstance(view, str) else view


def submit(work: Workspace, view: dict[str, Any], **values: Any) -> Any:
    """Send the modal with what was chosen and typed."""
    state = {name: {name: value} for name, value in values.items()}
    return work.interact(
        {"type": "view_submission", "view": {**view, "state": {"values": state}, "id": "V1"}}
    )


def test_that_wrong_asks_for_the_real_cause_and_keeps_it(
    work: Workspace, triage_service: TriageService
) -> None:
    answer = work.answer(work.mention(FENCED)["ts"])
    view = modal_of(work, answer)
    options = [item for group in view["blocks"][0]["element"]["option_groups"] for item in group["options"]]
    assert {item["value"] for item in options} == set(triage_service.library.causes)
    assert all(len(item["text"]["text"]) <= 75 for item in options)
    chosen = {"selected_option": {"value": "host-oom-kill"}}
    assert (
        submit(work, view, cause=chosen, fix={"value": "more RAM"}, comment={"value": None}).status_code
        == 200
    )
    kept = eventually(lambda: triage_service.store.triages.feedback(buttons(answer)[0]["value"]))[0]
    assert (kept.right, kept.cause, kept.fix) == (False, "host-oom-kill", "more RAM")
    assert eventually(lambda: work.slack.said("chat.postEphemeral"))


@pytest.mark.parametrize(
    ("values", "words"),
    [({}, "Choose a cause"), ({"cause": {"selected_option": {"value": "made-up"}}}, "no cause")],
)
def test_that_a_modal_without_a_cause_says_what_is_missing(
    work: Workspace, values: dict[str, Any], words: str
) -> None:
    told = submit(work, modal_of(work, work.answer(work.mention(FENCED)["ts"])), **values).json()
    assert told["response_action"] == "errors"
    assert words in told["errors"]["cause"]


def test_that_the_patch_comes_as_a_file(work: Workspace, triage_service: TriageService) -> None:
    files = (work.slack.put("train.log", VERL.encode()), work.slack.put("run.sh", SCRIPT))
    event = work.mention("why?", files)
    answer = work.answer(event["ts"])
    work.click("whycrash_patch", answer)
    triage = buttons(answer)[0]["value"]
    name, data = eventually(lambda: list(work.slack.uploads.items()))[0]
    assert name.endswith(f"whycrash-{triage}.patch")
    assert data.decode() == triage_service.record(triage).diagnosis.patch  # type: ignore[union-attr]
    done = eventually(lambda: work.slack.said("files.completeUploadExternal"))[0].values
    assert (done["channel_id"], done["thread_ts"]) == (work.channel, event["ts"])


def test_that_the_rest_of_an_answer_comes_into_its_thread(work: Workspace) -> None:
    """A click posts the explanation and all lines below the short answer."""
    event = work.mention(FENCED)
    work.click("whycrash_more", work.answer(event["ts"]))
    whole = eventually(lambda: work.answers(event["ts"])[1:])[0]
    assert "Why" in shown(whole)
    assert not buttons(whole)


def test_that_the_page_of_the_triage_is_linked(work: Workspace) -> None:
    answer = work.answer(work.mention(FENCED)["ts"])
    button = next(item for item in buttons(answer) if item["action_id"] == "whycrash_open")
    assert button["url"] == f"https://w.example/?triage={button['value']}"
    assert work.click("whycrash_open", answer).status_code == 200


def test_that_buttons_of_a_deleted_triage_say_so(work: Workspace, triage_service: TriageService) -> None:
    answer = work.answer(work.mention(FENCED)["ts"])
    triage_service.store.triages.delete(buttons(answer)[0]["value"])
    for action in ("whycrash_right", "whycrash_wrong"):
        work.click(action, answer)
    told = eventually(lambda: len(found := work.slack.said("chat.postEphemeral")) == 2 and found)
    assert all("no longer" in call.values["text"] for call in told)
