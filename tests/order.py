"""The order in which workers take the files of tests, and which files one worker takes together.

Who begins the longest one last is waited for by all others. Files that start the same server, or parse all of
the code, do so once where they run in one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from xdist.scheduler import LoadFileScheduling

TESTS = Path(__file__).parent
# Files that take longest, measured on two cores; some have one test. The first makes the warm home, which
# the second and the third do not need.
LONGEST = (
    "ui/chat/test_asking.py",
    "ui/test_authorisation.py",
    "ingest/logs/inputs/test_sources.py",
    "service/workers/test_pool.py",
    "eval/test_soak.py",
    "ingest/logs/test_pasted.py",
    "eval/test_never_green.py",
    "eval/test_gate.py",
    "service/patching/test_incident_patches.py",
    "service/remediation/test_incident_changes.py",
    "ui/chat/test_hostile.py",
    "ui/cli/test_commands.py",
    "service/llm/test_injections.py",
    "ui/cli/test_explain.py",
    "service/batches/test_engine.py",
    "service/llm/test_chain.py",
    "ui/chat/test_looks.py",
    "ui/chat/test_first_screen.py",
    "ui/cli/test_run.py",
    "ui/cli/test_batch.py",
    "test_docs.py",
    "service/batches/test_worker.py",
    "ui/slack/test_exchange.py",
    "ingest/logs/inputs/test_unwhole.py",
    "ui/cli/test_hostile_folder.py",
    "service/pipeline/test_redaction.py",
    "service/workers/test_retelling.py",
    "ui/cli/test_snapshot.py",
    "ui/slack/test_delivery.py",
    "ui/test_mcp.py",
    "ingest/test_bulk_ingest.py",
    "ui/chat/test_log.py",
    "ingest/logs/inputs/test_archives.py",
    "ingest/configfiles/test_places.py",
    "ingest/redaction/test_redaction.py",
    "ingest/test_pipeline.py",
    "ingest/redaction/test_extra.py",
    "ingest/logs/test_repeats.py",
    "ingest/test_embedder.py",
)


# Files, by the beginnings of their paths, that share what takes seconds to start. A family is one worker's
# work from its begin to its end, so that one which takes long is begun first: the others would wait for it.
FAMILIES = (
    ("ui/chat/",),  # a server of the page
    ("ui/slack/",),  # a triage service
    (  # the code's syntax trees
        "test_docs.py",
        "test_ids.py",
        "test_layers.py",
        "corpus/test_frameworks.py",
        "corpus/test_messages.py",
        "eval/test_supply_chain.py",
        "service/html/test_markup.py",
        "ui/test_sentences.py",
    ),
)


class HasPath(Protocol):
    """A test, as far as its order goes."""

    @property
    def path(self) -> Path:
        """The file that it stands in."""

    def get_closest_marker(self, name: str) -> object:
        """Give its marker of a name, or None."""


Item = TypeVar("Item", bound=HasPath)


def longest_first(items: Sequence[Item]) -> list[Item]:
    """Put the files that take longest first, then those with tests that are marked `long`, then the others.

    Of them those of most tests come first; a file's tests keep their order. One long test alone in its file
    would else be begun last of all, and the other workers would wait for it.
    """
    counts = Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("long")}
    ranks = {TESTS / name: rank for rank, name in enumerate(LONGEST)}
    return sorted(
        items, key=lambda item: (ranks.get(item.path, len(ranks)), item.path not in slow, -counts[item.path])
    )


def family(nodeid: str) -> str:
    """Name what one worker runs: a test's file, or the family that its file is of."""
    file = nodeid.split("::", 1)[0]
    return next((f"tests/{one[0]}" for one in FAMILIES if file.removeprefix("tests/").startswith(one)), file)


class FamilyScheduling(LoadFileScheduling):
    """Gives the tests of a family to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return family(nodeid)
