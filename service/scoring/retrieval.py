"""From a CrashReport to ranked cases: signatures, words and vectors, each alone and fused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from corpus.conditions import subjects_of
from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.schema import Case
from ingest.documents import Document, DocumentKind, frame_path
from ingest.embedder import Embedder
from ingest.index import Index, SearchHit
from ingest.logs.conditions import ReportView, all_hold, holds
from ingest.logs.report import CrashReport

DEPTH = 40
# Reciprocal rank fusion (Cormack et al., 2009): a constant that keeps the first ranks from being all.
RRF = 20
# A signature that holds is a checked fact; words and vectors are likeness.
WEIGHTS: Mapping[str, float] = {"signature": 6.0, "words": 1.0, "dense": 0.7}


@dataclass(frozen=True, slots=True)
class SignatureMatch:
    """A case whose conditions hold.

    `conditions` counts what was asked for positively; `at_root` tells whether one of them holds of the
    root event itself, not only of what came with it.
    """

    case: Case
    conditions: int
    at_root: bool


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A retrieved case, note or report. `parts` gives the rank in each retriever that found it, from 1."""

    owner: str
    kind: DocumentKind
    score: float
    document: Document | None
    parts: Mapping[str, int]


@dataclass(frozen=True)
class Retrieval:
    """Everything found for one report."""

    signatures: tuple[SignatureMatch, ...]
    ranked: tuple[RankedHit, ...]
    query: str = ""
    by_retriever: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Retriever:
    """Looks up cases in a library and an index; either search may be left out."""

    def __init__(self, library: Library, index: Index | None, embedder: Embedder | None) -> None:
        self._library = library
        self._index = index
        self._embedder = embedder

    def retrieve(self, report: CrashReport, team: str = "") -> Retrieval:
        """Find what is known of a crash to everybody and to a team, best first."""
        signatures = self.signatures(report)
        query = query_of(report)
        lists = {"signature": tuple(match.case.id for match in signatures)}
        documents: dict[str, Document] = {}
        for name, hits in (("words", self.words(query, team=team)), ("dense", self.dense(query, team=team))):
            lists[name] = tuple(dict.fromkeys(hit.document.owner for hit in hits))
            for hit in hits:
                documents.setdefault(hit.document.owner, hit.document)
        return Retrieval(tuple(signatures), tuple(fuse_rankings(lists, documents)), query, lists)

    def signatures(self, report: CrashReport) -> list[SignatureMatch]:
        """Give the cases whose conditions hold and that none of them refines, the most exact first."""
        if report.root is None:
            return []
        view = report.view()
        # Those that need no pattern, or one of those that the log shows.
        possible = (case for case, needed in self._needed if not needed or not needed.isdisjoint(view.names))
        applying = [case for case in possible if signature_applies(case, view)]
        refined = {name for case in applying for name in self._library.refined[case.id]}
        found = [_match(case, view) for case in applying if case.id not in refined]
        return sorted(found, key=lambda match: (not match.at_root, -match.conditions, match.case.id))

    @cached_property
    def _needed(self) -> Sequence[tuple[Case, frozenset[str]]]:
        return [(case, _needed_patterns(case)) for case in self._library.cases.values()]

    def words(self, query: str, count: int = DEPTH, team: str = "") -> list[SearchHit]:
        """Search by words what everybody and a team may find."""
        return self._index.words(query, count, team) if self._index and query else []

    def dense(self, query: str, count: int = DEPTH, team: str = "") -> list[SearchHit]:
        """Search by vectors what everybody and a team may find."""
        if self._index is None or self._embedder is None or not query:
            return []
        return self._index.dense(self._embedder.embed([query])[0], count, team)

    def search(self, text: str, count: int = 10, team: str = "") -> list[RankedHit]:
        """Search cases, notes and past reports, everybody's and a team's, with a person's words."""
        lists: dict[str, tuple[str, ...]] = {}
        documents: dict[str, Document] = {}
        for name, hits in (("words", self.words(text, team=team)), ("dense", self.dense(text, team=team))):
            lists[name] = tuple(dict.fromkeys(hit.document.owner for hit in hits))
            for hit in hits:
                documents.setdefault(hit.document.owner, hit.document)
        return fuse_rankings(lists, documents)[:count]


