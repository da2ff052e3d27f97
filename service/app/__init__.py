"""The triage service: what the API, the chat page, Slack and MCP call."""
