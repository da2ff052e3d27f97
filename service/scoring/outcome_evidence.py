"""Let the job's outcome speak: a cause that a scheduler's state or a signal proves, and what outweighs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from corpus.library import Library
from corpus.outcomes import Ending
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.schemas.diagnosis import Outcome
from service.scoring.calibration import MOST
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate, candidate_of, is_doubtful
from service.telemetry.snapshot import Snapshot

# The probability of a cause that the end proves, where the log says nothing: what a scheduler states, and
# what a signal leaves.
PROVED = {"established": MOST, "supported": 0.8}
# How much likelier what a state proves becomes, where the log has a line that only follows from something.
OUTWEIGHS = 9.0


def complete_outcome(outcome: Outcome | None, snapshot: Snapshot | None, report: CrashReport) -> Outcome:
    """Give the outcome as its caller knows it, else as the snapshot's scheduler does.

    Added is the signal that the exit code tells, and how far the log shows that the job came.
    """
    known = outcome if outcome is not None and outcome.is_given else Outcome()
    if not known.is_given and snapshot is not None:
        known = Outcome.told(snapshot.scheduler.exit_code.value, None, snapshot.scheduler.state.value)
    step = None if report.last_step is None else int(report.last_step)
    saved = report.checkpoint.step if report.checkpoint else None
    return known.model_copy(update={"signal": known.killed_by, "last_step": step, "last_checkpoint": saved})


def weigh_by_outcome(
    candidates: Sequence[Candidate],
    outcome: Outcome,
    report: CrashReport,
    retrieval: Retrieval,
    library: Library,
) -> list[Candidate]:
    """Give the candidates as the outcome leaves them.

    What it proves stands where the log tells no more than what follows from it.
    """
    row = outcome.reading
    if row is None or row.cause is None or row.proof is None:
        return list(candidates)
    if report.root is None:
        return [candidate_of(row.cause, row.proof, report, retrieval, PROVED[row.proof])]
    # What lies behind the end, and is more than a guess, says more than the end does.
    deeper = not is_doubtful(candidates) and row.cause in library.causes[candidates[0].cause].explains
    if row.proof != "established" or deeper or not _gives_way(report.root, row):
        return list(candidates)
    there = next(
        (item for item in candidates if item.cause == row.cause),
        candidate_of(row.cause, row.proof, report, retrieval),
    )
    shares = [
        replace(item, probability=item.probability / (1.0 + OUTWEIGHS), doubt=item.doubt / (1.0 + OUTWEIGHS))
        for item in (there, *(item for item in candidates if item.cause != row.cause))
    ]
    likelier = (there.probability + OUTWEIGHS) / (1.0 + OUTWEIGHS)
    return [replace(shares[0], probability=likelier, standing="established"), *shares[1:]]


def _gives_way(root: Event, row: Ending) -> bool:
    """Tell whether a root line says less than the state does.

    A person or a scheduler may end a job long after it failed; memory and nodes are lost before what is
    printed of it.
    """
    if row.by in ("person", "scheduler"):
        return root.kind == "kill" or root.pattern_role == "wrapper"
    return root.kind in ("kill", "hang") or root.pattern_role != "origin"
