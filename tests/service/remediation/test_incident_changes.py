"""Changes of every labelled incident: each would change something that this job runs, and the patch is of the
first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from corpus.condition_nodes import compare
from corpus.library import Library
from eval import incidents
from ingest.logs.report import CrashReport
from service.llm.triage_context import TriageContext
from service.patching.diagnosis_patch import group_steps, patch_targets
from service.patching.patches import patch_files
from service.pipeline.triage import Triage, read_config
from service.remediation.feasibility import Grounds
from service.remediation.message_hints import hinted_changes
from service.schemas.diagnosis import Diagnosis, ProposedChange
from tests.warm import opened

# What a job of any framework has.
COMMON = frozenset({"env", "pip", "host", "linux", "python", "nccl", "pytorch"})
ON_RAY = frozenset({"verl", "easyr1", "tinyzero", "simplerl-reason", "openrlhf", "ray"})


def wrong(triage_context: TriageContext, triage: Triage) -> Iterator[str]:
    """Say of each change of an answer what is wrong with it."""
    answer, report, library = triage_context.first, triage_context.report, triage.library
    settings = triage_context.assessment.settings
    grounds = Grounds(report, library, settings)
    blamed = {
        item.key.lstrip("-") for item in hinted_changes(answer.cause or "", report, library, settings)
    } | _set_otherwise(answer, library)
    for change in answer.changes:
        name = f"{change.framework}: {change.key}={change.to}"
        now, known = (
            grounds.value(change.framework, change.key),
            library.setting(change.framework, change.key, report.version(change.framework)),
        )
        if change.replaces is None and now is not None and compare(now.strip("'\""), "==", str(change.to)):
            yield f"{name} is the present value"
        if (
            change.replaces is None
            and now is None
            and known
            and known.default is not None
            and compare(str(known.default), "==", str(change.to))
        ):
            yield from [f"{name} is the default"] * (change.key.lstrip("-") not in blamed)
        if not _runs(change, grounds.frameworks, report):
            yield f"{name} belongs to what the job does not run"
    purposes = [change.purpose for change in answer.changes]
    if purposes != sorted(purposes):
        yield "a cure stands behind what only finds out"
    yield from _patched(triage_context, triage)


def _set_otherwise(answer: Diagnosis, library: Library) -> set[str]:
    """Give the settings whose rows say that the failure itself proves another value."""
    cases = [
        row
        for change in answer.changes
        if change.from_case
        for row in library.cases[change.from_case].changes
    ]
    return {
        row.key.lstrip("-")
        for row in (*cases, *library.remedies.get(answer.cause or "", ()))
        if row.set_otherwise
    }


def _runs(change: ProposedChange, frameworks: Collection[str], report: CrashReport) -> bool:
    taken = (
        {"transformers", "trl"} if set(frameworks) & {"trl", "llamafactory", "ms-swift", "axolotl"} else set()
    )
    raying = {"ray"} if set(frameworks) & ON_RAY else set()
    sharing = {"accelerate"} if any(found.name == "fsdp" for found in report.frameworks) else set()
    return change.framework in COMMON | taken | raying | sharing | set(frameworks)


def _patched(triage_context: TriageContext, triage: Triage) -> Iterator[str]:
    """Compare the patch with the one that the first change alone gives."""
    answer, files = triage_context.first, triage_context.files
    if not files or answer.patch is None:
        return
    first = group_steps(answer.changes)[0]
    made = patch_files(files, patch_targets(first, triage_context.report, triage.library))
    if first[0].purpose != "cure" or answer.patch != "".join(edit.difference() for edit in made.edits):
        yield f"the patch is not of {first[0].key}, which is shown first"


def test_that_every_change_of_every_incident_can_change_this_job(triage: Triage) -> None:
    """One pass over all incidents; what is wrong is told for all of them at once."""
    found: dict[str, list[str]] = {}
    changes = patches = 0
    for incident in incidents.load():
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
    assert changes > 300
    assert patches > 30
