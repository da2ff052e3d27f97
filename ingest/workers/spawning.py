"""How processes of our own are started: none of them imports what the current folder holds."""

from __future__ import annotations

import os
from multiprocessing import get_context
from multiprocessing.context import SpawnContext


def context() -> SpawnContext:
    """Give the context in which new processes are started afresh.

    Python puts the current folder first in such a process's path until it has loaded `multiprocessing`, so
    that a `pickle.py` beside a log would be run.
    https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSAFEPATH
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    return get_context("spawn")
