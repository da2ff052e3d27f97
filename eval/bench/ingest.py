"""Documents embedded a second, and the processor time of a query.

The peers are `SentenceTransformer.encode` called for each text, and once for all texts, as that package sorts
and batches too. All embed the same texts alternately, in one process with the same threads.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter, process_time

import numpy as np
from rich.table import Table

from corpus import library
from eval import incidents
from ingest import default_model, documents
from ingest.embedder import SentenceEmbedder, Vectors, open_embedder
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.scoring.retrieval import query_of
from service.settings import load_settings

# Pieces of the corpus; crashes, each of which JOBS jobs had.
PIECES = 200
CRASHES = 50
JOBS = 4
ROUNDS = 3
# Characters of a usual paste.
PASTE = 4_000
PASTES = 40
GOAL = 2.0


def run() -> Table:
    """Measure and give the table."""
    triage = Triage(load_settings())
    texts = _texts(triage)
    ours = open_embedder("", load_settings().home)
    plain = SentenceEmbedder(str(default_model.folder()), "plain")
    ways: dict[str, Callable[[Sequence[str]], Vectors]] = {
        "sentence-transformers, text by text": lambda these: np.concatenate(
            [plain.embed([text]) for text in these]
        ),
        "sentence-transformers, all at once": plain.embed,
        "whycrash, each text as if it were new": lambda these: _spread(ours.embed, these),
        "whycrash, the same crash once": ours.embed,
    }
    for way in ways.values():
        way(texts[:8])
    spent: dict[str, list[float]] = {name: [] for name in ways}
    made: dict[str, Vectors] = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            started = perf_counter()
            made[name] = way(texts)
            spent[name].append(perf_counter() - started)
    return _table(texts, spent, made, triage)


def _spread(embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
    """Embed texts without the cache of equal ones: each gets a space more than the last equal one."""
    seen: dict[str, int] = {}
    apart = []
    for text in texts:
        seen[text] = seen.get(text, -1) + 1
        apart.append(text + " " * seen[text])
    return embed(apart)


def _texts(triage: Triage) -> list[str]:
    pieces = [
        document.embedded for case in library.load().cases.values() for document in documents.of_case(case)
    ]
    small = [incident.text for incident in incidents.load() if len(incident.text) < 10 * PASTE]
    crashes = [
        document.embedded
        for text in small[:: max(1, len(small) // CRASHES)]
        if (document := documents.of_report(triage.reader.read(sources.from_text(text)), "job/one", "one"))
    ]
    return pieces[:: max(1, len(pieces) // PIECES)][:PIECES] + crashes[:CRASHES] * JOBS


def _table(
    texts: Sequence[str], spent: dict[str, list[float]], made: dict[str, Vectors], triage: Triage
) -> Table:
    names = list(spent)
    difference = max(float(np.abs(made[name] - made[names[1]]).max()) for name in names)
    table = Table(
        title=f"{len(texts)} documents, {len(set(texts))} different, {os.cpu_count()} cores; largest "
        f"difference of a component {difference:.1e} "
        f"(goal 1e-3, and {GOAL:.0f} times a plain loop)"
    )
    for column in ("what", "documents/s", "ratio to text by text", "to all at once"):
        table.add_column(column, justify="left" if column == "what" else "right")
    best = {name: statistics.median(values) for name, values in spent.items()}
    for name, seconds in best.items():
        table.add_row(
            name,
            f"{len(texts) / seconds:.0f}",
            f"{best[names[0]] / seconds:.2f}",
            f"{best[names[1]] / seconds:.2f}",
        )
    for name, values in _costs(triage).items():
        table.add_row(f"{name}, ms of processor time", f"{statistics.median(values):.1f}", "", "")
    return table


def _costs(triage: Triage) -> dict[str, list[float]]:
    """Give the processor milliseconds of queries and of whole triages of small pastes."""
    chosen = sorted(incidents.load(), key=lambda incident: abs(len(incident.text) - PASTE))[:PASTES]
    triage.diagnose(triage.read(sources.from_text("warm up")))
    triages: list[float] = []
    queries: list[float] = []
    for incident in chosen:
        diagnosing = partial(lambda given: triage.diagnose(triage.read(given.source())), incident)
        triages.append(_cost(diagnosing))
        # A space more, so that the vector of the triage is not found in the cache.
        query = query_of(triage.reader.read(incident.source())) + " "
        queries.append(_cost(partial(triage.embedder.embed, [query])))
    return {"one query's vector": queries, f"one triage of {PASTE // 1000} kB": triages}


def _cost(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return 1000 * (process_time() - started)
