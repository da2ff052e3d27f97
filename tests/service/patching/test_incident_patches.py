"""Patches of every labelled incident's own files: they apply, parse, hold, go back, and leave nothing to do
twice.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from corpus.library import read_yaml
from eval import incidents, metrics
from eval.answers import of_diagnosis
from ingest.logs.report import CrashReport
from service.patching.application import apply_edits, take_back
from service.patching.diagnosis_patch import patch_first_step
from service.patching.patches import ConfigFile, patch_files
from service.pipeline.triage import ReadJob, Triage, read_config
from service.schemas.diagnosis import Diagnosis
from tests.service.patching.applying import git, is_bash
from tests.tables import each_row

LEAST = 0.55
WITH_FILES = {item.id: item for item in incidents.load() if item.job_files}


def parses(path: Path) -> bool:
    """Tell whether a file is what its name says, by that format's own reader."""
    if path.suffix in (".sh", ".sbatch"):
        return is_bash(path.read_text(encoding="utf-8"))
    if path.suffix == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    if path.suffix == ".yaml":
        read_yaml(path)
    return True


@cache
def explained(triage: Triage, name: str) -> tuple[CrashReport, list[ConfigFile], Diagnosis]:
    """Read and explain an incident with its own files."""
    incident = WITH_FILES[name]
    files = [read_config(path) for path in incident.job_files]
    report = triage.reader.read(incident.source())
    return report, files, triage.diagnose(ReadJob(report, "en", tuple(files))).first


@pytest.mark.long
def test_most_incidents_with_files_have_a_change_that_can_be_written_into_them(triage: Triage) -> None:
    """The test below says nothing of those that have none."""
    assert sum(explained(triage, name)[2].patch is not None for name in WITH_FILES) > len(WITH_FILES) / 2


@pytest.mark.long
def test_incidents_whose_fix_is_a_key_of_their_files_get_a_patch_that_makes_it(triage: Triage) -> None:
    """A floor under what is reached; the evaluation's report tells the figure of each split."""
    scores = {
        name: metrics.score(
            incident, of_diagnosis(explained(triage, name)[2], incident, 0.0, {}), triage.library
        ).patch
        for name, incident in WITH_FILES.items()
    }
    scored = [value for value in scores.values() if value is not None]
    assert len(scored) >= 25
    assert sum(scored) / len(scored) >= LEAST, [name for name, value in scores.items() if value == 0]


@pytest.mark.long
@each_row("name", WITH_FILES)
def test_a_patch_applies_parses_goes_back_and_is_made_once(name: str, triage: Triage, tmp_path: Path) -> None:
    """One incident's whole patch, over all its files."""
    incident = WITH_FILES[name]
    report, files, answer = explained(triage, name)
    diff = answer.patch
    if diff is None:
        return
    assert git(tmp_path, "init", "-q")
    for path in incident.job_files:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert git(tmp_path, "apply", "--check", "-", given=diff), diff
    assert git(tmp_path, "apply", "-", given=diff)
    assert all(parses(tmp_path / path.name) for path in incident.job_files)
    patched = [
        ConfigFile(path.name, (tmp_path / path.name).read_text(encoding="utf-8"))
        for path in incident.job_files
    ]
    targets = patch_first_step(answer.changes, files, report, triage.library).targets
    again = patch_files(patched, targets).edits
    after = [(tmp_path / path.name).read_bytes() for path in incident.job_files]
    assert git(tmp_path, "apply", "-R", "-", given=diff)
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in incident.job_files)
    # What `--apply` writes is what the diff says, and `--undo` takes it back to the byte.
    lying = [replace(file, path=tmp_path / file.name) for file in files]
    apply_edits(patch_first_step(answer.changes, lying, report, triage.library).edits, tmp_path / "home")
    assert [(tmp_path / path.name).read_bytes() for path in incident.job_files] == after
    take_back(tmp_path / "home")
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in incident.job_files)
    assert not again
