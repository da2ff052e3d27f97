"""Wait for what is meant, never for a time: a test that is right passes on a machine that does much else,
too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds after which something that was to come will not come any more. Only a test that fails waits so long.
PATIENCE = 300.0


def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited {seconds:g} s in vain: {what}"
        time.sleep(0.02)
