"""A home that is ready (patterns compiled, index built) and answers made with it; shared by service and ui."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingest.logs.inputs import sources
from service.diagnosis import Diagnosis
from service.patching.patches import ConfigFile
from service.settings import Settings
from service.triage import Triage, read_config

ROOT = Path(__file__).parent.parent
INCIDENTS = ROOT / "eval" / "incidents"
WRITE_UPS = (
    "openrlhf-save-host-peak", "openrlhf-zero3-generate-hang", "w-easyr1-offload-host-ram",
    "w-simplerl-free-cache-host-leak", "w-tinyzero-h20-cublas-sigfpe",
)
HEALTHY = "openrlhf-healthy-noisy"
BARE = "openrlhf-bare-actor-died"
EVERY = (*WRITE_UPS, HEALTHY, BARE)


@cache
def _made(base: Path) -> Triage:
    # Kept by hand: a session fixture that two conftests import would be made twice, at six seconds each.
    made = Triage(Settings(home=base / "warm", embedding_model="hash"))
    _ = made.library, made.reader, made.index
    return made


@pytest.fixture(scope="session")
def triage(tmp_path_factory: pytest.TempPathFactory) -> Triage:
    """A triage with everything loaded. Its index holds the corpus and nothing else."""
    return _made(tmp_path_factory.getbasetemp())


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


@cache
def answered(triage: Triage, name: str, language: str = "en") -> Diagnosis:
    """Explain a labelled incident together with its launch script."""
    log = sources.from_path(INCIDENTS / name / "log.txt")
    return triage.explain(log, language, [read_config(script(name))])


def explained(triage: Triage, log: str, *files: ConfigFile, language: str = "en") -> Diagnosis:
    """Explain a log that is at hand."""
    return triage.explain(sources.from_text(log), language, files)
