"""How many heaps the threads of a server share."""

from __future__ import annotations

import ctypes
from contextlib import suppress

# Of glibc's malloc.h.
_M_ARENA_MAX = -8
HEAPS = 2


def bound_heaps() -> None:
    """Have all threads share HEAPS heaps; to be called before there are more than a few threads.

    glibc makes up to eight a core, and keeps in each what a thread once needed at most. With Python's lock,
    few threads ask for memory at once. https://man7.org/linux/man-pages/man3/mallopt.3.html
    """
    # Another C library has no such thing.
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, HEAPS)
