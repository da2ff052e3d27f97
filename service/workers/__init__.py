"""Processes that triage beside the server: a log that hangs or kills one cannot take the server along."""
