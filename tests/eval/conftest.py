"""What the tests of the evaluation share."""

from __future__ import annotations

from tests.warm import triage, warm

__all__ = ["triage", "warm"]
