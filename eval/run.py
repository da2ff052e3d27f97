"""Run systems over incidents, score their answers, and store and load both as JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from corpus.library import Library
from eval.answers import Answer, System
from eval.errors import EvalError
from eval.incidents import Incident
from eval.metrics import Score, ranking, score
from eval.report import Run

Progress = Callable[[str, int, int], None]
_PACKAGES = ("whycrash", "hyperscan", "chromadb", "onnxruntime", "bm25s")


def run(
    incidents: Sequence[Incident], systems: Sequence[System], library: Library, progress: Progress
) -> Run:
    """Have every system answer every incident and score the answers.

    `progress` is called with the system's name, the incidents done, and their number.
    """
    began, started = datetime.now(UTC), time.perf_counter()
    answers: dict[str, tuple[Answer, ...]] = {}
    scores: dict[str, tuple[Score, ...]] = {}
    for system in systems:
        rows = []
        for number, incident in enumerate(incidents):
            progress(system.name, number, len(incidents))
            rows.append(system.answer(incident))
        progress(system.name, len(incidents), len(incidents))
        answers[system.name] = tuple(rows)
        scores[system.name] = tuple(
            score(incident, row, library) for incident, row in zip(incidents, rows, strict=True)
        )
    test = [incident for incident in incidents if incident.label.split == "test"]
    first = {answer.incident: answer for answer in answers[systems[0].name]}
    return Run(
        incidents=tuple(incidents),
        answers=answers,
        scores=scores,
        rankings=ranking(test, first, library),
        causes={cause.id: cause.category for cause in library.causes.values()},
        started=began.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - started,
        versions={"python": sys.version.split()[0], **{name: version(name) for name in _PACKAGES}},
    )


def write(result: Run, path: Path) -> None:
    """Write one JSON line for each system and incident: `system`, `answer`, `score`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as stream:
        for name, answers in result.answers.items():
            for answer, scored in zip(answers, result.scores[name], strict=True):
                row = {"system": name, "answer": answer.record(), "score": scored.record()}
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_scores(path: Path, system: str) -> list[Score]:
    """Read a system's scores from results.jsonl; raises EvalError where it is unreadable or has none."""
    try:
        with path.open(encoding="utf-8") as stream:
            rows = [json.loads(row) for row in stream]
    except (OSError, ValueError) as error:
        raise EvalError(f"{path} cannot be read as a run's results: {error}") from error
    found = [Score(**row["score"]) for row in rows if row.get("system") == system]
    if not found:
        raise EvalError(f"{path} holds no results of {system!r}")
    return found


def of_split(incidents: Sequence[Incident], scores: Sequence[Score], split: str) -> list[Score]:
    """Give those scores whose incident is in the split."""
    names = {incident.id for incident in incidents if incident.label.split == split}
    return [item for item in scores if item.incident in names]


def by_split(result: Run, system: str) -> Mapping[str, list[Score]]:
    """Give a system's scores by split."""
    return {split: of_split(result.incidents, result.scores[system], split) for split in ("fit", "test")}
