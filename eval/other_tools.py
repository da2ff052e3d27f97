"""Other tools as systems under evaluation: the lines that their deterministic parts select.

Neither tool names a cause of causes.yaml: NVIDIA's restart agent gives a line and a failure class, Log
Detective gives lines for a model to read. To compare them at the same task, the cause is the one that
whycrash's failure patterns give for the selected lines, in the tool's order; the failure class becomes the
headline. Neither tool's model is run.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from corpus import log_patterns
from eval.answers import NO_FAILURE, Answer, System
from eval.baselines import Grep, LogLine, SelectedLines, answer_from_lines, rows_of
from eval.incidents import Incident

RESTART_AGENT = "nvidia_resiliency_ext.attribution.restart_agent.l0"
EXTRACTORS = "logdetective.extractors"

# Lines that are scored; the agent may propose hundreds of candidates.
MOST_LINES = 50

# Log Detective's interface: from a log to pairs of the first line's number (from 1) and the lines' text.
Extractor = Callable[[str], list[tuple[int, str]]]


class RestartAgent:
    """NVIDIA's restart agent (nvidia-resiliency-ext), layer L0: the analysis that precedes its model.

    Lines in order: the primary failure, the line that identifies it, the candidate lines for the model.
    Without a primary failure the verdict is `unknown`; without candidate lines too, it is `no-failure`.
    """

    name = "NVIDIA restart agent, L0"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep
        self._l0 = import_module(RESTART_AGENT)

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; a compressed log is unpacked, untimed, as the agent reads plain files only."""
        with tempfile.TemporaryDirectory(prefix="whycrash-restart-agent-") as folder:
            path = Path(folder, "log.txt")
            path.write_text(incident.text, encoding="utf-8", newline="")
            started = perf_counter()
            bundle = self._l0.build_l0_bundle(path)
            evidence = self._l0.build_decision_evidence(bundle)
        primary = evidence.deterministic_primary_candidate
        numbers = _agent_lines(bundle, evidence)
        rows = rows_of(incident)
        picked = [rows[number - 1] for number in numbers if 0 < number <= len(rows)][:MOST_LINES]
        if primary is None:
            # The agent lists candidate lines without calling one of them the failure.
            verdict = "unknown" if picked else NO_FAILURE
            lines = tuple(row.number for row in picked)
            return Answer(incident.id, verdict, (), None, lines, seconds=perf_counter() - started)
        return answer_from_lines(
            incident, SelectedLines(picked, True, primary.failure_class), self._grep, started
        )


def _agent_lines(bundle: Any, evidence: Any) -> list[int]:
    """Give the agent's line numbers in order of importance, without duplicates."""
    primary = evidence.deterministic_primary_candidate
    own = (
        [primary.line, evidence.canonical_observed_identity["identity_anchor_line"]]
        if primary is not None
        else []
    )
    found = dict.fromkeys([*own, *(anchor.line for anchor in bundle.candidate_anchors)])
    return [number for number in found if number is not None]


class LogDetective:
    """Log Detective's extractors: Python tracebacks (off by default there), then Drain with eight templates.

    A snippet is represented by its lines that hold an error word, from the last to the first, as a traceback
    ends with its exception. The csgrep extractor is not used: it parses compilers' messages.
    """

    name = "Log Detective's extractors"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep
        module = import_module(EXTRACTORS)
        # It logs each file to standard error, into the progress bar.
        logging.getLogger("logdetective").setLevel(logging.ERROR)
        self._kinds: tuple[Callable[[], Extractor], ...] = (
            module.PythonTracebackExtractor,
            module.DrainExtractor,
        )

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident, with new extractors: they keep state from one log to the next."""
        started = perf_counter()
        rows = rows_of(incident)
        # The tool splits at every Unicode line break, line numbers here count `\n` only.
        text = "\n".join(" ".join(row.text.splitlines()) for row in rows)
        snippets = [snippet for kind in self._kinds for snippet in kind()(text)]
        picked = [
            row
            for number, piece in snippets
            for row in reversed(list(_spread(rows, number, piece)))
            if row.has_error_word
        ]
        return answer_from_lines(
            incident,
            SelectedLines(list(dict.fromkeys(picked))[:MOST_LINES], bool(picked)),
            self._grep,
            started,
        )


def _spread(rows: list[LogLine], number: int, piece: str) -> Iterator[LogLine]:
    """Give a snippet's rows from line `number` on; its empty lines are missing, its end may be cut."""
    place = number - 1
    for text in piece.split("\n"):
        while place < len(rows) and not rows[place].text.strip():
            place += 1
        if place < len(rows) and text.strip():
            yield rows[place]
            place += 1


def all_systems() -> tuple[list[System], list[str]]:
    """Give the tools that can be imported, and for each other one the reason why it is skipped."""
    grep = Grep(log_patterns.load().rows)
    return available([RestartAgent, LogDetective], grep)


def available(kinds: Iterable[Callable[[Grep], System]], grep: Grep) -> tuple[list[System], list[str]]:
    """Make each system whose package can be imported; of the others give name and import error."""
    systems: list[System] = []
    skipped = []
    for kind in kinds:
        try:
            systems.append(kind(grep))
        except (ImportError, OSError, RuntimeError) as error:
            # A GPU package raises OSError without the driver's library, RuntimeError without a device.
            name = getattr(kind, "name", "")
            skipped.append(f"{name}: cannot be imported ({error})")
    return systems, skipped
