"""The Model Context Protocol: triage, case search and settings look-up for coding assistants."""
