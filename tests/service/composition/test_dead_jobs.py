"""Jobs of `dead_jobs.yaml` that died: none is green, and where anything says so none is without a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.library import read_yaml
from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis, Outcome
from tests.warm import diagnosed

JOBS: dict[str, Any] = read_yaml(Path(__file__).with_name("dead_jobs.yaml"))
# Every so many of the longer logs are tried in each run of the tests, and all of them in the long one.
SAMPLE = 7


def answer(triage: Triage, text: str, outcome: Outcome | None = None) -> Diagnosis:
    return diagnosed(triage, sources.from_text(text), "en", outcome=outcome)


def works() -> list[str]:
    return [*JOBS["ends"].values(), *JOBS["stops"].values()]


def longer() -> Iterator[str]:
    """Give every work with every death below it."""
    return (work + death for death in JOBS["deaths"] for work in works())


def well(triage: Triage, texts: list[str]) -> list[str]:
    """Give the texts in which nothing is said to have failed."""
    return [text for text in texts if answer(triage, text).verdict == "no-failure"]


def green(triage: Triage, texts: list[str]) -> list[str]:
    """Give the texts that are said to have ended well."""
    found = [(text, answer(triage, text)) for text in texts]
    return [text for text, item in found if (item.verdict, item.standing) == ("no-failure", "established")]


def test_that_the_tables_are_as_large_as_they_are_meant_to_be() -> None:
    assert len(set(JOBS["told"])) >= 120
    assert len(set(longer())) >= 200


def test_that_a_short_word_of_a_failure_is_never_none(triage: Triage) -> None:
    assert well(triage, JOBS["told"]) == []


def test_that_a_few_words_without_an_end_are_never_green(triage: Triage) -> None:
    assert green(triage, JOBS["silent"]) == []


def test_that_work_is_green_where_it_ends_and_never_where_it_stops(triage: Triage) -> None:
    """Without this the tests below would hold for a program that takes nothing for a good end."""
    assert green(triage, works()) == list(JOBS["ends"].values())
    assert well(triage, works()) == works()


def test_that_a_failure_below_a_good_end_stands(triage: Triage) -> None:
    """A later stage that died, a save that failed, a launcher's or a shell's report of a bad end."""
    assert well(triage, list(longer())[::SAMPLE]) == []


@pytest.mark.long
def test_that_a_failure_below_any_work_stands(triage: Triage) -> None:
    assert well(triage, list(longer())) == []


def test_that_a_file_of_several_programs_of_which_one_died_is_never_green(triage: Triage) -> None:
    assert green(triage, [work + death for death in JOBS["doubtful"] for work in works()]) == []


def test_that_a_bad_end_that_the_caller_knows_outweighs_every_good_word(triage: Triage) -> None:
    ends = (Outcome(exit_code=1), Outcome(signal="SIGSEGV"), Outcome(state="OUT_OF_MEMORY"))
    found = [(work, end, answer(triage, work, end)) for work in works() for end in ends]
    assert [(work, end) for work, end, item in found if item.verdict == "no-failure"] == []
