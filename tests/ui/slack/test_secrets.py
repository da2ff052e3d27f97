"""Secrets in what people write and attach never come back out, and nothing of a log becomes markup."""

from __future__ import annotations

import json
import re

import pytest

from tests.factories import OOM, traceback
from tests.ingest.redaction import planted
from tests.ui.slack.workspace import Workspace, eventually, shown

LOG = traceback(OOM)


@pytest.mark.long
def test_that_no_planted_secret_is_sent(work: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    secrets = planted.secrets()
    log = "\n".join(item.text for item in secrets) + "\n" + LOG
    config = (
        "\n".join(f"# {item.text}" for item in secrets if "\n" not in item.text)
        + "\npython train.py --batch_size 8\n"
    )
    for text in (log, LOG + "\n" + log):
        event = work.mention(
            "why?", (work.slack.put("train.log", text.encode()), work.slack.put("run.sh", config.encode()))
        )
        work.answer(event["ts"])
    everything = work.slack.everything() + caplog.text
    assert [item for item in secrets if planted.remains(item, everything)] == []


@pytest.mark.long
def test_that_no_planted_secret_in_a_name_a_question_or_feedback_is_sent(work: Workspace) -> None:
    secrets = [
        item
        for item in planted.secrets()
        if "\n" not in item.text and "/" not in item.text and len(item.text) < 250
    ]
    event = work.mention(f"why?\n```\n{LOG}```")
    work.answer(event["ts"])
    for item in secrets[:4]:
        work.mention(f"is it {item.text}?", thread=event["ts"])
    names = secrets[4:60]
    for part in (names[:19], names[19:38], names[38:]):
        failed = work.mention("why?", tuple(work.slack.put(item.text, b"", status=404) for item in part))
        work.answer(failed["ts"], "left out")
    eventually(lambda: len(work.answers(event["ts"])) == 5)
    assert [item for item in secrets if planted.remains(item, work.slack.everything())] == []


HOSTILE = (
    "<!channel> <@U123|boss> <https://evil.example/login|click here> https://evil.example/x\n"
    "*bold* _it_ ~no~ ```broke out``` `tick` &lt;!here&gt;\n\x1b[31mred\x1b[0m \u202egnp.exe\u202c \x07\n"
)


def test_that_nothing_of_a_log_becomes_a_mention_or_a_link(work: Workspace) -> None:
    log = (
        HOSTILE
        + f"RuntimeError: {HOSTILE.splitlines()[0]} torch.OutOfMemoryError: CUDA out of memory. <!here>\n"
        + LOG.replace("/job/", "<!everyone>/")
    )
    answer = work.answer(work.mention("why?", (work.slack.put("<!channel>.log", log.encode()),))["ts"])
    for block in answer["blocks"]:
        told = json.dumps(block)
        if block["type"] != "rich_text":
            assert not re.search(r"<[!@#]", told)
            assert not re.search(r"<(?!https://github|https://docs|https://pytorch|https://)", told), told
            assert "evil.example|" not in told
        if '"mrkdwn"' in told:
            assert '"verbatim": true' in told
    assert "\x1b" not in shown(answer)
    assert "\u202e" not in shown(answer)
    assert "<" not in answer["text"]
