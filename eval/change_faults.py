"""What is wrong with a proposed change whatever the cause is: it changes nothing, or is for another program.

Told anew from the answer, the job's settings and the catalogue, so that a slip in what chooses the changes
shows here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from corpus.condition_nodes import compare
from corpus.frameworks import known_frameworks
from corpus.keys import canonical, unsigned
from corpus.library import Library
from service.remediation.feasibility import Grounds
from service.remediation.framework_relations import runs
from service.remediation.hinted_settings import hinted_changes
from service.schemas.diagnosis import Diagnosis, ProposedChange
from service.scoring.assessment import Assessment

Fault = Literal["no-op", "not-run"]


class FaultyChange(NamedTuple):
    """A change with what is wrong with it."""

    fault: Fault
    change: ProposedChange


def faulty_changes(answer: Diagnosis, assessment: Assessment, library: Library) -> Iterator[FaultyChange]:
    """Give the changes of an answer that change nothing, or that belong to what the job does not run."""
    grounds = Grounds(assessment.report, library, assessment.settings)
    blamed = _set_otherwise(answer, library) | {
        unsigned(hint.key)
        for hint in hinted_changes(answer.cause or "", assessment.report, library, assessment.settings)
    }
    known = known_frameworks()
    # With the frameworks whose arguments the job's own take.
    taken = {name for framework in grounds.frameworks for name in known.row(framework).extends}
    for change in answer.changes:
        if change.kind == "code":
            continue  # every job runs its own code, and words on it are no value that it may have already
        if change.replaces is None and _is_idle(change, grounds, blamed):
            yield FaultyChange("no-op", change)
        spec = library.setting(change.framework, change.key, assessment.report.version(change.framework))
        reader = spec.read_by if spec else ""
        if not (
            runs(change.framework, change.key, reader, grounds.frameworks | taken)
            or grounds.takes(change.framework, change.key)
        ):
            yield FaultyChange("not-run", change)


def _is_idle(change: ProposedChange, grounds: Grounds, blamed: Collection[str]) -> bool:
    now = grounds.value(change.framework, change.key)
    given = {setting.value for setting in grounds.settings if canonical(setting.key) == canonical(change.key)}
    # Of several commands with the option each may give another value.
    if change.from_ is not None and (now is None or change.from_ in given):
        now = change.from_
    if now is not None:
        return compare(now.strip("'\""), "==", str(change.to))
    spec = grounds.library.setting(change.framework, change.key, grounds.report.version(change.framework))
    return (
        spec is not None
        and spec.default is not None
        and (spec.spelled != "python" or isinstance(spec.default, bool))
        and unsigned(change.key) not in blamed
        and compare(str(spec.default), "==", str(change.to))
    )


def _set_otherwise(answer: Diagnosis, library: Library) -> set[str]:
    """Name the settings whose rows say that the failure itself proves another value."""
    cases = [library.cases[change.from_case] for change in answer.changes if change.from_case]
    rows = [row for case in cases for row in case.changes]
    return {
        unsigned(row.key)
        for row in (*rows, *library.remedies.get(answer.cause or "", ()))
        if row.set_otherwise
    }
