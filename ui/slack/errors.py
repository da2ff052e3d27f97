"""Errors of talking to Slack, by what can be done about them."""

from __future__ import annotations


class SlackError(Exception):
    """Slack does not do what was asked of it."""


class SlackUnreachableError(SlackError):
    """Slack cannot be reached, or answers nothing that makes sense."""


class SlackRefusedError(SlackError):
    """Slack refuses; `code` is the word that it gives for why."""

    # Codes that say that the bot is not where it should speak.
    ELSEWHERE = frozenset(
        {"not_in_channel", "channel_not_found", "is_archived", "restricted_action", "no_permission"}
    )
    # Codes that say that a message is not there to be edited.
    GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "update_failed"})

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refuses: {code or 'no reason given'}.")
        self.code = code


class DownloadError(SlackError):
    """A file cannot be fetched from Slack; the message is the name of the sentence that says why."""
