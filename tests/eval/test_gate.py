"""The gate stands under the product's figures, and deliberately broken builds fall through it."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval import gate, incidents
from eval.answers import Answer, System
from eval.composer import Composer
from eval.incidents import Incident
from eval.metrics import Score, score
from ingest.logs.inputs import sources
from ingest.logs.inputs.sources import LogSource
from ingest.logs.report import CrashReport
from service.pipeline.triage import Triage
from service.scoring.retrieval import Retriever, SignatureMatch
from tests.tables import each_row


class RandomCases(Retriever):
    """A retriever that finds cases by lot."""

    def signatures(self, report: CrashReport) -> list[SignatureMatch]:
        lot = random.Random(report.source)  # noqa: S311 - a lot, not a secret
        cases = sorted(self._library.cases.values(), key=lambda case: case.id)
        return [SignatureMatch(case, 3, at_root=True) for case in lot.sample(cases, 3)]


class Answered:
    """The product, asked once about each incident for all tests."""

    name = "composer"

    def __init__(self, inner: System) -> None:
        self._inner = inner
        self._told: dict[str, Answer] = {}

    def answer(self, incident: Incident) -> Answer:
        if incident.id not in self._told:
            self._told[incident.id] = self._inner.answer(incident)
        return self._told[incident.id]


class EveryCause:
    """A composer that lists every cause there is."""

    name = "composer"

    def __init__(self, inner: System, causes: Sequence[str]) -> None:
        self._inner = inner
        self._causes = tuple(sorted(causes))

    def answer(self, incident: Incident) -> Answer:
        inner = self._inner.answer(incident)
        return Answer(
            incident.id,
            "diagnosed",
            self._causes,
            inner.confidence,
            inner.lines,
            inner.changes,
            grounded=inner.grounded,
        )


class DroppedLines(Incident):
    """An incident whose log is read without each tenth line."""

    def source(self) -> LogSource:
        kept = [row for number, row in enumerate(self.lines, 1) if number % 10]
        return sources.from_text("\n".join(kept), self.id)


@pytest.fixture(scope="module")
def some() -> list[Incident]:
    return incidents.load(split="test")


@pytest.fixture(scope="module")
def product(triage: Triage) -> System:
    return Answered(Composer(triage))


def scores(system: System, some: Sequence[Incident], triage: Triage) -> dict[str, list[Score]]:
    """Score one system on the test split."""
    return {"test": [score(incident, system.answer(incident), triage.library) for incident in some]}


@pytest.mark.long
def test_the_product_stands_on_its_floors(product: System, triage: Triage, some: list[Incident]) -> None:
    """The figures that were reached once are reached still."""
    assert gate.below_floors(scores(product, some, triage), gate.load()) == []


@pytest.mark.long
def test_a_retriever_of_random_cases_falls(triage: Triage, some: list[Incident]) -> None:
    """Cases by lot cost the cause and the setting."""
    broken = copy.copy(triage)
    broken.__dict__["retriever"] = RandomCases(triage.library, triage.index, triage.embedder)
    fallen = gate.below_floors(scores(Composer(broken), some, triage), gate.load())
    assert any("cause_top1" in row for row in fallen)
    assert any("setting" in row for row in fallen)


@pytest.mark.long
def test_a_composer_that_lists_every_cause_falls(
    product: System, triage: Triage, some: list[Incident]
) -> None:
    """Listing everything loses."""
    greedy = EveryCause(product, list(triage.library.causes))
    fallen = gate.below_floors(scores(greedy, some, triage), gate.load())
    assert any("cause_top1" in row for row in fallen)
    assert any("healthy" in row for row in fallen)


@pytest.mark.long
def test_a_reader_that_drops_each_tenth_line_falls(triage: Triage, some: list[Incident]) -> None:
    """Lines that are never read cannot be named."""
    torn = [DroppedLines(incident.label, incident.folder) for incident in some]
    fallen = gate.below_floors(scores(Composer(triage), torn, triage), gate.load())
    assert any("root_line" in row for row in fallen)


@each_row(
    ("old", "reached", "expected"),
    [({}, 0.9, 0.89), ({"grounded": 0.5}, 0.9, 0.89), ({"grounded": 0.95}, 0.9, 0.95)],
)
def test_a_floor_only_rises(old: dict[str, float], reached: float, expected: float) -> None:
    """A better figure lifts its floor, a worse one does not lower it."""
    fields = dict.fromkeys(Score.__dataclass_fields__, None) | {
        "incident": "a",
        "right": 1.0,
        "grounded": reached,
    }
    rows = {"test": [Score(**fields)]}  # type: ignore[arg-type]
    assert gate.raised_floors(rows, {"test": old})["test"]["grounded"] == pytest.approx(expected)


def test_a_metric_that_vanishes_falls() -> None:
    """What is not scored any more is no success."""
    assert gate.below_floors({"test": []}, {"test": {"cause_top1": 0.5}}) == [
        "test: cause_top1 is not scored any more (floor 0.500)"
    ]


def test_floors_are_read_back(tmp_path: Path) -> None:
    """What is saved is what is loaded."""
    gate.save({"fit": {"ece": 0.1}}, tmp_path / "floors.yaml")
    assert gate.load(tmp_path / "floors.yaml") == {"fit": {"ece": 0.1}}
