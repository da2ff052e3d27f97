"""An assessed job with its first answer: what a model, or a follow-up question, starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpus.library import Library
from corpus.schema import Language
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.logs.report import CrashReport
from service.composition.composer import compose
from service.composition.procedures import with_steps
from service.patching.diagnosis_patch import (
    patch_diagnosis,
    patch_first_step,
    repatch_diagnosis,
    suggested_edits,
)
from service.patching.patches import ConfigFile, FileEdit
from service.schemas.diagnosis import Diagnosis
from service.scoring.assessment import Assessment


@dataclass(frozen=True)
class TriageContext:
    """A job with its first answer, and what further answers to it are made of: `files` are its own.

    `reopen` opens its output anew; None where that is not at hand. `near` finds ids of cases by words.
    `fails` tells whether a line reads as a failure by itself, without what else stands in the log.
    """

    assessment: Assessment
    library: Library
    language: Language
    files: tuple[ConfigFile, ...]
    first: Diagnosis
    reopen: Callable[[], JobSource | LogSource] | None = None
    near: Callable[[str], Sequence[str]] | None = None
    fails: Callable[[str], bool] | None = None

    @property
    def report(self) -> CrashReport:
        """What the job's output tells."""
        return self.assessment.report

    def answer_anew(self, assessment: Assessment) -> Diagnosis:
        """Answer for another assessment of the same job, such as one with a model's vote."""
        answer = answer_by_rules(assessment, self.library, self.language, self.files)
        return answer.model_copy(update={"id": self.first.id, "timings_ms": self.first.timings_ms})

    def edits_of(self, answer: Diagnosis) -> tuple[FileEdit, ...]:
        """Give what the patch, else the suggestion, of one of the job's answers writes, with secrets.

        Code that a model proposed is shown, and written by people alone.
        """
        if any(change.by == "model" and change.kind == "code" for change in answer.changes[:1]):
            return ()
        given = (answer.changes, self.files, self.report, self.library)
        if answer.patch is not None:
            return patch_first_step(*given).edits
        return suggested_edits(*given) if answer.suggestion is not None else ()

    def repatch(self, answer: Diagnosis, *, is_chosen: bool = False) -> Diagnosis:
        """Make the patch anew for an answer whose changes are others than the first one's.

        `is_chosen` keeps their order, as a model chose the first.
        """
        patched = repatch_diagnosis(
            answer, self.files, self.report, self.library, self.language, is_chosen=is_chosen
        )
        return with_steps(patched, self.report, self.library, self.language)


def answer_by_rules(
    assessment: Assessment, library: Library, language: Language, files: tuple[ConfigFile, ...]
) -> Diagnosis:
    """Write the answer to an assessment, with the patch of the job's own files."""
    answer = compose(assessment, library, language)
    patched = patch_diagnosis(answer, files, assessment.report, library, language)
    return with_steps(patched, assessment.report, library, language)