# How many conditions the very words of a message count for.
WORD_FOR_WORD = 5


# A condition that is one pattern's name.
_PATTERN = re.compile(r"pattern:([\w./-]+)")


def _needed_patterns(case: Case) -> frozenset[str]:
    """Name the patterns of which a log shows one where a case's signature holds; none if it needs none."""
    for conditions in (case.signatures.any, *((condition,) for condition in case.signatures.all)):
        matches = [_PATTERN.fullmatch(condition) for condition in conditions]
        if matches and all(matches):
            return frozenset(match[1] for match in matches if match)
    return frozenset()


def signature_applies(case: Case, view: ReportView) -> bool:
    """Tell whether a case's signature holds, and its frameworks' versions do not speak against it."""
    signature = case.signatures
    if signature.any and not any(holds(condition, view) for condition in signature.any):
        return False
    if not all_hold(signature.all, view) or any(holds(condition, view) for condition in signature.none):
        return False
    seen = {found.name: found.version for found in view.frameworks}
    generic = known_frameworks().generic
    special = seen.keys() - generic
    trainer = {case.framework} & known_frameworks().trainers
    if trainer - seen.keys() - generic and view.kind is not None and not view.kind.trains:
        return False  # a trainer's case, of a job that does not train
    # A library that other trainers run fails in their jobs, too, with the very words that it is known by.
    below = signature.quotes_message and case.framework in known_frameworks().driven
    if special and case.frameworks and not below and not case.frameworks.keys() & (special | generic):
        return False  # another trainer's case, whose words the log happens to share
    return all(
        holds(f"framework:{name}{specifier}", view)
        for name, specifier in case.frameworks.items()
        if name in seen
    )


def _match(case: Case, view: ReportView) -> SignatureMatch:
    signature = case.signatures
    root = view.root
    assert root is not None  # noqa: S101 - signatures are only evaluated where there is a root
    at_root = ReportView(
        (root,),
        root,
        [fact for fact in view.facts if fact.line == root.line],
        view.frameworks,
        view.settings,
        view.phase,
    )
    # What frameworks run and what is configured holds anywhere; only the failure's own signs bind to the
    # root.
    own = [
        text
        for text in (*signature.any, *signature.all)
        if subjects_of(text) - {"framework", "config", "cause", "job"}
    ]
    # What the root's line says of its cause counts with the line.
    asked = sum(subjects_of(text) != {"cause"} for text in signature.all) + bool(signature.any)
    # What the line says word for word is more exact than any pattern of its kind.
    asked += WORD_FOR_WORD * signature.quotes_message
    return SignatureMatch(case, asked, any(holds(text, at_root) for text in own))


def fuse_rankings(lists: Mapping[str, Sequence[str]], documents: Mapping[str, Document]) -> list[RankedHit]:
    """Fuse ranked lists of owners into one; the score is the share of the best possible."""
    best = sum(WEIGHTS[name] for name in lists) / (RRF + 1)
    ranks: dict[str, dict[str, int]] = {}
    for name, owners in lists.items():
        for rank, owner in enumerate(owners, 1):
            ranks.setdefault(owner, {})[name] = rank
    found = [
        RankedHit(
            owner,
            documents[owner].kind if owner in documents else "case",
            sum(WEIGHTS[name] / (RRF + rank) for name, rank in parts.items()) / best,
            documents.get(owner),
            parts,
        )
        for owner, parts in ranks.items()
    ]
    return sorted(found, key=lambda item: (-item.score, item.owner))


def query_of(report: CrashReport) -> str:
    """Put what a report says of its root into words to search with."""
    root = report.root
    if root is None:
        return ""
    names = " ".join(found.name for found in report.frameworks[:4])
    others = [
        event.body for event in report.standing if event is not root and event.pattern_role == "origin"
    ][:2]
    parts = [
        # Whoever quotes a message puts marks around it, which are none of its words.
        root.body[:500].strip(" *`~"),
        root.exception,
        frame_path(report),
        report.phase,
        names,
        *(text[:200] for text in others),
    ]
    return "\n".join(dict.fromkeys(part for part in parts if part))
