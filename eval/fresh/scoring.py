"""Answer and score the logs of a round; their texts are gone when the score is there."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from corpus.library import Library
from eval.answers import NO_FAILURE, Answer, System
from eval.errors import FetchError
from eval.fresh.rounds import Figure, FirstSight, FreshLog, Round
from eval.fresh.texts import Source, shown
from eval.incidents import LOGS, Incident
from eval.metrics import Score, is_right, mean, score
from eval.run import Progress

# What is told of a round: field of FreshScore, and its words.
FIGURES: tuple[tuple[str, str], ...] = (
    ("cause_top1", "cause, top 1"),
    ("root_line_5", "root line in first 5"),
    ("setting", "right setting among the changes"),
    ("first_change", "first change right"),
    ("forbidden", "a change that makes it worse"),
    ("healthy", "healthy runs recognised"),
    ("failed_called_healthy", "failed jobs called healthy"),
    ("failed_told_green", "failed jobs told green"),
    ("abstained", "unanswerable abstained"),
    ("left_open", "unanswerable left open (no cause named, not green)"),
    ("sure_and_wrong", "sure and wrong"),
)


@dataclass(frozen=True)
class FreshScore:
    """The figures of one answer, each 0 or 1, or None where it is not scored."""

    cause_top1: float | None
    root_line_5: float | None
    setting: float | None
    first_change: float | None
    forbidden: float | None
    healthy: float | None
    failed_called_healthy: float | None
    failed_told_green: float | None
    abstained: float | None
    left_open: float | None
    sure_and_wrong: float | None


@dataclass(frozen=True)
class ScoredLog:
    """A log with the program's answer and its score."""

    log: FreshLog
    answer: Answer
    score: FreshScore

    def record(self) -> dict[str, object]:
        """Give what may be kept: what the program named, and no text."""
        answer = self.answer
        return {
            "id": self.log.id,
            "verdict": answer.verdict,
            "standing": answer.standing,
            "causes": list(answer.causes[:3]),
            "confidence": answer.confidence,
            "lines": list(answer.lines or ())[:5],
            "changes": [f"{framework}:{key}" for framework, key, _ in answer.changes or ()],
            "score": {name: value for name, value in vars(self.score).items() if value is not None},
        }


def answered(
    found: Round, source: Source, system: System, library: Library, progress: Progress
) -> tuple[list[ScoredLog], list[str]]:
    """Answer every log of a round: the scores, and a reason for each log whose text cannot be had.

    What cannot be had is not scored, which is neither right nor wrong.
    """
    scored: list[ScoredLog] = []
    missing: list[str] = []
    for number, log in enumerate(found.logs):
        progress(f"round {found.round}", number, len(found.logs))
        with TemporaryDirectory(prefix="whycrash-fresh-") as folder:
            try:
                incident = _incident(log, source, Path(folder))
            except FetchError as error:
                missing.append(str(error))
                continue
            answer = system.answer(incident)
            scored.append(ScoredLog(log, answer, fresh_score(incident, log, answer, library)))
    progress(f"round {found.round}", len(found.logs), len(found.logs))
    return scored, missing


def laid_out(found: Round, source: Source) -> Generator[Incident]:
    """Give each log of a round as an incident, whose files are there until the next is asked for.

    Raises FetchError where a text cannot be had.
    """
    for log in found.logs:
        with TemporaryDirectory(prefix="whycrash-fresh-") as folder:
            yield _incident(log, source, Path(folder))


def _incident(log: FreshLog, source: Source, folder: Path) -> Incident:
    """Lay a log and its job's files out as an incident in `folder`."""
    (folder / LOGS[0]).write_bytes(shown(source(log, log.log), log.log))
    names: list[str] = []
    for number, pointer in enumerate(log.files):
        # Two files of different folders may have one name; the ending decides how it is read.
        plain = PurePosixPath(pointer.path).name
        name = plain if plain not in (*names, LOGS[0]) else f"{number}-{plain}"
        (folder / name).write_bytes(source(log, pointer))
        names.append(name)
    return Incident(log.label(), folder, tuple(names))


def fresh_score(incident: Incident, log: FreshLog, answer: Answer, library: Library) -> FreshScore:
    """Score an answer: the evaluation's metrics, and what a person who acts on the first screen meets."""
    common: Score = score(incident, answer, library)
    changes, forbidden = answer.changes or (), log.forbidden
    failed = log.verdict != "no-failure"
    is_well = answer.verdict == NO_FAILURE
    is_green = is_well and answer.standing == "established"
    is_open = answer.verdict == "unknown" or (is_well and answer.standing == "none")
    return FreshScore(
        cause_top1=common.cause_top1,
        root_line_5=common.root_line_5,
        setting=common.setting,
        first_change=common.setting_first,
        forbidden=float(any(is_right(each, forbidden) for each in changes)) if forbidden else None,
        healthy=common.healthy,
        failed_called_healthy=float(is_well) if failed else None,
        # A log that only stops amid good work is told so, in amber: green says that the job ended well.
        failed_told_green=float(is_green) if failed else None,
        abstained=common.abstained,
        # Rounds label a log that stops amid good work `unknown`; its answer by contract is the amber one.
        left_open=None if common.abstained is None else float(is_open),
        sure_and_wrong=common.sure_and_wrong,
    )


def figures(scored: Sequence[ScoredLog]) -> dict[str, Figure]:
    """Give the mean of each figure with its interval; None where nothing was scored, as JSON has no NaN."""
    return {name: _figure([getattr(item.score, name) for item in scored]) for name, _ in FIGURES}


def pooled(scores: Sequence[FirstSight]) -> dict[str, Figure]:
    """Give the figures over all logs of several rounds, as they were answered at first sight."""
    answers = [answer["score"] for score in scores for answer in score.answers]
    return {name: _figure([answer.get(name) for answer in answers]) for name, _ in FIGURES}


def _figure(values: Sequence[float | None]) -> Figure:
    row = mean(values)
    value, low, high = (
        None if math.isnan(part) else round(part, 3) for part in (row.value, row.low, row.high)
    )
    return Figure(value=value, low=low, high=high, count=row.count)
