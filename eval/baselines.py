"""Simple recipes as systems under evaluation: what the product has to be better than to be worth its size.

Each answers the same incidents in the same form. A cause is named by the product's own table of patterns,
so that a recipe loses by where it looks and not by what it knows; none gives a confidence.
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
    """A line of a log with its number, as everyone counts it: from 1, by newlines."""

    number: int
    text: str

    @property
    def has_error_word(self) -> bool:
        """Tell whether the line holds a word that people grep for."""
        return ERROR_WORD.search(self.text) is not None


def rows_of(incident: Incident) -> list[LogLine]:
    """Give a log's lines, without the empty piece behind its last newline."""
    texts = incident.lines
    return [LogLine(number, text) for number, text in enumerate(texts[:-1] if texts[-1] == "" else texts, 1)]


class Grep:
    """The failure rows of the pattern table, searched in one line at a time: no order, role or progress."""

    def __init__(self, table: Iterable[Pattern]) -> None:
        # Of rows that match one line as the reader does: what can begin a failure first, then what is sure.
        self._patterns = sorted(
            (row for row in table if row.fails and row.cause),
            key=lambda row: (_ROLES.index(row.role), _STRENGTHS.index(row.strength)),
        )

    def cause(self, text: str) -> str | None:
        """Name the cause that the most telling matching row gives; None where none matches."""
        line = lines.parse_line(_ESCAPE.sub("", text).encode(), 1)
        found = (
            row.cause
            for row in self._patterns
            if row.compiled.search(line.body) or row.compiled.search(line.text)
        )
        return next(found, None)

    def causes(self, picked: Iterable[LogLine]) -> list[tuple[int, str]]:
        """Give line number and cause of the rows of a log that a pattern knows, in the order given."""
        return [(row.number, cause) for row in picked if (cause := self.cause(row.text))]


@dataclass(frozen=True, slots=True)
class Picked:
    """Lines that a system points at, the most telling first, and whether it says that anything failed."""

    rows: Sequence[LogLine]
    failed: bool
    words: str = ""


def judged(incident: Incident, picked: Picked, grep: Grep, started: float) -> Answer:
    """Turn picked lines into an answer: the causes that patterns give these lines, in their order."""
    causes = tuple(dict.fromkeys(cause for _, cause in grep.causes(picked.rows)))
    verdict = "diagnosed" if causes else "unknown" if picked.failed else NO_FAILURE
    numbers = tuple(dict.fromkeys(row.number for row in picked.rows))
    return Answer(
        incident.id, verdict, causes, None, numbers, headline=picked.words, seconds=perf_counter() - started
    )


class LastLines:
    """Looks at the last lines as `tail` shows them and takes the last one that a pattern knows."""

    name = "last lines"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; where no pattern matches, error words alone are no cause."""
        started = perf_counter()
        tail = rows_of(incident)[: -LAST - 1 : -1]
        known = {number for number, _ in self._grep.causes(tail)}
        worded = [row for row in tail if row.has_error_word]
        rows = [row for row in tail if row.number in known] or worded
        return judged(incident, Picked(rows, bool(worded)), self._grep, started)


class FirstErrorLine:
    """Takes the first line of the log that holds an error word."""

    name = "first error line"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; a log without an error word is healthy."""
        started = perf_counter()
        first = [row for row in rows_of(incident) if row.has_error_word][:1]
        return judged(incident, Picked(first, bool(first)), self._grep, started)


class MostFrequentCause:
    """Always names the cause that most incidents of the fitting split have: what looking at nothing gives."""

    name = "most frequent cause"

    def __init__(self, fit: Iterable[Incident]) -> None:
        # An unanswerable incident may list what it could be; only a diagnosed one has a cause.
        labels = [incident.label for incident in fit if incident.label.verdict == "diagnosed"]
        counts = Counter(label.causes[0] for label in labels)
        self._ranked = tuple(sorted(counts, key=lambda cause: (-counts[cause], cause)))

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident without reading it."""
        return Answer(incident.id, "diagnosed" if self._ranked else "unknown", self._ranked[:SHOWN], None)


class WordsAlone:
    """Searches the product's index by BM25 with the log's last error lines; no signature, no vectors."""

    name = "BM25 alone"

    def __init__(self, triage: Triage) -> None:
        self._triage = triage

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident with the top case's cause, whether anything failed or not."""
        started = perf_counter()
        rows = rows_of(incident)
        query = [row for row in rows[-QUERY_LINES:] if row.has_error_word] or rows[-LAST:]
        hits = self._triage.index.words("\n".join(row.text for row in query), DEPTH)
        found = (hit.document.owner for hit in hits if hit.document.kind == "case")
        return _of_cases(incident, "words", found, self._triage.library, started)


class DenseAlone:
    """LangChain's plain recipe: recursive chunks of the cases in Chroma, asked with the log's end.

    The default model reads 256 tokens, so of a longer query only the beginning counts; the recipe does
    not say so, and a smaller number of `characters` asks with the very end.
    """

    name = "dense alone"

    def __init__(self, triage: Triage, characters: int = QUERY_CHARACTERS) -> None:
        self._triage = triage
        self._characters = characters

    @cached_property
    def _store(self) -> Any:
        os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")  # Chroma would report its use otherwise
        # Imported by name: the packages are optional and slow, and the splitter may be missing when types are
        # checked.
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
        """Answer one incident with the nearest case's cause, whether anything failed or not."""
        store = self._store  # filled before the clock starts, as the index of the product is
        started = perf_counter()
        query = incident.text.rstrip()[-self._characters :]
        found = (
            [document.metadata["case"] for document in store.similarity_search(query, k=DEPTH)]
            if query
            else []
        )
        return _of_cases(incident, "dense", found, self._triage.library, started)


def _embeddings(embedder: Embedder) -> Any:
    """Show the product's embedder to LangChain."""
    # Imported here: the extra `model` brings it, and its base class is needed to derive from.
    from langchain_core.embeddings import Embeddings

    class Ours(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [list(map(float, vector)) for vector in embedder.embed(texts)]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return Ours()


def _of_cases(
    incident: Incident, retriever: str, owners: Iterable[str], library: Library, started: float
) -> Answer:
    """Name the causes of retrieved cases, in their order."""
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
    """Mines the log's templates with Drain3 and takes the error lines of those that are seen least."""

    name = "Drain3 rarest"

    def __init__(self, grep: Grep) -> None:
        self._grep = grep

    def answer(self, incident: Incident) -> Answer:
        """Answer one incident; of equally rare templates the earlier line counts more."""
        started = perf_counter()
        rows = [row for row in rows_of(incident) if row.text.strip()]
        # Each line's template, by its number in Drain3's tree with its own settings.
        # Imported by name: the package is optional, and no extra brings it.
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
        return judged(incident, Picked(rarest, bool(rarest)), self._grep, started)


def missing(*packages: str) -> str:
    """Say which packages are not installed; empty where all are."""
    absent = [package for package in packages if find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def all_systems(triage: Triage, fit: Sequence[Incident]) -> tuple[list[System], list[str]]:
    """Give the baselines that can run here, and why the others are skipped; `fit` is the fitting split."""
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
