"""The answer for each job of a batch: its own, that of the job with the same crash, or why there is none."""

from __future__ import annotations

import re

from corpus.message import Message, words
from corpus.schema import Language
from ingest.logs.lines import printable
from service.schemas.diagnosis import UNKNOWN_CAUSE, Diagnosis, Evidence, JobNote, Outcome, ReadLimits
from service.schemas.errors import ConflictError
from service.schemas.records import JobRecord

CATEGORY = "unknown"
_MARKDOWN = re.compile(r"([\\`*_\[\]<>])")


def job_result(
    job: JobRecord, representative: JobRecord | None = None, language: Language = "en"
) -> Diagnosis:
    """Give the answer for a job that has ended; `representative` is the job that `same_as` names.

    `language` is that of the sentence for a job without an answer.

    An answer that is another job's comes without what is of that job's log alone: cascade, what was read,
    and, unless both have the same files of their own, the patch; and without the tokens, which a model took
    once. Raises ConflictError for a job that has not ended.
    """
    if job.state in ("queued", "running"):
        raise ConflictError(Message("errors.job-not-ended-result", id=job.id))
    if job.state == "done" and job.diagnosis is not None:
        return job.diagnosis.model_copy(update={"id": job.id, "source": job.name, "job": job_note(job)})
    if job.state == "done" and representative is not None and representative.diagnosis is not None:
        return _same(job, representative, representative.diagnosis)
    return _without(job, language)


def job_note(job: JobRecord) -> JobNote:
    """Say which job an answer is for."""
    state = job.state if job.state in ("failed", "cancelled") else "done"
    return JobNote(
        id=job.id,
        batch=job.batch,
        name=job.name,
        state=state,
        fingerprint=job.fingerprint,
        same_as=job.same_as,
        error=job.error,
        attempts=job.attempts,
        nodes=job.nodes,
        gpu_hours=job.gpu_hours,
        ended=job.ended.isoformat() if job.ended else None,
    )


def _same(job: JobRecord, other: JobRecord, answer: Diagnosis) -> Diagnosis:
    language = answer.language
    told = words(
        "answer.same-crash-as", language, name=_MARKDOWN.sub(r"\\\1", printable(other.name)), id=other.id
    )
    evidence: tuple[Evidence, ...] = ()
    if job.root_line is not None:
        usual = words("answer.same-failure-here", language)
        why = answer.root.why if answer.root else usual
        root = Evidence(line=job.root_line, text=job.root_text, role="root", why=why, file=job.root_file)
        evidence = (root,)
    return answer.model_copy(
        update={
            "id": job.id,
            "source": job.name,
            "job": job_note(job),
            "explanation": f"{told}\n\n{answer.explanation}",
            "outcome": job.outcome or Outcome(),
            "evidence": evidence,
            "cascade": (),
            "redactions": 0,
            "timings_ms": {},
            "engine": answer.engine.model_copy(update={"tokens": None}),
            # Without files of its own, a patch is of a command that stands in the other one's log.
            "patch": answer.patch if job.config and job.config == other.config else None,
            "command": None,
            "suggestion": None,
            "limits": ReadLimits(bytes=0, lines=0, omitted={"same_as": other.id}),
            "frameworks": tuple(
                item.model_copy(update={"line": 0, "file": None}) for item in answer.frameworks
            ),
        }
    )


def _without(job: JobRecord, language: Language) -> Diagnosis:
    match job.state:
        case "failed":
            why = job.error or Message("answer.job-reason-unknown")
            headline = words("answer.job-failed", language, error=why)
        case "cancelled":
            headline = words("answer.job-cancelled", language)
        case _:
            headline = words("answer.job-lost", language)
    return Diagnosis(
        id=job.id,
        source=job.name,
        verdict="unknown",
        cause=UNKNOWN_CAUSE,
        category=CATEGORY,
        confidence=0.0,
        standing="none",
        action="collect-more",
        headline=headline,
        explanation=words("answer.job-next", language, headline=headline),
        limits=ReadLimits(bytes=0, lines=0),
        outcome=job.outcome or Outcome(),
        job=job_note(job),
    )
