"""Baselines: simple methods as systems under evaluation.

Each answers the same incidents with the same type of answer. The cause of a line comes from whycrash's own
patterns, so that baselines differ in which lines they choose and not in what they know; none gives a
confidence.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from corpus import log_patterns
from corpus.library import Library
from corpus.log_patterns import Pattern
from eval.answers import NO_FAILURE, Answer, System
from eval.incidents import Incident
from ingest.embedder import Embedder
from ingest.logs import lines
from service.pipeline.triage import Triage
from service.scoring.retrieval import DEPTH

LAST = 50
QUERY_LINES = 200
QUERY_CHARACTERS = 2000
CHUNK_SIZE, CHUNK_OVERLAP = 1000, 100
SHOWN = 5

ERROR_WORD = re.compile(r"error|exception|traceback|killed|failed", re.IGNORECASE)
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ROLES = ("origin", "collateral", "wrapper", "none")
_STRENGTHS = ("states", "suggests", "hints")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log with its number, from 1; only newlines end a line."""

    number: int
    text: str

    @property
    def has_error_word(self) -> bool:
        """Whether the line holds an error word."""
        return ERROR_WORD.search(self.text) is not None


def rows_of(incident: Incident) -> list[LogLine]:
    """Give a log's lines, without the empty one after the last newline."""
    texts = incident.lines
    return [LogLine(number, text) for number, text in enumerate(texts[:-1] if texts[-1] == "" else texts, 1)]


class Grep:
    """The failure patterns, searched in one line at a time, without the reader's cascade."""

    def __init__(self, table: Iterable[Pattern]) -> None:
        # As the reader orders patterns that match one line: by role, then by strength.
        self._patterns = sorted(
            (row for row in table if row.fails and row.cause),
            key=lambda row: (_ROLES.index(row.role), _STRENGTHS.index(row.strength)),
        )

    def cause(self, text: str) -> str | None:
        """Give the cause of the first pattern that matches; None where none does."""
        line = lines.parse_line(_ESCAPE.sub("", text).encode(), 1)
        found = (
            row.cause
            for row in self._patterns
            if row.compiled.search(line.body) or row.compiled.search(line.text)
        )
        return next(found, None)

    def causes(self, picked: Iterable[LogLine]) -> list[tuple[int, str]]:
        """Give (line number, cause) of the lines that a pattern matches, in the order given."""
        return [(row.number, cause) for row in picked if (cause := self.cause(row.text))]


@dataclass(frozen=True, slots=True)
class SelectedLines:
    """Lines that a system selects, most important first; whether it reports a failure; its headline."""

    rows: Sequence[LogLine]
    failed: bool
    words: str = ""


def answer_from_lines(incident: Incident, picked: SelectedLines, grep: Grep, started: float) -> Answer:
    """Make an answer of selected lines: their causes by the patterns, in their order.

    `started` is `perf_counter()` at the beginning.
    """
    causes = tuple(dict.fromkeys(cause for _, cause in grep.causes(picked.rows)))
    verdict = "diagnosed" if causes else "unknown" if picked.failed else NO_FAILURE
    numbers = tuple(dict.fromkeys(row.number for row in picked.rows))
    return Answer(
        incident.id, verdict, causes, None, numbers, headline=picked.words, seconds=perf_counter() - started
    )


class LastLines:
    """Takes the last line that a pattern matches, of the last LAST lines."""

    name = "last lines"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; lines with error words alone give the verdict `unknown`."""
        started = perf_counter()
        tail = rows_of(incident)[: -LAST - 1 : -1]
        known = {number for number, _ in self._grep.causes(tail)}
        worded = [row for row in tail if row.has_error_word]
        rows = [row for row in tail if row.number in known] or worded
        return answer_from_lines(incident, SelectedLines(rows, bool(worded)), self._grep, started)


class FirstErrorLine:
    """Takes the first line of the log that holds an error word."""

    name = "first error line"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; without an error word the verdict is `no-failure`."""
        started = perf_counter()
        first = [row for row in rows_of(incident) if row.has_error_word][:1]
        return answer_from_lines(incident, SelectedLines(first, bool(first)), self._grep, started)


class MostFrequentCause:
    """Always names the most frequent cause of the split `fit`, without reading the log."""

    name = "most frequent cause"

    def __init__(self, fit: Iterable[Incident]) -> None:
        # The label of an unanswerable incident may list possible causes; they do not count.
        labels = [incident.label for incident in fit if incident.label.verdict == "diagnosed"]
        counts = Counter(label.causes[0] for label in labels)
        self._ranked = tuple(sorted(counts, key=lambda cause: (-counts[cause], cause)))

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident without reading it."""
        return Answer(incident.id, "diagnosed" if self._ranked else "unknown", self._ranked[:SHOWN], None)


class WordsAlone:
    """Searches whycrash's index by BM25 alone, with the log's last error lines as the query."""

    name = "BM25 alone"

    def __init__(self, triage: Triage) -> None:
        self._triage = triage

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident with the first case's cause; it never reports `no-failure`."""
        started = perf_counter()
        rows = rows_of(incident)
        query = [row for row in rows[-QUERY_LINES:] if row.has_error_word] or rows[-LAST:]
        hits = self._triage.index.words("\n".join(row.text for row in query), DEPTH)
        found = (hit.document.owner for hit in hits if hit.document.kind == "case")
        return _of_cases(incident, "words", found, self._triage.library, started)


