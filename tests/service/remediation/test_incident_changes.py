"""Changes of every labelled incident: each would change something that this job runs, and the patch is of the
first.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eval import incidents
from eval.change_faults import faulty_changes
from service.llm.triage_context import TriageContext
from service.patching.diagnosis_patch import group_steps, patch_targets
from service.patching.patches import patch_files
from service.pipeline.triage import Triage, read_config
from service.remediation.ranking import MOST_CURES, MOST_LOOKS
from tests.warm import opened

# Every so many incidents one is tried in each run of the tests, and the others in the long one.
SAMPLE = 6


def wrong(triage_context: TriageContext, triage: Triage) -> Iterator[str]:
    """Say of each change of an answer what is wrong with it."""
    answer = triage_context.first
    for fault, change in faulty_changes(answer, triage_context.assessment, triage.library):
        yield f"{fault}: {change.framework}: {change.key}={change.to}"
    purposes = [change.purpose for change in answer.changes]
    if purposes != sorted(purposes):
        yield "a cure stands behind what only finds out"
    for purpose, most in (("cure", MOST_CURES), ("find-out", MOST_LOOKS)):
        if sum(change.purpose == purpose and change.goes_with is None for change in answer.changes) > most:
            yield f"more than {most} changes of purpose {purpose}"
    yield from _patched(triage_context, triage)


def _patched(triage_context: TriageContext, triage: Triage) -> Iterator[str]:
    """Compare the patch with the one that the first change alone gives."""
    answer, files = triage_context.first, triage_context.files
    if not files or answer.patch is None:
        return
    first = group_steps(answer.changes)[0]
    made = patch_files(files, patch_targets(first, triage_context.report, triage.library))
    if first[0].purpose != "cure" or answer.patch != "".join(edit.difference() for edit in made.edits):
        yield f"the patch is not of {first[0].key}, which is shown first"


@pytest.mark.parametrize(
    "is_sample",
    [pytest.param(False, marks=pytest.mark.long), True],
    ids=["of all others", "of each sixth incident"],
)
def test_that_every_change_can_change_this_job(triage: Triage, *, is_sample: bool) -> None:
    """One pass over incidents; what is wrong is told for all of them at once."""
    found: dict[str, list[str]] = {}
    changes = patches = 0
    chosen = [one for number, one in enumerate(incidents.load()) if (number % SAMPLE == 0) == is_sample]
    for incident in chosen:
        triage_context = opened(
            triage,
            incident.source(),
            "en",
            [read_config(path) for path in incident.job_files],
            telemetry=incident.telemetry,
        )
        changes, patches = (
            changes + len(triage_context.first.changes),
            patches + (triage_context.first.patch is not None),
        )
        if reasons := list(wrong(triage_context, triage)):
            found[incident.id] = reasons
    assert found == {}
    # A test that sees no changes would prove nothing.
    assert changes > 0.75 * len(chosen)
    assert patches > 0.075 * len(chosen)
