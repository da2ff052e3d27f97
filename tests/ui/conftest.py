"""Fixtures of the tests of what a person sees."""

from __future__ import annotations

from tests.warm import triage, warm

__all__ = ["triage", "warm"]
