"""What somebody asks of the bot: who, where, which log, which files, in which words.

Read from what Slack sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpus.message import is_chinese
from corpus.schema import Language
from ui.slack.mrkdwn import unescape

Payload = Mapping[str, Any]

# Whom a message is from when it is none of a person's; `None` is a message as people write them.
_PEOPLE = frozenset({None, "file_share", "thread_broadcast"})
_FENCE = re.compile(r"```\n?(.*?)```", re.DOTALL)
# Only these are markup: a slash command's text may hold angle brackets of its own.
_MARKUP = re.compile(r"<((?:https?://|mailto:|[@#!])[^<>\n]*)>")


# What the place of a question in Slack begins with.
PLACE = "slack:"


@dataclass(frozen=True)
class SlackFile:
    """A file as a message names it.

    `url` is where the bot may fetch it; empty where files.info tells that.
    """

    id: str
    name: str
    size: int = 0
    url: str = ""


@dataclass(frozen=True)
class MessageContent:
    """What a message holds: logs in code blocks, the rest of its words, its files."""

    words: str = ""
    logs: tuple[str, ...] = ()
    files: tuple[SlackFile, ...] = ()

    @property
    def log(self) -> str:
        """The text that is plainly a log; empty where there is none."""
        return "\n".join(self.logs)

    @property
    def has_log(self) -> bool:
        """Tell whether there is a log, in a code block or a file."""
        return bool(self.log.strip() or self.files)


@dataclass(frozen=True)
class SlackQuestion:
    """A question to the bot.

    `thread` is where the answer goes; `is_reply` tells that it was asked inside a thread.

    `fallback` is the language that the bot speaks to who writes nothing Chinese.
    """

    team: str
    channel: str
    user: str
    bot: str
    content: MessageContent
    thread: str | None = None
    is_reply: bool = False
    has_root: bool = True
    fallback: Language = "en"

    @property
    def language(self) -> Language:
        """The language in which the bot speaks of itself to who asked."""
        return "zh" if is_chinese(self.content.words) else self.fallback

    @property
    def place(self) -> str:
        """Where it is asked, as it is kept with the triage: a channel of a workspace."""
        return f"{PLACE}{self.team}/{self.channel}"

    @property
    def caller(self) -> str:
        """Who asks, as it is kept with the triage."""
        return f"{self.team}:{self.user}"


def from_event(event: Payload, team: str, bot: str) -> SlackQuestion | None:
    """Read a mention or a direct message; None where no person wrote it to the bot."""
    if (
        event.get("bot_id")
        or event.get("subtype") not in _PEOPLE
        or not event.get("user")
        or event.get("hidden")
    ):
        return None
    if event.get("type") == "message" and event.get("channel_type") != "im":
        return None
    thread = event.get("thread_ts")
    return SlackQuestion(
        team=team,
        channel=str(event.get("channel", "")),
        user=str(event["user"]),
        bot=bot,
        content=content_of(event),
        thread=str(thread or event.get("ts", "")),
        is_reply=bool(thread) and thread != event.get("ts"),
    )


def from_shortcut(body: Payload, bot: str) -> SlackQuestion:
    """Read a message shortcut: the log is the message that it was used on, whoever wrote it."""
    message = body.get("message", {})
    return SlackQuestion(
        team=_id(body, "team"),
        channel=_id(body, "channel"),
        user=_id(body, "user"),
        bot=bot,
        content=content_of(message, whole=True),
        thread=str(message.get("thread_ts") or message.get("ts") or "") or None,
    )


def from_command(body: Payload, bot: str) -> SlackQuestion:
    """Read a slash command; it has no message of its own to answer under."""
    text = str(body.get("text", ""))
    content = (
        MessageContent(
            logs=(readable("\n".join(part for part in _FENCE.split(text) if part.strip())),), words=""
        )
        if text.strip()
        else MessageContent()
    )
    return SlackQuestion(
        team=str(body.get("team_id", "")),
        channel=str(body.get("channel_id", "")),
        user=str(body.get("user_id", "")),
        bot=bot,
        content=content,
        has_root=False,
    )


def content_of(message: Payload, *, whole: bool = False) -> MessageContent:
    """Read what a message holds; `whole` also reads what apps post: sections and attachments."""
    blocks = message.get("blocks") or ()
    is_rich = isinstance(blocks, Sequence) and any(
        isinstance(block, Mapping) and block.get("type") == "rich_text" for block in blocks
    )
    parts = (
        [
            (element.get("type") == "rich_text_preformatted", _text(element))
            for block in blocks
            if block.get("type") == "rich_text"
            for element in block.get("elements") or ()
        ]
        if is_rich
        else [
            (bool(place % 2), readable(part))
            for place, part in enumerate(_FENCE.split(str(message.get("text") or "")))
        ]
    )
    if whole:
        parts += [(False, text) for text in _posted(message)]
    logs = tuple(text for is_log, text in parts if is_log and text.strip())
    words = "\n".join(dict.fromkeys(text.strip() for is_log, text in parts if not is_log and text.strip()))
    files = tuple(_file(item) for item in message.get("files") or () if isinstance(item, Mapping))
    return MessageContent(words, logs, files)


def _id(body: Payload, name: str) -> str:
    return str((body.get(name) or {}).get("id", ""))


def _file(item: Payload) -> SlackFile:
    # A file of another workspace comes without its address, which files.info gives.
    is_hidden = item.get("file_access") == "check_file_info"
    url = "" if is_hidden else str(item.get("url_private_download") or item.get("url_private") or "")
    size = item.get("size")
    return SlackFile(
        str(item.get("id", "")),
        str(item.get("name") or item.get("title") or "file"),
        size if isinstance(size, int) else 0,
        url,
    )


def file_of(item: Payload) -> SlackFile:
    """Read what files.info says of a file."""
    return _file({**item, "file_access": "visible"})


# Rich text, as people type it.


def _text(element: Payload) -> str:
    spoken = _SPOKEN.get(str(element.get("type")))
    if spoken is not None:
        return spoken(element)
    parts = [_text(item) for item in element.get("elements") or ()]
    return ("\n" if element.get("type") == "rich_text_list" else "").join(parts)


# How each element of rich text reads; a mention of a person or a channel is none of a log's words.
_SPOKEN: Mapping[str, Callable[[Payload], str]] = {
    "text": lambda element: str(element.get("text", "")),
    "link": lambda element: str(element.get("text") or element.get("url", "")),
    "emoji": lambda element: f":{element.get('name', '')}:",
    "user": lambda _element: "",
    "usergroup": lambda _element: "",
    "channel": lambda _element: "",
    "broadcast": lambda _element: "",
}


# Text with Slack's markup, as old clients and apps send it.


def readable(text: str) -> str:
    """Give what was typed: links as their text, no mentions, entities as their characters."""
    return unescape(_MARKUP.sub(_shown, text))


def _shown(match: re.Match[str]) -> str:
    target, _, label = match[1].partition("|")
    if target.startswith(("@", "#", "!")):
        return ""
    return label or target.removeprefix("mailto:")


def _posted(message: Payload) -> Iterator[str]:
    """Yield the texts of what an app posted: its sections, and its attachments with theirs."""
    for block in message.get("blocks") or ():
        if isinstance(block, Mapping) and block.get("type") in ("section", "markdown", "header"):
            text = block.get("text")
            yield readable(str(text.get("text", "") if isinstance(text, Mapping) else text or ""))
    for item in message.get("attachments") or ():
        if isinstance(item, Mapping):
            shown = [item.get(name) for name in ("pretext", "title", "text")]
            yield readable("\n".join(str(text) for text in shown if text) or str(item.get("fallback") or ""))
            yield from _posted({"blocks": item.get("blocks")})
