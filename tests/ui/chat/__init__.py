"""Tests of the chat page."""
