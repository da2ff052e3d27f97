"""A home that is ready (patterns compiled, index built) and answers made with it.

Shared by service and ui.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus import log_patterns
from ingest.logs.inputs import sources
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.reader import Reader
from ingest.logs.templates import Templates
from service.llm.triage_context import TriageContext
from service.patching.patches import ConfigFile
from service.pipeline.triage import Taking, Triage, read_config
from service.schemas.diagnosis import Diagnosis, Outcome
from service.settings import Settings
from service.telemetry.snapshot import Snapshot

ROOT = Path(__file__).parent.parent
INCIDENTS = ROOT / "eval" / "incidents"
WRITE_UPS = (
    "openrlhf-save-host-peak",
    "openrlhf-zero3-generate-hang",
    "w-easyr1-offload-host-ram",
    "w-simplerl-free-cache-host-leak",
    "w-tinyzero-h20-cublas-sigfpe",
)
HEALTHY = "openrlhf-healthy-noisy"
BARE = "openrlhf-bare-actor-died"
EVERY = (*WRITE_UPS, HEALTHY, BARE)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Give the folder of this run, which all workers of pytest-xdist have in common."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Give the folder of the warm home to one worker at a time: who comes first fills it, the others find it
    filled.
    """
    with (folder / "warm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / "warm"


@cache
def reader_at(folder: Path) -> Reader:
    """Compile the real patterns, which takes seconds, or read them back compiled."""
    with locked(folder) as home:
        kept = home / "cache"
        return Reader(log_patterns.load(cache=kept), kept)


@cache
def _made(folder: Path) -> Triage:
    # Kept by hand: a session fixture that two conftests import would be made twice.
    with locked(folder) as home:
        made = Triage(Settings(home=home, embedding_model="hash"))
        _ = made.library, made.reader, made.index
        return made


@pytest.fixture(scope="session")
def triage(tmp_path_factory: pytest.TempPathFactory) -> Triage:
    """A triage with everything loaded. Its index holds the corpus and nothing else."""
    return _made(shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def warm(triage: Triage) -> Path:
    """The home of `triage`; not to be written to."""
    return triage.index.folder.parent.parent


def label(name: str) -> dict[str, Any]:
    """Read what is known of a labelled incident."""
    found: dict[str, Any] = yaml.safe_load((INCIDENTS / name / "label.yaml").read_text(encoding="utf-8"))
    return found


def log_lines(name: str) -> list[str]:
    """Read an incident's log; element 0 is line 1."""
    return (INCIDENTS / name / "log.txt").read_text(encoding="utf-8").split("\n")


def script(name: str) -> Path:
    """Name an incident's launch script."""
    return INCIDENTS / name / "run.sh"


def opened(
    triage: Triage,
    source: LogSource | JobSource,
    language: str = "",
    files: Sequence[ConfigFile] = (),
    good: Templates | None = None,
    telemetry: Snapshot | Taking | None = None,
    outcome: Outcome | None = None,
) -> TriageContext:
    """Read a log and diagnose it, keeping what further answers need."""
    return triage.diagnose(triage.read(source, language, files, good, outcome), telemetry)


def diagnosed(triage: Triage, source: LogSource | JobSource, *given: Any, **named: Any) -> Diagnosis:
    """Read a log and answer by rules, with what `opened` takes."""
    return opened(triage, source, *given, **named).first


@cache
def answered(triage: Triage, name: str, language: str = "en") -> Diagnosis:
    """Explain a labelled incident together with its launch script."""
    log = sources.from_path(INCIDENTS / name / "log.txt")
    return diagnosed(triage, log, language, [read_config(script(name))])


def explained(triage: Triage, log: str, *files: ConfigFile, language: str = "en") -> Diagnosis:
    """Explain a log that is at hand."""
    return diagnosed(triage, sources.from_text(log), language, files)