class DenseAlone:
    """LangChain's usual recipe: recursive chunks of the cases in Chroma, queried with the end of the log.

    `characters` is the length of the query. The default model reads 256 tokens, so only the beginning of a
    longer query counts.
    """

    name = "dense alone"

    def __init__(self, triage: Triage, characters: int = QUERY_CHARACTERS) -> None:
        self._triage = triage
        self._characters = characters

    @cached_property
    def _store(self) -> Any:
        os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")  # Chroma sends usage data otherwise
        # Imported by name: optional and slow packages, which may be missing where types are checked.
        chroma = import_module("langchain_chroma").Chroma
        splitters = import_module("langchain_text_splitters")
        splitter = splitters.RecursiveCharacterTextSplitter(
            chunk_size=CHUNK_SIZE, chunk_overlap=CHUNK_OVERLAP
        )
        cases = self._triage.library.cases.values()
        pieces = [
            (piece, case.id)
            for case in cases
            for title, body in ((case.title.en, case.body.en), (case.title.zh, case.body.zh))
            for piece in splitter.split_text(f"{title}\n\n{body}")
        ]
        folder = tempfile.mkdtemp(prefix="whycrash-dense-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        store = chroma("cases", _embeddings(self._triage.embedder), persist_directory=folder)
        store.add_texts([piece for piece, _ in pieces], metadatas=[{"case": owner} for _, owner in pieces])
        return store

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident with the nearest case's cause; it never reports `no-failure`."""
        store = self._store  # built before the clock starts, as whycrash's index is
        started = perf_counter()
        query = incident.text.rstrip()[-self._characters :]
        found = (
            [document.metadata["case"] for document in store.similarity_search(query, k=DEPTH)]
            if query
            else []
        )
        return _of_cases(incident, "dense", found, self._triage.library, started)


def _embeddings(embedder: Embedder) -> Any:
    """Wrap whycrash's embedder in LangChain's interface."""
    # Imported here: the extra `model` installs it.
    from langchain_core.embeddings import Embeddings

    class EmbedderAdapter(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [list(map(float, vector)) for vector in embedder.embed(texts)]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return EmbedderAdapter()


def _of_cases(
    incident: Incident, retriever: str, owners: Iterable[str], library: Library, started: float
) -> Answer:
    """Make an answer of ranked owners of documents: the causes of those that are cases."""
    ranked = tuple(dict.fromkeys(owners))
    causes = tuple(dict.fromkeys(library.cases[owner].cause for owner in ranked if owner in library.cases))
    return Answer(
        incident.id,
        "diagnosed" if causes else "unknown",
        causes[:SHOWN],
        None,
        retrieved={retriever: ranked},
        seconds=perf_counter() - started,
    )


class RarestTemplates:
    """Mines templates with Drain3 and takes the error lines of the least frequent ones."""

    name = "Drain3 rarest"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; of equally rare templates the earlier line comes first."""
        started = perf_counter()
        rows = [row for row in rows_of(incident) if row.text.strip()]
        # Imported by name: the package is optional, and no extra installs it. Its default settings are used.
        texts = [row.text for row in rows]
        config = import_module("drain3.template_miner_config").TemplateMinerConfig()
        miner = import_module("drain3").TemplateMiner(config=config)
        templates = [
            miner.add_log_message(lines.parse_line(text.encode(), 1).body)["cluster_id"] for text in texts
        ]
        sizes = Counter(templates)
        worded = [
            (sizes[template], row)
            for template, row in zip(templates, rows, strict=True)
            if row.has_error_word
        ]
        rarest = [row for _, row in sorted(worded, key=lambda pair: (pair[0], pair[1].number))][:SHOWN]
        return answer_from_lines(incident, SelectedLines(rarest, bool(rarest)), self._grep, started)


def missing(*packages: str) -> str:
    """Give a sentence with the packages that are not installed; empty where all are."""
    absent = [package for package in packages if find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def all_systems(triage: Triage, fit: Sequence[Incident]) -> tuple[list[System], list[str]]:
    """Give the baselines whose packages are installed, and why others are skipped; `fit` is that split."""
    grep = Grep(log_patterns.load().rows)
    systems: list[System] = [
        LastLines(grep),
        FirstErrorLine(grep),
        WordsAlone(triage),
        MostFrequentCause(fit),
    ]
    skipped = []
    optional: list[tuple[System, tuple[str, ...]]] = [
        (DenseAlone(triage), ("langchain_core", "langchain_chroma", "langchain_text_splitters")),
        (RarestTemplates(grep), ("drain3",)),
    ]
    for system, packages in optional:
        reason = missing(*packages)
        if reason:
            skipped.append(f"{system.name}: {reason}")
        else:
            systems.append(system)
    return systems, skipped
