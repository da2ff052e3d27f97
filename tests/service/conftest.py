"""Fixtures of the service's tests."""

from __future__ import annotations

from tests.warm import triage, warm

__all__ = ["triage", "warm"]
