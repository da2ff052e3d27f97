"""The app's manifest: it asks for what the bot uses, and for no more."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from slack_sdk import WebClient

import ui.slack
from corpus.library import read_yaml
from ui.slack import bot, client, http

FOLDER = Path(ui.slack.__file__).parent
HISTORY = frozenset({"channels:history", "groups:history", "im:history", "mpim:history"})
# What each method of the Web API needs, by its page in Slack's reference.
NEEDS: Mapping[str, frozenset[str]] = {
    "chat_postMessage": frozenset({"chat:write"}),
    "chat_update": frozenset({"chat:write"}),
    "chat_postEphemeral": frozenset({"chat:write"}),
    "files_info": frozenset({"files:read"}),
    "files_upload_v2": frozenset({"files:write"}),
    "conversations_replies": HISTORY,
    "views_open": frozenset(),
    "auth_test": frozenset(),
}
# What hearing each event needs; `commands` goes with a slash command or a shortcut.
EVENTS: Mapping[str, str] = {"app_mention": "app_mentions:read", "message.im": "im:history"}


@pytest.fixture
def manifest() -> dict[str, Any]:
    """The manifest."""
    made: dict[str, Any] = read_yaml(FOLDER / "manifest.yaml")
    return made


def called() -> Iterator[str]:
    """Give the Web API's methods that the bot's code calls."""
    methods = {name for name in dir(WebClient) if not name.startswith("_")} - {
        "api_call",
        "base_url",
        "token",
    }
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in methods
            ):
                owner = node.func.value
                if isinstance(owner, ast.Attribute) and owner.attr == "client":
                    yield node.func.attr


def test_that_slack_is_called_in_one_module_alone() -> None:
    source = Path(client.__file__).read_text(encoding="utf-8")
    assert all(f".client.{method}(" in source for method in called())


def test_that_the_scopes_are_those_of_the_calls_and_events(manifest: dict[str, Any]) -> None:
    wanted = {scope for method in called() for scope in NEEDS[method]}
    wanted |= {EVENTS[event] for event in manifest["settings"]["event_subscriptions"]["bot_events"]} | {
        "commands"
    }
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == wanted


def test_that_the_manifest_names_what_the_bot_listens_to(manifest: dict[str, Any]) -> None:
    features, settings = manifest["features"], manifest["settings"]
    assert [item["command"] for item in features["slash_commands"]] == [bot.COMMAND]
    assert [(item["callback_id"], item["type"]) for item in features["shortcuts"]] == [
        (bot.SHORTCUT, "message")
    ]
    addresses = [
        features["slash_commands"][0]["url"],
        settings["event_subscriptions"]["request_url"],
        settings["interactivity"]["request_url"],
    ]
    assert all(address.endswith(http.PATH) for address in addresses)
    assert features["app_home"]["messages_tab_enabled"]
    assert not features["app_home"]["messages_tab_read_only_enabled"]


def test_that_the_manifest_keeps_to_slacks_limits(manifest: dict[str, Any]) -> None:
    display = manifest["display_information"]
    assert len(display["name"]) <= 35
    assert len(display["description"]) <= 140
    assert len(manifest["features"]["shortcuts"][0]["name"]) <= 24
