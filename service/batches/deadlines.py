"""How long a step on a job may take: longer where there is more to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from service.settings import Settings

# Bytes a second that even a slow disk and a packed log give.
SLOWEST = 1_000_000
# Files of a job's folders that are looked at.
LOOKED = 1000


def step_deadline(paths: Sequence[str], settings: Settings, *, model: bool) -> float:
    """Give the most seconds that one step on a job may take."""
    return settings.request_deadline + job_size(paths) / SLOWEST + (settings.model_deadline if model else 0.0)


def job_size(paths: Sequence[str]) -> int:
    """Add up the files of a job, as far as they are there."""
    return sum(islice((size for path in paths for size in _sizes(path)), LOOKED))


def _sizes(path: str) -> Iterator[int]:
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
            yield os.stat(path).st_size  # noqa: PTH116 - as above
            return
        for folder, _, files in os.walk(path):
            for name in files:
                yield os.stat(os.path.join(folder, name)).st_size  # noqa: PTH116, PTH118 - as above
    except OSError:
        return
