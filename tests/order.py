"""The order in which workers take the files of tests.

Who begins the longest one last is waited for by all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

TESTS = Path(__file__).parent
# Files that take ten seconds of a core and more, the longest first: measured, for some of them have one test.
# The second and the third need nothing of the warm home, which the first makes meanwhile.
LONGEST = (
    "ui/chat/test_model.py",
    "ingest/logs/inputs/test_archives.py",
    "ingest/logs/inputs/test_sources.py",
    "ui/cli/test_snapshot.py",
    "ui/test_authorisation.py",
    "ui/cli/test_explain_model.py",
    "ui/cli/test_commands.py",
    "ui/cli/test_light_install.py",
    "ingest/logs/test_fuzz.py",
    "ui/chat/test_asking.py",
    "ui/cli/test_run.py",
    "eval/test_hostile_logs.py",
    "ui/cli/test_explain.py",
    "service/workers/test_pool.py",
    "service/batches/test_own_files.py",
    "ui/cli/test_batch.py",
    "ui/cli/test_serve.py",
    "ui/slack/test_streaming.py",
    "ui/chat/test_hostile.py",
    "service/composition/test_verdicts.py",
    "service/llm/test_injections.py",
    "service/pipeline/test_redaction.py",
)


class HasPath(Protocol):
    """A test, as far as its order goes."""

    @property
    def path(self) -> Path:
        """The file that it stands in."""


Item = TypeVar("Item", bound=HasPath)


def longest_first(items: Sequence[Item]) -> list[Item]:
    """Put the files that take longest first, then those of most tests; a file's tests keep their order."""
    counts = Counter(item.path for item in items)
    ranks = {TESTS / name: rank for rank, name in enumerate(LONGEST)}
    return sorted(items, key=lambda item: (ranks.get(item.path, len(ranks)), -counts[item.path]))
