"""Exit codes of the `whycrash` command."""

from __future__ import annotations

EXPLAINED, MISUSE, UNKNOWN, HEALTHY = 0, 2, 3, 4
