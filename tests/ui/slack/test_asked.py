"""What is read from what Slack sends: who asks, which log, which words."""

from __future__ import annotations

from typing import Any

from tests.tables import each_row
from ui.slack.answering import log_above, triage_of
from ui.slack.bot import name_of
from ui.slack.request_parser import MessageContent, content_of, from_command, from_event, from_shortcut


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    """Make a message of rich text."""
    return {"text": "other", "blocks": [{"type": "rich_text", "elements": list(elements)}]}


def text(words: str, kind: str = "rich_text_section") -> dict[str, Any]:
    """Make a part of rich text."""
    return {"type": kind, "elements": [{"type": "text", "text": words}]}


@each_row(
    ("message", "expected"),
    [
        ({"text": "why?"}, MessageContent("why?")),
        ({"text": "<@U1> why? ```a &lt;b&gt; &amp;amp;\nc```"}, MessageContent("why?", ("a <b> &amp;\nc",))),
        ({"text": "```a```and```b```"}, MessageContent("and", ("a", "b"))),
        (
            {
                "text": (
                    "see <https://x.example/|x.example> <mailto:a@b.example|a@b.example> <#C1|general> "
                    "<!here>"
                )
            },
            MessageContent("see x.example a@b.example"),
        ),
        ({"text": "```unclosed"}, MessageContent("```unclosed")),
        ({"text": None}, MessageContent()),
        (
            rich(text("why?"), text("Traceback\n", "rich_text_preformatted"), text("x", "rich_text_quote")),
            MessageContent("why?\nx", ("Traceback\n",)),
        ),
        (rich({"type": "rich_text_list", "elements": [text("a"), text("b")]}), MessageContent("a\nb")),
        (
            rich(
                {
                    "type": "rich_text_section",
                    "elements": [
                        {"type": "user", "user_id": "U1"},
                        {"type": "text", "text": " a "},
                        {"type": "emoji", "name": "boom"},
                        {"type": "link", "url": "https://e.example"},
                        {"type": "color", "value": "#fff"},
                    ],
                }
            ),
            MessageContent("a :boom:https://e.example"),
        ),
    ],
)
def test_that_a_messages_words_and_logs_are_told_apart(
    message: dict[str, Any], expected: MessageContent
) -> None:
    assert content_of(message) == expected


def test_that_what_an_app_posted_is_read_where_it_is_asked_for() -> None:
    message = {
        "text": "alert",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": "job &lt;7&gt; failed"}},
            {"type": "divider"},
        ],
        "attachments": [
            {"title": "log", "text": "Killed"},
            {"fallback": "plain"},
            {"blocks": [{"type": "header", "text": {"text": "deep"}}], "fallback": "f"},
        ],
    }
    assert content_of(message, whole=True).words == "alert\njob <7> failed\nlog\nKilled\nplain\nf\ndeep"
    assert content_of(message).words == "alert"


@each_row(
    ("event", "answered"),
    [
        ({"type": "app_mention", "user": "U1", "ts": "1"}, True),
        ({"type": "app_mention", "user": "U1", "ts": "1", "subtype": "file_share"}, True),
        ({"type": "message", "channel_type": "im", "user": "U1", "ts": "1"}, True),
        ({"type": "message", "channel_type": "channel", "user": "U1", "ts": "1"}, False),
        ({"type": "message", "channel_type": "im", "user": "U1", "ts": "1", "bot_id": "B1"}, False),
        ({"type": "message", "channel_type": "im", "ts": "1"}, False),
        (
            {"type": "message", "channel_type": "im", "user": "U1", "subtype": "message_changed", "ts": "1"},
            False,
        ),
    ],
)
def test_that_only_people_are_answered(event: dict[str, Any], answered: bool) -> None:
    assert (from_event(event, "T", "B") is not None) == answered


@each_row(
    ("fields", "thread", "is_reply"),
    [
        ({"ts": "5"}, "5", False),
        ({"ts": "5", "thread_ts": "3"}, "3", True),
        ({"ts": "5", "thread_ts": "5"}, "5", False),
    ],
)
def test_that_the_answer_goes_to_the_thread(fields: dict[str, str], thread: str, is_reply: bool) -> None:
    asked = from_event({"type": "app_mention", "user": "U1", "channel": "C", **fields}, "T", "B")
    assert asked is not None
    assert (asked.thread, asked.is_reply, asked.caller) == (thread, is_reply, "T:U1")


def test_that_a_command_keeps_angle_brackets_of_the_log() -> None:
    asked = from_command(
        {
            "text": "<main.Runner at 0x7f> ```died``` <@U1|x>",
            "team_id": "T",
            "channel_id": "C",
            "user_id": "U",
        },
        "B",
    )
    assert asked.content.log == "<main.Runner at 0x7f> \ndied\n "


def test_that_a_shortcut_survives_what_is_missing() -> None:
    asked = from_shortcut({"message": {}}, "B")
    assert (asked.channel, asked.thread, asked.content) == ("", None, MessageContent())


@each_row(
    ("body", "name"),
    [
        ({"event_id": "Ev1"}, "Ev1"),
        ({"trigger_id": "1.2"}, "1.2"),
        ({"trigger_id": "1.2", "actions": [{"action_ts": "9"}]}, "1.29"),
        ({}, ""),
        ({"actions": "?"}, ""),
        ({"trigger_id": "1.2", "actions": []}, "1.2"),
    ],
)
def test_that_each_request_has_a_name_of_its_own(body: dict[str, Any], name: str) -> None:
    assert name_of(body) == name


def told(triage: str, bot: str) -> dict[str, Any]:
    """Make a message with a triage's metadata."""
    return {
        "bot_id": bot,
        "text": "```x```",
        "metadata": {"event_type": "whycrash_triage", "event_payload": {"triage": triage}},
    }


def test_that_the_latest_triage_of_the_bot_itself_counts() -> None:
    assert (
        triage_of([told("1", "B"), told("2", "B"), told("3", "BEVIL"), {"text": "x", "metadata": None}], "B")
        == "2"
    )
    assert triage_of([told("1", "")], "") == ""


def test_that_the_first_log_of_a_thread_is_meant_not_the_bots_own() -> None:
    messages = [{"text": "help"}, told("1", "B"), {"text": "```log```"}, {"text": "```later```"}]
    assert log_above(messages, "B") == MessageContent("", ("log",))
    assert log_above(messages[:2], "B") == MessageContent(logs=("help",))
    assert log_above([], "B") is None
