"""The expressions of the knowledge, compiled once."""

from __future__ import annotations

import re
from functools import lru_cache

# `re` itself remembers 512; the knowledge has thousands, and one log is asked hundreds of them.
MOST = 8192


@lru_cache(maxsize=MOST)
def compiled(expression: str) -> re.Pattern[str]:
    """Give an expression ready to search with."""
    return re.compile(expression)
