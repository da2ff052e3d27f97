"""Bytes that nobody wrote, given to all that reads a user's files: guided by what they reach."""
