"""The classifier of failing messages: what ships, what it says of unheard ones, and what it costs."""

from __future__ import annotations

import math
from time import thread_time

from corpus.extract.messages.labels import labels_digest
from ingest.logs.stacks.stack import Frame
from service.scoring.message_classifier import (
    FILE,
    FailingMessage,
    MessageClassifier,
    failing_message_of,
    features_of,
    message_in,
    shipped,
)
from tests.factories import event, whole_corpus
from tests.tables import each_row

MOST_BYTES = 4 << 20


def test_the_model_that_ships_is_small_and_of_the_labels_that_ship() -> None:
    assert FILE.stat().st_size <= MOST_BYTES
    assert set(shipped().causes) <= set(whole_corpus().causes)
    assert shipped().labels == labels_digest(), "fit it again: python -m eval.classify --texts FILE --write"


@each_row(
    ("line", "cause"),
    [
        ("KeyError: \"Column 'grades' not in the dataset. Current columns: ['pupils']\"", "dataset-schema"),
        ("ValueError: The column 'grades' is missing in the training dataset", "dataset-schema"),
        (
            "RuntimeError: crate kernels need a GPU of compute capability 9.0 or newer",
            "cuda-arch-unsupported",
        ),
        ("ImportError: Please install plumkit with `pip install plumkit` to load crates", "package-missing"),
        ("RuntimeError: No space left on device while the crate was written", "disk-full"),
        ("ValueError: Model architecture PlumForCausalLM is not supported by crates", "model-unsupported"),
        (
            "ValueError: plum_parallel_size (3) must divide the number of attention heads (32)",
            "parallelism-invalid",
        ),
    ],
)
def test_a_message_of_a_package_nobody_has_heard_of_is_known_by_its_words(line: str, cause: str) -> None:
    assert next(iter(shipped().odds(message_in(line)))) == cause


def test_odds_add_up_are_in_order_and_the_same_each_time() -> None:
    message = message_in("RuntimeError: expected scalar type Half but found Float")
    odds = shipped().odds(message)
    assert math.isclose(sum(odds.values()), 1.0, rel_tol=1e-5)
    assert list(odds.values()) == sorted(odds.values(), reverse=True)
    assert MessageClassifier(FILE).odds(message) == odds


def test_nothing_is_said_of_words_that_were_never_seen() -> None:
    assert shipped().odds(FailingMessage("qwxzzy plumbago 77")) == {}
    assert shipped().odds(FailingMessage("")) == {}


def test_the_exception_is_told_from_its_message_and_the_place_is_that_of_the_installed_call() -> None:
    frames = (
        Frame("/opt/env/lib/python3.11/site-packages/orchard/pears/loader.py", 12, "load_pears"),
        Frame("/home/u/job.py", 3, "main"),
    )
    body = "orchard.errors.PearError: no pears"
    told = failing_message_of(event(1, body=body, frames=frames))
    assert told == FailingMessage("no pears", "PearError", "orchard/pears/loader.py", "load_pears")
    assert message_in("the pears are gone") == FailingMessage("the pears are gone")


def test_a_place_and_an_exception_count_beside_the_words() -> None:
    bare = features_of(FailingMessage("no pears"))
    placed = features_of(FailingMessage("no pears", "PearError", "orchard/pears/loader.py", "load_pears"))
    assert len(placed) > len(bare)
    assert math.isclose(sum(share**2 for share in bare.values()), 1.0)


def test_a_hostile_line_costs_no_more_than_a_long_one() -> None:
    """What is read of a message is bounded: a hundred times the text does not take twenty times as long."""

    def seconds(text: str) -> float:
        begun = thread_time()
        for _ in range(20):
            shipped().odds(message_in(text))
        return thread_time() - begun

    for unit in ("memory error ", "Aa.", "Error", "a" * 50 + " ", "\u5b57"):
        short = min(seconds((unit * 4000)[:2000]) for _ in range(5))
        long = min(seconds((unit * 100000)[:200000]) for _ in range(5))
        assert long < 20 * short, unit
