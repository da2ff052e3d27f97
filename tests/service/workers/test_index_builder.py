"""The index of a server is built in a process that ends with it."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from ingest.errors import IngestError
from service.pipeline.triage import no_progress
from service.settings import Settings
from service.workers.index_builder import opened_index
from tests.warm import ROOT

# What building loads, and searching in this process would need.
_BUILDS = """
import json, sys
from pathlib import Path
from service.settings import Settings
from service.workers.index_builder import opened_index

told = []
if __name__ == "__main__":
    settings = Settings(home=Path(sys.argv[1]), embedding_model="hash")
    found = opened_index(settings, lambda *progress: told.append(progress))
    again = opened_index(settings, lambda *progress: told.append("anew"))
    is_same = again.folder.name == found.folder.name
    print(json.dumps([bool(told), "anew" in told, is_same, sorted(sys.modules)]))
"""


@pytest.mark.long
def test_that_a_server_keeps_nothing_of_what_builds_its_index(tmp_path: Path) -> None:
    """Its progress is told, and it is built once; its packages and documents are in another process."""
    script = tmp_path / "builds.py"
    script.write_text(_BUILDS, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "home")],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        text=True,
    )
    is_told, is_anew, is_same, modules = json.loads(ended.stdout)
    assert (is_told, is_anew, is_same) == (True, False, True)
    assert {"chromadb", "onnxruntime", "tokenizers"}.isdisjoint(modules)


def test_that_an_index_is_built_here_where_no_process_can_be_started(
    make_settings: Callable[..., Settings], small_corpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine may have no process left to give."""

    def refused(_process: SpawnProcess) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", refused)
    assert opened_index(make_settings(), no_progress).folder.exists()


def test_that_an_index_that_cannot_be_built_says_why(make_settings: Callable[..., Settings]) -> None:
    """Whatever ended the process that was to build it, the reason is this one's own."""
    settings = make_settings(embedding_model="no/such-model")
    with pytest.raises(IngestError):
        opened_index(settings, no_progress)
