"""Processes that triage beside the server: a log that hangs or kills one does not end the server."""
