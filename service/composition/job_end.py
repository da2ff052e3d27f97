"""What the job's outcome adds to its log: a cause that a state proves, and the words for an end that the log is silent of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from corpus.library import Library
from corpus.outcomes import End, Ending
from corpus.schema import Action, Language
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.composition.phrases import phrase, place
from service.schemas.diagnosis import Outcome
from service.scoring.calibration import MOST
from service.scoring.retrieval import Retrieval
from service.scoring.scoring import Candidate, is_doubtful
from service.telemetry.snapshot import Snapshot

# The probability of a cause that the end proves, where the log says nothing: what a scheduler states, and
# what a signal leaves.
PROVED = {"established": MOST, "supported": 0.8}
# How much likelier what a state proves becomes, where the log has a line that only follows from something.
OUTWEIGHS = 9.0


def known(outcome: Outcome | None, snapshot: Snapshot | None) -> Outcome:
    """Give the outcome as its caller knows it, else as the snapshot's scheduler does."""
    if outcome is not None and outcome.is_given:
        return outcome
    if snapshot is None:
        return Outcome()
    return Outcome.told(snapshot.scheduler.exit_code.value, None, snapshot.scheduler.state.value)


def completed(outcome: Outcome, report: CrashReport) -> Outcome:
    """Give the outcome with the signal that its exit code tells, and how far the log shows that the job came."""
    step = None if report.last_step is None else int(report.last_step)
    return outcome.model_copy(update={"signal": outcome.killed_by, "last_step": step})


@dataclass(frozen=True)
class JobEnd:
    """How a job ended, and what that says of one log."""

    outcome: Outcome
    library: Library
    language: Language

    @property
    def end(self) -> End:
        """Tell whether it was a failure."""
        return self.outcome.end

    @property
    def reading(self) -> Ending | None:
        """The row that says most."""
        return next(iter(self.outcome.readings), None)

    def weighed(
        self, candidates: Sequence[Candidate], report: CrashReport, retrieval: Retrieval
    ) -> list[Candidate]:
        """Give the candidates as the outcome leaves them: what it proves stands where the log tells no more than what follows."""
        row = self.reading
        if row is None or row.cause is None or row.proof is None:
            return list(candidates)
        if report.root is None:
            return [_proved(row.cause, row, report, retrieval, PROVED[row.proof])]
        # What lies behind the end, and is more than a guess, says more than the end does.
        deeper = (
            not is_doubtful(candidates) and row.cause in self.library.causes[candidates[0].cause].explains
        )
        if row.proof != "established" or deeper or not _gives_way(report.root, row):
            return list(candidates)
        there = next((item for item in candidates if item.cause == row.cause), None) or _proved(
            row.cause, row, report, retrieval, 0.0
        )
        rest = [item for item in candidates if item.cause != row.cause]
        first = replace(
            there, probability=(there.probability + OUTWEIGHS) / (1.0 + OUTWEIGHS), standing="established"
        )
        placed = [
            replace(
                item, probability=item.probability / (1.0 + OUTWEIGHS), doubt=item.doubt / (1.0 + OUTWEIGHS)
            )
            for item in rest
        ]
        return [replace(first, doubt=first.doubt / (1.0 + OUTWEIGHS)), *placed]

    @property
    def headline(self) -> str:
        """Say how it ended, and that the log does not tell why; empty where no failed end is known."""
        return phrase("ended-unknown", self.language, end=self._says) if self.end == "failed" else ""

    def conclusion(self, report: CrashReport) -> str:
        """Say how it ended, where that is the answer; empty where the log has one."""
        return self._says if self._answers(report) else ""

    def action(self, report: CrashReport) -> Action | None:
        """Give what to do next, where the end is the answer and says more of it than its cause."""
        return self.reading.action if self.reading and self._answers(report) else None

    def told(self, report: CrashReport) -> str:
        """Say how it ended, and how far the log goes along with that; empty where nothing is known of it."""
        if self.end == "succeeded":
            return phrase(
                "ended-well" if report.root is None else "ended-well-though", self.language, end=self._says
            )
        if self.end == "unknown":
            return ""
        rows = [f"{self._says}{self._signs}{phrase('stop', self.language)}"]
        if report.root is None:
            rows.append(phrase("silent" if report.limits.lines else "printed-nothing", self.language))
            rows += (
                [phrase("said-done", self.language, line=place(report.place(report.finished), self.language))]
                if report.finished
                else []
            )
            step = report.last_step or 0
            rows += [phrase("last-step", self.language, step=f"{step:g}")] if step > 0 else []
        return (" " if self.language == "en" else "").join(rows)

    def _answers(self, report: CrashReport) -> bool:
        return report.root is None and self.reading is not None and self.reading.cause is not None

    @property
    def next(self) -> str:
        """Say what would tell more of such an end; empty where nothing is known of it."""
        row = self.reading
        if row is None or row.next is None:
            return ""
        causes = [self.library.causes[cause].title.to(self.language) for cause in row.may_be]
        maybe = (
            "\n".join([phrase("maybe", self.language), "", *(f"- **{title}**" for title in causes)])
            if causes
            else ""
        )
        return "\n\n".join(part for part in (row.next.to(self.language), maybe) if part)

    @property
    def _says(self) -> str:
        row = self.reading
        told = {"state": self.outcome.state, "signal": self.outcome.killed_by, "code": self.outcome.exit_code}
        return row.says.to(self.language).format(**told) if row else ""

    @property
    def _signs(self) -> str:
        """Name what else is known of the end, for who wants to look it up."""
        named = (("exit-code", self.outcome.exit_code), ("state", self.outcome.state))
        told = [
            phrase(name, self.language, value=value)
            for name, value in named
            if value is not None and str(value) not in self._says
        ]
        return phrase("signs", self.language, signs=phrase("and", self.language).join(told)) if told else ""


def _proved(
    cause: str, row: Ending, report: CrashReport, retrieval: Retrieval, probability: float
) -> Candidate:
    cases = tuple(match for match in retrieval.signatures if match.case.cause == cause)
    events = tuple(event for event in report.standing if event.cause == cause)
    return Candidate(cause, 0.0, row.proof or "supported", cases, events, probability)


def _gives_way(root: Event, row: Ending) -> bool:
    """Tell whether a root line says less than the state does.

    A person or a scheduler may end a job long after it failed; memory and nodes are lost before what is
    printed of it.
    """
    if row.by in ("person", "scheduler"):
        return root.kind == "kill" or root.pattern_role == "wrapper"
    return root.kind in ("kill", "hang") or root.pattern_role != "origin"
