"""Exit codes of the `whycrash` command."""

from __future__ import annotations

EXPLAINED, MISUSE, UNKNOWN, HEALTHY = 0, 2, 3, 4
# The variable by which a shell asks what may follow in a command.
COMPLETES = "_WHYCRASH_COMPLETE"
