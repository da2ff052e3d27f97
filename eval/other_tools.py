"""Other tools as systems under evaluation: what their deterministic parts pick out of the same logs.

Neither tool names causes of our table: NVIDIA's restart agent gives a line and a word of its own, Log
Detective gives lines for a model to read. So that all are compared at the same task, the cause is named by
the product's failure patterns on the lines that the tool chose, in the tool's order; its own word is kept as
the headline. What their models would add is not measured.
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
from eval.baselines import Grep, LogLine, Picked, judged, rows_of
from eval.incidents import Incident

RESTART_AGENT = "nvidia_resiliency_ext.attribution.restart_agent.l0"
EXTRACTORS = "logdetective.extractors"

# What a reader, or a model, would look at; the agent may propose hundreds of candidates.
MOST_LINES = 50

# Log Detective's own form: from a log to (line number of the first line, text of some lines).
Extractor = Callable[[str], list[tuple[int, str]]]


class RestartAgent:
    """NVIDIA's restart agent (nvidia-resiliency-ext), its layer L0: the log's analysis before any model.

    The primary failure's line comes first, then the line that it is known by, then the candidate lines
    that the agent would show a model. Without a primary failure the agent holds nothing to be terminal; with
    no candidate line either, it has seen no failure.
    """

    name = "NVIDIA restart agent, L0"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep
        self._l0 = import_module(RESTART_AGENT)

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; the agent reads a plain file, so a packed log is unpacked first."""
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
            # Candidates alone are lines to look at: the agent names none of them as the failure.
            verdict = "unknown" if picked else NO_FAILURE
            lines = tuple(row.number for row in picked)
            return Answer(incident.id, verdict, (), None, lines, seconds=perf_counter() - started)
        return judged(incident, Picked(picked, True, primary.failure_class), self._grep, started)


def _agent_lines(bundle: Any, evidence: Any) -> list[int]:
    """Order the agent's lines; each once."""
    primary = evidence.deterministic_primary_candidate
    own = (
        [primary.line, evidence.canonical_observed_identity["identity_anchor_line"]]
        if primary is not None
        else []
    )
    found = dict.fromkeys([*own, *(anchor.line for anchor in bundle.candidate_anchors)])
    return [number for number in found if number is not None]


class LogDetective:
    """Log Detective's extractors: Python tracebacks (off in its default), then Drain's eight templates.

    Of each snippet that it cuts out, the lines with an error word stand for it, the last one first: there
    a traceback names its exception. csgrep is left out, as it reads compilers' messages.
    """

    name = "Log Detective's extractors"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep
        module = import_module(EXTRACTORS)
        # It tells of each log on standard error, across the progress of the evaluation.
        logging.getLogger("logdetective").setLevel(logging.ERROR)
        self._kinds: tuple[Callable[[], Extractor], ...] = (
            module.PythonTracebackExtractor,
            module.DrainExtractor,
        )

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; an extractor remembers the logs that it has read, so each gets new ones."""
        started = perf_counter()
        rows = rows_of(incident)
        # The tool counts every Unicode line break; ours counts newlines only.
        text = "\n".join(" ".join(row.text.splitlines()) for row in rows)
        snippets = [snippet for kind in self._kinds for snippet in kind()(text)]
        # The rows of each snippet that hold an error word, from its end.
        picked = [
            row
            for number, piece in snippets
            for row in reversed(list(_spread(rows, number, piece)))
            if row.has_error_word
        ]
        return judged(
            incident, Picked(list(dict.fromkeys(picked))[:MOST_LINES], bool(picked)), self._grep, started
        )


def _spread(rows: list[LogLine], number: int, piece: str) -> Iterator[LogLine]:
    """Find a snippet's lines again: empty lines inside it are left out, and its end may be cut."""
    place = number - 1
    for text in piece.split("\n"):
        while place < len(rows) and not rows[place].text.strip():
            place += 1
        if place < len(rows) and text.strip():
            yield rows[place]
            place += 1


def all_systems() -> tuple[list[System], list[str]]:
    """Give the tools that are installed and can be imported here, and why the others are skipped."""
    grep = Grep(log_patterns.load().rows)
    return available([RestartAgent, LogDetective], grep)


def available(kinds: Iterable[Callable[[Grep], System]], grep: Grep) -> tuple[list[System], list[str]]:
    """Make the systems whose package can be imported, and tell of each other one what it lacks."""
    systems: list[System] = []
    skipped = []
    for kind in kinds:
        try:
            systems.append(kind(grep))
        except (ImportError, OSError, RuntimeError) as error:
            # A package for GPUs may miss a driver's library, or refuse a machine without a device.
            name = getattr(kind, "name", "")
            skipped.append(f"{name}: cannot be imported ({error})")
    return systems, skipped
