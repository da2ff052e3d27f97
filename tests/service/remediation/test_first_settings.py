"""The setting that a senior engineer would change first is offered, by cause and program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from corpus.library import read_yaml
from eval.change_faults import faulty_changes
from eval.incidents import LabelledChange
from eval.metrics import is_among
from ingest.logs.inputs import sources
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.warm import opened

TABLE: list[dict[str, Any]] = read_yaml(Path(__file__).with_name("first_settings.yaml"))
# Least shares of cells with a wanted setting among the changes, and with one as the first; they only rise.
AMONG, FIRST = 0.95, 0.9
_PACKAGES = "/opt/env/lib/python3.11/site-packages/"
_CALL = re.compile(r"(?m)^(.*?)@ ([~/<]\S*?):(\d+):(\S+?): ?(.*)$")
_REFUSED = re.compile(r"<oom (.+), (.+), (.+), (.+), (.+), (.+)>")
_ALLOCATOR = (
    r"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate \1. GPU 0 has a total capacity of \2 of "
    r"which \3 is free. Including non-PyTorch memory, this process has \4 memory in use. Of the allocated "
    r"memory \5 is allocated by PyTorch, and \6 is reserved by PyTorch but unallocated. If reserved but "
    r"unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
    r"fragmentation."
)


class Offered(NamedTuple):
    """Of one cell: whether each change that may cure is wanted, and what is wrong with its changes."""

    cell: str
    hits: list[bool]
    faults: list[str]


def written_out(log: str) -> str:
    """Write the rows of calls and the allocator's words as the programs print them."""
    rows = _CALL.sub(r'\1  File "\2", line \3, in \4\n\1    \5', log)
    return _REFUSED.sub(_ALLOCATOR, rows.replace('File "~', f'File "{_PACKAGES}'))


@pytest.fixture(scope="module")
def table(triage: Triage) -> list[Offered]:
    """Answer every cell once."""
    return [_offered(cell, triage) for cell in TABLE]


def _offered(cell: dict[str, Any], triage: Triage) -> Offered:
    files = [ConfigFile(name, text) for name, text in cell["files"].items()]
    context = opened(triage, sources.from_text(written_out(cell["log"])), "en", files)
    pairs = (want.split(":", 1) for want in cell["wants"])
    wanted = [LabelledChange(framework=framework, key=key) for framework, key in pairs]
    cures = [change.key for change in context.first.changes if change.purpose == "cure"]
    faults = faulty_changes(context.first, context.assessment, triage.library)
    told = [f"{cell['id']}: {fault}: {change.key}={change.to}" for fault, change in faults]
    return Offered(cell["id"], [is_among(key, wanted) for key in cures], told)


def test_that_the_setting_that_cures_is_offered(table: list[Offered]) -> None:
    """Over causes and programs, a wanted setting is among the changes, and mostly the first of them."""
    missing = [item.cell for item in table if not any(item.hits)]
    later = [item.cell for item in table if not any(item.hits[:1])]
    assert len(missing) <= (1 - AMONG) * len(table), missing
    assert len(later) <= (1 - FIRST) * len(table), later


def test_that_nothing_idle_is_offered(table: list[Offered]) -> None:
    """No change is what the job has already, or for what it does not run."""
    assert [fault for item in table for fault in item.faults] == []


def test_that_each_program_has_cells() -> None:
    """The table is of the programs that our users run, and no cell stands in it twice."""
    programs = [cell["id"].rpartition("-")[0] for cell in TABLE]
    ids = [cell["id"] for cell in TABLE]
    assert len(ids) == len(set(ids)) >= 120
    begun = {
        "transformers",
        "trl",
        "llamafactory",
        "ms-swift",
        "axolotl",
        "verl",
        "openrlhf",
        "vllm",
        "sglang",
    }
    assert all(sum(name.startswith(one) for name in programs) >= 6 for one in begun)
