"""Slack: mentions, direct messages, a slash command and a message shortcut; answers in threads."""
